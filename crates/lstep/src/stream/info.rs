//! What a model may know of a stream before its first event.

use crate::event::NodeSet;
use crate::event::Time;
use crate::graph::EventLog;
use crate::model::StreamInfo;
use crate::protocol::Split;

/// What a model may know before the first event.
pub fn info(log: &EventLog, split: &Split) -> StreamInfo {
    let times = log.events().times();
    let trained =
        log.events().iter().take(split.train.end as usize).filter(|event| split.trains(*event));
    let (mut ends, mut nodes): (Option<(Time, Time)>, _) = (None, NodeSet::default());
    for event in trained {
        ends = Some((ends.map_or(event.time, |(first, _)| first), event.time));
        nodes.insert(event.source);
        nodes.insert(event.destination);
    }
    StreamInfo { nodes: nodes.len(), training: ends.unwrap_or((times[0], times[0])) }
}
