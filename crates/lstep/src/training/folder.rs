//! The folder of a run: what is in it, and how it is read.
//!
//! | file | holds |
//! |---|---|
//! | `config.toml` | all settings, resolved |
//! | `command.txt` | the command that began it |
//! | `stream.json` | how many events the run is about, and their hash |
//! | `updates` | events that have happened since, a file for each `update` |
//! | `last.safetensors` | weights, moments, state and how far the epoch is: what is needed to go on |
//! | `best.safetensors` | the same after the training pass of the best epoch: what is evaluated and used |
//! | `metrics.jsonl` | a line for each epoch |
//! | `calibration.json` | the curve from scores to probabilities, of a run for ranking |
//! | `ranks.json` | the rank of what happened in every test question, to compare runs |
//! | `report.json` | the final evaluation |
//! | `report.html` | the same and more, to be looked at |
//!
//! Every file is written under another name and renamed, so a run that is killed leaves whole files
//! behind. While a process writes, an empty file `.lock` keeps others from doing so.

use crate::disk::{FolderLock, REPORT_LIMIT, SETTINGS_LIMIT, read_text, write_text};
use crate::error::{Error, FaultKind, InputFault, Remedy, Result};
use crate::results::{Calibration, EpochReport};
use crate::settings::RunConfig;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// The folder of a run.
#[derive(Debug, Clone)]
pub struct RunFolder {
    path: PathBuf,
    /// The lock, for as long as anybody holds it; clones share it.
    lock: Arc<Mutex<Weak<FolderLock>>>,
}

/// The events that a run is about. Its file may grow at its end: what was known is found by number
/// and checked by hash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownStream {
    /// The dataset's name.
    pub dataset: String,
    /// How many events.
    pub events: u64,
    /// How many nodes.
    pub nodes: u64,
    /// The SHA-256 of who met whom when, with which features and names.
    pub sha256: String,
}

