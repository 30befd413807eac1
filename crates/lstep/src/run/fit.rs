//! Training as a job that can be stopped at any moment: a folder, what is in it, and how to go on from it.
//!
//! | file | holds |
//! |---|---|
//! | `config.toml` | all settings, resolved |
//! | `last.safetensors` | weights, moments, state and how far the epoch is: what is needed to go on |
//! | `best.safetensors` | the same after the training pass of the best epoch: what is evaluated and used |
//! | `metrics.jsonl` | a line for each epoch |
//! | `report.json` | the final evaluation |
//! | `report.html` | the same and more, to be looked at |
//!
//! Every file is written under another name and renamed, so a run that is killed leaves whole files behind. `last` is written after
//! the training pass of every epoch, after its validation, and when asked to stop; what came after it is done again in the same
//! way, so the end is the same to the bit. Since the pass is on the disk before validation begins, validation and evaluation may
//! use up the state in memory: there is only ever one.

use super::config::RunConfig;
use super::evaluate::{Outcome, evaluate, facts};
use super::job::Stream;
use super::report::{EvaluationReport, ResultRow};
use super::train::{Course, EpochReport, Progress, Selection, ValidationRow, mean_quality};
use crate::checkpoint::{Checkpoint, append_line, duplicate, write_text};
use crate::error::{Error, InputFault, Result};
use crate::event::Event;
use crate::fingerprint::Fingerprint;
use crate::model::{Exhibit, Facts, ModelConfig, Optimiser, Pupil, Session};
use crate::protocol::{
    Asked, Exam, Part, Setting, Sheet, Split, StepRule, Strategy, Subject, Visibility, cut, negatives_sha256,
};
use crate::read::read;
use lstep_tensor::AdamConfig;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Instant;

/// The folder of a run.
#[derive(Debug, Clone)]
pub struct RunFolder {
    path: PathBuf,
}

impl RunFolder {
    /// A folder, whether it exists or not.
    pub fn new(path: impl Into<PathBuf>) -> RunFolder {
        RunFolder { path: path.into() }
    }

    /// One of its files.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Whether there is a run in it.
    pub fn holds_a_run(&self) -> bool {
        self.file("config.toml").exists()
    }

    /// What every epoch did.
    pub fn epochs(&self) -> Result<Vec<EpochReport>> {
        let path = self.file("metrics.jsonl");
        let text = fs::read_to_string(&path).map_err(|error| Error::io(&path, error))?;
        let epoch = |(number, line): (usize, &str)| {
            serde_json::from_str(line).map_err(|error| {
                let fault = InputFault::new(
                    path.display().to_string(),
                    format!("line {}: is no epoch ({error})", number + 1),
                    "remove the line, or the run",
                );
                fault.into()
            })
        };
        text.lines().enumerate().map(epoch).collect()
    }

    /// The settings of the run.
    pub fn config(&self) -> Result<RunConfig> {
        let path = self.file("config.toml");
        if !self.holds_a_run() {
            let remedy = "name a folder that `lstep train` made";
            return Err(InputFault::new(
                self.path.display().to_string(),
                "holds no run: there is no config.toml",
                remedy,
            )
            .into());
        }
        let text = fs::read_to_string(&path).map_err(|error| Error::io(&path, error))?;
        RunConfig::from_toml(&path.display().to_string(), &text)
    }
}

/// What training tells while it runs.
#[derive(Debug)]
pub enum Moment<'a> {
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

/// The parts of a run that do not change while it trains.
pub(super) struct Ground {
    pub config: RunConfig,
    pub stream: Stream,
    pub split: Split,
    pub facts: Facts,
    pub spent: Spent,
}

/// Seconds of what comes before training.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Spent {
    /// Reading the events, where this program did it.
    pub reading: Option<f64>,
    /// Splitting the stream.
    pub splitting: f64,
}

impl Ground {
    fn new(config: RunConfig, stream: Stream) -> Result<Ground> {
        config.train.check()?;
        let subject = Subject { events: stream.log.events(), names: &stream.names };
        let started = Instant::now();
        let split = config.protocol.split(subject)?;
        let spent = Spent { reading: None, splitting: started.elapsed().as_secs_f64() };
        let facts = facts(&stream.log, &split);
        Ok(Ground { config, stream, split, facts, spent })
    }

