//! A trained run, opened to be evaluated, looked into or used.

use crate::checkpoint::Checkpoint;
use crate::error::{Error, Result};
use crate::evaluation::{OpenSession, Watch, evaluate, ties, unwatched};
use crate::event::Event;
use crate::model::{Diagnostic, ModelConfig, Session, StreamInfo, Trainer};
use crate::protocol::{EvalPass, EvalScope, Part, QuerySet, Split, cut, negatives_sha256};
use crate::read::Dataset;
use crate::results::TrainingSummary;
use crate::results::{Calibration, EpochReport, EvaluationReport, Outcome, ResultRow, TiesReport};
use crate::settings::RunConfig;
use crate::stream::Stream;
use crate::training::Provenance;
use crate::training::{RunContext, SetupTimings};
use crate::training::{RunFolder, RunStore};
use std::sync::Mutex;

/// A trained run, opened to be asked.
pub struct TrainedRun {
    pub(super) context: RunContext,
    store: RunStore,
    /// The SHA-256 of its stream.
    stream_sha256: String,
    /// The trainer after training, until somebody uses its state up; then it is read again.
    fresh: Mutex<Option<Box<dyn Trainer>>>,
}

impl TrainedRun {
    /// Opens the best epoch of a run.
    pub fn open(folder: &RunFolder) -> Result<TrainedRun> {
        TrainedRun::on(RunContext::read(folder.config()?, folder)?, folder)
    }

    /// Opens the best epoch of a run on a stream in memory, which has to be the one it was trained
    /// on.
    pub fn open_with(folder: &RunFolder, stream: Stream) -> Result<TrainedRun> {
        TrainedRun::on(RunContext::new(folder.config()?, stream)?, folder)
    }

    fn on(context: RunContext, folder: &RunFolder) -> Result<TrainedRun> {
        let provenance = Provenance::of(&context);
        TrainedRun::read(context, RunStore::Folder(folder.clone()), &provenance)
    }

    pub(crate) fn read(
        context: RunContext,
        store: RunStore,
        provenance: &Provenance,
    ) -> Result<TrainedRun> {
        let best = store.best()?;
        let mut trainer = context.trainer()?;
        provenance.load(trainer.as_mut(), &store.best_path(), best)?;
        trainer.swap_ema();
        Ok(TrainedRun {
            context,
            store,
            stream_sha256: provenance.stream().to_string(),
            fresh: Mutex::new(Some(trainer)),
        })
    }

    /// The trainer as training left it, to be used up.
    pub(crate) fn trainer(&self) -> Result<Box<dyn Trainer>> {
        if let Some(trainer) = self.fresh.lock().expect("nobody fails while holding it").take() {
            return Ok(trainer);
        }
        let mut trainer = self.context.trainer()?;
        let mut best = self.store.best()?;
        best.set_extent(self.context.extent());
        trainer.load(best)?;
        trainer.swap_ema();
        Ok(trainer)
    }

    /// The settings.
    pub fn config(&self) -> &RunConfig {
        &self.context.config
    }

    /// The stream it was trained on.
    pub fn stream(&self) -> &Stream {
        &self.context.stream
    }

    /// What the model knew before its first event.
    pub(crate) fn info(&self) -> &StreamInfo {
        &self.context.info
    }

    /// The SHA-256 of the stream, as its checkpoints note it.
    pub(crate) fn stream_sha256(&self) -> &str {
        &self.stream_sha256
    }

    /// The split of the stream.
    pub fn split(&self) -> &Split {
        self.context.split()
    }

    /// From its scores to probabilities, if that was kept with it.
    pub fn calibration(&self) -> Result<Option<Calibration>> {
        self.store.calibration()
    }

    /// Asks validation how likely a score is, see [`TrainedRun::calibrate`], and keeps the answer
    /// with the run: whoever uses the model says probabilities from then on. A run that does not
    /// rank stays as it is.
    pub fn keep_calibration(&mut self, watch: &mut Watch<'_>) -> Result<()> {
        match self.calibrate(watch)? {
            Some(curve) => self.store.keep_calibration(curve),
            None => Ok(()),
        }
    }

    /// The command that began it, if one did.
    pub fn command(&self) -> Option<String> {
        match &self.store {
            RunStore::Folder(folder) => folder.command(),
            RunStore::Memory(_) | RunStore::Elsewhere => None,
        }
    }

    /// What every epoch did.
    pub fn epochs(&self) -> Result<Vec<EpochReport>> {
        self.store.epochs()
    }

    /// What came before training, in seconds.
    pub fn timings(&self) -> SetupTimings {
        self.context.timings
    }

    /// Evaluates it: the state goes on from the end of training.
    pub fn evaluate(&self, asked: &EvalScope) -> Result<EvaluationReport> {
        self.evaluate_watching(asked, &mut unwatched)
    }

    /// The same, with a function that is called after every step.
    pub fn evaluate_watching(
        &self,
        asked: &EvalScope,
        watch: &mut Watch<'_>,
    ) -> Result<EvaluationReport> {
        let stream = &self.context.stream;
        let mut results = Vec::new();
        for pass in self.passes(asked)? {
            let outcomes = evaluate(self.trainer()?.as_mut(), &stream.log, &pass, watch)?;
            results.extend(self.rows(&self.context.config.model, &pass, outcomes));
        }
        Ok(self.report(results))
    }

