//! What a run stands on: settings, stream and split, the same from its first epoch to its last question.

use super::config::RunConfig;
use super::evaluate::facts;
use super::job::Stream;
use crate::error::Result;
use crate::model::{Facts, FeatureWidths, Pupil};
use crate::protocol::{Split, Subject, Visibility};
use crate::read::read;
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
        self.config.model.pupil(&self.facts, train.seed, train.optimiser())
    }

    pub fn visibility(&self) -> Visibility {
        self.config.protocol.visibility()
    }
}
