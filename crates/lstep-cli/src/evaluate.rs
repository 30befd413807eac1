//! `lstep evaluate`: how well a model tells what happened from what did not.

use crate::args::{EventsFile, models_help, one_of};
use crate::evaluation::{latex, show};
use crate::interrupt::go_on;
use crate::{export, progress, say, verdict};
use anyhow::{Result, bail};
use clap::Args;
use indicatif::ProgressBar;
use lstep::Error;
use lstep::disk::write_text;
use lstep::evaluation::{EvalProgress, EvaluatedModel, Evaluation};
use lstep::model::ModelConfig;
use lstep::protocol::{
    EvalScope, Part, Protocol, ProtocolOptions, Setting, StepRule, Strategy, Ties, Visibility,
};
use lstep::read::{TableFormat, part_files};
use lstep::report::evaluation_page;
use lstep::results::EvaluationReport;
use lstep::stream::Stream;
use lstep::training::{RunFolder, TrainedRun};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

const HELP: &str = "\
Protocols:
  stream  one stream that runs on from train to test; nobody sees ahead (the default)
  dyglib  the field's: bit for bit the splits and negatives behind published tables
  tgb     the Temporal Graph Benchmark's: its own negatives, read or generated, and MRR

Examples:
  lstep evaluate events.csv --model edgebank
  lstep evaluate uci/events.csv.gz --model edgebank --memory published --protocol dyglib --json
  lstep evaluate events.parquet --model local-recency+global-popularity --per-event 100 --negatives random
  lstep evaluate tgbl-wiki_edgelist_v2.csv --model edgebank --memory window-tgb --protocol tgb
  lstep evaluate events.csv --write-questions questions.parquet
  lstep evaluate events.csv --model all --scores mine.parquet --name mine";

/// Ask a model about the end of a stream and print honest numbers.
///
/// EVENTS may also be the folder of a run that `lstep train` made. Its model, protocol and events
/// are then its own; only --negatives, --setting and --part, under protocol stream or tgb
/// --questions, and under stream --per-event can be chosen, and other flags are refused.
#[derive(Args)]
#[command(after_help = format!("\
Models:
{}
  SIGNAL[+SIGNAL...] is any of local-recency, local-popularity, global-recency and global-popularity: later ones part what earlier
  ones leave equal. `all` is all of the above, one after the other. See --memory for edgebank, --decay for poptrack.

{HELP}", models_help(|kind| !kind.learns())))]
pub struct Evaluate {
    #[command(flatten)]
    file: EventsFile,

    /// One model, several separated by commas, or `all` [default: edgebank]
    #[arg(long, alias = "models", value_name = "MODEL", value_delimiter = ',')]
    model: Vec<String>,

    /// What edgebank remembers: unlimited, window-proportion, window-repeat, repeat-threshold,
    /// window-tgb; or `published`, the choice behind the published number for this dataset and each
    /// kind of negatives
    #[arg(long, value_name = "MEMORY")]
    memory: Option<String>,

    /// What is left of poptrack's counters after a step
    #[arg(long, value_name = "FACTOR")]
    decay: Option<f64>,

    /// The dataset's name, for `--memory published`, if the file's name does not tell
    #[arg(long, value_name = "NAME")]
    dataset: Option<String>,

    /// How to split, step and ask [default: stream]
    #[arg(long, value_name = "PROTOCOL", value_parser = Protocol::NAMES)]
    protocol: Option<String>,

    /// Kinds of negatives, separated by commas; tgb has its own [default: all three]
    #[arg(long, value_name = "NEGATIVES", value_delimiter = ',', value_parser = one_of(Strategy::DRAWN))]
    negatives: Vec<Strategy>,

    /// Ask about all events, or those with a node that training does not know; both separated by a
    /// comma
    #[arg(long, alias = "settings", value_name = "SETTING", value_delimiter = ',', value_parser = one_of(Setting::ALL), default_values_t = [Setting::Transductive])]
    setting: Vec<Setting>,

