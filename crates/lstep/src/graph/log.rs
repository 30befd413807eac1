//! The append-only log: events in columns, and each node's own history beside them.

use super::history::{Histories, Neighbour};
use super::past::{Past, Revealed};
use crate::error::Result;
use crate::event::{Event, Events, Features, NodeId, Time};
use std::sync::atomic::{AtomicU64, Ordering};

/// All events of a stream, ready to be asked about. Grows at the end only.
#[derive(Debug, Clone, Default)]
pub struct EventLog {
    identity: Identity,
    events: Events,
    histories: Histories,
    node_features: Features,
}

impl EventLog {
    /// A log of these events, without node features. O(events).
    pub fn new(events: Events) -> EventLog {
        let histories = Histories::build(&events);
        EventLog {
            identity: Identity::default(),
            events,
            histories,
            node_features: Features::none(),
        }
    }

    /// Adds a table with a row for each node.
    #[must_use]
    pub fn with_node_features(mut self, node_features: Features) -> EventLog {
        self.node_features = node_features;
        self
    }

    /// Appends the features of the next node, as many as the others have.
    pub fn push_node(&mut self, features: &[f32]) -> Result<()> {
        self.node_features.push(features)
    }

    /// Appends an event and tells its number. Amortised O(1).
    pub fn push(
        &mut self,
        source: NodeId,
        destination: NodeId,
        time: Time,
        features: &[f32],
    ) -> Result<Event> {
        let event = self.events.push(source, destination, time, features)?;
        for (node, neighbour) in [(source, destination), (destination, source)] {
            self.histories.push(node, Neighbour::new(time, event.number, neighbour));
        }
        Ok(event)
    }

    /// The events themselves, for those who make splits, steps and questions. Models never get
    /// this.
    pub fn events(&self) -> &Events {
        &self.events
    }

    /// How many events.
    pub fn len(&self) -> usize {
        self.events.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// The number of the first event at or after a time: what a query at that time may not see.
    /// O(log events).
    pub fn first_at(&self, time: Time) -> u32 {
        self.events.times().partition_point(|&earlier| earlier < time) as u32
    }

    /// The log up to, but without, event `horizon`, for scoring.
    pub fn past(&self, horizon: u32) -> Past<'_> {
        Past::new(self, horizon)
    }

    /// The log up to, but without, event `horizon`, for learning from what has been revealed.
    pub fn revealed(&self, horizon: u32) -> Revealed<'_> {
        Revealed::new(self, horizon)
    }

    /// Tells this log from all others of the program, copies of it included: they may grow apart.
    /// As long as it is the same, an event's number means the same event.
    pub(super) fn identity(&self) -> u64 {
        self.identity.0
    }

    pub(super) fn histories(&self) -> &Histories {
        &self.histories
    }

    /// The nodes' features; width zero where there are none.
    pub fn node_features(&self) -> &Features {
        &self.node_features
    }
}

/// A number that nothing else in the program has.
#[derive(Debug)]
struct Identity(u64);

impl Default for Identity {
    fn default() -> Identity {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Identity(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

impl Clone for Identity {
    fn clone(&self) -> Identity {
        Identity::default()
    }
}
