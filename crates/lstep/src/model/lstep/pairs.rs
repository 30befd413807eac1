//! Pairs of seeds to be judged, by their two roles.
//!
//! The predictor's first layer is a sum of one product for the source and one for the candidate, so
//! each distinct seed needs the product of its role once, and not the other one.

use crate::event::NodeId;
use crate::graph::Seed;

/// Pairs of a source and a candidate, both as numbers of gathered seeds.
#[derive(Debug, Default)]
pub struct Pairs {
    pub sources: Role,
    pub candidates: Role,
    /// The same pairs as they were asked: the candidate at the source's time.
    pub asked: Vec<(Seed, NodeId)>,
}

/// The seeds that have one role.
#[derive(Debug, Default)]
pub struct Role {
    /// The distinct seeds.
    pub seeds: Vec<u32>,
    /// For each pair, the place of its seed in `seeds`.
    pub rows: Vec<u32>,
    /// The place of each gathered seed in `seeds`.
    places: Vec<u32>,
}

const NOWHERE: u32 = u32::MAX;

impl Pairs {
    /// Adds a pair.
    pub fn push(&mut self, source: u32, candidate: u32, asked: (Seed, NodeId)) {
        self.sources.push(source);
        self.candidates.push(candidate);
        self.asked.push(asked);
    }
}

impl Role {
    fn push(&mut self, seed: u32) {
        if seed as usize >= self.places.len() {
            self.places.resize(seed as usize + 1, NOWHERE);
        }
        let place = &mut self.places[seed as usize];
        if *place == NOWHERE {
            *place = self.seeds.len() as u32;
            self.seeds.push(seed);
        }
        self.rows.push(*place);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Time;

    #[test]
    fn a_seed_has_one_place_in_each_role() {
        let mut pairs = Pairs::default();
        for (source, candidate) in [(4, 0), (4, 2), (0, 2)] {
            pairs.push(
                source,
                candidate,
                (Seed { node: NodeId(source), time: Time::ZERO }, NodeId(candidate)),
            );
        }
        assert_eq!((pairs.sources.seeds, pairs.sources.rows), (vec![4, 0], vec![0, 0, 1]));
        assert_eq!((pairs.candidates.seeds, pairs.candidates.rows), (vec![0, 2], vec![0, 1, 1]));
    }
}