    /// Parts of the stream to report
    #[arg(long, value_name = "PART", value_delimiter = ',', value_parser = one_of(Part::ALL), default_values_t = [Part::Test])]
    part: Vec<Part>,

    /// Events in a step, or `time` for a step at every distinct time [default: 200]
    #[arg(long, value_name = "N")]
    step: Option<String>,

    /// What a question sees: all strictly before its time, nothing of its own step, or strictly
    /// earlier times in everything [default: event; tgb: step]
    #[arg(long, value_name = "VISIBILITY", value_parser = one_of(Visibility::ALL), help_heading = "Stream and tgb")]
    visibility: Option<Visibility>,

    /// Negatives for each event; more than there are destinations means all [tgb: the dataset's
    /// number]
    #[arg(long, value_name = "N", help_heading = "Stream and tgb")]
    per_event: Option<usize>,

    /// Ask at most this many events of a part, spread evenly over it [default: all]
    #[arg(long, value_name = "N", help_heading = "Stream and tgb")]
    questions: Option<usize>,

    /// Time quantiles at which validation and test begin
    #[arg(long, value_name = "A,B", value_parser = quantiles, help_heading = "Stream only")]
    split: Option<(f64, f64)>,

    /// Share of the nodes that training does not get to know
    #[arg(long, value_name = "SHARE", help_heading = "Stream only")]
    held_out: Option<f64>,

    /// Seed of held-out nodes and negatives
    #[arg(long, value_name = "SEED", help_heading = "Stream only")]
    seed: Option<u64>,

    /// The order of events that share a time: that of the file, or a random one [default: file]
    #[arg(long, value_name = "ORDER", value_parser = one_of(Ties::ALL))]
    ties: Option<Ties>,

    /// Folder with TGB's negatives, NAME_val_ns.pkl and NAME_test_ns.pkl; generated by TGB's rule
    /// where there is none [default: the folder of the events]
    #[arg(long, value_name = "FOLDER", help_heading = "Tgb only")]
    tgb_negatives: Option<PathBuf>,

    /// Write the negatives to this folder, a CSV for each kind
    #[arg(long, value_name = "FOLDER")]
    write_negatives: Option<PathBuf>,

    /// Read the negatives from this folder instead of drawing them
    #[arg(long, value_name = "FOLDER")]
    read_negatives: Option<PathBuf>,

    /// Write all questions to a table of source, destination and time, and stop: for a model that
    /// lives elsewhere. Nothing in it tells what came true
    #[arg(
        long,
        value_name = "FILE",
        help_heading = "Other people's models",
        conflicts_with = "scores"
    )]
    write_questions: Option<PathBuf>,

    /// Evaluate scores that another model gave the questions: a table of source, destination, time
    /// and score. May be given several times
    #[arg(long, value_name = "FILE", help_heading = "Other people's models")]
    scores: Vec<PathBuf>,

    /// What tables call the model of --scores [default: the file's name]
    #[arg(long, value_name = "NAME", help_heading = "Other people's models", requires = "scores")]
    name: Vec<String>,

    /// Write a page for a browser as well, with the models of --scores
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,

    /// Print JSON
    #[arg(long)]
    json: bool,

    /// Print the table as LaTeX
    #[arg(long, conflicts_with = "json")]
    latex: bool,
}

/// A flag's values, each there once.
pub fn once<T: PartialEq + std::fmt::Display>(
    flag: &str,
    values: impl Iterator<Item = T>,
) -> Result<Vec<T>> {
    let mut all = Vec::new();
    for value in values {
        if all.contains(&value) {
            bail!("{flag} names {value} twice: name it once");
        }
        all.push(value);
    }
    Ok(all)
}

fn quantiles(text: &str) -> Result<(f64, f64), String> {
    let pair = text
        .split_once(',')
        .and_then(|(a, b)| Some((a.trim().parse().ok()?, b.trim().parse().ok()?)));
    pair.ok_or_else(|| {
        "give two numbers with a comma between them, for example 0.7,0.85".to_string()
    })
}

