//! `lstep train`: a model that learns, in a folder from which it can go on.

use crate::args::{Reading, one_of, read_showing, run_model};
use crate::interrupt::{Stopped, all_is_saved, go_on, stop_flag};
use crate::report::evaluate_showing;
use crate::{evaluation, progress, say, verdict};
use anyhow::{Context, Result, bail};
use clap::Args;
use clap::builder::PossibleValuesParser;
use lstep::disk::{SETTINGS_LIMIT, read_text, write_text};
use lstep::error::printable_line;
use lstep::evaluation::KeptRanks;
use lstep::model::{ModelConfig, Reduce};
use lstep::protocol::Protocol;
use lstep::report::run_page;
use lstep::results::EpochReport;
use lstep::settings::{Purpose, RunConfig, preset_names};
use lstep::stream::Stream;
use lstep::training::{RunFolder, Selection, TrainEvent, TrainingRun, stopped_while_gaining};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Instant;

/// Train a model on a stream, with everything needed to go on, evaluate and score.
///
/// On your own events it learns to rank: who is next among all? The report says how often that was
/// right, and whether it is better than counting. With a preset, or a protocol of published tables,
/// it trains and reports as those do.
///
/// Ctrl-C, SIGTERM or SIGHUP finishes the step, saves and stops; `--resume` goes on, and ends with the same weights to
/// the bit as if there had been no stop.
#[derive(Args)]
#[command(after_help = "\
Examples:
  lstep train events.csv --out run
  lstep train logs/*.csv.gz --out run                                    several files, or a folder of parts
  lstep train events.csv --for benchmark --out run                       AP and AUC, as in published tables
  lstep train uci/events.csv.gz --preset uci --out run --seed 1
  lstep train uci/events.csv.gz --model graphmixer --preset uci --out run
  lstep train events.csv --model tgn --epochs 20 --out run
  lstep train tgbl-wiki_edgelist_v2.csv --preset tgbl-wiki --out run     selects on validation MRR, as TGB does
  lstep train events.parquet --config my.toml --set model.recent=30 --set model.scope=all --out run
  lstep train newer.csv --from run --out newer      goes on from the weights of a run, with its settings
  lstep train --resume run
  lstep train --resume run --epochs 100")]
pub struct Train {
    /// The events, as for `lstep inspect`: a file, several files, or a folder of parts
    #[arg(value_name = "EVENTS", required_unless_present_any = ["resume", "from"])]
    events: Vec<PathBuf>,

    /// Folder for the run; it must not hold one yet
    #[arg(long, value_name = "RUN", required_unless_present = "resume")]
    out: Option<PathBuf>,

    /// Go on with the run in this folder; for longer with --epochs N or --set train.patience=N
    #[arg(long, value_name = "RUN", conflicts_with_all = ["events", "out", "model", "purpose", "preset", "protocol", "config", "seed", "step"])]
    resume: Option<PathBuf>,

    /// Begin with the weights and the settings of another run, on newer events [default: its own
    /// file, which may have grown]
    #[arg(long, value_name = "RUN", conflicts_with_all = ["resume", "model", "purpose", "preset", "protocol", "config"])]
    from: Option<PathBuf>,

    /// What do you want to do? `ranking`: who is next among all destinations, with MRR and Hits@10.
    /// `benchmark`: AP and AUC as published [default: benchmark with --preset, --config or the
    /// protocols dyglib and tgb, else ranking]
    #[arg(long = "for", value_name = "PURPOSE", value_parser = one_of([Purpose::Ranking, Purpose::Benchmark]))]
    purpose: Option<Purpose>,

    /// What is trained [default: what --config or --set says, else lstep-pair for ranking and lstep
    /// for benchmarks]. A counting model (heuristics, edgebank, poptrack) makes a run with a state
    /// and no weights
    #[arg(long, value_name = "NAME", value_parser = run_model)]
    model: Option<String>,

    /// The published settings of the model for a dataset, and the protocol of its tables
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(preset_names()))]
    preset: Option<String>,

    /// How to split, step and ask, with that protocol's own settings [default: the preset's, else
    /// stream]
    #[arg(long, value_name = "NAME", value_parser = Protocol::NAMES)]
    protocol: Option<String>,

    /// Settings as TOML: the tables `protocol`, `model` and `train`, any part of them
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Most epochs, the same as --set train.epochs=N
    #[arg(long, value_name = "N")]
    epochs: Option<u32>,

    /// Seed of weights and training's negatives, the same as --set train.seed=N
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// Events in a step, or `time`, the same as --set protocol.step=N
    #[arg(long, value_name = "N")]
    step: Option<String>,

    /// A single setting, for example model.recent=30
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,

    #[command(flatten)]
    reading: Reading,

    /// Print the final report as JSON
    #[arg(long)]
    json: bool,
}

/// How many processes MPI's launcher has started, if it has started this one beside others: Open MPI
/// says so by the first variable, MPICH and Intel MPI by the second.
fn started_by_mpi(variable: impl Fn(&str) -> Option<String>) -> Option<u32> {
    let count = |name: &&str| variable(name)?.parse().ok();
    ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE"].iter().find_map(count).filter(|&count| count > 1)
}

impl Train {
    /// Trains, evaluates, prints.
    pub fn run(&self) -> Result<()> {
        if let Some(count) = started_by_mpi(|name| std::env::var(name).ok()) {
            bail!(
                "this is one of {count} processes that MPI has started, and `lstep train` trains \
                 alone: start `lstep-mpi train`, which shares one training between them, or \
                 `lstep compare --worker` for many trainings"
            );
        }
        self.run_sharing(None)
    }

    /// The same, shared with other processes. Only the first of them writes and prints.
    pub fn run_on_ranks(&self, reduce: Box<dyn Reduce>) -> Result<()> {
        self.run_sharing(Some(reduce))
    }

    fn run_sharing(&self, mut reduce: Option<Box<dyn Reduce>>) -> Result<()> {
        let keeps = reduce.as_ref().is_none_or(|reduce| reduce.rank() == 0);
        self.reading.refuse_on_resume(self.resume.is_some())?;
        let folder = RunFolder::new(
            self.resume.as_ref().or(self.out.as_ref()).context("name a folder with --out")?,
        );
        // Another writer is noticed before the events are read.
        let _resuming = match &self.resume {
            Some(_) if keeps && folder.holds_a_run() => Some(folder.lock()?),
            _ => None,
        };
        let keys = self.keys();
        let mut fit = match (&self.resume, &keys[..]) {
            (None, keys) => self.begin(&folder, keys, reduce.take())?,
            (Some(_), keys) if !keeps => TrainingRun::resume_beside(folder.clone(), keys)?,
            (Some(_), []) => TrainingRun::resume(folder.clone())?,
            (Some(_), keys) => TrainingRun::resume_longer(folder.clone(), keys)?,
        };
        if let Some(reduce) = reduce {
            fit = fit.share(reduce)?;
        }
        if !keeps {
            return match train_showing(&mut fit)? {
                true => Ok(()),
                false => bail!(Stopped("Stopped.".into())),
            };
        }
        // The folder stays locked until the report is written.
        let _writing = folder.lock()?;
        let shown = self
            .resume
            .as_ref()
            .or(self.out.as_ref())
            .map(|path| path.display().to_string())
            .unwrap_or_default();
        let stopped = format!("Stopped and saved. Go on with: lstep train --resume {shown}");
        // Stopped after the last step, too, the evaluation is left for later.
        if !train_showing(&mut fit)? || stop_flag()?.load(Ordering::Relaxed) {
            bail!(Stopped(stopped));
        }
        all_is_saved(stopped);
        let best_epoch = fit.selection().best_epoch;
        let trained = fit.into_trained()?;
        let mut evaluated = evaluate_showing(&trained)?;
        evaluated.report.summary = verdict::summary(&evaluated.report);
        let report = &evaluated.report;
        let text = report.to_json();
        if let Some(curve) = &evaluated.calibration {
            folder.write_calibration(curve)?;
        }
        KeptRanks::write(folder.file("ranks.json"), &evaluated.kept_ranks())?;
        write_text(folder.file("report.json"), &text)?;
        write_text(folder.file("report.html"), &run_page(&folder, &trained, &evaluated)?)?;
        if self.json {
            return say(text);
        }
        say(format!(
            "Best epoch: {best_epoch}. Numbers are in {shown}/report.json, the page is \
             {shown}/report.html"
        ))?;
        evaluation::show(report)?;
        if let Some(held) = &report.reliability {
            say(format!(
                "Probabilities:  off by {:.2} points of a hundred on average (ECE)",
                100.0 * held.ece
            ))?;
        }
        if let Some(most) = stopped_while_gaining(trained.config(), &folder.epochs()?) {
            crate::tell(format!(
                "The best epoch is the last of {most}: go on with lstep train --resume {shown} \
                 --epochs {}",
                2 * most
            ));
        }
        let events = &trained.config().data.events;
        let Some(summary) = &report.summary else { return Ok(()) };
        let width = std::io::stdout().is_terminal().then_some(80);
        say(verdict::lines(summary, &shown, events, width))
    }

    /// The settings that flags name, and then those of `--set`, which go before them.
    fn keys(&self) -> Vec<String> {
        let flags = [
            self.epochs.map(|epochs| format!("train.epochs={epochs}")),
            self.seed.map(|seed| format!("train.seed={seed}")),
            self.step.as_ref().map(|step| format!("protocol.step={step}")),
        ];
        flags.into_iter().flatten().chain(self.set.iter().cloned()).collect()
    }

    /// What the run is for. What was published, or a file of settings, decides for itself.
    fn purpose(&self) -> Option<Purpose> {
        let key = |name: &str| self.set.iter().any(|set| set.starts_with(name));
        let published = self.preset.is_some()
            || self.config.is_some()
            || self.from.is_some()
            || self.protocol.as_ref().is_some_and(|protocol| protocol != "stream")
            || key("protocol.name=")
            || key("purpose=");
        self.purpose.or((!published).then_some(Purpose::Ranking))
    }

    /// Settings that name another model or protocol than a flag would silently go before it.
    fn refuse_contradiction(&self, file: Option<&str>, config: &RunConfig) -> Result<()> {
        for (flag, given, key, found) in [
            ("--model", &self.model, "model.name=", config.model.name()),
            ("--protocol", &self.protocol, "protocol.name=", config.protocol.name()),
        ] {
            // Counting models have several spellings.
            let same = |given: &str| {
                given == found
                    || ModelConfig::of_run(given).is_ok_and(|model| model.name() == found)
            };
            if let Some(given) = given
                && !same(given)
            {
                let by_key = self.set.iter().any(|set| set.starts_with(key));
                let by = file.filter(|_| !by_key).unwrap_or("--set");
                bail!("{flag} is {given}, but {by} makes it {found}: leave one of the two out");
            }
        }
        Ok(())
    }

    /// Begins a run, in its folder if this process keeps it.
    fn begin(
        &self,
        folder: &RunFolder,
        keys: &[String],
        reduce: Option<Box<dyn Reduce>>,
    ) -> Result<TrainingRun> {
        let from = self.from.as_ref().map(RunFolder::new);
        let under = from.as_ref().map(RunFolder::config).transpose()?;
        let events: Vec<PathBuf> = match (&self.events[..], &under) {
            ([], Some(RunConfig { data, .. })) => {
                std::iter::once(&data.events).chain(&data.more).cloned().collect()
            }
            (given, _) => given.to_vec(),
        };
        if events.iter().any(|file| file == Path::new("-")) {
            bail!("a run has to find its events again: give a file, not standard input");
        }
        // A run is resumed from anywhere.
        let lasting = |file: &PathBuf| {
            file.canonicalize().with_context(|| format!("cannot read {}", file.display()))
        };
        let events = events.iter().map(lasting).collect::<Result<Vec<PathBuf>>>()?;
        let of_run = self.from.as_ref().map(|run| run.join("config.toml"));
        let file = match self.config.as_ref().or(of_run.as_ref()) {
            Some(path) => {
                let text = read_text(path, SETTINGS_LIMIT).context("cannot read the settings")?;
                Some((path.display().to_string(), text))
            }
            None => None,
        };
        if let Some(key) = self.set.iter().find(|key| key.starts_with("data.events=")) {
            bail!("--set {key} has no meaning here: name the events as the first argument");
        }
        let mut builder = RunConfig::builder(self.reading.data_of(&events))
            .model(self.model.as_deref())
            .preset(self.preset.as_deref())
            .protocol(self.protocol.as_deref())
            .purpose(self.purpose())
            .set(keys);
        if let Some((name, text)) = &file {
            builder = builder.file(name, text);
        }
        let mut config = builder.build()?;
        self.refuse_contradiction(file.as_ref().map(|(name, _)| name.as_str()), &config)?;
        // The settings of another run name its events and how they are read; what the command line
        // says goes before it.
        config.data = self.reading.data_over(&events, config.data);
        if let Some(features) = &mut config.data.node_features {
            *features = features
                .canonicalize()
                .with_context(|| format!("cannot read {}", features.display()))?;
        }
        let started = Instant::now();
        let stream = Stream::from(read_showing(&config.data)?);
        let seconds = started.elapsed().as_secs_f64();
        let run = match reduce {
            None => TrainingRun::begin(config, stream, folder.clone())?,
            Some(first) if first.rank() == 0 => {
                TrainingRun::begin_sharing(config, stream, folder.clone(), first)?
            }
            Some(other) => TrainingRun::begin_beside(config, stream, other)?,
        };
        let mut run = run.having_read_for(seconds);
        if let Some(from) = &from {
            run.take_weights(from)?;
        }
        folder.write_command(&command())?;
        Ok(run)
    }
}

/// The command as it was given, with RUN for the folder and names in place of paths: where files
/// are changes no report.
fn command() -> String {
    let mut words = vec!["lstep".to_string()];
    let mut out = false;
    for word in std::env::args_os().skip(1) {
        let path = Path::new(&word);
        let word = printable_line(&word.to_string_lossy()).into_owned();
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        words.push(match (std::mem::take(&mut out), name) {
            (true, _) => "RUN".into(),
            (false, _) if word.starts_with("--out=") => "--out=RUN".into(),
            (false, Some(name)) if path.exists() => verdict::shell_word(&printable_line(&name)),
            (false, _) => verdict::shell_word(&word),
        });
        out = word == "--out";
    }
    words.join(" ")
}

/// Trains with a bar on a terminal, or a line for each epoch; Ctrl-C stops after the step. Tells
/// whether it is finished.
pub fn train_showing(fit: &mut TrainingRun) -> Result<bool> {
    stop_flag()?;
    let terminal = std::io::stderr().is_terminal();
    let bar = progress::epoch();
    let mut quality = String::new();
    let (most, patience) = (fit.config().train.epochs, fit.config().train.patience);
    let Selection { mut best_epoch, mut waited, .. } = fit.selection();
    let mut taken: Vec<f64> = Vec::new();
    if !fit.is_finished() {
        let (model, weights, events) = (&fit.config().model, fit.weights(), fit.events());
        match weights {
            0 => crate::tell(format!("{model}, which only counts, {events} training events")),
            _ => crate::tell(format!("{model} with {weights} weights, {events} training events")),
        }
        if fit.config().train.multiplies_slowly() {
            let why = "this processor has no matrix unit for train.matmul=bf16x2 (amx_bf16), so the same numbers are worked out slowly";
            crate::tell(format!("note: {why}; leave it out to train faster"));
        }
    }
    let finished = fit.run(&mut |moment| {
        match moment {
            TrainEvent::Step { progress, done, of } => {
                bar.set_prefix(format!("epoch {} of at most {most}", progress.epoch));
                bar.set_message(format!("loss {:.4}{quality}", progress.loss()));
                bar.set_length(of);
                bar.set_position(done);
            }
            TrainEvent::Validation { epoch, done, of } => {
                bar.set_prefix(format!("validation {epoch}"));
                bar.set_length(of);
                bar.set_position(done);
            }
            TrainEvent::Epoch(report) => {
                waited = if report.improved { 0 } else { waited + 1 };
                if report.improved {
                    best_epoch = report.epoch;
                }
                taken.push(report.train_seconds + report.validation_seconds);
                let one = taken.iter().sum::<f64>() / taken.len() as f64;
                let least = patience.saturating_sub(waited).min(most - report.epoch.min(most));
                quality = format!(
                    ", {}, best {best_epoch}, stops after {patience} without gain; all: {}",
                    validation(report),
                    span(one * f64::from(least), one * f64::from(most - report.epoch.min(most)))
                );
                let line = epoch_line(report, most);
                if terminal { bar.println(line) } else { crate::tell(line) }
            }
            _ => {}
        }
        go_on()
    })?;
    bar.finish_and_clear();
    Ok(finished)
}

/// An epoch in 80 columns.
fn epoch_line(report: &EpochReport, most: u32) -> String {
    format!(
        "epoch {:>3} of {most}  loss {:.4}  validation {}{}  {:.1} s",
        report.epoch,
        report.loss,
        validation(report),
        if report.improved { " *" } else { "  " },
        report.train_seconds + report.validation_seconds
    )
}

/// What selects: MRR where events are ranked, else AP and AUC.
fn validation(report: &EpochReport) -> String {
    match report.validation_mrr {
        Some(mrr) => format!("mrr {mrr:.4}"),
        None => format!("ap {:.4} auc {:.4}", report.validation_ap, report.validation_auc),
    }
}

/// From so many seconds to so many, in words.
fn span(least: f64, most: f64) -> String {
    let words = |seconds: f64| match seconds {
        s if s < 90.0 => format!("{s:.0} s"),
        s if s < 5400.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    };
    let (least, most) = (words(least), words(most));
    if least == most { most } else { format!("{least} to {most}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_of_training_is_said_shortly() {
        assert_eq!(span(20.0, 20.2), "20 s");
        assert_eq!(span(100.0, 7200.0), "2 min to 2.0 h");
    }
}
