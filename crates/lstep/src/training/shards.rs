//! What a state that is spread over several machines would cost: a simulation on a stream, for a
//! design that is not built (docs/engines/sharding.md).
//!
//! A node belongs to a shard by a hash of its number, with its history and its rows of the state. An
//! event is computed by the shard of its source. Each of its three seeds (source, destination, a
//! negative) needs its own vector and those of its recent neighbours, which others may own.

use crate::event::NodeId;
use crate::graph::{EventLog, Seed};
use crate::rng::KeyedRng;
use rustc_hash::FxHashSet;
use serde::Serialize;

/// What a number of shards would cost. A balance is the fullest shard beside the mean one: 1 is
/// even.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ShardCost {
    /// How many shards.
    pub shards: usize,
    /// Balance of nodes that have interacted, which is that of the state's memory.
    pub node_balance: f64,
    /// Balance of entries of histories, which is that of the log's memory.
    pub history_balance: f64,
    /// Balance of a step's events, the mean over steps: the fullest shard is waited for.
    pub step_balance: f64,
    /// Share of vectors that another shard owns.
    pub remote_share: f64,
    /// Bytes on the wire for an event if vectors are fetched, each once in a step and shard.
    pub fetched_bytes: f64,
    /// Bytes on the wire for an event if each shard sums what it owns before it sends.
    pub summed_bytes: f64,
}

/// Simulates shards on the events of a log, cut into steps, for a model that looks at `recent`
/// neighbours and has so many bytes for a node's vector. Gradients go back the same way, so training
/// moves twice as much.
pub fn simulate_shards(
    log: &EventLog,
    step: usize,
    recent: usize,
    vector_bytes: f64,
    shards: &[usize],
) -> Vec<ShardCost> {
    shards.iter().map(|&count| simulate(log, step, recent, vector_bytes, count)).collect()
}

/// The shard of a node.
fn shard_of(node: NodeId, shards: usize) -> usize {
    KeyedRng::new(&[0x5a4d, u64::from(node.0)]).below(shards as u64) as usize
}

fn simulate(
    log: &EventLog,
    step: usize,
    recent: usize,
    vector_bytes: f64,
    shards: usize,
) -> ShardCost {
    let events = log.events();
    let owners: Vec<usize> =
        (0..events.node_bound() as u32).map(|node| shard_of(NodeId(node), shards)).collect();
    let mut met = vec![false; owners.len()];
    let mut entries = vec![0usize; shards];
    let mut balances = Vec::new();
    let (mut vectors, mut remote, mut fetched, mut summed) = (0u64, 0u64, 0u64, 0u64);
    let mut draw = KeyedRng::new(&[0x5a4d, shards as u64]);
    let mut asked = FxHashSet::default();
    let mut senders: Vec<usize> = Vec::new();
    let all: Vec<_> = events.iter().collect();
    for step in all.chunks(step.max(1)) {
        let past = log.past(step[0].number);
        let mut work = vec![0usize; shards];
        asked.clear();
        for event in step {
            let home = owners[event.source.index()];
            work[home] += 1;
            let other = all[draw.below(all.len() as u64) as usize].destination;
            for node in [event.source, event.destination, other] {
                let seed = Seed::new(node, event.time);
                let neighbours = past.recent(seed, recent).iter().map(|meeting| meeting.node());
                senders.clear();
                for needed in std::iter::once(node).chain(neighbours) {
                    let owner = owners[needed.index()];
                    vectors += 1;
                    if owner == home {
                        continue;
                    }
                    remote += 1;
                    fetched += u64::from(asked.insert((home, needed)));
                    if !senders.contains(&owner) {
                        senders.push(owner);
                    }
                }
                summed += senders.len() as u64;
            }
        }
        for event in step {
            for node in [event.source, event.destination] {
                met[node.index()] = true;
                entries[owners[node.index()]] += 1;
            }
        }
        balances.push(balance(&work));
    }
    let mut nodes = vec![0usize; shards];
    for (owner, _) in owners.iter().zip(&met).filter(|(_, met)| **met) {
        nodes[*owner] += 1;
    }
    let each = vector_bytes / all.len().max(1) as f64;
    ShardCost {
        shards,
        node_balance: balance(&nodes),
        history_balance: balance(&entries),
        step_balance: balances.iter().sum::<f64>() / balances.len().max(1) as f64,
        remote_share: remote as f64 / vectors.max(1) as f64,
        fetched_bytes: fetched as f64 * each,
        summed_bytes: summed as f64 * each,
    }
}

/// The largest beside the mean.
fn balance(counts: &[usize]) -> f64 {
    let (sum, most) = (counts.iter().sum::<usize>(), counts.iter().max().copied().unwrap_or(0));
    if sum == 0 { 1.0 } else { most as f64 * counts.len() as f64 / sum as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::synthetic::{SyntheticConfig, generate};

    fn log(skew: f64) -> EventLog {
        let config = SyntheticConfig {
            nodes: 2_000,
            events: 4_000,
            habits: 0.0,
            skew,
            ..Default::default()
        };
        EventLog::new(generate(&config).expect("a stream").events)
    }

    #[test]
    fn one_shard_sends_nothing_and_more_shards_send_more() {
        let costs = simulate_shards(&log(1.0), 200, 10, 700.0, &[1, 2, 8, 64]);
        assert_eq!((costs[0].remote_share, costs[0].fetched_bytes), (0.0, 0.0));
        assert_eq!(costs[0].step_balance, 1.0);
        for pair in costs.windows(2) {
            assert!(pair[1].remote_share > pair[0].remote_share, "{pair:?}");
            assert!(pair[1].fetched_bytes > pair[0].fetched_bytes, "{pair:?}");
            assert!(pair[1].step_balance > pair[0].step_balance, "{pair:?}");
        }
        // Half of the neighbours; a source is always at home.
        assert!((0.4..0.5).contains(&costs[1].remote_share), "{:?}", costs[1]);
        // A shard that sums sends one vector for several.
        assert!(costs[1].summed_bytes < costs[1].fetched_bytes, "{:?}", costs[1]);
    }

    #[test]
    fn popular_nodes_make_shards_uneven() {
        let [even, skewed] = [1.0, 4.0]
            .map(|skew| simulate_shards(&log(skew), 200, 10, 700.0, &[64])[0].history_balance);
        assert!(skewed > 1.5 * even, "{even} and {skewed}");
    }
}