/// The model asked if none is named.
const MODEL: &str = "edgebank";

const STEP_REMEDY: &str = "give a number of events, at least 1, or `time` with --protocol stream";
impl Evaluate {
    /// Reads, asks, prints.
    pub fn run(&self) -> Result<()> {
        let first = self.file.first();
        let parts = || part_files([first]).is_ok();
        let run = RunFolder::new(first);
        let report = if first.is_dir() && (run.holds_a_run() || !parts()) {
            self.evaluate_run()?
        } else {
            let stream = Stream::from(self.file.read()?);
            if let Some(path) = &self.write_questions {
                return self.write_questions(path, &stream);
            }
            watched(self.evaluation(&stream)?)?
        };
        if let Some(page) = &self.html {
            write_text(page, &evaluation_page(&report))?;
            crate::tell(format!("{}: open it in a browser", page.display()));
        }
        if self.json {
            say(serde_json::to_string_pretty(&report)?)
        } else if self.latex {
            say(latex(&report).trim_end())
        } else {
            show(&report)
        }
    }

    fn write_questions(&self, path: &Path, stream: &Stream) -> Result<()> {
        TableFormat::of_path(path)?;
        let _writing = export::claim(path, false)?;
        let rows = self.evaluation(stream)?.write_questions(path)?;
        let file = path.display();
        if self.json {
            return say(serde_json::json!({ "file": file.to_string(), "questions": rows }));
        }
        say(format!(
            "{file}: {rows} questions. Add a column `score`, higher is likelier, and evaluate it \
             with the same flags and --scores FILE --name NAME"
        ))
    }

    /// The files of scores with their names.
    fn scored(&self) -> Result<Vec<(String, PathBuf)>> {
        if self.name.len() > self.scores.len() {
            bail!("--name is there more often than --scores: give one for each");
        }
        let stem = |path: &PathBuf| {
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
            let name = name.unwrap_or_default();
            name.split('.').next().unwrap_or_default().to_string()
        };
        let named = self.scores.iter().enumerate();
        let named = named.map(|(place, path)| {
            let name = self.name.get(place).cloned().unwrap_or_else(|| stem(path));
            (name, path.clone())
        });
        let named: Vec<(String, PathBuf)> = named.collect();
        once("--name", named.iter().map(|(name, _)| name.clone()))?;
        Ok(named)
    }

    /// A run knows its protocol; only what is asked can be chosen.
    fn evaluate_run(&self) -> Result<EvaluationReport> {
        let folder = RunFolder::new(self.file.first());
        if let Some(other) = self.file.events.get(1) {
            bail!("{} is too much: a run is evaluated alone", other.display());
        }
        self.refuse_what_a_run_settles()?;
        let mut trained = TrainedRun::open(&folder)?;
        if self.per_event.is_some() || self.questions.is_some() {
            trained.ask_otherwise(self.per_event, self.questions)?;
        }
        let mut asked = self.asked(&trained.config().protocol)?;
        if self.negatives.is_empty() {
            asked.strategies = trained.config().scope().strategies;
        }
        let bar = progress::candidates("");
        let evaluated =
            trained.evaluate_with_baselines(&asked, &mut |progress| show_on(&bar, progress));
        bar.finish_and_clear();
        let mut report = evaluated?.report;
        report.summary = verdict::summary(&report);
        Ok(report)
    }

