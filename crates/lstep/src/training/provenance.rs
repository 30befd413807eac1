//! What a checkpoint belongs to: a stream, and the settings that decide what is learned from it.
//!
//! A run that is gone on with, or asked, has to be the one that was begun. Files may move, and
//! training may be made longer; anything else would give numbers that nobody trained.

use crate::checkpoint::{Checkpoint, StreamExtent};
use crate::error::{Error, InputFault, Result};
use crate::fingerprint::Fingerprint;
use crate::model::Trainer;
use crate::settings::difference;
use crate::settings::{DataConfig, RunConfig};
use crate::stream::Stream;
use crate::training::RunContext;
use std::path::Path;

/// The stream and the settings of a run, as its checkpoints note them.
#[derive(Debug, Clone)]
pub(crate) struct Provenance {
    stream: String,
    settings: RunConfig,
    extent: StreamExtent,
}

impl Provenance {
    pub fn of(context: &RunContext) -> Provenance {
        let (stream, settings) = (stream_sha256(&context.stream), decisive(&context.config));
        Provenance { stream, settings, extent: context.extent() }
    }

    /// The SHA-256 of the stream.
    pub fn stream(&self) -> &str {
        &self.stream
    }

    /// Notes it in a checkpoint.
    pub fn note(&self, checkpoint: &mut Checkpoint<'_>) {
        checkpoint.notes.insert("stream".into(), self.stream.clone());
        checkpoint.notes.insert("settings".into(), self.settings.to_toml());
    }

    /// Lets a trainer take over a checkpoint, unless that belongs to another run.
    pub fn load(
        &self,
        trainer: &mut dyn Trainer,
        path: &Path,
        mut checkpoint: Checkpoint<'_>,
    ) -> Result<()> {
        self.check(path, &checkpoint)?;
        checkpoint.set_extent(self.extent);
        trainer.load(checkpoint).map_err(|error| match error {
            // The trainer sees a checkpoint in memory and cannot know its file.
            Error::Incompatible(mut fault) => {
                fault.file = path.display().to_string();
                Error::Incompatible(fault)
            }
            other => other,
        })
    }

    fn check(&self, path: &Path, checkpoint: &Checkpoint<'_>) -> Result<()> {
        let file = path.display().to_string();
        if checkpoint.note("stream")? != self.stream {
            let problem = "was trained on other events than the file has now";
            let fault = InputFault::new(file, problem, "put the old events back, or train anew");
            return Err(Error::incompatible(fault));
        }
        // Checkpoints of earlier versions do not say.
        let Ok(text) = checkpoint.note("settings") else { return Ok(()) };
        let trained = RunConfig::from_toml(&file, text)?;
        let Some(other) = difference(&self.settings, &trained) else { return Ok(()) };
        let problem = format!("was trained with other settings than config.toml has now ({other})");
        let fault = InputFault::new(file, problem, "put config.toml back as it was, or train anew");
        Err(Error::incompatible(fault))
    }
}

/// The settings without those that may change while a run goes on.
fn decisive(config: &RunConfig) -> RunConfig {
    let mut config = RunConfig { data: DataConfig::default(), ..config.clone() };
    (config.train.epochs, config.train.patience) = (0, 0);
    config.protocol = config.protocol.without_places();
    config
}

/// A hash of who met whom when, with which features. Names are in it, because a run is asked by
/// name.
pub(crate) fn stream_sha256(stream: &Stream) -> String {
    let mut hash = Fingerprint::default();
    for name in stream.names.iter() {
        let name = name.to_string();
        hash.take((name.len() as u64).to_le_bytes());
        hash.take(name);
    }
    for features in [stream.log.events().features(), stream.log.node_features()] {
        hash.take((features.width() as u64).to_le_bytes());
        features.values().iter().for_each(|value| hash.take(value.to_le_bytes()));
    }
    for event in stream.log.events().iter() {
        hash.take(event.source.0.to_le_bytes());
        hash.take(event.destination.0.to_le_bytes());
        hash.take(event.time.value().to_le_bytes());
    }
    hash.hex()
}
