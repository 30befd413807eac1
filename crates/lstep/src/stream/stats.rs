//! The stats of a stream: how large it is, how it repeats itself, how predictable it could be.

use crate::event::NodeSet;
use crate::event::{Clock, Events, Features, NodeId, Time};
use crate::protocol::{DEFAULT_SPLIT, Split};
use crate::read::{Dataset, LeftOut};
use rustc_hash::FxHashSet;
use serde::Serialize;

/// Counts and shares of a stream.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct DatasetStats {
    /// Distinct nodes that occur in events.
    pub nodes: usize,
    /// Events.
    pub events: usize,
    /// Distinct times.
    pub distinct_times: usize,
    /// Events that share their time with another one. Their order in a file means nothing.
    pub tied_events: usize,
    /// Distinct sources.
    pub sources: usize,
    /// Distinct destinations.
    pub destinations: usize,
    /// Whether no node is both a source and a destination.
    pub bipartite: bool,
    /// Events of a node with itself.
    pub self_loops: usize,
    /// Distinct pairs, direction counted.
    pub distinct_pairs: usize,
    /// Events that have the same source, destination and time as an earlier one.
    pub duplicate_events: usize,
    /// Share of events whose pair occurred before.
    pub repeat_share: f64,
    /// Share of events whose pair occurred before in the other direction.
    pub reply_share: f64,
    /// Share of the distinct pairs of the test part that never occur in the train part.
    pub surprise: Option<f64>,
    /// Share of the events of the test part whose pair never occurs in the train part.
    pub surprise_events: Option<f64>,
    /// Nodes of the test part that never occur in the train part.
    pub new_nodes_in_test: Option<usize>,
    /// Events in train, validation and test at the field's time quantiles, where no part is empty.
    pub parts: Option<[usize; 3]>,
    /// Most events that one node takes part in.
    pub busiest_node_events: usize,
    /// Numbers that each event carries.
    pub edge_feature_width: usize,
    /// Numbers that each node carries.
    pub node_feature_width: usize,
}

impl DatasetStats {
    /// Looks at a stream once. O(events).
    pub fn of(events: &Events, node_features: &Features) -> DatasetStats {
        let sources: NodeSet = events.sources().iter().copied().collect();
        let destinations: NodeSet = events.destinations().iter().copied().collect();
        let nodes: NodeSet = sources.iter().chain(destinations.iter()).collect();
        let mut busy = vec![0usize; events.node_bound()];
        let mut pairs = FxHashSet::default();
        let mut now = FxHashSet::default();
        let (mut distinct_times, mut self_loops, mut repeats, mut replies, mut duplicates) =
            (0, 0, 0, 0, 0);
        let mut newest = None;
        for event in events.iter() {
            if newest != Some(event.time) {
                newest = Some(event.time);
                distinct_times += 1;
                now.clear();
            }
            let pair = (event.source, event.destination);
            self_loops += usize::from(pair.0 == pair.1);
            duplicates += usize::from(!now.insert(pair));
            replies += usize::from(pair.0 != pair.1 && pairs.contains(&(pair.1, pair.0)));
            repeats += usize::from(!pairs.insert(pair));
            busy[pair.0.index()] += 1;
            if pair.0 != pair.1 {
                busy[pair.1.index()] += 1;
            }
        }
        let share =
            |count: usize| if events.is_empty() { 0.0 } else { count as f64 / events.len() as f64 };
        let split = Split::chronological(events, DEFAULT_SPLIT.0, DEFAULT_SPLIT.1).ok();
        let surprise = split.as_ref().map(|split| surprise(events, split));
        DatasetStats {
            nodes: nodes.len(),
            events: events.len(),
            distinct_times,
            tied_events: tied_events(events),
            sources: sources.len(),
            destinations: destinations.len(),
            bipartite: nodes.len() == sources.len() + destinations.len(),
            self_loops,
            distinct_pairs: pairs.len(),
            duplicate_events: duplicates,
            repeat_share: share(repeats),
            reply_share: share(replies),
            surprise: surprise.map(|surprise| surprise.0),
            surprise_events: surprise.map(|surprise| surprise.1),
            new_nodes_in_test: split.as_ref().map(|split| new_nodes_in_test(events, split)),
            parts: split.map(|split| [split.train.len(), split.validation.len(), split.test.len()]),
            busiest_node_events: busy.into_iter().max().unwrap_or(0),
            edge_feature_width: events.features().width(),
            node_feature_width: node_features.width(),
        }
    }
}

