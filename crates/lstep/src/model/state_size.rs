//! How large a model's state becomes, found out by letting it observe small streams.
//!
//! A state grows with nodes, with pairs that have met, and maybe with events. Streams that differ
//! in one of these tell how much each adds, in bytes of what a checkpoint holds of the state. So the
//! figures are those of the code that runs, for any model, also one of another crate.

use super::{FeatureWidths, ModelConfig, OptimizerConfig, StreamInfo};
use crate::checkpoint::Checkpoint;
use crate::error::Result;
use crate::event::{Event, Events, Features, NodeId, Time};
use crate::graph::{EventLog, Neighbour};
use serde::Serialize;

/// Bytes that a model's state takes for what it has observed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct StateSize {
    /// For each node that has interacted.
    pub per_node: f64,
    /// For each pair of nodes that have met.
    pub per_pair: f64,
    /// For each event beyond that.
    pub per_event: f64,
    /// Numbers that are learned.
    pub weights: usize,
}

/// Bytes of an event in a log without features: source, destination and time, and an entry in the
/// history of both.
pub const EVENT_BYTES: usize =
    2 * size_of::<NodeId>() + size_of::<Time>() + 2 * size_of::<Neighbour>();

/// Bytes of a node in a log: where its history is, and roughly its name.
pub const NODE_BYTES: usize = 16 + 18;

/// Nodes of the small stream, events of all but the longest, and events in a step. Every node meets
/// others at least twice, and a window of a hundred steps sees less than half of the nodes, so what
/// it holds beside the newest is the same in all streams.
const NODES: u32 = 1_000;
const EVENTS: u32 = 4_000;
const STEP: usize = 4;
/// How far the other node is: farther than a step is long, so that all steps touch equally many.
const APART: u32 = 10;

/// Finds out how large a model's state becomes on a stream whose events have so many features; a
/// second or so for most.
pub fn state_size(model: &ModelConfig, features: usize) -> Result<StateSize> {
    let model = &model.widened_for(FeatureWidths { node: 0, edge: features });
    let observed = |nodes, next, count| observed(model, features, (nodes, next, count));
    // Rings: every node meets one that is some places further on, and maybe the one after that.
    let (plain, weights) = observed(NODES, 1, EVENTS)?;
    let (more_nodes, _) = observed(2 * NODES, 1, EVENTS)?;
    let (more_pairs, _) = observed(NODES, 2, EVENTS)?;
    let (more_events, _) = observed(NODES, 1, 2 * EVENTS)?;
    let nodes = f64::from(NODES);
    let per_pair = ((more_pairs - plain) / nodes).max(0.0);
    Ok(StateSize {
        per_node: ((more_nodes - plain) / nodes - per_pair).max(0.0),
        per_pair,
        per_event: ((more_events - plain) / f64::from(EVENTS)).max(0.0),
        weights,
    })
}

/// Bytes of the state after a ring of nodes whose each meets some next ones, and the weights.
fn observed(
    model: &ModelConfig,
    width: usize,
    (nodes, next, count): (u32, u32, u32),
) -> Result<(f64, usize)> {
    let meets = |event: u32| {
        let (source, round) = (event % nodes, event / nodes);
        (NodeId(source), NodeId((source + APART + round % next) % nodes))
    };
    let (sources, destinations) = (0..count).map(meets).unzip();
    let times = (0..count).filter_map(|event| Time::new(f64::from(event))).collect();
    let features = Features::new(width, vec![0.5; width * count as usize])?;
    let log = EventLog::new(Events::new(sources, destinations, times, features)?);
    let events: Vec<Event> = log.events().iter().collect();
    let info = StreamInfo::of(events.iter().copied()).expect("there are events");
    let mut trainer = model.trainer(&info, 0, OptimizerConfig::default())?;
    for step in events.chunks(STEP) {
        let horizon = step.last().expect("a step has events").number + 1;
        trainer.observe(log.revealed(horizon), step)?;
    }
    let mut checkpoint = Checkpoint::default();
    trainer.save(&mut checkpoint);
    let learned = ["weight.", "average.", "first.", "second.", "adam."];
    let of_state = |name: &str| !learned.iter().any(|part| name.starts_with(part));
    let tensors = checkpoint.tensors.iter().filter(|tensor| of_state(&tensor.name));
    Ok((tensors.map(|tensor| tensor.values.bytes() as f64).sum(), trainer.weights()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_those_of_the_tables_in_the_code() {
        let of = |name: &str, features: usize| {
            let model = ModelConfig::learned(name).expect("known");
            state_size(&model, features).expect("observed")
        };
        // A vector of 172, since when it holds and what held before, and the newest row.
        let lstep = of("lstep", 0);
        assert!((700.0..720.0).contains(&lstep.per_node), "{lstep:?}");
        assert_eq!((lstep.per_pair, lstep.per_event), (0.0, 0.0), "{lstep:?}");
        // A memory of 172, a message of 172 + 172 + 100 and the event's features, times and rows.
        let tgn = of("tgn", 0);
        assert!((688.0 + 1_776.0..2_500.0).contains(&tgn.per_node), "{tgn:?}");
        let wide = of("tgn", 10);
        assert!((wide.per_node - tgn.per_node - 40.0).abs() < 1.0, "{wide:?}");
        // It looks everything up in the log.
        let graphmixer = of("graphmixer", 0);
        assert_eq!((graphmixer.per_node, graphmixer.per_pair), (0.0, 0.0));
        // Counts by pair, walks and positions by node.
        let pair = of("lstep-pair", 0);
        assert!(pair.per_pair > 8.0 && pair.per_node > 300.0, "{pair:?}");
        assert_eq!(EVENT_BYTES, 48);
    }
}
