//! One cell of a grid: a folder that holds nothing yet, a run that is going on, or a finished
//! report.
//!
//! A cell that learns is an ordinary run, so stopping, going on and asking it later work as for
//! `lstep train`. A folder with other settings than those asked for is refused, never reused.

use crate::disk::{FolderLock, REPORT_LIMIT, SETTINGS_LIMIT, read_text, write_text};
use crate::error::{Error, InputFault, Remedy, Result};
use crate::evaluation::{EvaluatedModel, Evaluation};
use crate::experiments::CellResult;
use crate::fingerprint::Fingerprint;
use crate::protocol::{EvalScope, Part, Setting, Strategy};
use crate::read::read;
use crate::results::TrainingSummary;
use crate::results::{EvaluationReport, MANY_TIES, ResultRow};
use crate::settings::difference;
use crate::settings::{DataConfig, RunConfig};
use crate::stream::Stream;
use crate::training::RunFolder;
use crate::training::{TrainEvent, TrainingRun};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// The file that says which stream a cell is about.
const ABOUT: &str = "cell.toml";

/// What a learned cell's numbers come from.
const FILES: [&str; 2] = ["best.safetensors", "metrics.jsonl"];

/// One dataset, one model, one seed.
#[derive(Debug, Clone)]
pub struct Cell {
    /// The dataset's name.
    pub dataset: String,
    /// The model's label.
    pub model: String,
    /// The seed, for a model that learns.
    pub seed: Option<u64>,
    /// All settings.
    pub config: RunConfig,
    /// What is asked.
    pub asked: EvalScope,
    /// Its folder.
    pub folder: PathBuf,
    /// Its folder, below that of all cells.
    pub below: PathBuf,
    /// Bytes it takes, roughly.
    pub memory: u64,
    /// Events of its stream.
    pub events: usize,
    /// Hash of the stream's files.
    pub sha256: String,
    pub(super) counting: Option<EvaluatedModel>,
}

/// Which stream a cell is about: `cell.toml` in its folder.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct About {
    sha256: String,
    data: DataConfig,
    /// The SHA-256 of files that its numbers come from, when it was finished. Cells of earlier
    /// versions have none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    files: BTreeMap<String, String>,
}

/// How far a cell is.
#[derive(Debug)]
pub enum CellState {
    /// Nothing is there.
    New,
    /// Training has begun, or is done and not evaluated as asked.
    Begun,
    /// Everything asked is answered.
    Finished(Box<CellResult>),
}

/// What came of a cell that was to be run.
#[derive(Debug)]
pub enum CellRun {
    /// Everything asked is answered.
    Finished(Box<CellResult>),
    /// It was stopped, and saved.
    Stopped,
    /// Another process runs it.
    Busy,
}

impl Cell {
    /// What it is called in messages.
    pub fn name(&self) -> String {
        let seed = self.seed.map(|seed| format!(", seed {seed}")).unwrap_or_default();
        format!("{}, {}{seed}", self.dataset, self.model)
    }

    /// How much work it is: events that are learned from, or passed over.
    pub fn work(&self) -> f64 {
        let epochs =
            if self.counting.is_some() { 0.1 } else { f64::from(self.config.train.epochs) };
        self.events as f64 * epochs
    }

    /// How far it is. Refuses a folder that holds something else.
    pub fn state(&self) -> Result<CellState> {
        let folder = RunFolder::new(&self.folder);
        let begun = self.counting.is_none() && folder.holds_a_run();
        if begun && let Some(other) = difference(&self.config, &folder.config()?) {
            return Err(self.refusal(&other));
        }
        let mut about = self.found_about()?;
        let files =
            about.as_mut().map_or_else(BTreeMap::new, |about| std::mem::take(&mut about.files));
        match about {
            Some(found) if found.sha256 != self.sha256 && found.data == self.config.data => {
                return Err(self.refusal("the events have changed since"));
            }
            Some(found) => {
                if let Some(other) = difference(&self.about(), &found) {
                    return Err(self.refusal(&other));
                }
            }
            // Counted about some other stream, for all that is known: it is soon done again.
            None if !begun => return Ok(CellState::New),
            // Killed between the report and this file: the run asks once more, and writes both.
            None => return Ok(CellState::Begun),
        }
        let Some(report) = self.report()? else {
            return Ok(if begun { CellState::Begun } else { CellState::New });
        };
        if report.protocol_settings != self.config.protocol {
            return Err(self.refusal("another protocol"));
        }
        let results = self.answers(&report);
        match results {
            Some(results) if begun || self.counting.is_some() => {
                self.check_files(&files)?;
                Ok(CellState::Finished(Box::new(self.result(results, &report)?)))
            }
            _ => Ok(if begun { CellState::Begun } else { CellState::New }),
        }
    }