/// How many events share their time with another one.
pub fn tied_events(events: &Events) -> usize {
    events.times().chunk_by(|a, b| a == b).map(<[Time]>::len).filter(|&count| count > 1).sum()
}

/// Shares of the test part's distinct pairs, and of its events, that the train part does not have.
fn surprise(events: &Events, split: &Split) -> (f64, f64) {
    let pair = |number: u32| {
        let event = events.at(number as usize);
        (event.source, event.destination)
    };
    let known: FxHashSet<(NodeId, NodeId)> = split.train.clone().map(pair).collect();
    let asked: FxHashSet<(NodeId, NodeId)> = split.test.clone().map(pair).collect();
    let new_pairs = asked.difference(&known).count();
    let new_events = split.test.clone().filter(|number| !known.contains(&pair(*number))).count();
    (new_pairs as f64 / asked.len() as f64, new_events as f64 / split.test.len() as f64)
}

fn new_nodes_in_test(events: &Events, split: &Split) -> usize {
    let test = split.test.start as usize..split.test.end as usize;
    let asked: NodeSet = events.sources()[test.clone()]
        .iter()
        .chain(&events.destinations()[test])
        .copied()
        .collect();
    asked.iter().filter(|node| split.new_nodes().contains(*node)).count()
}

/// The answer of an inspection.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct InspectReport {
    /// The dataset's name.
    pub dataset: String,
    /// Counts and shares.
    #[serde(flatten)]
    pub stats: DatasetStats,
    /// The first time, as the file writes it.
    pub first_time: serde_json::Value,
    /// The last time, as the file writes it.
    pub last_time: serde_json::Value,
    /// Whether ids of sources and destinations name different nodes.
    pub separate_ids: bool,
    /// Whether all ids are integers.
    pub integer_ids: bool,
    /// Rows of the file that were left out.
    #[serde(skip_serializing_if = "LeftOut::is_empty")]
    pub left_out: LeftOut,
    /// The version of this library.
    pub version: String,
}

/// The stats of a dataset with what its file says about itself.
pub fn inspect(dataset: &Dataset) -> InspectReport {
    let time = |place: Option<&Time>| {
        place.map_or(serde_json::Value::Null, |&time| shown(&dataset.clock, time))
    };
    InspectReport {
        dataset: dataset.name.clone(),
        stats: DatasetStats::of(&dataset.events, &dataset.node_features),
        first_time: time(dataset.events.times().first()),
        last_time: time(dataset.events.times().last()),
        separate_ids: dataset.names.separated(),
        integer_ids: dataset.names.are_integers(),
        left_out: dataset.left_out.clone(),
        version: env!("CARGO_PKG_VERSION").to_string(),
    }
}

/// A time as JSON would have it: a number where the file has numbers, else text.
fn shown(clock: &Clock, time: Time) -> serde_json::Value {
    let text = clock.show(time);
    serde_json::from_str::<serde_json::Number>(&text)
        .map_or(serde_json::Value::String(text), serde_json::Value::Number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_stream_is_counted_by_hand() {
        // Pairs 0-1 and 1-0, a self-loop, a duplicate, and a pair that only the test part has.
        let events = lstep_testkit::stream![
            0 -> 1 @ 0.0,
            1 -> 0 @ 1.0,
            2 -> 2 @ 2.0,
            0 -> 1 @ 3.0,
            0 -> 1 @ 3.0,
            0 -> 1 @ 4.0,
            0 -> 1 @ 5.0,
            0 -> 1 @ 6.0,
            3 -> 1 @ 7.0,
            0 -> 1 @ 8.0,
        ];
        let stats = DatasetStats::of(&events, &Features::none());
        assert_eq!((stats.nodes, stats.sources, stats.destinations), (4, 4, 3));
        assert_eq!((stats.events, stats.distinct_times, stats.distinct_pairs), (10, 9, 4));
        assert_eq!((stats.self_loops, stats.duplicate_events), (1, 1));
        assert_eq!((stats.repeat_share, stats.reply_share), (0.6, 0.7));
        assert!(!stats.bipartite);
        assert_eq!(stats.parts, Some([7, 1, 2]));
        assert_eq!((stats.surprise, stats.surprise_events), (Some(0.5), Some(0.5)));
        assert_eq!(stats.new_nodes_in_test, Some(1));
        assert_eq!(stats.busiest_node_events, 9);
    }
}
