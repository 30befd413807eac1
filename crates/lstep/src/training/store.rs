//! Where a run keeps its checkpoints and its epochs: in a folder, or in memory.

use super::RunFolder;
use crate::checkpoint::Checkpoint;
use crate::disk::{append_line, duplicate};
use crate::error::{Error, InputFault, Result};
use crate::results::{Calibration, EpochReport};
use std::path::PathBuf;

/// The last and the best checkpoint of a run, and what its epochs did.
#[derive(Debug)]
pub(crate) enum RunStore {
    /// In files, so that training can resume after the program has ended.
    Folder(RunFolder),
    /// For as long as the run lives.
    Memory(Kept),
    /// Another process that trains the same model keeps them.
    Elsewhere,
}

#[derive(Debug, Default)]
pub(crate) struct Kept {
    last: Option<Checkpoint<'static>>,
    best: Option<Checkpoint<'static>>,
    epochs: Vec<EpochReport>,
    calibration: Option<Calibration>,
}

impl RunStore {
    pub fn memory() -> RunStore {
        RunStore::Memory(Kept::default())
    }

    /// Keeps the last checkpoint in place of the one before it.
    pub fn save(&mut self, checkpoint: Checkpoint<'_>) -> Result<()> {
        match self {
            RunStore::Folder(folder) => checkpoint.write(folder.last()),
            RunStore::Memory(kept) => {
                kept.last = Some(checkpoint.into_owned());
                Ok(())
            }
            RunStore::Elsewhere => Ok(()),
        }
    }

    /// The last checkpoint.
    pub fn last(&self) -> Result<Checkpoint<'static>> {
        match self {
            RunStore::Folder(folder) => Checkpoint::read(folder.last()),
            RunStore::Memory(kept) => kept.last.clone().ok_or_else(|| {
                InputFault::new("the run", "has no last checkpoint", "begin it anew").into()
            }),
            RunStore::Elsewhere => Err(elsewhere()),
        }
    }

    /// The last checkpoint's file, for messages.
    pub fn last_path(&self) -> PathBuf {
        match self {
            RunStore::Folder(folder) => folder.last(),
            RunStore::Memory(_) | RunStore::Elsewhere => "the run in memory".into(),
        }
    }

    /// Makes the last checkpoint the best one.
    pub fn keep_as_best(&mut self) -> Result<()> {
        match self {
            RunStore::Folder(folder) => duplicate(&folder.last(), &folder.best()),
            RunStore::Memory(kept) => {
                // Nobody resumes from memory, so the last one is free until the next is saved.
                kept.best = kept.last.take();
                Ok(())
            }
            RunStore::Elsewhere => Ok(()),
        }
    }

    /// Adds what an epoch did.
    pub fn add_epoch(&mut self, report: &EpochReport) -> Result<()> {
        match self {
            RunStore::Folder(folder) => {
                let line = serde_json::to_string(report).expect("a report is plain data");
                append_line(folder.file("metrics.jsonl"), &line)
            }
            RunStore::Memory(kept) => {
                kept.epochs.push(report.clone());
                Ok(())
            }
            RunStore::Elsewhere => Ok(()),
        }
    }

    /// Weights, moments and state of the best epoch.
    pub fn best(&self) -> Result<Checkpoint<'static>> {
        match self {
            RunStore::Folder(folder) => {
                let best = folder.best();
                if !best.exists() {
                    let done = folder.epochs().is_ok_and(|epochs| !epochs.is_empty());
                    return Err(folder.without_best(done));
                }
                Checkpoint::read(best)
            }
            RunStore::Memory(kept) => kept.best.clone().ok_or_else(|| {
                let problem = "has no best epoch, for none is finished";
                InputFault::new("the run", problem, "train for an epoch at least").into()
            }),
            RunStore::Elsewhere => Err(elsewhere()),
        }
    }

    /// The best checkpoint's file, for messages.
    pub fn best_path(&self) -> PathBuf {
        match self {
            RunStore::Folder(folder) => folder.best(),
            RunStore::Memory(_) | RunStore::Elsewhere => "the run in memory".into(),
        }
    }

    /// The curve from scores to probabilities, if it was kept.
    pub fn calibration(&self) -> Result<Option<Calibration>> {
        match self {
            RunStore::Folder(folder) => folder.calibration(),
            RunStore::Memory(kept) => Ok(kept.calibration.clone()),
            RunStore::Elsewhere => Ok(None),
        }
    }

    /// Keeps the curve from scores to probabilities.
    pub fn keep_calibration(&mut self, curve: Calibration) -> Result<()> {
        match self {
            RunStore::Folder(folder) => {
                let _writing = folder.lock()?;
                folder.write_calibration(&curve)
            }
            RunStore::Memory(kept) => {
                kept.calibration = Some(curve);
                Ok(())
            }
            RunStore::Elsewhere => Err(elsewhere()),
        }
    }

    /// What every epoch did.
    pub fn epochs(&self) -> Result<Vec<EpochReport>> {
        match self {
            RunStore::Folder(folder) => folder.epochs(),
            RunStore::Memory(kept) => Ok(kept.epochs.clone()),
            RunStore::Elsewhere => Err(elsewhere()),
        }
    }
}

/// What a process says that is asked for what another one keeps.
fn elsewhere() -> Error {
    let problem = "is kept by the first of the processes that train it";
    InputFault::new("the run", problem, "ask that one").into()
}