    /// What the order of events that share a time is worth to it; nothing where fewer than `least`
    /// of the events do.
    pub(crate) fn ties(&self, least: f64, watch: &mut Watch<'_>) -> Result<Vec<TiesReport>> {
        let opened = |_: &StreamInfo| self.before_the_first_event();
        let model = (self.config().model.to_string(), &opened as &OpenSession<'_>);
        ties(self.stream(), self.context.plan.protocol(), &[model], least, watch)
    }

    /// From now on asks each event against this many negatives, and at most so many events of a
    /// part; what is not given stays. The weights are those that the run's own questions chose.
    /// Only protocol `stream` leaves them open.
    pub fn ask_otherwise(
        &mut self,
        per_event: Option<usize>,
        questions: Option<usize>,
    ) -> Result<()> {
        self.context.plan.ask_otherwise(per_event, questions)
    }

    /// The passes that ask everything asked.
    pub(crate) fn passes(&self, asked: &EvalScope) -> Result<Vec<EvalPass>> {
        self.context.passes(asked)
    }

    /// Those of the questions that this stream can be asked, and which others cannot and why: some
    /// streams have no new nodes, some have nothing but one pair.
    pub fn possible(&self, asked: &EvalScope) -> (EvalScope, Vec<(String, Error)>) {
        let (mut possible, mut reasons) = (asked.clone(), Vec::new());
        let mut can = |asked: &EvalScope, what: String| match self.passes(asked) {
            Ok(_) => true,
            Err(error) => {
                reasons.push((what, error));
                false
            }
        };
        let first = asked.strategies.first().copied();
        possible.settings.retain(|&setting| {
            let alone = EvalScope {
                settings: vec![setting],
                strategies: first.into_iter().collect(),
                ..asked.clone()
            };
            can(&alone, format!("{setting} setting"))
        });
        let settings = possible.settings.clone();
        possible.strategies.retain(|&strategy| {
            let alone = EvalScope {
                settings: settings.clone(),
                strategies: vec![strategy],
                ..asked.clone()
            };
            can(&alone, format!("{strategy} negatives"))
        });
        (possible, reasons)
    }

    /// A pass's outcomes beside what they depend on.
    pub(crate) fn rows(
        &self,
        model: &ModelConfig,
        pass: &EvalPass,
        outcomes: Vec<Outcome>,
    ) -> Vec<ResultRow> {
        let stream = &self.context.stream;
        let row = |(outcome, query_set): (Outcome, &QuerySet)| {
            let hash = negatives_sha256(query_set, stream.log.events(), &stream.names);
            ResultRow::new(model.clone(), outcome, hash, query_set.negatives())
        };
        outcomes.into_iter().zip(&pass.query_sets).map(row).collect()
    }

    pub(crate) fn report(&self, results: Vec<ResultRow>) -> EvaluationReport {
        let RunContext { config, stream, plan, .. } = &self.context;
        EvaluationReport {
            model: config.model.to_string(),
            results,
            settings: Some(config.clone()),
            training: self.store.epochs().ok().and_then(TrainingSummary::of),
            stream_sha256: Some(self.stream_sha256.clone()),
            ..EvaluationReport::about(stream, plan.protocol())
        }
    }

    /// The stream it was trained on, when the run itself is no longer needed.
    pub fn into_stream(self) -> Stream {
        self.context.stream
    }

    /// As [`TrainedRun::into_stream`], with the events that its file has had since.
    pub(crate) fn into_streams(self) -> (Stream, Option<Dataset>) {
        (self.context.stream, self.context.since)
    }

    /// Events that its file has had since.
    pub(crate) fn since(&self) -> Option<&Dataset> {
        self.context.since.as_ref()
    }

    /// A session with the learned weights that has observed nothing.
    pub fn before_the_first_event(&self) -> Result<Box<dyn Session>> {
        let mut trainer = self.trainer()?;
        trainer.reset_state();
        Ok(trainer)
    }

    /// The session after the whole stream has been observed, as validation and test would have
    /// been.
    pub fn at_the_end(&self) -> Result<Box<dyn Session>> {
        Ok(self.trainer_at_the_end()?)
    }

    /// As [`TrainedRun::at_the_end`], with what is needed to save it.
    pub(crate) fn trainer_at_the_end(&self) -> Result<Box<dyn Trainer>> {
        let mut trainer = self.trainer()?;
        let log = &self.context.stream.log;
        self.steps_after_training(|end, events| trainer.observe(log.revealed(end), events))?;
        Ok(trainer)
    }

    /// Goes through the steps of validation and test: `step` gets the number after the step's last
    /// event, and its events.
    pub(crate) fn steps_after_training(
        &self,
        mut step: impl FnMut(u32, &[Event]) -> Result<()>,
    ) -> Result<()> {
        let RunContext { config, stream, plan, .. } = &self.context;
        for part in [Part::Validation, Part::Test] {
            for span in cut(
                stream.log.events(),
                plan.split().range(part),
                config.protocol.step(),
                self.context.visibility(),
            ) {
                let end = span.end;
                let events: Vec<Event> =
                    span.map(|number| stream.log.events().at(number as usize)).collect();
                step(end, &events)?;
            }
        }
        Ok(())
    }

    /// What the model shows of itself after training.
    pub fn after_training(&self) -> Result<Vec<Diagnostic>> {
        let trainer = self.trainer()?;
        let diagnostics = trainer.describe();
        // Nothing was used up: the next to ask need not read it again.
        *self.fresh.lock().expect("nobody fails while holding it") = Some(trainer);
        Ok(diagnostics)
    }

    /// Weights, moments and the state after training.
    pub(crate) fn checkpoint(&self) -> Result<Checkpoint<'static>> {
        self.store.best()
    }
}
