//! A run that is being trained: it can be stopped at any moment and resumed from its folder.
//!
//! The last checkpoint is written after the training pass of every epoch, after its validation, and
//! when asked to stop; what came after it is done again in the same way, so the end is the same to
//! the bit. Since the pass is on the disk before validation begins, validation and evaluation may
//! use up the state in memory: there is only ever one.

use crate::checkpoint::Checkpoint;
use crate::disk::{FolderLock, REPORT_LIMIT, read_text, write_text};
use crate::error::{Error, InputFault, Remedy, Result};
use crate::evaluation::evaluate;
use crate::fingerprint::Fingerprint;
use crate::model::{FeatureWidths, LaneOrder, Local, Reduce, Trainer};
use crate::protocol::{EvalPass, EvalScope, Part, Setting, StepRule};
use crate::results::Outcome;
use crate::results::{EpochReport, ValidationRow};
use crate::settings::{RunConfig, SelectBy};
use crate::stream::Stream;
use crate::training::Provenance;
use crate::training::RunContext;
use crate::training::TrainedRun;
use crate::training::{KnownStream, RunFolder, RunStore};
use crate::training::{Progress, Selection, TrainingStream, mean_mrr, mean_quality};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Instant;

pub use cost::StepCost;

/// The note of a checkpoint that says in which order lanes are added.
const LANE_ORDER: &str = "lane-order";

/// What training tells while it runs.
#[derive(Debug)]
#[non_exhaustive]
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
    /// A step of the validation after an epoch is done. Stopping here loses nothing but the
    /// validation: the epoch's training is saved before it begins.
    Validation {
        /// The epoch.
        epoch: u32,
        /// Pairs scored.
        done: u64,
        /// Pairs it has.
        of: u64,
    },
    /// An epoch is done and validated.
    Epoch(&'a EpochReport),
}

/// Gets told what training does; [`ControlFlow::Break`] stops it.
type TrainWatch<'a> = dyn FnMut(TrainEvent<'_>) -> ControlFlow<()> + Send + 'a;

/// A run that is being trained.
pub struct TrainingRun {
    context: RunContext,
    store: RunStore,
    training: TrainingStream,
    validation: EvalPass,
    trainer: Box<dyn Trainer>,
    progress: Progress,
    selection: Selection,
    provenance: Provenance,
    /// Held while the run can write; a run in memory has none.
    lock: Option<Arc<FolderLock>>,
    /// Who adds the gradients of lanes, and in which order.
    reduce: Box<dyn Reduce>,
    order: LaneOrder,
    /// Whether a validation was stopped, which leaves the trainer's state beyond the last save.
    used_up: bool,
}

impl TrainingRun {
    /// Starts a run in a folder that has none yet. The folder is locked against other writers for
    /// as long as the run is there.
    pub fn begin(config: RunConfig, stream: Stream, folder: RunFolder) -> Result<TrainingRun> {
        TrainingRun::begin_sharing(config, stream, folder, Box::new(Local::default()))
    }

    /// The same, shared with other processes, which begin beside this one; see
    /// [`TrainingRun::share`]. What they refuse leaves no folder.
    pub fn begin_sharing(
        config: RunConfig,
        stream: Stream,
        folder: RunFolder,
        reduce: Box<dyn Reduce>,
    ) -> Result<TrainingRun> {
        let refuse_a_run = || match folder.holds_a_run() {
            false => Ok(()),
            true => Err(Error::Exists {
                path: folder.path().to_path_buf(),
                what: "a run",
                remedy: Remedy::ResumeOrOtherFolder,
            }),
        };
        refuse_a_run()?;
        let store = RunStore::Folder(folder.clone());
        let run = TrainingRun::prepare(RunContext::new(config, stream)?, store)?;
        let mut run = run.share(reduce)?;
        run.lock = Some(folder.lock()?);
        // Another process may have been faster.
        refuse_a_run()?;
        run.save()?;
        let stream = &run.context.stream;
        folder.write_known_stream(&KnownStream {
            dataset: stream.name.clone(),
            events: stream.log.len() as u64,
            nodes: stream.names.len() as u64,
            sha256: run.provenance.stream().to_string(),
        })?;
        // The settings come last: a folder that has them has everything.
        write_text(folder.file("config.toml"), &run.context.config.to_toml())?;
        Ok(run)
    }

