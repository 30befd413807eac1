//! A model goes on with its stream: the state follows new events, the weights stay.
//!
//! A run keeps events that have happened since in its folder, or reads a file that has grown or
//! moved. An exported model is written again.

use super::{Bundle, Scorer};
use crate::disk::path_text;
use crate::error::{Error, InputFault, Result};
use crate::protocol::Protocol;
use crate::read::{Dataset, LeftOut, ReadOptions, read, write_events};
use crate::stream::Stream;
use crate::training::{KnownStream, RunFolder, stream_sha256};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// What an update did.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Updated {
    /// The run's folder or the exported model.
    #[serde(serialize_with = "path_text::serialize")]
    pub model: PathBuf,
    /// Where the run reads its events now, if that has changed.
    #[serde(serialize_with = "path_text::option::serialize")]
    pub reads: Option<PathBuf>,
    /// Events that are new.
    pub new_events: usize,
    /// Events that the model has observed in all.
    pub events: usize,
    /// Nodes that it knows.
    pub nodes: usize,
    /// The time of the last event.
    pub last: String,
    /// Rows of the file that were left out, as the run says.
    #[serde(skip_serializing_if = "LeftOut::is_empty")]
    pub left_out: LeftOut,
}

/// Lets the state of a model follow the events of a file.
///
/// The file may hold events that have happened since, or all events, the known ones first: then the
/// run reads it from now on. A run in a folder is locked meanwhile; the file of an exported model is
/// replaced.
///
/// # Errors
///
/// If an event is before the last one that is known, or the columns are others.
pub fn update(model: impl AsRef<Path>, events: impl AsRef<Path>) -> Result<Updated> {
    let (model, events) = (model.as_ref(), events.as_ref());
    if model.is_file() {
        return update_bundle(model, events);
    }
    let folder = RunFolder::new(model);
    let config = folder.config()?;
    let _writing = folder.lock()?;
    let given = read(events, &ReadOptions { more: Vec::new(), ..config.data.options() })?;
    if let Some(known) = folder.known_stream()?
        && begins_with(&given, &known, &config.protocol)?
    {
        let place = events.canonicalize().map_err(|error| Error::io(events, error))?;
        refuse_updates_twice(&folder, &given, &known)?;
        let new_events = given.events.len() - known.events as usize;
        folder.read_events_from(place.clone())?;
        let bundle = Bundle::of_run(&folder)?;
        let updated = Updated::of(model, &bundle, new_events, Some(place));
        return Ok(Updated { left_out: given.left_out, ..updated });
    }
    let mut scorer = Scorer::open(model)?;
    let before = scorer.bundle().events();
    let new = scorer.read_events(events)?;
    new.observe(&mut scorer)?;
    // Only what could be taken in is kept.
    write_events(folder.next_update()?, &new.events)?;
    let bundle = scorer.into_bundle();
    let new_events = bundle.events() - before;
    let left_out = new.events.left_out;
    Ok(Updated { left_out, ..Updated::of(model, &bundle, new_events, None) })
}

fn update_bundle(model: &Path, events: &Path) -> Result<Updated> {
    let mut scorer = Scorer::open(model)?;
    let before = scorer.bundle().events();
    let new = scorer.read_events(events)?;
    new.observe(&mut scorer)?;
    let bundle = scorer.into_bundle();
    bundle.write(model)?;
    let new_events = bundle.events() - before;
    let left_out = new.events.left_out;
    Ok(Updated { left_out, ..Updated::of(model, &bundle, new_events, None) })
}

/// Whether a file begins with all events that a run is about.
fn begins_with(given: &Dataset, known: &KnownStream, protocol: &Protocol) -> Result<bool> {
    if (given.events.len() as u64) < known.events {
        return Ok(false);
    }
    let (first, _) = given.clone().split_at(known.events as usize)?;
    let stream = Stream::from(first);
    Ok(stream_sha256(stream.under(protocol)?.as_ref()) == known.sha256)
}

/// A file that has grown by what updates have brought would be observed twice.
fn refuse_updates_twice(folder: &RunFolder, given: &Dataset, known: &KnownStream) -> Result<()> {
    let updates = folder.updates()?;
    if updates.is_empty() || given.events.len() as u64 == known.events {
        return Ok(());
    }
    let problem = format!(
        "has {} updates already, and the file holds all events from the beginning",
        updates.len()
    );
    let remedy = "remove its folder `updates` if the file holds these events, too";
    let fault = InputFault::new(folder.path().display().to_string(), problem, remedy);
    Err(Error::incompatible(fault))
}

impl Updated {
    fn of(model: &Path, bundle: &Bundle, new_events: usize, reads: Option<PathBuf>) -> Updated {
        let times = bundle.live.log().events().times();
        Updated {
            model: model.to_path_buf(),
            reads,
            new_events,
            events: bundle.events(),
            nodes: bundle.names().len(),
            last: times.last().map(|&last| bundle.clock().show(last)).unwrap_or_default(),
            left_out: LeftOut::default(),
        }
    }
}