    fn read(config: RunConfig) -> Result<Ground> {
        let started = Instant::now();
        let stream = Stream::from(read(&config.data.events, &config.data.options())?);
        let reading = Some(started.elapsed().as_secs_f64());
        let ground = Ground::new(config, stream)?;
        Ok(Ground { spent: Spent { reading, ..ground.spent }, ..ground })
    }

    pub fn subject(&self) -> Subject<'_> {
        Subject { events: self.stream.log.events(), names: &self.stream.names }
    }

    fn pupil(&self) -> Result<Box<dyn Pupil>> {
        let train = &self.config.train;
        let adam = AdamConfig { learning_rate: train.learning_rate, ..AdamConfig::default() };
        self.config.model.pupil(&self.facts, train.seed, Optimiser { adam, clip: train.clip })
    }

    fn visibility(&self) -> Visibility {
        self.config.protocol.visibility()
    }

    /// A hash of who met whom when, with which features, to tell that a run is continued on the stream it began with. Names are
    /// in it, because the run is asked by name.
    fn fingerprint(&self) -> String {
        let mut hash = Fingerprint::default();
        for name in self.stream.names.iter() {
            let name = name.to_string();
            hash.take((name.len() as u64).to_le_bytes());
            hash.take(name);
        }
        for features in [self.stream.log.events().features(), self.stream.log.node_features()] {
            hash.take((features.width() as u64).to_le_bytes());
            features.values().iter().for_each(|value| hash.take(value.to_le_bytes()));
        }
        for event in self.stream.log.events().iter() {
            hash.take(event.source.0.to_le_bytes());
            hash.take(event.destination.0.to_le_bytes());
            hash.take(event.time.value().to_le_bytes());
        }
        hash.hex()
    }
}

/// A run that is being trained.
pub struct Fit {
    ground: Ground,
    folder: RunFolder,
    course: Course,
    validation: Exam,
    pupil: Box<dyn Pupil>,
    progress: Progress,
    selection: Selection,
    fingerprint: String,
}

impl Fit {
    /// Starts a run in a folder that has none yet.
    pub fn begin(config: RunConfig, stream: Stream, folder: RunFolder) -> Result<Fit> {
        if folder.holds_a_run() {
            return Err(Error::setting(
                "out",
                folder.path.display(),
                "there is a run in it already: go on with --resume, or choose another folder",
            ));
        }
        let fit = Fit::prepare(Ground::new(config, stream)?, folder)?;
        fs::create_dir_all(&fit.folder.path).map_err(|error| Error::io(&fit.folder.path, error))?;
        fit.save("last.safetensors")?;
        // The settings come last: a folder that has them has everything.
        write_text(fit.folder.file("config.toml"), &fit.ground.config.to_toml())?;
        Ok(fit)
    }

    /// Says how long the stream took to read, for the report.
    #[must_use]
    pub fn having_read_for(mut self, seconds: f64) -> Fit {
        self.ground.spent.reading = Some(seconds);
        self
    }

    /// Goes on with the run in a folder.
    pub fn resume(folder: RunFolder) -> Result<Fit> {
        let mut fit = Fit::prepare(Ground::read(folder.config()?)?, folder)?;
        let path = fit.folder.file("last.safetensors");
        let checkpoint = Checkpoint::read(&path)?;
        same_stream(&path, &checkpoint, &fit.fingerprint)?;
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
        fit.pupil.load(checkpoint)?;
        fit.keep_metrics_before(fit.progress.epoch)?;
        Ok(fit)
    }

