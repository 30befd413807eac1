//! Training as a job that can be stopped at any moment, and gone on with from its folder.
//!
//! `last.safetensors` is written after the training pass of every epoch, after its validation, and
//! when asked to stop; what came after it is done again in the same way, so the end is the same to
//! the bit. Since the pass is on the disk before validation begins, validation and evaluation may
//! use up the state in memory: there is only ever one.

use crate::checkpoint::{Checkpoint, append_line, duplicate, write_text};
use crate::error::{Error, InputFault, Result};
use crate::evaluation::evaluate;
use crate::model::Trainer;
use crate::protocol::{EvalPass, EvalScope, Part, Setting, StepRule};
use crate::results::Outcome;
use crate::results::{EpochReport, ValidationRow};
use crate::settings::RunConfig;
use crate::stream::Stream;
use crate::training::Provenance;
use crate::training::RunContext;
use crate::training::RunFolder;
use crate::training::TrainedRun;
use crate::training::{Progress, Selection, TrainingStream, mean_quality};
use std::fs;
use std::time::Instant;

/// What training tells while it runs.
#[derive(Debug)]
pub enum TrainEvent<'a> {
    /// A step is done.
    Step {
        /// How far the epoch is.
        progress: &'a Progress,
        /// Events done in it.
        done: u64,
        /// Events it has.
        of: u64,
    },
    /// An epoch is done and validated.
    Epoch(&'a EpochReport),
}

/// A run that is being trained.
pub struct Training {
    context: RunContext,
    folder: RunFolder,
    training: TrainingStream,
    validation: EvalPass,
    trainer: Box<dyn Trainer>,
    progress: Progress,
    selection: Selection,
    provenance: Provenance,
}

impl Training {
    /// Starts a run in a folder that has none yet.
    pub fn begin(config: RunConfig, stream: Stream, folder: RunFolder) -> Result<Training> {
        if folder.holds_a_run() {
            return Err(Error::setting(
                "out",
                folder.path().display(),
                "there is a run in it already: go on with --resume, or choose another folder",
            ));
        }
        let fit = Training::prepare(RunContext::new(config, stream)?, folder)?;
        fs::create_dir_all(fit.folder.path())
            .map_err(|error| Error::io(fit.folder.path(), error))?;
        fit.save("last.safetensors")?;
        // The settings come last: a folder that has them has everything.
        write_text(fit.folder.file("config.toml"), &fit.context.config.to_toml())?;
        Ok(fit)
    }

    /// Says how long the stream took to read, for the report.
    #[must_use]
    pub fn having_read_for(mut self, seconds: f64) -> Training {
        self.context.timings.reading = Some(seconds);
        self
    }

    /// Goes on with the run in a folder.
    pub fn resume(folder: RunFolder) -> Result<Training> {
        let context = RunContext::read(folder.config()?)?;
        Training::resume_on(context, folder)
    }

    /// Goes on for longer with the run in a folder: `train.epochs` and `train.patience` may grow.
    /// It then ends as if it had been begun so.
    pub fn resume_longer(folder: RunFolder, keys: &[String]) -> Result<Training> {
        let config = folder.longer(keys)?;
        let fit = Training::resume_on(RunContext::read(config)?, folder)?;
        // Only what can be gone on with is changed.
        write_text(fit.folder.file("config.toml"), &fit.context.config.to_toml())?;
        Ok(fit)
    }

    /// Goes on with the run in a folder on a stream in memory, which has to be the one it began
    /// with.
    pub fn resume_with(folder: RunFolder, stream: Stream) -> Result<Training> {
        let context = RunContext::new(folder.config()?, stream)?;
        Training::resume_on(context, folder)
    }

    fn resume_on(context: RunContext, folder: RunFolder) -> Result<Training> {
        let mut fit = Training::prepare(context, folder)?;
        let path = fit.folder.file("last.safetensors");
        let checkpoint = Checkpoint::read(&path)?;
        let note = |name: &str| checkpoint.note(name);
        let fault = |error: serde_json::Error| {
            InputFault::new(
                path.display().to_string(),
                format!("has a note that cannot be read ({error})"),
                "start anew",
            )
        };
        fit.progress = serde_json::from_str(note("progress")?).map_err(fault)?;
        fit.selection = serde_json::from_str(note("selection")?).map_err(fault)?;
        if fit.selection.best_epoch > 0 && !fit.folder.best().exists() {
            return Err(fit.folder.without_best(true));
        }
        fit.provenance.load(fit.trainer.as_mut(), &path, checkpoint)?;
        fit.keep_metrics_before(fit.progress.epoch)?;
        Ok(fit)
    }

    fn prepare(context: RunContext, folder: RunFolder) -> Result<Training> {
        let protocol = &context.config.protocol;
        let asked = protocol.scope(&EvalScope {
            parts: vec![Part::Validation],
            settings: vec![Setting::Transductive],
            strategies: context.config.train.select.clone(),
        });
        let validation = protocol.passes(context.subject(), &context.split, &asked)?.swap_remove(0);
        let train = &context.config.train;
        let training = TrainingStream::new(
            &context.stream.log,
            &context.split,
            protocol.step(),
            context.visibility(),
            train,
        )?;
        if training.steps() < 2 {
            let value = match protocol.step() {
                StepRule::Events(events) => format!("{events} events"),
                StepRule::DistinctTime => "time".to_string(),
            };
            let remedy = format!(
                "the {} training events make {} step, and learning needs two at least: set fewer events, for example --set \
                 protocol.step={}",
                training.events(),
                training.steps(),
                (training.events() / 10).max(1)
            );
            return Err(Error::setting("protocol.step", value, remedy));
        }
        let times = context.stream.log.events().times();
        if let (Some(first), Some(last)) = (times.first(), times.last())
            && last.since(*first) > f64::from(f32::MAX)
        {
            let remedy = "learning works with 32-bit numbers: write times in a coarser unit, so that they span less than 1e38";
            return Err(Error::setting("the span of the times", last.since(*first), remedy));
        }
        let trainer = context.trainer()?;
        let provenance = Provenance::of(&context);
        let (progress, selection) = (Progress::start(1), Selection::default());
        Ok(Training {
            context,
            folder,
            training,
            validation,
            trainer,
            progress,
            selection,
            provenance,
        })
    }

