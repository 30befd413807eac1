//! What training on several machines would take: a cost model from the measured cost of a step.
//!
//! Every rank observes every step, computes its share of the lanes, and exchanges slices of one
//! gradient. The constants are in [`Network`] and below; nothing here has seen a network.

use super::StepCost;
use serde::Serialize;

/// What lies between ranks, and what each of them has.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Network {
    /// Line rate in gigabits per second.
    pub gigabits: f64,
    /// Seconds that a message takes whatever its size.
    pub latency: f64,
    /// Cores of each rank.
    pub cores: usize,
}

/// The share of a line's rate that large messages get over TCP.
const USABLE: f64 = 0.85;

/// Seconds for each weight to pack, add and unpack slices: three passes over memory.
const REDUCE: f64 = 2e-9;

impl Default for Network {
    /// Ethernet of 10 Gb/s with the stack of an ordinary kernel.
    fn default() -> Network {
        Network { gigabits: 10.0, latency: 30e-6, cores: 8 }
    }
}

/// What a number of ranks would take.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct RankPlan {
    /// How many ranks.
    pub ranks: usize,
    /// Seconds of a step.
    pub step_seconds: f64,
    /// Seconds of an epoch's training; validation is done by every rank in full and comes on top.
    pub epoch_seconds: f64,
    /// How many times faster than one rank.
    pub speed_up: f64,
    /// Bytes that each rank sends in a step, and receives.
    pub traffic_bytes: u64,
    /// Seconds of a step that go into the exchange.
    pub exchange_seconds: f64,
    /// What to think of it.
    pub worth: Worth,
}

/// Whether so many ranks are worth it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Worth {
    /// One rank, which others are compared with.
    Reference,
    /// At least half of the ranks' time goes into the work.
    Yes,
    /// Faster, but most of the ranks' time is lost.
    Poor,
    /// Not faster than one rank by a tenth.
    No,
}

impl RankPlan {
    /// What some ranks would take.
    pub fn new(cost: &StepCost, ranks: usize, network: Network) -> RankPlan {
        let alone = step_seconds(cost, 1, network).0;
        let (step, exchange) = step_seconds(cost, ranks, network);
        let speed_up = alone / step;
        let worth = match speed_up {
            _ if ranks == 1 => Worth::Reference,
            times if times < 1.1 => Worth::No,
            times if times < 0.5 * ranks as f64 => Worth::Poor,
            _ => Worth::Yes,
        };
        RankPlan {
            ranks,
            step_seconds: step,
            epoch_seconds: step * cost.steps as f64,
            speed_up,
            traffic_bytes: traffic(cost, ranks),
            exchange_seconds: exchange,
            worth,
        }
    }
}

/// Bytes that a rank sends in a step: its gradient's other slices, its own summed slice to all
/// others, a loss and a wish to stop.
fn traffic(cost: &StepCost, ranks: usize) -> u64 {
    let others = ranks as u64 - 1;
    let slice = cost.weights.div_ceil(ranks) as u64 * 4;
    others * (2 * slice + 8 + 1)
}

/// Seconds of a step, and of its exchange.
fn step_seconds(cost: &StepCost, ranks: usize, network: Network) -> (f64, f64) {
    // Rank 0 has the most lanes; its cores take them by turns.
    let each = cost.lanes.next_power_of_two().max(ranks) / ranks;
    let rounds = each.min(cost.lanes).div_ceil(network.cores.max(1));
    let lanes = cost.gradients / cost.lanes as f64 * rounds as f64
        + cost.add * each.min(cost.lanes) as f64 / cost.lanes as f64;
    let exchange = match ranks {
        1 => 0.0,
        // Two large exchanges with every other rank, two small ones in a tree.
        _ => {
            let messages = 2 * (ranks - 1) + 2 * ranks.ilog2() as usize;
            traffic(cost, ranks) as f64 * 8.0 / (USABLE * network.gigabits * 1e9)
                + messages as f64 * network.latency
                + cost.weights as f64 * REDUCE
        }
    };
    (lanes + cost.observe + cost.update + exchange, exchange)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(gradients: f64, observe: f64) -> StepCost {
        StepCost {
            events: 200,
            steps: 100,
            lanes: 64,
            weights: 1_000_000,
            gradients,
            in_one_lane: gradients,
            observe,
            add: 0.0,
            update: 1e-3,
            measured: 10,
        }
    }

    #[test]
    fn a_light_model_is_not_worth_a_network_and_a_heavy_one_is() {
        let worth = |gradients: f64, observe: f64, ranks: usize| {
            RankPlan::new(&cost(gradients, observe), ranks, Network::default()).worth
        };
        assert_eq!(worth(0.02, 0.005, 1), Worth::Reference);
        assert_eq!(worth(0.02, 0.005, 8), Worth::No);
        assert_eq!(worth(14.0, 0.0, 8), Worth::Yes);
        assert_eq!(worth(0.4, 0.005, 64), Worth::Poor);
    }

    #[test]
    fn traffic_is_twice_the_weights_whatever_the_number_of_ranks() {
        let plan = |ranks: usize| RankPlan::new(&cost(1.0, 0.0), ranks, Network::default());
        assert_eq!(plan(1).traffic_bytes, 0);
        assert_eq!(plan(2).traffic_bytes, 4_000_000 + 9);
        assert!((7_800_000..8_000_000).contains(&plan(64).traffic_bytes));
        assert!(plan(2).exchange_seconds > plan(2).traffic_bytes as f64 * 8.0 / 10e9);
    }

    #[test]
    fn ranks_beyond_the_lanes_and_replicated_work_do_not_help() {
        let few = StepCost { lanes: 4, ..cost(1.0, 0.0) };
        let network = Network { cores: 1, ..Network::default() };
        let plan = |ranks: usize| RankPlan::new(&few, ranks, network);
        assert!(plan(4).speed_up > 3.5, "{:?}", plan(4));
        assert!(plan(8).speed_up <= plan(4).speed_up);
        let sequential = RankPlan::new(&cost(0.0, 1.0), 8, network);
        assert!(sequential.speed_up < 1.0);
    }
}