    /// Starts a run that is kept in memory.
    pub fn begin_in_memory(config: RunConfig, stream: Stream) -> Result<TrainingRun> {
        TrainingRun::prepare(RunContext::new(config, stream)?, RunStore::memory())
    }

    /// Starts the part of a process in a run that another process keeps, which is begun by
    /// [`TrainingRun::begin_sharing`].
    pub fn begin_beside(
        config: RunConfig,
        stream: Stream,
        reduce: Box<dyn Reduce>,
    ) -> Result<TrainingRun> {
        let run = TrainingRun::prepare(RunContext::new(config, stream)?, RunStore::Elsewhere)?;
        let mut run = run.share(reduce)?;
        // The first one saves, and all compare what they would.
        run.save()?;
        Ok(run)
    }

    /// Shares the training with other processes: each computes some of the lanes of every batch,
    /// and all have the same weights and the same state after every step. The first one keeps the
    /// run; the others begin or go on beside it.
    ///
    /// # Errors
    ///
    /// If `train.lanes` does not give every process a lane, if the run adds lanes in the order of
    /// before the tree, or if the processes have not the same settings, events, progress and
    /// arithmetic.
    pub fn share(mut self, mut reduce: Box<dyn Reduce>) -> Result<TrainingRun> {
        let (lanes, ranks) = (self.context.config.train.lanes, reduce.ranks());
        if ranks > 1 && lanes.is_none_or(|lanes| lanes < ranks) {
            let value = lanes.map_or("absent".to_string(), |lanes| lanes.to_string());
            let problem = format!("{ranks} ranks share the lanes of a batch");
            return Err(Error::refused("train.lanes", value, problem, Remedy::Lanes(ranks)));
        }
        reduce.set_order(self.order)?;
        if ranks == 1 {
            self.reduce = reduce;
            return Ok(self);
        }
        let mut settings = Checkpoint::default();
        self.provenance.note(&mut settings);
        let note = |name: &str| settings.notes.get(name).cloned().unwrap_or_default();
        let of = |text: &str| {
            let mut hash = Fingerprint::default();
            hash.take(text);
            hash.hex().into_bytes()
        };
        reduce.confirm_same("version", &of(env!("CARGO_PKG_VERSION")))?;
        reduce.confirm_same("arithmetic", &of(&lstep_tensor::arithmetic().to_string()))?;
        reduce.confirm_same("stream of events", &of(&note("stream")))?;
        reduce.confirm_same("set of settings", &of(&note("settings")))?;
        let train = &self.context.config.train;
        let so_far = (self.progress, self.selection, train.epochs, train.patience);
        reduce.confirm_same("progress", &of(&format!("{so_far:?}")))?;
        self.reduce = reduce;
        Ok(self)
    }

    /// Begins with the weights of the best epoch of another run in place of drawn ones, for newer
    /// events. State and optimiser begin anew.
    ///
    /// # Errors
    ///
    /// If that run has no finished epoch, or its model has other weights.
    pub fn take_weights(&mut self, from: &RunFolder) -> Result<()> {
        let best = RunStore::Folder(from.clone()).best()?;
        let mut fresh = Checkpoint::default();
        self.trainer.save(&mut fresh);
        let mut fresh = fresh.into_owned();
        for tensor in &mut fresh.tensors {
            let name =
                ["weight.", "average."].iter().find_map(|part| tensor.name.strip_prefix(part));
            let Some(name) = name else { continue };
            // Where there is a running mean, that is what was validated.
            let used = best.tensor(&format!("average.{name}"));
            let found = used.or_else(|_| best.tensor(&format!("weight.{name}")));
            let fits = found.ok().filter(|found| found.values.len() == tensor.values.len());
            let Some(found) = fits else {
                let problem = format!("has no weights {name:?} that fit the model of this run");
                let remedy = "give the same model settings, and events with the same features";
                let file = from.best().display().to_string();
                return Err(Error::incompatible(InputFault::new(file, problem, remedy)));
            };
            tensor.values = found.values.clone();
        }
        fresh.set_extent(self.context.extent());
        self.trainer.load(fresh)?;
        self.save()
    }