    /// A run was trained in its own way, and its numbers would mean nothing in another.
    fn refuse_what_a_run_settles(&self) -> Result<()> {
        let mut given: Vec<&str> = [
            ("--model", !self.model.is_empty()),
            ("--memory", self.memory.is_some()),
            ("--decay", self.decay.is_some()),
            ("--dataset", self.dataset.is_some()),
            ("--protocol", self.protocol.is_some()),
            ("--step", self.step.is_some()),
            ("--visibility", self.visibility.is_some()),
            ("--ties", self.ties.is_some()),
            ("--split", self.split.is_some()),
            ("--held-out", self.held_out.is_some()),
            ("--seed", self.seed.is_some()),
            ("--tgb-negatives", self.tgb_negatives.is_some()),
            ("--write-negatives", self.write_negatives.is_some()),
            ("--read-negatives", self.read_negatives.is_some()),
            ("--write-questions", self.write_questions.is_some()),
            ("--scores", !self.scores.is_empty()),
            ("--html", self.html.is_some()),
        ]
        .into_iter()
        .filter_map(|(flag, given)| given.then_some(flag))
        .collect();
        given.extend(self.file.reading.given());
        if given.is_empty() {
            return Ok(());
        }
        bail!(
            "{} has no meaning for {}, which is a run: its config.toml settles model, protocol and events. Leave the flag out, or \
             train another run with the protocol you want (lstep train EVENTS --protocol NAME --out RUN)",
            given.join(", "),
            self.file.first().display()
        )
    }

    fn asked(&self, protocol: &Protocol) -> Result<EvalScope> {
        if protocol.own_negatives().is_some() && !self.negatives.is_empty() {
            bail!(
                "--negatives has no meaning under protocol {}, which has negatives of its own: leave it out",
                protocol.name()
            );
        }
        let negatives =
            if self.negatives.is_empty() { &Strategy::DRAWN[..] } else { &self.negatives };
        let asked = EvalScope {
            parts: once("--part", self.part.iter().copied())?,
            settings: once("--setting", self.setting.iter().copied())?,
            strategies: once("--negatives", negatives.iter().copied())?,
        };
        // What a protocol does not ask is refused by it, not left out silently.
        Ok(EvalScope { settings: asked.settings.clone(), ..protocol.scope(&asked) })
    }

    /// Settings of models that flags give.
    fn settings(&self) -> [(&'static str, &'static str, Option<String>); 2] {
        let decay = self.decay.map(|decay| decay.to_string());
        [("--memory", "memory", self.memory.clone()), ("--decay", "decay", decay)]
    }

    /// A flag for a model that is not asked would say nothing about the numbers.
    fn refuse_what_no_model_reads(&self, models: &[ModelConfig]) -> Result<()> {
        let dataset = self.dataset.is_some().then_some(("--dataset", "memory"));
        let settings = self.settings().into_iter().filter(|setting| setting.2.is_some());
        for (flag, key) in settings.map(|(flag, key, _)| (flag, key)).chain(dataset) {
            let reads = |model: &ModelConfig| model.has_setting(key);
            if models.iter().any(reads) {
                continue;
            }
            let counting = ModelConfig::counting_models();
            let whose =
                counting.iter().find(|model| reads(model)).map_or("?", |model| model.name());
            bail!("{flag} has no meaning here: it belongs to --model {whose}");
        }
        Ok(())
    }

