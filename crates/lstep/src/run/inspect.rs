//! The portrait of a stream: how large it is, how it repeats itself, how predictable it could be.

use crate::event::{Events, Features, NodeId};
use crate::protocol::{NodeSet, Split};
use rustc_hash::FxHashSet;

/// Counts and shares of a stream.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Portrait {
    /// Distinct nodes that occur in events.
    pub nodes: usize,
    /// Events.
    pub events: usize,
    /// Distinct times.
    pub distinct_times: usize,
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

impl Portrait {
    /// Looks at a stream once. O(events).
    pub fn of(events: &Events, node_features: &Features) -> Portrait {
        let sources: NodeSet = events.sources().iter().copied().collect();
        let destinations: NodeSet = events.destinations().iter().copied().collect();
        let nodes: NodeSet = sources.iter().chain(destinations.iter()).collect();
        let mut busy = vec![0usize; events.node_bound()];
        let mut pairs = FxHashSet::default();
        let mut now = FxHashSet::default();
        let (mut distinct_times, mut self_loops, mut repeats, mut replies, mut duplicates) = (0, 0, 0, 0, 0);
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
        let share = |count: usize| if events.is_empty() { 0.0 } else { count as f64 / events.len() as f64 };
        let split = Split::chronological(events, 0.7, 0.85).ok();
        let surprise = split.as_ref().map(|split| surprise(events, split));
        Portrait {
            nodes: nodes.len(),
            events: events.len(),
            distinct_times,
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
    let asked: NodeSet = events.sources()[test.clone()].iter().chain(&events.destinations()[test]).copied().collect();
    asked.iter().filter(|node| split.new_nodes().contains(*node)).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Time;

    #[test]
    fn a_small_stream_is_counted_by_hand() {
        // Pairs 0-1 and 1-0, a self-loop, a duplicate, and a pair that only the test part has.
        let rows = [
            (0, 1, 0),
            (1, 0, 1),
            (2, 2, 2),
            (0, 1, 3),
            (0, 1, 3),
            (0, 1, 4),
            (0, 1, 5),
            (0, 1, 6),
            (3, 1, 7),
            (0, 1, 8),
        ];
        let events = Events::new(
            rows.iter().map(|row| NodeId(row.0)).collect(),
            rows.iter().map(|row| NodeId(row.1)).collect(),
            rows.iter().map(|row| Time::new(f64::from(row.2)).expect("finite")).collect(),
            Features::none(),
        )
        .expect("in order");
        let portrait = Portrait::of(&events, &Features::none());
        assert_eq!((portrait.nodes, portrait.sources, portrait.destinations), (4, 4, 3));
        assert_eq!((portrait.events, portrait.distinct_times, portrait.distinct_pairs), (10, 9, 4));
        assert_eq!((portrait.self_loops, portrait.duplicate_events), (1, 1));
        assert_eq!((portrait.repeat_share, portrait.reply_share), (0.6, 0.7));
        assert!(!portrait.bipartite);
        assert_eq!(portrait.parts, Some([7, 1, 2]));
        assert_eq!((portrait.surprise, portrait.surprise_events), (Some(0.5), Some(0.5)));
        assert_eq!(portrait.new_nodes_in_test, Some(1));
        assert_eq!(portrait.busiest_node_events, 9);
    }
}
