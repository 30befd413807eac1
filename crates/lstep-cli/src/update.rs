//! `lstep update`: a model goes on with its stream.

use crate::args::tell_left_out;
use crate::say;
use anyhow::Result;
use clap::Args;
use lstep::disk::FileLock;
use lstep::serving::{Updated, update};
use std::path::PathBuf;

/// Let a model follow newer events: its state goes on, its weights stay.
///
/// EVENTS holds what has happened since, or all events, the known ones first: a run whose file has
/// moved or grown reads it from there from now on, and checks the known beginning by its hash. The
/// events of an update are kept in the run's folder. An exported model is written again.
#[derive(Args)]
#[command(after_help = "\
Examples:
  lstep update run today.csv
  lstep update run /elsewhere/events.csv        the whole file, which has moved or grown
  lstep update model.lstep today.csv")]
pub struct Update {
    /// Folder of a run, or an exported model
    #[arg(value_name = "RUN|MODEL")]
    run: PathBuf,

    /// Newer events, or all of them
    #[arg(value_name = "EVENTS")]
    events: PathBuf,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Update {
    /// Observes, keeps, prints.
    pub fn run(&self) -> Result<()> {
        // A run's folder is locked by the library.
        let _writing = self.run.is_file().then(|| FileLock::acquire(&self.run)).transpose()?;
        let busy = crate::progress::busy("observing the events");
        let updated = update(&self.run, &self.events);
        busy.finish_and_clear();
        let updated = updated?;
        tell_left_out(&updated.left_out, updated.new_events);
        if self.json {
            return say(serde_json::to_string_pretty(&updated)?);
        }
        let Updated { model, reads, new_events, events, nodes, last, .. } = &updated;
        let model = model.display();
        if let Some(file) = reads {
            say(format!("{model} reads {} from now on", file.display()))?;
        }
        say(format!(
            "{model}: {new_events} new events, {events} events of {nodes} nodes up to {last}"
        ))
    }
}
