//! Streams that are like another one up to a point, or but for the names of their nodes.

use crate::event::{Events, Features, NodeId, Time};
use crate::graph::EventLog;
use crate::rng::KeyedRng;

/// The same events before number `horizon`, and others after: nodes, times and features differ. The
/// events are as many as before unless `dropped` says that all but one are left out.
pub(super) fn altered_from(
    log: &EventLog,
    horizon: u32,
    dropped: bool,
    draw: &mut KeyedRng,
) -> EventLog {
    let events = log.events();
    let (from, count) = (horizon as usize, events.len());
    let end = if dropped { (from + 1).min(count) } else { count };
    let nodes = events.node_bound() as u64;
    let mut other = |column: &[NodeId]| -> Vec<NodeId> {
        let kept = column[..from].iter().copied();
        kept.chain((from..end).map(|_| NodeId(draw.below(nodes) as u32))).collect()
    };
    let (sources, destinations) = (other(events.sources()), other(events.destinations()));
    let times = events.times();
    let start = times.get(from).copied().unwrap_or(Time::ZERO);
    // Times stretch away from the first of them, which stays: nothing moves before it.
    let stretched = |&time: &Time| {
        Time::new(start.value() + 1.5 * time.since(start)).unwrap_or(time).max(start)
    };
    let times: Vec<Time> =
        times[..from].iter().copied().chain(times[from..end].iter().map(stretched)).collect();
    let width = events.features().width();
    let mut values = events.features().values()[..end * width].to_vec();
    values[from * width..].iter_mut().for_each(|value| *value = 1.0 - *value);
    let features = Features::new(width, values).expect("finite as before");
    let events = Events::new(sources, destinations, times, features).expect("in order as before");
    EventLog::new(events).with_node_features(log.node_features().clone())
}

/// Other numbers for all nodes.
pub(super) struct Renaming {
    new: Vec<NodeId>,
}

impl Renaming {
    /// A random one.
    pub fn new(log: &EventLog, draw: &mut KeyedRng) -> Renaming {
        let count = log.events().node_bound().max(log.node_features().rows());
        let mut new: Vec<NodeId> = (0..count as u32).map(NodeId).collect();
        draw.shuffle(&mut new);
        Renaming { new }
    }

    /// A node's other number.
    pub fn of(&self, node: NodeId) -> NodeId {
        self.new.get(node.index()).copied().unwrap_or(node)
    }

    /// The same stream with the other numbers.
    pub fn apply(&self, log: &EventLog) -> EventLog {
        let events = log.events();
        let renamed = |column: &[NodeId]| column.iter().map(|&node| self.of(node)).collect();
        let renamed_events = Events::new(
            renamed(events.sources()),
            renamed(events.destinations()),
            events.times().to_vec(),
            events.features().clone(),
        )
        .expect("in order as before");
        let (old, width) = (log.node_features(), log.node_features().width());
        let mut values = vec![0.0; if width == 0 { 0 } else { self.new.len() * width }];
        for row in 0..old.rows() {
            let place = self.new[row].index() * width;
            values[place..place + width].copy_from_slice(old.row(row));
        }
        let features = Features::new(width, values).expect("finite as before");
        EventLog::new(renamed_events).with_node_features(features)
    }
}
