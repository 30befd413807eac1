//! A dataset ready to be asked about: its log, its names and its clock.

mod info;
mod stats;

pub use info::info;
pub use stats::{DatasetStats, InspectReport, inspect, tied_events};

use crate::error::Result;
use crate::event::{Clock, Events, Features, Names, NodeId, Side};
use crate::graph::EventLog;
use crate::protocol::{Numbering, Protocol, Ties, hashed_order, shuffle_ties};
use crate::read::Dataset;
use std::borrow::Cow;

/// A dataset with its log, ready to be asked about.
#[derive(Debug, Clone)]
pub struct Stream {
    /// The dataset's name.
    pub name: String,
    /// Its events.
    pub log: EventLog,
    /// Its nodes' names.
    pub names: Names,
    /// How its times are written.
    pub clock: Clock,
}

impl Stream {
    /// Events in memory, without node features. Nodes are called by their numbers, times are
    /// decimals.
    pub fn new(name: impl Into<String>, events: Events) -> Result<Stream> {
        let mut names = Names::default();
        for node in 0..events.node_bound() {
            names.intern_integer(node as i64, Side::Source)?;
        }
        Ok(Stream { name: name.into(), log: EventLog::new(events), names, clock: Clock::Float })
    }

    /// The stream as a protocol hands it to models: its ties in the protocol's order, its nodes
    /// numbered by the protocol's rule.
    pub fn under(&self, protocol: &Protocol) -> Result<Cow<'_, Stream>> {
        let stream = self.with_ties(protocol.ties());
        Ok(match protocol.numbering() {
            Numbering::Appearance => stream,
            Numbering::Hashed => Cow::Owned(stream.renumbered(&hashed_order(&self.names))?),
        })
    }

    /// The same stream with its nodes in another order: node `k` of the result is `order[k]` here.
    fn renumbered(&self, order: &[NodeId]) -> Result<Stream> {
        let mut number = vec![NodeId(0); order.len()];
        for (new, old) in order.iter().enumerate() {
            number[old.index()] = NodeId(new as u32);
        }
        let old = self.log.events();
        let column = |nodes: &[NodeId]| nodes.iter().map(|node| number[node.index()]).collect();
        let events = Events::new(
            column(old.sources()),
            column(old.destinations()),
            old.times().to_vec(),
            old.features().clone(),
        )?;
        let features = self.log.node_features();
        let width = features.width();
        let mut values = Vec::new();
        if width > 0 {
            values.resize(order.len() * width, 0.0);
            for (row, node) in values.chunks_mut(width).zip(order) {
                if node.index() < features.rows() {
                    row.copy_from_slice(features.row(node.index()));
                }
            }
        }
        Ok(Stream {
            name: self.name.clone(),
            log: EventLog::new(events).with_node_features(Features::new(width, values)?),
            names: self.names.reordered(order)?,
            clock: self.clock,
        })
    }

    /// The stream with its ties in some order.
    pub fn with_ties(&self, ties: Ties) -> Cow<'_, Stream> {
        match ties {
            Ties::File => Cow::Borrowed(self),
            Ties::Shuffled => {
                let log = EventLog::new(shuffle_ties(self.log.events(), 0))
                    .with_node_features(self.log.node_features().clone());
                let (name, names) = (self.name.clone(), self.names.clone());
                Cow::Owned(Stream { name, log, names, clock: self.clock })
            }
        }
    }
}

impl<'a> From<&'a Stream> for Cow<'a, Stream> {
    fn from(stream: &'a Stream) -> Cow<'a, Stream> {
        Cow::Borrowed(stream)
    }
}

impl From<Stream> for Cow<'_, Stream> {
    fn from(stream: Stream) -> Self {
        Cow::Owned(stream)
    }
}

impl From<Dataset> for Stream {
    fn from(dataset: Dataset) -> Stream {
        Stream {
            name: dataset.name,
            log: EventLog::new(dataset.events).with_node_features(dataset.node_features),
            names: dataset.names,
            clock: dataset.clock,
        }
    }
}