    fn refusal(&self, other: &str) -> Error {
        let problem = format!("holds a cell with other settings ({other})");
        let file = self.folder.display().to_string();
        Error::incompatible(InputFault::new(file, problem, Remedy::OtherFolder))
    }

    fn about(&self) -> About {
        let data = self.config.data.clone();
        About { sha256: self.sha256.clone(), data, files: BTreeMap::new() }
    }

    /// The SHA-256 of the files that a finished cell's numbers come from. The report has its own
    /// digest.
    fn digests(&self) -> Result<BTreeMap<String, String>> {
        let files: &[&str] = if self.counting.is_some() { &[] } else { &FILES };
        let digest = |name: &&str| Ok((name.to_string(), digest(&self.folder.join(name))?));
        files.iter().map(digest).collect()
    }

    /// Refuses a finished cell of which a file is no longer what it was.
    fn check_files(&self, expected: &BTreeMap<String, String>) -> Result<()> {
        for (name, expected) in expected.iter().filter(|(name, _)| FILES.contains(&name.as_str())) {
            let path = self.folder.join(name);
            if digest(&path)? != *expected {
                let problem = "was changed after the cell was finished: its SHA-256 is another";
                let remedy = "restore it, or remove the cell's folder and it is made again";
                let fault = InputFault::new(path.display().to_string(), problem, remedy);
                return Err(Error::incompatible(fault));
            }
        }
        Ok(())
    }

    fn found_about(&self) -> Result<Option<About>> {
        let path = self.folder.join(ABOUT);
        if !path.exists() {
            return Ok(None);
        }
        let text = read_text(&path, SETTINGS_LIMIT)?;
        toml::from_str(&text).map(Some).map_err(|error| unreadable(&path, &error))
    }

    fn report(&self) -> Result<Option<EvaluationReport>> {
        let path = self.folder.join("report.json");
        if !path.exists() {
            return Ok(None);
        }
        let text = read_text(&path, REPORT_LIMIT)?;
        EvaluationReport::from_json(&path, &text).map(Some)
    }

    /// The results asked for, in order, if the report has them all and they are of this model.
    fn answers(&self, report: &EvaluationReport) -> Option<Vec<ResultRow>> {
        let mut rows = Vec::new();
        for (part, setting, strategy) in questions(&self.asked) {
            let model = match &self.counting {
                Some(model) => model.for_query_set(strategy).ok()?,
                None => self.config.model.clone(),
            };
            let asked = |row: &&ResultRow| {
                (row.part, row.setting, row.negatives) == (part, setting, strategy)
                    && row.model == model
            };
            rows.push(report.results.iter().find(asked)?.clone());
        }
        Some(rows)
    }

    fn result(&self, results: Vec<ResultRow>, report: &EvaluationReport) -> Result<CellResult> {
        let learns = self.counting.is_none();
        Ok(CellResult {
            dataset: self.dataset.clone(),
            model: self.model.clone(),
            seed: self.seed,
            folder: self.below.clone(),
            protocol: self.config.protocol.clone(),
            config: results
                .first()
                .map_or_else(|| self.config.model.clone(), |row| row.model.clone()),
            train: learns.then(|| self.config.train.clone()),
            training: if learns {
                TrainingSummary::of(RunFolder::new(&self.folder).epochs()?)
            } else {
                None
            },
            ties: report.ties.first().cloned(),
            results,
        })
    }

    /// Does what is left to do. `watch` is told the share that is done and says whether to go on;
    /// nothing if it was stopped.
    pub fn run(&self, watch: &(dyn Fn(f64) -> bool + Sync)) -> Result<Option<CellResult>> {
        match self.take(watch)? {
            CellRun::Finished(result) => Ok(Some(*result)),
            CellRun::Stopped => Ok(None),
            CellRun::Busy => Err(FolderLock::busy(&self.folder)),
        }
    }