    /// Says how long the stream took to read, for the report.
    #[must_use]
    pub fn having_read_for(mut self, seconds: f64) -> TrainingRun {
        self.context.timings.reading = Some(seconds);
        self
    }

    /// Goes on with the run in a folder.
    pub fn resume(folder: RunFolder) -> Result<TrainingRun> {
        let context = RunContext::read(folder.config()?, &folder)?;
        TrainingRun::resume_on(context, folder)
    }

    /// Goes on for longer with the run in a folder: `train.epochs` and `train.patience` may grow.
    /// It then ends as if it had been begun so.
    pub fn resume_longer(folder: RunFolder, keys: &[String]) -> Result<TrainingRun> {
        let config = folder.longer(keys)?;
        let run = TrainingRun::resume_on(RunContext::read(config, &folder)?, folder.clone())?;
        // Only what can be resumed is changed.
        write_text(folder.file("config.toml"), &run.context.config.to_toml())?;
        Ok(run)
    }

    /// Goes on with the run in a folder on a stream in memory, which has to be the one it began
    /// with.
    pub fn resume_with(folder: RunFolder, stream: Stream) -> Result<TrainingRun> {
        let context = RunContext::new(folder.config()?, stream)?;
        TrainingRun::resume_on(context, folder)
    }

    /// Goes on with the part of a process in a run that another process keeps in a folder, maybe
    /// for longer, see [`TrainingRun::share`]. Nothing is written.
    pub fn resume_beside(folder: RunFolder, keys: &[String]) -> Result<TrainingRun> {
        let context = RunContext::read(folder.longer(keys)?, &folder)?;
        TrainingRun::beside_on(context, &folder)
    }

    /// The same on a stream in memory.
    #[cfg(test)]
    fn beside_with(folder: RunFolder, stream: Stream) -> Result<TrainingRun> {
        TrainingRun::beside_on(RunContext::new(folder.config()?, stream)?, &folder)
    }

    fn beside_on(context: RunContext, folder: &RunFolder) -> Result<TrainingRun> {
        let mut run = TrainingRun::prepare(context, RunStore::Elsewhere)?;
        run.take_over(folder)?;
        Ok(run)
    }

    fn resume_on(context: RunContext, folder: RunFolder) -> Result<TrainingRun> {
        let lock = folder.lock()?;
        let mut run = TrainingRun::prepare(context, RunStore::Folder(folder.clone()))?;
        run.lock = Some(lock);
        run.take_over(&folder)?;
        keep_metrics_before(&folder, run.progress.epoch)?;
        Ok(run)
    }

    /// Takes over the last checkpoint of a folder.
    fn take_over(&mut self, folder: &RunFolder) -> Result<()> {
        let (run, path) = (self, folder.last());
        let checkpoint = Checkpoint::read(&path)?;
        let note = |name: &str| checkpoint.note(name);
        let fault = |error: serde_json::Error| {
            InputFault::new(
                path.display().to_string(),
                format!("has a note that cannot be read ({error})"),
                "start anew",
            )
        };
        run.progress = serde_json::from_str(note("progress")?).map_err(fault)?;
        run.selection = serde_json::from_str(note("selection")?).map_err(fault)?;
        run.order = match note(LANE_ORDER) {
            Ok(order) => serde_json::from_str(order).map_err(fault)?,
            // It was begun before lanes were added along a tree.
            Err(_) => LaneOrder::Sequence,
        };
        run.reduce.set_order(run.order)?;
        if !run.can_be_so_far() {
            let problem = "says that training is where it cannot be";
            return Err(InputFault::new(path.display().to_string(), problem, "start anew").into());
        }
        if run.selection.best_epoch > 0 && !folder.best().exists() {
            return Err(folder.without_best(true));
        }
        run.provenance.load(run.trainer.as_mut(), &path, checkpoint)
    }

