//! Views of the log that cannot see over a horizon.
//!
//! [`Past`] is what a model scores with. It answers for a [`Seed`], a node at a time, and shows
//! [`Neighbour`]s that are both before the horizon and strictly before that time. Direction and
//! features of an event are read through a neighbour, never by a number. Seeds and neighbours
//! cannot be made up: they come from the queries and from the past itself, so code that looks ahead
//! mostly does not compile. What remains is a model that asks queries of its own at a later time,
//! or that carries a neighbour from one row to another; the laws find that. [`Revealed`] is what a
//! model gets once a step's events are known; it shows everything before its horizon.

use super::history::{Neighbour, newest};
use super::log::EventLog;
use crate::event::{Event, NodeId, Time};
use std::fmt;

/// A node at a time: what a query is about.
///
/// Seeds come from a query's [`Row`](crate::query::Row) or from a [`Neighbour`]. A model cannot
/// make one of a time of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seed {
    node: NodeId,
    time: Time,
}

impl Seed {
    pub(crate) fn new(node: NodeId, time: Time) -> Seed {
        Seed { node, time }
    }

    /// Which node.
    #[inline]
    pub fn node(self) -> NodeId {
        self.node
    }

    /// At which time; only what is strictly before it counts.
    #[inline]
    pub fn time(self) -> Time {
        self.time
    }

    /// Another node at the same time.
    #[inline]
    #[must_use]
    pub fn with_node(self, node: NodeId) -> Seed {
        Seed { node, ..self }
    }
}

/// The log before a horizon, asked by seeds.
#[derive(Clone, Copy)]
pub struct Past<'log> {
    log: &'log EventLog,
    horizon: u32,
}

impl<'log> Past<'log> {
    pub(super) fn new(log: &'log EventLog, horizon: u32) -> Self {
        Past { log, horizon: horizon.min(log.len() as u32) }
    }

    /// The number of the first event that this view may not see.
    pub fn horizon(&self) -> u32 {
        self.horizon
    }

    /// The number of the first event that a question at a time may not see. O(log events).
    pub fn first_hidden(&self, time: Time) -> u32 {
        self.log.first_at(time).min(self.horizon)
    }

    /// Which log this is a view of: a memory of what was computed from it holds for no other one.
    pub(crate) fn log_identity(&self) -> u64 {
        self.log.identity()
    }

    /// All of the node's neighbours strictly before the seed's time, oldest first. O(log history).
    #[inline]
    pub fn history(&self, seed: Seed) -> &'log [Neighbour] {
        let neighbours = self.log.histories().of(seed.node());
        let visible = |neighbour: &Neighbour| {
            neighbour.event() < self.horizon && neighbour.time() < seed.time()
        };
        // Questions mostly come at the end of the stream, where nothing has to be searched.
        if neighbours.last().is_none_or(visible) {
            neighbours
        } else {
            &neighbours[..neighbours.partition_point(visible)]
        }
    }

    /// The `most` newest neighbours strictly before the seed's time, oldest first. O(log history).
    #[inline]
    pub fn recent(&self, seed: Seed, most: usize) -> &'log [Neighbour] {
        newest(self.history(seed), most)
    }

    /// All neighbours in the half-open interval [time - gap, time). O(log history).
    #[inline]
    pub fn within(&self, seed: Seed, gap: f64) -> &'log [Neighbour] {
        let history = self.history(seed);
        let earliest = seed.time().value() - gap;
        &history[history.partition_point(|neighbour| neighbour.time().value() < earliest)..]
    }

    /// The features of a neighbour's event; empty where the stream has none.
    ///
    /// # Panics
    /// If the event is not before the horizon: the neighbour is from another view.
    #[inline]
    pub fn event_features(&self, neighbour: &Neighbour) -> &'log [f32] {
        let event = neighbour.event();
        assert!(event < self.horizon, "event {event} is not before the horizon {}", self.horizon);
        self.log.events().features().row(event as usize)
    }

    /// How many numbers an event's features have.
    pub fn event_feature_width(&self) -> usize {
        self.log.events().features().width()
    }

    /// The features of all events before the horizon, a row for each event's number.
    pub(crate) fn event_feature_table(&self) -> &'log [f32] {
        &self.log.events().features().values()[..self.horizon as usize * self.event_feature_width()]
    }

    /// How many numbers a node's features have.
    pub fn node_feature_width(&self) -> usize {
        self.log.node_features().width()
    }

    /// Whether the event that a node shares with this neighbour has that node as its source.
    ///
    /// # Panics
    /// If the event is not before the horizon: the neighbour is from another view.
    #[inline]
    pub fn starts_at(&self, node: NodeId, neighbour: &Neighbour) -> bool {
        let event = neighbour.event();
        assert!(event < self.horizon, "event {event} is not before the horizon {}", self.horizon);
        self.log.events().at(event as usize).source == node
    }

    /// A node's features; empty where there are none.
    #[inline]
    pub fn node_features(&self, node: NodeId) -> &'log [f32] {
        let table = self.log.node_features();
        if node.index() < table.rows() { table.row(node.index()) } else { &[] }
    }
}

