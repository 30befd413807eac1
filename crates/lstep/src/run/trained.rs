//! A trained run, opened to be asked: evaluated, examined, or used.

use super::config::RunConfig;
use super::evaluate::{Outcome, evaluate};
use super::folder::RunFolder;
use super::ground::{Ground, Spent};
use super::job::Stream;
use super::origin::Origin;
use super::report::{EvaluationReport, ResultRow};
use super::training::Training;
use crate::checkpoint::Checkpoint;
use crate::error::{Error, Result};
use crate::event::Event;
use crate::model::{Exhibit, ModelConfig, Pupil, Session};
use crate::protocol::{Asked, Exam, Part, Protocol, Sheet, Split, cut, negatives_sha256};
use std::sync::Mutex;

/// A trained run, opened to be asked.
pub struct Trained {
    pub(super) ground: Ground,
    folder: RunFolder,
    /// How it is asked: as it was validated, unless somebody wants other questions.
    protocol: Protocol,
    /// The pupil after training, until somebody uses its state up; then it is read again.
    fresh: Mutex<Option<Box<dyn Pupil>>>,
}

impl Trained {
    /// Opens the best epoch of a run.
    pub fn open(folder: &RunFolder) -> Result<Trained> {
        Trained::on(Ground::read(folder.config()?)?, folder)
    }

    /// Opens the best epoch of a run on a stream in memory, which has to be the one it was trained on.
    pub fn open_with(folder: &RunFolder, stream: Stream) -> Result<Trained> {
        Trained::on(Ground::new(folder.config()?, stream)?, folder)
    }

    fn on(ground: Ground, folder: &RunFolder) -> Result<Trained> {
        let origin = Origin::of(&ground);
        Trained::read(ground, folder, &origin)
    }

    pub(super) fn read(ground: Ground, folder: &RunFolder, origin: &Origin) -> Result<Trained> {
        let best = folder.best();
        if !best.exists() {
            return Err(folder.without_best(folder.epochs().is_ok_and(|epochs| !epochs.is_empty())));
        }
        let mut pupil = ground.pupil()?;
        origin.load(pupil.as_mut(), &best, Checkpoint::read(&best)?)?;
        pupil.exchange();
        let protocol = ground.config.protocol.clone();
        Ok(Trained { ground, folder: folder.clone(), protocol, fresh: Mutex::new(Some(pupil)) })
    }

    /// The pupil as training left it, to be used up.
    pub(super) fn pupil(&self) -> Result<Box<dyn Pupil>> {
        if let Some(pupil) = self.fresh.lock().expect("nobody fails while holding it").take() {
            return Ok(pupil);
        }
        let mut pupil = self.ground.pupil()?;
        pupil.load(Checkpoint::read(self.folder.best())?)?;
        pupil.exchange();
        Ok(pupil)
    }

    /// The settings.
    pub fn config(&self) -> &RunConfig {
        &self.ground.config
    }

    /// The stream it was trained on.
    pub fn stream(&self) -> &Stream {
        &self.ground.stream
    }

    /// The split of the stream.
    pub fn split(&self) -> &Split {
        &self.ground.split
    }

    /// What came before training, in seconds.
    pub fn spent(&self) -> Spent {
        self.ground.spent
    }

    /// Evaluates it: the state goes on from the end of training.
    pub fn evaluate(&self, asked: &Asked, watch: &dyn Fn(u64, u64)) -> Result<EvaluationReport> {
        let stream = &self.ground.stream;
        let mut results = Vec::new();
        for exam in self.exams(asked)? {
            let outcomes = evaluate(self.pupil()?.as_mut(), &stream.log, &exam, watch)?;
            results.extend(self.rows(&self.ground.config.model, &exam, outcomes));
        }
        Ok(self.report(results))
    }

    /// From now on asks each event against this many negatives, and at most so many events of a part; what is not given stays. The weights
    /// are those that the run's own questions chose. Only protocol `stream` leaves them open.
    pub fn ask_otherwise(&mut self, per_event: Option<usize>, questions: Option<usize>) -> Result<()> {
        let Protocol::Stream(stream) = &mut self.protocol else {
            let remedy = "it settles what is asked: leave out --per-event and --questions";
            return Err(Error::setting("protocol", self.protocol.name(), remedy));
        };
        stream.per_event = per_event.unwrap_or(stream.per_event);
        stream.questions = questions.or(stream.questions);
        Ok(())
    }