    /// The settings.
    pub fn config(&self) -> &RunConfig {
        &self.context.config
    }

    /// How many numbers are learned.
    pub fn weights(&self) -> usize {
        self.trainer.weights()
    }

    /// How many events train.
    pub fn events(&self) -> usize {
        self.training.events()
    }

    /// What selection knows so far.
    pub fn selection(&self) -> Selection {
        self.selection
    }

    /// Refuses questions that this stream cannot be asked, before time goes into training.
    pub fn check_scope(&self, asked: &EvalScope) -> Result<()> {
        self.context
            .config
            .protocol
            .passes(self.context.subject(), &self.context.split, asked)
            .map(drop)
    }

    /// Whether there is nothing left to do.
    pub fn is_finished(&self) -> bool {
        let train = &self.context.config.train;
        self.progress.epoch > train.epochs || self.selection.waited >= train.patience
    }

    /// Trains until it is finished or `watch` says to stop; either way everything is saved. Tells
    /// whether it is finished.
    pub fn run(&mut self, watch: &mut (dyn FnMut(TrainEvent<'_>) -> bool + Send)) -> Result<bool> {
        while !self.is_finished() {
            let started = Instant::now();
            let of = self.training.events() as u64;
            let first = self.progress.step;
            let complete = self.training.run_epoch(
                self.trainer.as_mut(),
                &mut self.progress,
                &mut |progress, done| watch(TrainEvent::Step { progress, done, of }),
            )?;
            if !complete {
                self.save("last.safetensors")?;
                return Ok(false);
            }
            let share = 1.0 - f64::from(first) / self.training.steps() as f64;
            let train_seconds = started.elapsed().as_secs_f64();
            self.save("last.safetensors")?;
            self.trainer.swap_ema();
            let report = self.validate(train_seconds, share)?;
            self.trainer.swap_ema();
            if report.improved {
                duplicate(&self.folder.file("last.safetensors"), &self.folder.best())?;
            }
            let line = serde_json::to_string(&report).expect("a report is plain data");
            append_line(self.folder.file("metrics.jsonl"), &line)?;
            self.progress = Progress::start(self.progress.epoch + 1);
            self.trainer.reset_state();
            self.save("last.safetensors")?;
            if !watch(TrainEvent::Epoch(&report)) {
                return Ok(self.is_finished());
            }
        }
        Ok(true)
    }

    /// The best epoch, opened to be asked. The stream is not read again.
    pub fn into_trained(mut self) -> Result<TrainedRun> {
        self.trainer.reset_state();
        TrainedRun::read(self.context, &self.folder, &self.provenance)
    }

    /// The state streams on into validation.
    fn validate(&mut self, train_seconds: f64, share: f64) -> Result<EpochReport> {
        let started = Instant::now();
        let session = self.trainer.as_mut();
        let outcomes = evaluate(session, &self.context.stream.log, &self.validation, &|_, _| ())?;
        let (ap, auc) = mean_quality(&outcomes);
        let row = |outcome: &Outcome| ValidationRow {
            negatives: outcome.strategy,
            ap: outcome.ap,
            auc: outcome.auc,
        };
        let pairs: usize = outcomes.iter().map(|outcome| outcome.pairs).sum();
        let validation_seconds = started.elapsed().as_secs_f64();
        let improved = self.selection.take(self.progress.epoch, &outcomes);
        Ok(EpochReport {
            epoch: self.progress.epoch,
            loss: self.progress.loss(),
            validation_ap: ap,
            validation_auc: auc,
            validation_mrr: outcomes[0].mrr,
            validation: if outcomes.len() > 1 {
                outcomes.iter().map(row).collect()
            } else {
                Vec::new()
            },
            improved,
            train_seconds,
            train_events_per_second: share * self.training.events() as f64 / train_seconds,
            validation_seconds,
            validation_pairs_per_second: pairs as f64 / validation_seconds,
        })
    }

    fn save(&self, name: &str) -> Result<()> {
        let mut checkpoint = Checkpoint::default();
        self.trainer.save(&mut checkpoint);
        let json = |value: serde_json::Result<String>| value.expect("progress is plain data");
        checkpoint.notes.insert("progress".into(), json(serde_json::to_string(&self.progress)));
        checkpoint.notes.insert("selection".into(), json(serde_json::to_string(&self.selection)));
        self.provenance.note(&mut checkpoint);
        checkpoint.notes.insert("version".into(), env!("CARGO_PKG_VERSION").into());
        checkpoint.write(self.folder.file(name))
    }

    /// Drops lines of epochs that will be done again.
    fn keep_metrics_before(&self, epoch: u32) -> Result<()> {
        let path = self.folder.file("metrics.jsonl");
        let Ok(text) = fs::read_to_string(&path) else { return Ok(()) };
        let earlier = |line: &&str| {
            serde_json::from_str::<EpochReport>(line).is_ok_and(|report| report.epoch < epoch)
        };
        let kept: String = text.lines().filter(earlier).flat_map(|line| [line, "\n"]).collect();
        write_text(path, &kept)
    }
}