    /// Whether progress and selection, as a checkpoint has them, can be. Epochs are counted on from
    /// there, so there has to be room.
    fn can_be_so_far(&self) -> bool {
        let (Progress { epoch, step, batches, .. }, selection) = (self.progress, self.selection);
        (1..=u32::MAX / 2).contains(&epoch)
            && step as usize <= self.training.steps()
            && u64::from(batches) <= u64::from(step)
            && selection.best_epoch <= epoch
            && selection.waited <= epoch
    }

    fn prepare(context: RunContext, store: RunStore) -> Result<TrainingRun> {
        let protocol = &context.config.protocol;
        let asked = protocol.scope(&EvalScope {
            parts: vec![Part::Validation],
            settings: vec![Setting::Transductive],
            strategies: context.config.train.select.clone(),
        });
        let train = &context.config.train;
        let validation = if (train.select_negatives, train.select_questions) == (None, None) {
            context.passes(&asked)?
        } else {
            let mut plan = context.plan.clone();
            plan.ask_otherwise(train.select_negatives, train.select_questions)?;
            plan.passes(context.subject(), &asked)?
        }
        .swap_remove(0);
        let unranked = || validation.query_sets.iter().any(|asked| asked.negatives().one_each());
        if train.select_by == SelectBy::Mrr && unranked() {
            let remedy = "a rank among two says nothing: set train.select_negatives to 100, or \
                          select by ap";
            return Err(Error::setting("train.select_by", "mrr", remedy));
        }
        let training = TrainingStream::new(
            &context.stream.log,
            context.split(),
            protocol.step(),
            context.visibility(),
            train,
        )?;
        if training.steps() < 2 {
            let value = match protocol.step() {
                StepRule::Events(events) => format!("{events} events"),
                StepRule::DistinctTime => "time".to_string(),
            };
            let problem = format!(
                "the {} training events make {} step, and learning needs two at least",
                training.events(),
                training.steps()
            );
            let remedy = Remedy::ShorterSteps((training.events() / 10).max(1) as u64);
            return Err(Error::refused("protocol.step", value, problem, remedy));
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
        Ok(TrainingRun {
            context,
            store,
            training,
            validation,
            trainer,
            progress,
            selection,
            provenance,
            lock: None,
            reduce: Box::new(Local::default()),
            order: LaneOrder::default(),
            used_up: false,
        })
    }

    /// The settings.
    pub fn config(&self) -> &RunConfig {
        &self.context.config
    }

    /// How many features a node and an event have.
    pub(super) fn feature_widths(&self) -> FeatureWidths {
        self.context.feature_widths()
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
        self.context.passes(asked).map(drop)
    }

    /// Whether there is nothing left to do.
    pub fn is_finished(&self) -> bool {
        let train = &self.context.config.train;
        self.progress.epoch > train.epochs || self.selection.waited >= train.patience
    }

    /// Trains until it is finished or `watch` breaks; either way everything is saved. Returns
    /// whether it is finished.
    pub fn run(&mut self, watch: &mut TrainWatch<'_>) -> Result<bool> {
        if std::mem::take(&mut self.used_up) {
            let last = self.store.last()?;
            self.provenance.load(self.trainer.as_mut(), &self.store.last_path(), last)?;
        }
        while !self.is_finished() {
            let started = Instant::now();
            let of = self.training.events() as u64;
            let first = self.progress.step;
            let complete = self.training.run_epoch_with(
                self.trainer.as_mut(),
                self.reduce.as_mut(),
                &mut self.progress,
                &mut |progress, done| watch(TrainEvent::Step { progress, done, of }),
            )?;
            if !complete {
                self.save()?;
                return Ok(false);
            }
            let share = 1.0 - f64::from(first) / self.training.steps() as f64;
            let train_seconds = started.elapsed().as_secs_f64();
            self.save()?;
            self.trainer.swap_ema();
            let validated = self.validate(train_seconds, share, watch);
            self.trainer.swap_ema();
            let report = match validated {
                Err(Error::Interrupted) => {
                    self.used_up = true;
                    return Ok(false);
                }
                validated => validated?,
            };
            if report.improved {
                self.store.keep_as_best()?;
            }
            self.store.add_epoch(&report)?;
            self.progress = Progress::start(self.progress.epoch + 1);
            self.trainer.reset_state();
            self.save()?;
            if self.reduce.agree_to_stop(watch(TrainEvent::Epoch(&report)).is_break())? {
                return Ok(self.is_finished());
            }
        }
        Ok(true)
    }

    /// The best epoch, opened to be evaluated or used. The stream is not read again.
    pub fn into_trained(mut self) -> Result<TrainedRun> {
        self.trainer.reset_state();
        TrainedRun::read(self.context, self.store, &self.provenance)
    }

    /// The state streams on into validation.
    fn validate(
        &mut self,
        train_seconds: f64,
        share: f64,
        watch: &mut TrainWatch<'_>,
    ) -> Result<EpochReport> {
        let started = Instant::now();
        let session = self.trainer.as_mut();
        let epoch = self.progress.epoch;
        let (reduce, mut failed) = (&mut self.reduce, None);
        let mut watch = |done, of| {
            let here = watch(TrainEvent::Validation { epoch, done, of }).is_break();
            match reduce.agree_to_stop(here) {
                Ok(false) => return ControlFlow::Continue(()),
                Ok(true) => {}
                Err(error) => failed = Some(error),
            }
            ControlFlow::Break(())
        };
        let log = &self.context.stream.log;
        let outcomes = evaluate(session, log, &self.validation, &mut watch);
        if let Some(error) = failed {
            return Err(error);
        }
        let outcomes = outcomes?;
        let (ap, auc) = mean_quality(&outcomes);
        let row = |outcome: &Outcome| ValidationRow {
            negatives: outcome.negatives,
            ap: outcome.ap,
            auc: outcome.auc,
        };
        let pairs: usize = outcomes.iter().map(|outcome| outcome.pairs).sum();
        let validation_seconds = started.elapsed().as_secs_f64();
        let improved = self.selection.take(
            self.progress.epoch,
            &outcomes,
            self.context.config.train.select_by,
        );
        Ok(EpochReport {
            epoch: self.progress.epoch,
            loss: self.progress.loss(),
            validation_ap: ap,
            validation_auc: auc,
            validation_mrr: mean_mrr(&outcomes),
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

    fn save(&mut self) -> Result<()> {
        let mut checkpoint = Checkpoint::default();
        self.trainer.save(&mut checkpoint);
        let json = |value: serde_json::Result<String>| value.expect("progress is plain data");
        checkpoint.notes.insert("progress".into(), json(serde_json::to_string(&self.progress)));
        checkpoint.notes.insert("selection".into(), json(serde_json::to_string(&self.selection)));
        self.provenance.note(&mut checkpoint);
        checkpoint.notes.insert(LANE_ORDER.into(), json(serde_json::to_string(&self.order)));
        checkpoint.notes.insert("version".into(), env!("CARGO_PKG_VERSION").into());
        if self.reduce.ranks() > 1 {
            self.reduce.confirm_same("state after training", checkpoint.sha256().as_bytes())?;
        }
        self.store.save(checkpoint)
    }
}

/// Drops lines of epochs that will be done again.
fn keep_metrics_before(folder: &RunFolder, epoch: u32) -> Result<()> {
    let path = folder.file("metrics.jsonl");
    if !path.exists() {
        return Ok(());
    }
    let text = read_text(&path, REPORT_LIMIT)?;
    let earlier = |line: &&str| {
        serde_json::from_str::<EpochReport>(line).is_ok_and(|report| report.epoch < epoch)
    };
    let kept: String = text.lines().filter(earlier).flat_map(|line| [line, "\n"]).collect();
    write_text(path, &kept)
}

mod cost;
#[cfg(test)]
mod ranks_tests;
#[cfg(test)]
mod tests;
