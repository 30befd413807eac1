//! Where nodes stand relative to the two nodes of a pair, as rows of a table.

use super::config::PintPositions;
use crate::checkpoint::{Checkpoint, impossible};
use crate::error::{Error, Result};
use crate::event::{Event, NodeId};
use rustc_hash::FxHashMap;

/// Walks of 0, 1, 2 and 3 steps.
const LENGTHS: usize = 4;
/// How many numbers a position has: for either node of the pair.
pub const WIDTH: usize = 2 * LENGTHS;
/// What keeps a sum of no walks from dividing.
const EPSILON: f64 = 1e-4;

/// How many walks of each length lead back in time from a node to others.
#[derive(Debug, Clone, Default)]
pub struct Walks {
    /// For each node those that walks from it reach. A node reaches itself by standing still, which
    /// is not stored for a node that has met nobody.
    reached: Vec<FxHashMap<NodeId, [f64; LENGTHS]>>,
}

/// What standing still counts.
const HERE: [f64; LENGTHS] = [1.0, 0.0, 0.0, 0.0];

impl Walks {
    /// An event adds to each of its nodes the walks of the other one, a step longer. Events count
    /// one by one, in their order.
    pub fn observe(&mut self, step: &[Event]) {
        for event in step {
            let (u, v) = (event.source, event.destination);
            let last = u.index().max(v.index());
            if last >= self.reached.len() {
                self.reached.resize_with(last + 1, FxHashMap::default);
            }
            let [from_u, from_v] = [u, v].map(|node| {
                self.reached[node.index()].entry(node).or_insert(HERE);
                self.reached[node.index()].clone()
            });
            add_longer(&mut self.reached[v.index()], &from_u);
            if u != v {
                add_longer(&mut self.reached[u.index()], &from_v);
            }
        }
    }

    /// The shares of walks by length from a node to another one; zeros where there is none.
    fn shares(&self, from: NodeId, to: NodeId) -> [f32; LENGTHS] {
        let here = (from == to).then_some(&HERE);
        let found = self.reached.get(from.index()).and_then(|reached| reached.get(&to)).or(here);
        found.map_or([0.0; LENGTHS], |counts| {
            let sum = counts.iter().sum::<f64>() + EPSILON;
            counts.map(|count| (count / sum) as f32)
        })
    }

    pub fn save(&self, checkpoint: &mut Checkpoint<'_>) {
        let (mut from, mut to, mut counts) = (Vec::new(), Vec::new(), Vec::new());
        for (node, reached) in self.reached.iter().enumerate() {
            // In the order of numbers: the order of a map is not to reach the file.
            let mut reached: Vec<_> = reached.iter().collect();
            reached.sort_unstable_by_key(|(other, _)| other.0);
            for (other, numbers) in reached {
                from.push(node as u32);
                to.push(other.0);
                counts.extend_from_slice(numbers);
            }
        }
        checkpoint.push_u32("state.walks.from", from);
        checkpoint.push_u32("state.walks.to", to);
        checkpoint.push_f64("state.walks.counts", counts);
    }

    pub fn load(checkpoint: &Checkpoint<'_>) -> Result<Walks> {
        let (from, to) =
            (checkpoint.nodes("state.walks.from")?, checkpoint.nodes("state.walks.to")?);
        let counts = checkpoint.f64("state.walks.counts")?;
        for (what, left, right) in [
            ("stored ends of walks", from.len(), to.len()),
            ("stored walks and their numbers", counts.len(), from.len() * LENGTHS),
        ] {
            if left != right {
                return Err(Error::LengthMismatch { what, left, right });
            }
        }
        if !counts.iter().all(|count| count.is_finite() && *count >= 0.0) {
            return Err(impossible("has walks that cannot be counted"));
        }
        let mut walks = Walks::default();
        for ((from, to), counts) in from.into_iter().zip(to).zip(counts.chunks(LENGTHS)) {
            if from.index() >= walks.reached.len() {
                walks.reached.resize_with(from.index() + 1, FxHashMap::default);
            }
            let counts = counts.try_into().expect("chunks of as many");
            walks.reached[from.index()].insert(to, counts);
        }
        Ok(walks)
    }
}

fn add_longer(
    to: &mut FxHashMap<NodeId, [f64; LENGTHS]>,
    from: &FxHashMap<NodeId, [f64; LENGTHS]>,
) {
    for (node, counts) in from {
        if counts[..LENGTHS - 1].iter().any(|count| *count > 0.0) {
            let sums = to.entry(*node).or_default();
            (1..LENGTHS).for_each(|length| sums[length] += counts[length - 1]);
        }
    }
}

/// The distinct positions of a call.
#[derive(Debug, Default)]
pub struct Positions {
    rows: Vec<[f32; WIDTH]>,
    places: FxHashMap<[u32; WIDTH], u32>,
}

impl Positions {
    pub fn clear(&mut self) {
        self.rows.clear();
        self.places.clear();
    }

    /// The place of a node's position relative to the root and the target of an encoding.
    pub fn place(
        &mut self,
        kind: PintPositions,
        walks: &Walks,
        (root, target): (NodeId, NodeId),
        node: NodeId,
    ) -> u32 {
        let of = |end: NodeId| match kind {
            PintPositions::Walks => walks.shares(end, node),
            PintPositions::Identity if node == end => {
                [(1.0 / (1.0 + EPSILON)) as f32, 0.0, 0.0, 0.0]
            }
            PintPositions::Identity => [0.0; LENGTHS],
        };
        let mut row = [0.0; WIDTH];
        row[..LENGTHS].copy_from_slice(&of(root));
        row[LENGTHS..].copy_from_slice(&of(target));
        let next = self.rows.len() as u32;
        let place = *self.places.entry(row.map(f32::to_bits)).or_insert(next);
        if place == next {
            self.rows.push(row);
        }
        place
    }

    pub fn rows(&self) -> &[[f32; WIDTH]] {
        &self.rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn walks_are_counted_by_hand() {
        let events = lstep_testkit::stream![0 -> 1 @ 1.0, 1 -> 2 @ 2.0, 0 -> 1 @ 3.0, 3 -> 3 @ 4.0];
        let mut walks = Walks::default();
        walks.observe(&events.iter().collect::<Vec<_>>());
        let shares = |counts: [f64; LENGTHS]| {
            let sum = counts.iter().sum::<f64>() + EPSILON;
            counts.map(|count| (count / sum) as f32)
        };
        let found = |from, to| walks.shares(NodeId(from), NodeId(to));
        // 2 met 1, who had met 0.
        assert_eq!(found(2, 1), shares([0.0, 1.0, 0.0, 0.0]));
        assert_eq!(found(2, 0), shares([0.0, 0.0, 1.0, 0.0]));
        assert_eq!(found(2, 2), shares([1.0, 0.0, 0.0, 0.0]));
        // 0 met 1 twice; the second time 1 had met 2, and 0 itself.
        assert_eq!(found(0, 1), shares([0.0, 2.0, 0.0, 0.0]));
        assert_eq!(found(0, 0), shares([1.0, 0.0, 1.0, 0.0]));
        assert_eq!(found(0, 2), shares([0.0, 0.0, 1.0, 0.0]));
        // A meeting with oneself counts once.
        assert_eq!(found(3, 3), shares([1.0, 1.0, 0.0, 0.0]));
        // Nobody has seen node 9.
        assert_eq!((found(9, 9), found(9, 0)), (shares(HERE), [0.0; LENGTHS]));
    }
}