impl RunFolder {
    /// A folder, whether it exists or not.
    pub fn new(path: impl Into<PathBuf>) -> RunFolder {
        RunFolder { path: path.into(), lock: Arc::default() }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// One of its files.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Whether there is a run in it.
    pub fn holds_a_run(&self) -> bool {
        self.file("config.toml").exists()
    }

    /// Makes the folder if there is none, and keeps other writers out of it until the lock is
    /// dropped. A [`TrainingRun`](super::TrainingRun) does so itself; whoever writes more than it
    /// does locks the same `RunFolder`, or a clone of it, before.
    ///
    /// # Errors
    ///
    /// If another process, or another `RunFolder` of this one, has locked the folder.
    pub fn lock(&self) -> Result<Arc<FolderLock>> {
        self.try_lock()?.ok_or_else(|| FolderLock::busy(&self.path))
    }

    /// The same; nothing if somebody else has locked the folder.
    pub fn try_lock(&self) -> Result<Option<Arc<FolderLock>>> {
        let mut held = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(lock) = held.upgrade() {
            return Ok(Some(lock));
        }
        fs::create_dir_all(&self.path).map_err(|error| Error::io(&self.path, error))?;
        let Some(lock) = FolderLock::try_acquire(&self.path)?.map(Arc::new) else {
            return Ok(None);
        };
        *held = Arc::downgrade(&lock);
        Ok(Some(lock))
    }

    /// The events that the run is about; nothing for runs of earlier versions, whose file may not
    /// grow.
    pub fn known_stream(&self) -> Result<Option<KnownStream>> {
        let path = self.file("stream.json");
        if !path.exists() {
            return Ok(None);
        }
        let text = read_text(&path, SETTINGS_LIMIT)?;
        serde_json::from_str(&text).map(Some).map_err(|error| {
            let problem = format!("does not tell the run's events ({error})");
            InputFault::new(path.display().to_string(), problem, "put it back as it was").into()
        })
    }

    /// Notes the events that the run is about.
    pub(super) fn write_known_stream(&self, known: &KnownStream) -> Result<()> {
        let text = serde_json::to_string_pretty(known).expect("it is plain data");
        write_text(self.file("stream.json"), &text)
    }

    /// The curve from scores to probabilities; nothing for a run that has none.
    pub fn calibration(&self) -> Result<Option<Calibration>> {
        let path = self.file("calibration.json");
        if !path.exists() {
            return Ok(None);
        }
        let text = read_text(&path, REPORT_LIMIT)?;
        let read = serde_json::from_str::<Calibration>(&text).map_err(|error| error.to_string());
        let sound = read.and_then(|curve| match curve.is_sound() {
            true => Ok(Some(curve)),
            false => Err("its places are not in order".to_string()),
        });
        sound.map_err(|why| {
            let problem = format!("is no curve from scores to probabilities ({why})");
            let remedy = "put it back, or remove it and do without probabilities";
            InputFault::new(path.display().to_string(), problem, remedy).into()
        })
    }

    /// Keeps the curve from scores to probabilities.
    pub fn write_calibration(&self, curve: &Calibration) -> Result<()> {
        let text = serde_json::to_string(curve).expect("it is plain data");
        write_text(self.file("calibration.json"), &text)
    }

    /// The command that began the run, if it was one; only names of files are in it, since where
    /// they are changes nothing.
    pub fn command(&self) -> Option<String> {
        read_text(self.file("command.txt"), SETTINGS_LIMIT).ok()
    }

    /// Keeps the command that began the run.
    pub fn write_command(&self, command: &str) -> Result<()> {
        write_text(self.file("command.txt"), command)
    }

    /// From now on reads the events from another file, which has to begin with those that the run
    /// is about. Whether it does is checked whenever the run is opened.
    pub fn read_events_from(&self, events: PathBuf) -> Result<()> {
        let mut config = self.config()?;
        config.data.events = events;
        config.data.more.clear();
        write_text(self.file("config.toml"), &config.to_toml())
    }

    /// The files of events that have happened since, in the order in which they came.
    pub fn updates(&self) -> Result<Vec<PathBuf>> {
        let folder = self.file("updates");
        if !folder.is_dir() {
            return Ok(Vec::new());
        }
        let failed = |error| Error::io(&folder, error);
        let entries = fs::read_dir(&folder).map_err(failed)?;
        let entries = entries.map(|entry| entry.map(|entry| entry.path()));
        let mut files: Vec<PathBuf> = entries.collect::<std::io::Result<_>>().map_err(failed)?;
        files.retain(|file| file.extension().is_some_and(|ending| ending == "csv"));
        files.sort();
        Ok(files)
    }

    /// The name of the next file of events that have happened since. Makes its folder.
    pub fn next_update(&self) -> Result<PathBuf> {
        let folder = self.file("updates");
        fs::create_dir_all(&folder).map_err(|error| Error::io(&folder, error))?;
        let last = self.updates()?.pop();
        let number = last.as_ref().and_then(|file| file.file_stem()?.to_str()?.parse::<u32>().ok());
        Ok(folder.join(format!("{:06}.csv", number.map_or(1, |number| number + 1))))
    }

    /// What is needed to go on.
    pub(super) fn last(&self) -> PathBuf {
        self.file("last.safetensors")
    }

    /// Weights, moments and state of the best epoch.
    pub(super) fn best(&self) -> PathBuf {
        self.file("best.safetensors")
    }

    /// What to say where the best epoch is not there.
    pub(super) fn without_best(&self, epochs_done: bool) -> Error {
        let shown = self.path.display().to_string();
        let (problem, remedy) = if epochs_done {
            let problem =
                "has no best.safetensors, though epochs are finished: it has been removed";
            (problem, Remedy::text("put it back, or train anew into another folder"))
        } else {
            let remedy = Remedy::ResumeRun(shown.clone());
            ("has no best.safetensors, for no epoch is finished", remedy)
        };
        InputFault::new(shown, problem, remedy).kind(FaultKind::Missing).into()
    }

    /// What every epoch did.
    pub fn epochs(&self) -> Result<Vec<EpochReport>> {
        let path = self.file("metrics.jsonl");
        let text = read_text(&path, REPORT_LIMIT)?;
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

    /// The settings of the run with a longer training: `train.epochs` and `train.patience` may
    /// grow, and nothing else may change.
    pub(super) fn longer(&self, keys: &[String]) -> Result<RunConfig> {
        let old = self.config()?;
        let new = old.with_keys(keys)?;
        let (epochs, patience) = (old.train.epochs, old.train.patience);
        let mut rest = new.clone();
        (rest.train.epochs, rest.train.patience) = (epochs, patience);
        if rest != old || new.train.epochs < epochs || new.train.patience < patience {
            let remedy = format!(
                "a run that has begun can only be made longer, by train.epochs above {epochs} and train.patience above {patience}: start \
                 anew for other settings"
            );
            return Err(Error::setting("set", keys.join(" "), remedy));
        }
        Ok(new)
    }

    /// The settings of the run.
    pub fn config(&self) -> Result<RunConfig> {
        let path = self.file("config.toml");
        if !self.holds_a_run() {
            let problem = "holds no run: there is no config.toml";
            let fault = InputFault::new(self.path.display().to_string(), problem, Remedy::NameRun);
            return Err(fault.kind(FaultKind::Missing).into());
        }
        let text = read_text(&path, SETTINGS_LIMIT)?;
        RunConfig::from_toml(&path.display().to_string(), &text)
    }
}
