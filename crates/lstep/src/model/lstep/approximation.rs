//! p~ of the nodes that were looked at since the last snapshot.
//!
//! Between two snapshots an approximate position depends on the node and the weights alone. What
//! scoring or learning computed serves further questions about the same step and the update that
//! follows it, which needs no other nodes: those of the step and those they met. Only a memory:
//! results are the same bits without it.

use crate::event::NodeId;
use rustc_hash::FxHashMap;
use std::sync::{Mutex, MutexGuard};

/// Positions kept at most; further nodes are computed again when they are asked again.
const MOST: usize = 1 << 16;

/// The approximate positions of some nodes since the last snapshot.
#[derive(Debug, Default)]
pub struct Approximations {
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    /// The version of the weights that they were computed with.
    weights: u64,
    places: FxHashMap<NodeId, u32>,
    vectors: Vec<f32>,
}

impl Clone for Approximations {
    /// A copy begins empty: it is a memory, not a part of the state.
    fn clone(&self) -> Approximations {
        Approximations::default()
    }
}

impl Approximations {
    /// To be called when positions change.
    pub fn forget(&mut self) {
        let kept = self.kept.get_mut().expect("nothing panics while it holds the memory");
        kept.places.clear();
        kept.vectors.clear();
    }

    /// Keeps the vectors of nodes, computed with that version of the weights.
    pub fn keep<'v>(
        &self,
        weights: u64,
        width: usize,
        vectors: impl Iterator<Item = (NodeId, &'v [f32])>,
    ) {
        let mut kept = self.at(weights);
        let Kept { places, vectors: table, .. } = &mut *kept;
        for (node, vector) in vectors {
            if places.len() == MOST {
                return;
            }
            places.entry(node).or_insert_with(|| {
                table.extend_from_slice(vector);
                (table.len() / width) as u32 - 1
            });
        }
    }

    /// The nodes that are not known with these weights, in the order asked.
    pub fn unknown(&self, weights: u64, nodes: &[NodeId]) -> Vec<NodeId> {
        let kept = self.at(weights);
        nodes.iter().copied().filter(|node| !kept.places.contains_key(node)).collect()
    }

    /// Fills the rows of `out`, one for each node; tells whether all nodes are known.
    pub fn recall(&self, weights: u64, width: usize, nodes: &[NodeId], out: &mut [f32]) -> bool {
        let kept = self.at(weights);
        nodes.iter().zip(out.chunks_exact_mut(width)).all(|(node, row)| {
            let place = kept.places.get(node);
            place
                .map(|&place| row.copy_from_slice(&kept.vectors[place as usize * width..][..width]))
                .is_some()
        })
    }

    /// What is kept for that version of the weights; another version's is dropped.
    fn at(&self, weights: u64) -> MutexGuard<'_, Kept> {
        let mut kept = self.kept.lock().expect("nothing panics while it holds the memory");
        if kept.weights != weights {
            kept.weights = weights;
            kept.places.clear();
            kept.vectors.clear();
        }
        kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_kept_is_known_until_weights_or_positions_change() {
        let mut memory = Approximations::default();
        let nodes = [NodeId(5), NodeId(3)];
        memory.keep(1, 2, [(NodeId(3), &[1.0, 2.0][..])].into_iter());
        assert_eq!(memory.unknown(1, &nodes), [NodeId(5)]);
        assert!(!memory.recall(1, 2, &nodes, &mut [0.0; 4]));
        assert_eq!(memory.unknown(2, &nodes), nodes);
        memory.keep(2, 2, [(NodeId(3), &[7.0, 8.0][..]), (NodeId(5), &[9.0, 0.5])].into_iter());
        let mut out = [0.0; 4];
        assert!(memory.recall(2, 2, &nodes, &mut out));
        assert_eq!(out, [9.0, 0.5, 7.0, 8.0]);
        memory.forget();
        assert_eq!(memory.unknown(2, &nodes), nodes);
    }
}