    fn prepare(ground: Ground, folder: RunFolder) -> Result<Fit> {
        let protocol = &ground.config.protocol;
        let asked = Asked {
            parts: vec![Part::Validation],
            settings: vec![Setting::Transductive],
            strategies: if protocol.name() == "tgb" { vec![Strategy::Tgb] } else { ground.config.train.select.clone() },
        };
        let validation = protocol.exams(ground.subject(), &ground.split, &asked)?.swap_remove(0);
        let train = &ground.config.train;
        let course = Course::new(&ground.stream.log, &ground.split, protocol.step(), ground.visibility(), train)?;
        if course.steps() < 2 {
            let value = match protocol.step() {
                StepRule::Events(events) => format!("{events} events"),
                StepRule::DistinctTime => "time".to_string(),
            };
            let remedy = format!(
                "the {} training events make {} step, and learning needs two at least: set fewer events, for example --set \
                 protocol.step={}",
                course.events(),
                course.steps(),
                (course.events() / 10).max(1)
            );
            return Err(Error::setting("protocol.step", value, remedy));
        }
        let times = ground.stream.log.events().times();
        if let (Some(first), Some(last)) = (times.first(), times.last())
            && last.since(*first) > f64::from(f32::MAX)
        {
            let remedy =
                "learning works with 32-bit numbers: write times in a coarser unit, so that they span less than 1e38";
            return Err(Error::setting("the span of the times", last.since(*first), remedy));
        }
        let pupil = ground.pupil()?;
        let fingerprint = ground.fingerprint();
        let (progress, selection) = (Progress::start(1), Selection::default());
        Ok(Fit { ground, folder, course, validation, pupil, progress, selection, fingerprint })
    }

    /// The settings.
    pub fn config(&self) -> &RunConfig {
        &self.ground.config
    }

    /// How many numbers are learned.
    pub fn weights(&self) -> usize {
        self.pupil.weights()
    }

    /// How many events train.
    pub fn events(&self) -> usize {
        self.course.events()
    }

    /// What selection knows so far.
    pub fn selection(&self) -> Selection {
        self.selection
    }

    /// Refuses questions that this stream cannot be asked, before time goes into training.
    pub fn check_asked(&self, asked: &Asked) -> Result<()> {
        self.ground.config.protocol.exams(self.ground.subject(), &self.ground.split, asked).map(drop)
    }

    /// Whether there is nothing left to do.
    pub fn is_finished(&self) -> bool {
        let train = &self.ground.config.train;
        self.progress.epoch > train.epochs || self.selection.waited >= train.patience
    }

