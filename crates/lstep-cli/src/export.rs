//! `lstep export`: a trained model as one file.

use crate::say;
use anyhow::{Context, Result, bail};
use clap::Args;
use lstep::disk::{FileLock, check_replaceable, path_text};
use lstep::serving::Bundle;
use lstep::training::RunFolder;
use serde::Serialize;
use std::fmt;
use std::path::{Path, PathBuf};

/// Write a trained model to one file that can travel.
///
/// The file holds the weights of the best epoch, the state after all events of the run, the events
/// themselves with names and clock, and the settings. `lstep score` takes it in place of the run's
/// folder and gives the same scores, without the file that the model was trained on.
#[derive(Args)]
#[command(after_help = "\
Examples:
  lstep export run model.lstep
  lstep score model.lstep --source 17 --top 10
  lstep score model.lstep --events new.csv --save newer.lstep")]
pub struct Export {
    /// Folder of a run
    #[arg(value_name = "RUN")]
    run: PathBuf,

    /// File to write
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Replace the file if there is one
    #[arg(long)]
    force: bool,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Export {
    /// Observes, writes, prints what was written.
    pub fn run(&self) -> Result<()> {
        let _writing = claim(&self.file, self.force)?;
        let busy = crate::progress::busy("observing the events");
        let exported = Bundle::of_run(&RunFolder::new(&self.run))
            .map_err(anyhow::Error::from)
            .and_then(|bundle| write(&bundle, &self.file));
        busy.finish_and_clear();
        exported?.print(self.json)
    }
}

/// A file that holds a model.
#[derive(Debug, Serialize)]
pub struct Exported {
    #[serde(serialize_with = "path_text::serialize")]
    file: PathBuf,
    bytes: u64,
    model: String,
    dataset: String,
    nodes: usize,
    /// Those of the run, and those observed since.
    events: usize,
    run_events: u64,
    stream_sha256: String,
    version: String,
}

impl Exported {
    /// Prints it as the result of a command.
    pub fn print(&self, json: bool) -> Result<()> {
        if json { say(serde_json::to_string_pretty(self)?) } else { say(self) }
    }
}

impl fmt::Display for Exported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Exported { file, bytes, model, dataset, nodes, events, .. } = self;
        let file = file.display();
        let size = *bytes as f64 / 1e6;
        write!(
            f,
            "{file}: {model} after {events} events of {nodes} nodes of {dataset}, {size:.1} MB"
        )
    }
}

/// Keeps other writers from a file, and refuses to write over it unless that is wanted. Asked
/// before any work is done.
pub fn claim(path: &Path, force: bool) -> Result<FileLock> {
    let lock = FileLock::acquire(path)?;
    check_replaceable(path)?;
    if path.exists() && !force {
        bail!("{} exists: name another file, or replace it with --force", path.display());
    }
    Ok(lock)
}

/// Writes a model and tells what was written.
pub fn write(bundle: &Bundle, path: &Path) -> Result<Exported> {
    bundle.write(path)?;
    let file = std::fs::metadata(path).with_context(|| path.display().to_string())?;
    let about = bundle.about();
    Ok(Exported {
        file: path.to_path_buf(),
        bytes: file.len(),
        model: about.settings.model.to_string(),
        dataset: about.dataset.clone(),
        nodes: bundle.names().len(),
        events: bundle.events(),
        run_events: about.run_events,
        stream_sha256: about.stream_sha256.clone(),
        version: about.version.clone(),
    })
}