    /// The same, unless another process runs it. The lock of a process that has ended is free,
    /// however it ended, and what it left is gone on with.
    pub fn take(&self, watch: &(dyn Fn(f64) -> bool + Sync)) -> Result<CellRun> {
        let finished = || match self.state()? {
            CellState::Finished(result) => Ok::<_, Error>(Some(CellRun::Finished(result))),
            CellState::New | CellState::Begun => Ok(None),
        };
        if let Some(finished) = finished()? {
            return Ok(finished);
        }
        let folder = RunFolder::new(&self.folder);
        let Some(_writing) = folder.try_lock()? else { return Ok(CellRun::Busy) };
        // Another process may have finished it meanwhile.
        if let Some(finished) = finished()? {
            return Ok(finished);
        }
        let report = match &self.counting {
            Some(model) => self.count(model, watch).map(Some),
            None => self.learn(folder, watch),
        };
        let report = match report {
            Ok(Some(report)) => report,
            Ok(None) | Err(Error::Interrupted) => return Ok(CellRun::Stopped),
            Err(error) => return Err(error),
        };
        let text = report.to_json();
        write_text(self.folder.join("report.json"), &text)?;
        // It comes last: a report without it counts for nothing.
        let about = About { files: self.digests()?, ..self.about() };
        write_text(self.folder.join(ABOUT), &toml::to_string_pretty(&about).expect("plain data"))?;
        let results = self.answers(&report).expect("everything asked was answered just now");
        Ok(CellRun::Finished(Box::new(self.result(results, &report)?)))
    }

    fn count(
        &self,
        model: &EvaluatedModel,
        watch: &(dyn Fn(f64) -> bool + Sync),
    ) -> Result<EvaluationReport> {
        Evaluation::new(&self.stream()?)
            .models([model.clone()])
            .protocol(self.config.protocol.clone())
            .scope(self.asked.clone())
            .on_progress(|progress| match watch(progress.done as f64 / progress.of.max(1) as f64) {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            })
            .run()
    }

    fn learn(
        &self,
        folder: RunFolder,
        watch: &(dyn Fn(f64) -> bool + Sync),
    ) -> Result<Option<EvaluationReport>> {
        let mut fit = if folder.holds_a_run() {
            TrainingRun::resume(folder)?
        } else {
            TrainingRun::begin(self.config.clone(), self.stream()?, folder)?
        };
        if !fit.is_finished() {
            fit.check_scope(&self.asked)?;
        }
        let epochs = f64::from(self.config.train.epochs);
        let finished = fit.run(&mut |moment| {
            let share = match moment {
                TrainEvent::Step { progress, done, of } => {
                    (f64::from(progress.epoch - 1) + done as f64 / of as f64) / epochs
                }
                TrainEvent::Validation { epoch, .. } => f64::from(epoch) / epochs,
                TrainEvent::Epoch(report) => f64::from(report.epoch) / epochs,
            };
            if watch(share) { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        if !finished {
            return Ok(None);
        }
        // What was asked before stays answered.
        let before = self.report()?.map(|report| report.results).unwrap_or_default();
        let asked = together(&self.asked, &before);
        let mut watch = |_, _| match watch(1.0) {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        };
        let trained = fit.into_trained()?;
        let mut report = trained.evaluate_watching(&asked, &mut watch)?;
        report.ties = trained.ties(MANY_TIES, &mut watch)?;
        Ok(Some(report))
    }

    fn stream(&self) -> Result<Stream> {
        let data = &self.config.data;
        read(&data.events, &data.options()).map(Stream::from)
    }
}

/// The SHA-256 of a file.
fn digest(path: &Path) -> Result<String> {
    let mut hash = Fingerprint::default();
    let mut hashed = || std::io::copy(&mut File::open(path)?, &mut hash);
    hashed().map_err(|error| Error::io(path, error))?;
    Ok(hash.hex())
}

fn unreadable(path: &Path, error: &dyn std::fmt::Display) -> Error {
    let problem = format!("cannot be read ({error})");
    InputFault::new(path.display().to_string(), problem, "remove it: it is made again").into()
}

fn questions(asked: &EvalScope) -> impl Iterator<Item = (Part, Setting, Strategy)> + '_ {
    let settings = asked
        .parts
        .iter()
        .flat_map(|part| asked.settings.iter().map(move |setting| (*part, *setting)));
    settings.flat_map(|(part, setting)| {
        asked.strategies.iter().map(move |strategy| (part, setting, *strategy))
    })
}

/// What is asked, and what was asked before.
fn together(asked: &EvalScope, before: &[ResultRow]) -> EvalScope {
    let mut all = asked.clone();
    for row in before {
        add(&mut all.parts, row.part);
        add(&mut all.settings, row.setting);
        add(&mut all.strategies, row.negatives);
    }
    all
}

fn add<T: PartialEq>(list: &mut Vec<T>, value: T) {
    if !list.contains(&value) {
        list.push(value);
    }
}
