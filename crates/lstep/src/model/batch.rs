//! The pairs of one forward pass: distinct seeds, and pairs of them by number.
//!
//! A seed that several pairs share is encoded once. Models see pairs without labels; which of them
//! happened is known to the objective alone.

use super::trainer::TrainBatch;
use crate::event::NodeId;
use crate::graph::Seed;
use rustc_hash::FxHashMap;

/// Distinct seeds, and pairs of them.
#[derive(Debug, Default)]
pub struct PairBatch {
    seeds: Vec<Seed>,
    sources: Vec<u32>,
    candidates: Vec<u32>,
    numbers: FxHashMap<(u32, u64), u32>,
}

/// In which order the pairs of a training batch stand. Losses and gradients are sums over pairs,
/// so the order decides their last bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BatchOrder {
    /// An event, then its negatives, then the next event.
    ByEvent,
    /// All events, then all negatives.
    PositivesFirst,
}

impl PairBatch {
    /// Drops all pairs and keeps the memory.
    pub fn clear(&mut self) {
        self.seeds.clear();
        self.sources.clear();
        self.candidates.clear();
        self.numbers.clear();
    }

    /// The distinct seeds.
    pub fn seeds(&self) -> &[Seed] {
        &self.seeds
    }

    /// For each pair, the number of its source among the seeds.
    pub fn sources(&self) -> &[u32] {
        &self.sources
    }

    /// For each pair, the number of its candidate among the seeds.
    pub fn candidates(&self) -> &[u32] {
        &self.candidates
    }

    /// How many pairs there are.
    pub fn len(&self) -> usize {
        self.sources.len()
    }

    /// Whether there are no pairs.
    pub fn is_empty(&self) -> bool {
        self.sources.is_empty()
    }

    /// Each pair as a source at its time and a candidate.
    pub fn pair(&self, pair: usize) -> (Seed, NodeId) {
        let candidate = self.seeds[self.candidates[pair] as usize];
        (self.seeds[self.sources[pair] as usize], candidate.node())
    }

    /// Adds a pair.
    pub fn push(&mut self, source: Seed, candidate: NodeId) {
        let source_number = self.number(source);
        let candidate_number = self.number(source.with_node(candidate));
        self.sources.push(source_number);
        self.candidates.push(candidate_number);
    }

    /// Adds the pairs of the training batch's events in a range, and their negatives.
    pub(super) fn push_events(
        &mut self,
        batch: TrainBatch<'_>,
        range: std::ops::Range<usize>,
        order: BatchOrder,
    ) {
        let mut negatives = Vec::new();
        for (event, others) in batch.slice(range).rows() {
            self.push(Seed::new(event.source, event.time), event.destination);
            for negative in others {
                let (seed, destination) = negative.at(event.time);
                // The candidate is numbered first: a negative mostly shares the event's source.
                let candidate = self.number(seed.with_node(destination));
                let source = self.number(seed);
                match order {
                    BatchOrder::ByEvent => {
                        self.sources.push(source);
                        self.candidates.push(candidate);
                    }
                    BatchOrder::PositivesFirst => negatives.push((source, candidate)),
                }
            }
        }
        self.sources.extend(negatives.iter().map(|pair| pair.0));
        self.candidates.extend(negatives.iter().map(|pair| pair.1));
    }

    /// The seed's number; a new seed gets the next one.
    fn number(&mut self, seed: Seed) -> u32 {
        let next = self.seeds.len() as u32;
        let number =
            *self.numbers.entry((seed.node().0, seed.time().value().to_bits())).or_insert(next);
        if number == next {
            self.seeds.push(seed);
        }
        number
    }
}

/// The distinct seeds that have one of the two roles in a batch.
///
/// A head's first layer over two vectors is a sum of one product for the source and one for the
/// candidate, so each seed needs the product of its role once, and not the other one.
#[derive(Debug, Default)]
pub struct Role {
    /// The distinct seeds.
    pub seeds: Vec<u32>,
    /// For each pair, the place of its seed in `seeds`.
    pub rows: Vec<u32>,
}

impl Role {
    /// From the number of each pair's seed, all below `seeds`.
    pub fn of(numbers: &[u32], seeds: usize) -> Role {
        const NOWHERE: u32 = u32::MAX;
        let mut places = vec![NOWHERE; seeds];
        let mut role = Role::default();
        for &seed in numbers {
            let place = &mut places[seed as usize];
            if *place == NOWHERE {
                *place = role.seeds.len() as u32;
                role.seeds.push(seed);
            }
            role.rows.push(*place);
        }
        role
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Event, Time};
    use crate::model::Negative;

    #[test]
    fn a_seed_has_one_place_in_its_role() {
        let sources = Role::of(&[4, 4, 0], 5);
        assert_eq!((sources.seeds, sources.rows), (vec![4, 0], vec![0, 0, 1]));
        let candidates = Role::of(&[0, 2, 2], 5);
        assert_eq!((candidates.seeds, candidates.rows), (vec![0, 2], vec![0, 1, 1]));
    }

    #[test]
    fn seeds_are_distinct_and_both_orders_hold_the_same_pairs() {
        let event = |number, source, destination| Event {
            number,
            source: NodeId(source),
            destination: NodeId(destination),
            time: Time::ZERO,
        };
        let events = [event(0, 1, 2), event(1, 1, 3)];
        let negative = |source, destination| Negative {
            source: NodeId(source),
            destination: NodeId(destination),
        };
        let negatives = [negative(1, 3), negative(4, 2)];
        let batch = TrainBatch { events: &events, negatives: &negatives };
        let of = |order| {
            let mut pairs = PairBatch::default();
            pairs.push_events(batch, 0..2, order);
            assert_eq!(pairs.seeds().len(), 4);
            (0..pairs.len())
                .map(|pair| pairs.pair(pair))
                .map(|(source, candidate)| (source.node().0, candidate.0))
                .collect::<Vec<_>>()
        };
        assert_eq!(of(BatchOrder::ByEvent), [(1, 2), (1, 3), (1, 3), (4, 2)]);
        assert_eq!(of(BatchOrder::PositivesFirst), [(1, 2), (1, 3), (1, 3), (4, 2)]);
    }
}