/// The log before a horizon, asked without a time: for learning from events that everybody knows by
/// now.
#[derive(Clone, Copy)]
pub struct Revealed<'log> {
    past: Past<'log>,
}

// A view prints its horizon and nothing of the log, most of which is behind it.
impl fmt::Debug for Past<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Past").field("horizon", &self.horizon).finish_non_exhaustive()
    }
}

impl fmt::Debug for Revealed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Revealed").field("horizon", &self.past.horizon).finish_non_exhaustive()
    }
}

impl<'log> Revealed<'log> {
    pub(super) fn new(log: &'log EventLog, horizon: u32) -> Self {
        Revealed { past: Past::new(log, horizon) }
    }

    /// The same events, asked by seeds.
    pub fn past(&self) -> Past<'log> {
        self.past
    }

    /// The features of an event that has been revealed; empty where the stream has none.
    ///
    /// # Panics
    /// If the event is not before the horizon.
    #[inline]
    pub fn event_features(&self, event: &Event) -> &'log [f32] {
        assert!(event.number < self.past.horizon, "event {} is not revealed yet", event.number);
        self.past.log.events().features().row(event.number as usize)
    }

    /// The `most` newest neighbours before the horizon, the newest last; those at the newest time
    /// are included. O(log history).
    #[inline]
    pub fn latest(&self, node: NodeId, most: usize) -> &'log [Neighbour] {
        let neighbours = self.past.log.histories().of(node);
        let known = neighbours.partition_point(|neighbour| neighbour.event() < self.past.horizon);
        newest(&neighbours[..known], most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn log_of(rows: &[(u32, u32, u8)]) -> EventLog {
        EventLog::new(lstep_testkit::stream!(rows.to_vec()))
    }

    fn time(value: f64) -> Time {
        Time::new(value).expect("finite")
    }

    /// The definition, read off the columns.
    fn plain(log: &EventLog, horizon: u32, seed: Seed, from: f64) -> Vec<(u32, NodeId)> {
        let mut found = Vec::new();
        for event in log.events().iter() {
            if event.number < horizon && event.time < seed.time() && event.time.value() >= from {
                if event.source == seed.node() {
                    found.push((event.number, event.destination));
                }
                if event.destination == seed.node() {
                    found.push((event.number, event.source));
                }
            }
        }
        found
    }

    fn numbers(neighbours: &[Neighbour]) -> Vec<(u32, NodeId)> {
        neighbours.iter().map(|neighbour| (neighbour.event(), neighbour.node())).collect()
    }

    proptest! {
        #[test]
        fn a_past_shows_exactly_what_is_before_its_horizon_and_the_time_asked(
            rows in prop::collection::vec((0u32..6, 0u32..6, 0u8..9), 1..60),
            horizon in 0u32..70, node in 0u32..7, at in 0u8..10, most in 0usize..5, gap in 0u8..5,
        ) {
            let log = log_of(&rows);
            let past = log.past(horizon);
            let seed = Seed::new(NodeId(node), time(f64::from(at)));
            let all = plain(&log, horizon, seed, f64::NEG_INFINITY);
            prop_assert_eq!(numbers(past.history(seed)), all.clone());
            prop_assert_eq!(numbers(past.recent(seed, most)), all[all.len().saturating_sub(most)..].to_vec());
            let from = f64::from(at) - f64::from(gap);
            prop_assert_eq!(numbers(past.within(seed, f64::from(gap))), plain(&log, horizon, seed, from));
        }
    }

    #[test]
    fn what_is_revealed_includes_the_newest_time() {
        let log = log_of(&[(0, 1, 1), (0, 2, 2), (0, 3, 2), (0, 4, 3)]);
        let newest: Vec<u32> = log
            .revealed(3)
            .latest(NodeId(0), 2)
            .iter()
            .map(|neighbour| neighbour.event())
            .collect();
        assert_eq!(newest, [1, 2]);
        assert_eq!(log.past(3).recent(Seed::new(NodeId(0), time(2.0)), 2).len(), 1);
    }

    #[test]
    fn a_view_prints_nothing_that_it_does_not_show() {
        let log = log_of(&[(0, 1, 1), (77, 88, 2)]);
        let printed = format!("{:?} {:?}", log.past(1), log.revealed(1));
        assert!(!printed.contains("77") && !printed.contains("88"), "{printed}");
    }

    #[test]
    #[should_panic(expected = "not before the horizon")]
    fn the_features_of_a_later_event_cannot_be_read() {
        let log = log_of(&[(0, 1, 1), (0, 2, 2)]);
        let later = log.past(2).history(Seed::new(NodeId(0), time(9.0)))[1];
        let _ = log.past(1).event_features(&later);
    }
}