    fn evaluation<'a>(&self, stream: &'a Stream) -> Result<Evaluation<'a>> {
        let models = self.models(stream)?;
        let protocol = self.protocol(stream)?;
        let asked = self.asked(&protocol)?;
        let mut evaluation = Evaluation::new(stream).protocol(protocol).scope(asked).models(models);
        for (name, path) in self.scored()? {
            evaluation = evaluation.scores(&name, path);
        }
        if let Some(folder) = &self.read_negatives {
            evaluation = evaluation.read_negatives(folder);
        }
        if let Some(folder) = &self.write_negatives {
            evaluation = evaluation.write_negatives(folder);
        }
        Ok(evaluation)
    }

    fn protocol(&self, stream: &Stream) -> Result<Protocol> {
        let beside = || self.file.first().parent().map(PathBuf::from);
        let folder = self.tgb_negatives.clone().or_else(beside);
        let name = self.protocol.as_deref().unwrap_or(Protocol::NAMES[0]);
        let protocol = Protocol::named(name, &stream.name, folder)?;
        for (flag, option, given) in [
            ("--visibility", "visibility", self.visibility.is_some()),
            ("--per-event", "per_event", self.per_event.is_some()),
            ("--questions", "questions", self.questions.is_some()),
            ("--split", "split", self.split.is_some()),
            ("--held-out", "held_out", self.held_out.is_some()),
            ("--seed", "seed", self.seed.is_some()),
            ("--tgb-negatives", "folder", self.tgb_negatives.is_some()),
        ] {
            if given && !protocol.options().contains(&option) {
                let whose = Protocol::names_with(option).join(" or ");
                bail!("{flag} has no meaning here: it belongs to --protocol {whose}");
            }
        }
        if let Some(folder) = &self.tgb_negatives
            && let Some(file) = protocol.missing_file()
        {
            bail!(
                "--tgb-negatives {} holds no {file}: name the folder of TGB's files, or leave the \
                 flag out and negatives are made by TGB's rule, whose numbers are others",
                folder.display()
            );
        }
        let options = ProtocolOptions {
            split: self.split,
            step: self.step_rule()?,
            visibility: self.visibility,
            held_out: self.held_out,
            per_event: self.per_event,
            questions: self.questions,
            seed: self.seed,
            ties: self.ties,
        };
        match (protocol.with_options(&options), &self.step) {
            (Err(Error::Setting { .. }), Some(step)) => bail!("--step is {step:?}: {STEP_REMEDY}"),
            (protocol, _) => Ok(protocol?),
        }
    }

    fn step_rule(&self) -> Result<Option<StepRule>> {
        let Some(step) = &self.step else { return Ok(None) };
        match (step.as_str(), step.parse()) {
            ("time", _) => Ok(Some(StepRule::DistinctTime)),
            (_, Ok(events)) if events > 0 => Ok(Some(StepRule::Events(events))),
            _ => bail!("--step is {step:?}: {STEP_REMEDY}"),
        }
    }

    fn models(&self, stream: &Stream) -> Result<Vec<EvaluatedModel>> {
        let default = [MODEL.to_string()];
        let names = if self.model.is_empty() { &default[..] } else { &self.model };
        let mut named = Vec::new();
        for name in names {
            match name.as_str() {
                "all" => {
                    let all = ModelConfig::counting_models();
                    named.extend(all.into_iter().map(|model| (model, false)));
                }
                name => named.push((ModelConfig::counting(name)?, true)),
            }
        }
        let models: Vec<ModelConfig> = named.iter().map(|(model, _)| model.clone()).collect();
        self.refuse_what_no_model_reads(&models)?;
        // Flags are for models named one by one; `all` shows each of their settings.
        named
            .into_iter()
            .map(|(model, flags)| {
                if flags {
                    self.with_flags(model, stream)
                } else {
                    Ok(EvaluatedModel::Fixed(model))
                }
            })
            .collect()
    }

    /// A model with those of its settings that flags give.
    fn with_flags(&self, mut model: ModelConfig, stream: &Stream) -> Result<EvaluatedModel> {
        for (_, key, value) in self.settings() {
            match value {
                Some(value) if model.has_setting(key) && value == "published" => {
                    let dataset = self.dataset.clone().unwrap_or_else(|| stream.name.clone());
                    return Ok(EvaluatedModel::Published { model, dataset });
                }
                Some(value) if model.has_setting(key) => model = model.set(key, &value)?,
                _ => {}
            }
        }
        Ok(EvaluatedModel::Fixed(model))
    }
}

/// Shows on a bar how far an evaluation is, and tells whether to go on.
pub fn show_on(bar: &ProgressBar, progress: EvalProgress<'_>) -> ControlFlow<()> {
    bar.set_prefix(progress.model.to_string());
    bar.set_length(progress.of);
    bar.set_position(progress.done);
    go_on()
}

/// Runs an evaluation with a bar on the terminal.
pub fn watched(evaluation: Evaluation<'_>) -> Result<EvaluationReport> {
    let bar = progress::candidates("");
    let shown = bar.clone();
    let evaluation = evaluation.on_progress(move |progress| show_on(&shown, progress));
    let report = evaluation.run();
    bar.finish_and_clear();
    Ok(report?)
}