    /// Trains until it is finished or `watch` says to stop; either way everything is saved. Tells whether it is finished.
    pub fn run(&mut self, watch: &mut (dyn FnMut(Moment<'_>) -> bool + Send)) -> Result<bool> {
        while !self.is_finished() {
            let started = Instant::now();
            let of = self.course.events() as u64;
            let first = self.progress.step;
            let complete = self.course.go_on(self.pupil.as_mut(), &mut self.progress, &mut |progress, done| {
                watch(Moment::Step { progress, done, of })
            })?;
            if !complete {
                self.save("last.safetensors")?;
                return Ok(false);
            }
            let share = 1.0 - f64::from(first) / self.course.steps() as f64;
            let train_seconds = started.elapsed().as_secs_f64();
            self.save("last.safetensors")?;
            let report = self.validate(train_seconds, share)?;
            if report.improved {
                duplicate(&self.folder.file("last.safetensors"), &self.folder.file("best.safetensors"))?;
            }
            let line = serde_json::to_string(&report).expect("a report is plain data");
            append_line(self.folder.file("metrics.jsonl"), &line)?;
            self.progress = Progress::start(self.progress.epoch + 1);
            self.pupil.restart();
            self.save("last.safetensors")?;
            if !watch(Moment::Epoch(&report)) {
                return Ok(self.is_finished());
            }
        }
        Ok(true)
    }

    /// The best epoch, opened to be asked. The stream is not read again.
    pub fn into_trained(mut self) -> Result<Trained> {
        self.pupil.restart();
        Trained::read(self.ground, &self.folder, &self.fingerprint)
    }

    /// The state streams on into validation.
    fn validate(&mut self, train_seconds: f64, share: f64) -> Result<EpochReport> {
        let started = Instant::now();
        let session = self.pupil.as_mut();
        let outcomes = evaluate(session, &self.ground.stream.log, &self.validation, &|_, _| ())?;
        let (ap, auc) = mean_quality(&outcomes);
        let row = |outcome: &Outcome| ValidationRow { negatives: outcome.strategy, ap: outcome.ap, auc: outcome.auc };
        let pairs: usize = outcomes.iter().map(|outcome| outcome.pairs).sum();
        let validation_seconds = started.elapsed().as_secs_f64();
        let improved = self.selection.take(self.progress.epoch, &outcomes);
        Ok(EpochReport {
            epoch: self.progress.epoch,
            loss: self.progress.loss(),
            validation_ap: ap,
            validation_auc: auc,
            validation_mrr: outcomes[0].mrr,
            validation: if outcomes.len() > 1 { outcomes.iter().map(row).collect() } else { Vec::new() },
            improved,
            train_seconds,
            train_events_per_second: share * self.course.events() as f64 / train_seconds,
            validation_seconds,
            validation_pairs_per_second: pairs as f64 / validation_seconds,
        })
    }

    fn save(&self, name: &str) -> Result<()> {
        let mut checkpoint = Checkpoint::default();
        self.pupil.save(&mut checkpoint);
        let json = |value: serde_json::Result<String>| value.expect("progress is plain data");
        checkpoint.notes.insert("progress".into(), json(serde_json::to_string(&self.progress)));
        checkpoint.notes.insert("selection".into(), json(serde_json::to_string(&self.selection)));
        checkpoint.notes.insert("stream".into(), self.fingerprint.clone());
        checkpoint.notes.insert("version".into(), env!("CARGO_PKG_VERSION").into());
        checkpoint.write(self.folder.file(name))
    }

    /// Drops lines of epochs that will be done again.
    fn keep_metrics_before(&self, epoch: u32) -> Result<()> {
        let path = self.folder.file("metrics.jsonl");
        let Ok(text) = fs::read_to_string(&path) else { return Ok(()) };
        let earlier = |line: &&str| serde_json::from_str::<EpochReport>(line).is_ok_and(|report| report.epoch < epoch);
        let kept: String = text.lines().filter(earlier).flat_map(|line| [line, "\n"]).collect();
        write_text(path, &kept)
    }
}

fn same_stream(path: &Path, checkpoint: &Checkpoint, fingerprint: &str) -> Result<()> {
    if checkpoint.note("stream")? == fingerprint {
        return Ok(());
    }
    let fault = InputFault::new(
        path.display().to_string(),
        "was trained on other events than the file has now",
        "put the old events back, or train anew",
    );
    Err(fault.into())
}

/// A trained run, opened to be asked.
pub struct Trained {
    pub(super) ground: Ground,
    best: PathBuf,
    /// The pupil after training, until somebody uses its state up; then it is read again.
    fresh: Mutex<Option<Box<dyn Pupil>>>,
}

impl Trained {
    /// Opens the best epoch of a run.
    pub fn open(folder: &RunFolder) -> Result<Trained> {
        let ground = Ground::read(folder.config()?)?;
        let fingerprint = ground.fingerprint();
        Trained::read(ground, folder, &fingerprint)
    }

    fn read(ground: Ground, folder: &RunFolder, fingerprint: &str) -> Result<Trained> {
        let best = folder.file("best.safetensors");
        if !best.exists() {
            let shown = folder.path.display().to_string();
            let remedy = format!("go on with: lstep train --resume {shown}");
            return Err(InputFault::new(shown, "has no best.safetensors, for no epoch is finished", remedy).into());
        }
        let checkpoint = Checkpoint::read(&best)?;
        same_stream(&best, &checkpoint, fingerprint)?;
        let mut pupil = ground.pupil()?;
        pupil.load(checkpoint)?;
        Ok(Trained { ground, best, fresh: Mutex::new(Some(pupil)) })
    }

    /// The pupil as training left it, to be used up.
    pub(super) fn pupil(&self) -> Result<Box<dyn Pupil>> {
        if let Some(pupil) = self.fresh.lock().expect("nobody fails while holding it").take() {
            return Ok(pupil);
        }
        let mut pupil = self.ground.pupil()?;
        pupil.load(Checkpoint::read(&self.best)?)?;
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

    /// The exams that ask everything asked.
    pub(super) fn exams(&self, asked: &Asked) -> Result<Vec<Exam>> {
        self.ground.config.protocol.exams(self.ground.subject(), &self.ground.split, asked)
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
            ResultRow::new(model.clone(), outcome, hash, sheet.negatives().filled)
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
            protocol_settings: config.protocol.clone(),
            model: config.model.to_string(),
            results,
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
        Checkpoint::read(&self.best)
    }
}