    /// The exams that ask everything asked.
    pub(super) fn exams(&self, asked: &Asked) -> Result<Vec<Exam>> {
        self.protocol.exams(self.ground.subject(), &self.ground.split, asked)
    }

    /// Those of the questions that this stream can be asked, and why the others cannot: some streams have no new nodes, some have
    /// nothing but one pair.
    pub fn possible(&self, asked: &Asked) -> (Asked, Vec<String>) {
        let (mut possible, mut reasons) = (asked.clone(), Vec::new());
        let mut can = |asked: &Asked, what: String| match self.exams(asked) {
            Ok(_) => true,
            Err(error) => {
                reasons.push(format!("{what}: {error}"));
                false
            }
        };
        let first = asked.strategies.first().copied();
        possible.settings.retain(|&setting| {
            let alone = Asked { settings: vec![setting], strategies: first.into_iter().collect(), ..asked.clone() };
            can(&alone, format!("{setting} setting"))
        });
        let settings = possible.settings.clone();
        possible.strategies.retain(|&strategy| {
            let alone = Asked { settings: settings.clone(), strategies: vec![strategy], ..asked.clone() };
            can(&alone, format!("{strategy} negatives"))
        });
        (possible, reasons)
    }

    /// An exam's outcomes beside what they depend on.
    pub(super) fn rows(&self, model: &ModelConfig, exam: &Exam, outcomes: Vec<Outcome>) -> Vec<ResultRow> {
        let stream = &self.ground.stream;
        let row = |(outcome, sheet): (Outcome, &Sheet)| {
            let hash = negatives_sha256(sheet, stream.log.events(), &stream.names);
            ResultRow::new(model.clone(), outcome, hash, sheet.negatives())
        };
        outcomes.into_iter().zip(&exam.sheets).map(row).collect()
    }

    pub(super) fn report(&self, results: Vec<ResultRow>) -> EvaluationReport {
        let Ground { config, stream, .. } = &self.ground;
        EvaluationReport {
            dataset: stream.name.clone(),
            nodes: stream.names.len(),
            events: stream.log.len(),
            protocol: config.protocol.name().to_string(),
            protocol_settings: self.protocol.clone(),
            model: config.model.to_string(),
            results,
            settings: Some(config.clone()),
            training: self.folder.epochs().ok().and_then(Training::of),
            threads: rayon::current_num_threads(),
            version: env!("CARGO_PKG_VERSION").to_string(),
        }
    }

    /// The stream it was trained on, when the run itself is no longer needed.
    pub fn into_stream(self) -> Stream {
        self.ground.stream
    }

    /// A session with the learned weights that has observed nothing.
    pub fn before_the_first_event(&self) -> Result<Box<dyn Session>> {
        let mut pupil = self.pupil()?;
        pupil.restart();
        Ok(pupil)
    }

    /// The session after the whole stream has been observed, as validation and test would have been.
    pub fn at_the_end(&self) -> Result<Box<dyn Session>> {
        let mut session = self.pupil()?;
        let log = &self.ground.stream.log;
        self.steps_after_training(|end, events| session.observe(log.revealed(end), events))?;
        Ok(session)
    }

    /// Goes through the steps of validation and test: `step` gets the number after the step's last event, and its events.
    pub(super) fn steps_after_training(&self, mut step: impl FnMut(u32, &[Event]) -> Result<()>) -> Result<()> {
        let Ground { config, stream, split, .. } = &self.ground;
        for part in [Part::Validation, Part::Test] {
            for span in cut(stream.log.events(), split.range(part), config.protocol.step(), self.ground.visibility()) {
                let end = span.end;
                let events: Vec<Event> = span.map(|number| stream.log.events().at(number as usize)).collect();
                step(end, &events)?;
            }
        }
        Ok(())
    }

    /// What the model shows of itself after training.
    pub fn after_training(&self) -> Result<Vec<Exhibit>> {
        let pupil = self.pupil()?;
        let exhibits = pupil.describe();
        // Nothing was used up: the next to ask need not read it again.
        *self.fresh.lock().expect("nobody fails while holding it") = Some(pupil);
        Ok(exhibits)
    }

    /// Weights, moments and the state after training.
    pub(super) fn checkpoint(&self) -> Result<Checkpoint<'static>> {
        Checkpoint::read(self.folder.best())
    }
}
