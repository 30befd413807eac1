//! What a run stands on: settings, stream and split, the same from its first epoch to its last question.

use super::config::RunConfig;
use super::evaluate::facts;
use super::job::Stream;
use crate::checkpoint::Checkpoint;
use crate::error::{InputFault, Result};
use crate::fingerprint::Fingerprint;
use crate::model::{Facts, FeatureWidths, Optimiser, Pupil};
use crate::protocol::{Split, Subject, Visibility};
use crate::read::read;
use lstep_tensor::AdamConfig;
use std::path::Path;
use std::time::Instant;

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
    /// Settings are complete from here on: the model has room for the stream's features.
    pub fn new(mut config: RunConfig, stream: Stream) -> Result<Ground> {
        config.train.check()?;
        let (nodes, events) = (stream.log.node_features(), stream.log.events().features());
        config.model = config.model.with_room(FeatureWidths { node: nodes.width(), edge: events.width() });
        let subject = Subject { events: stream.log.events(), names: &stream.names };
        let started = Instant::now();
        let split = config.protocol.split(subject)?;
        let spent = Spent { reading: None, splitting: started.elapsed().as_secs_f64() };
        let facts = facts(&stream.log, &split);
        Ok(Ground { config, stream, split, facts, spent })
    }

    pub fn read(config: RunConfig) -> Result<Ground> {
        let started = Instant::now();
        let stream = Stream::from(read(&config.data.events, &config.data.options())?);
        let reading = Some(started.elapsed().as_secs_f64());
        let ground = Ground::new(config, stream)?;
        Ok(Ground { spent: Spent { reading, ..ground.spent }, ..ground })
    }

    pub fn subject(&self) -> Subject<'_> {
        Subject { events: self.stream.log.events(), names: &self.stream.names }
    }

    /// The model before its first lesson.
    pub fn pupil(&self) -> Result<Box<dyn Pupil>> {
        let train = &self.config.train;
        let adam = AdamConfig { learning_rate: train.learning_rate, ..AdamConfig::default() };
        self.config.model.pupil(&self.facts, train.seed, Optimiser { adam, clip: train.clip })
    }

    pub fn visibility(&self) -> Visibility {
        self.config.protocol.visibility()
    }

    /// A hash of who met whom when, with which features, to tell that a run is continued on the stream it began with. Names are
    /// in it, because the run is asked by name.
    pub fn fingerprint(&self) -> String {
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

/// Refuses a checkpoint of a run on another stream.
pub(super) fn same_stream(path: &Path, checkpoint: &Checkpoint, fingerprint: &str) -> Result<()> {
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
