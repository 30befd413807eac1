//! Theorem thm1: how far an approximate position can move from one step to the next, by the filter
//! that makes it.
//!
//! The proof's last line bounds the move for positions and weights of length 1. Lengths are put
//! back here:
//!
//! ```text
//! |p~(t'') - p~(t)|  <=  S (2L - 2) A P,   S = max over d of sum over i of |lambda_i W_filter[d, i]|
//! ```
//!
//! with A the sum of |W_P^sum| and P the longest position of the window. lambda_i = 2 - 2 cos(2 pi
//! i / L) are the eigenvalues of the ring's Laplacian; the paper's lemma prints 2 - cos, which is
//! given as well. The theorem supposes a slowly changing graph, and its proof a filter whose
//! frequencies weigh alike (`docs/equations.md`), so it is measured here and not asserted. Beside
//! it stands what holds without either, from the folded kernel g and the steps that stored
//! positions really made:
//!
//! ```text
//! |p~(t'') - p~(t)|  <=  sum over j of max over d |g[j, d]|  |p_(j+1) - p_j|
//! ```

use super::{Lstep, LstepState, Run};
use crate::event::NodeId;
use crate::model::Learner;
use std::f64::consts::TAU;

/// What a filter says about the moves of all nodes.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct FilterBound {
    /// L, how many snapshots are filtered.
    pub snapshots: usize,
    /// S, with the eigenvalues of the ring's Laplacian.
    pub filter_sum: f64,
    /// S, with the eigenvalues as the paper's lemma prints them.
    pub filter_sum_as_printed: f64,
    /// A, the sum of the absolute weights of the weighted sum.
    pub weight_sum: f64,
    /// max over d of |g[j, d]|, for each slot of the window, oldest first.
    #[serde(skip)]
    reach: Vec<f64>,
}

/// A node's move from one step to the next, and what bounds it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Movement {
    /// |p~(t'') - p~(t)|, the 2-norm.
    pub moved: f64,
    /// The theorem's bound.
    pub bound: f64,
    /// The bound that needs no slow change.
    pub direct: f64,
}

impl FilterBound {
    /// The bound of a model's filter.
    pub fn of(model: &Lstep) -> FilterBound {
        let snapshots = model.encoder().config.snapshots;
        let [real, imaginary, weights] = model.encoder().filter_weights(model.parameters());
        let sum = |eigenvalue: fn(f64) -> f64| {
            let rows = real.chunks_exact(snapshots).zip(imaginary.chunks_exact(snapshots));
            let of_dimension = |(real, imaginary): (&[f32], &[f32])| -> f64 {
                let sizes =
                    real.iter().zip(imaginary).map(|(&re, &im)| f64::from(re).hypot(f64::from(im)));
                sizes
                    .enumerate()
                    .map(|(i, size)| eigenvalue(TAU * i as f64 / snapshots as f64) * size)
                    .sum()
            };
            rows.map(of_dimension).fold(0.0, f64::max)
        };
        let kernel = model.encoder().kernel(model.parameters());
        let largest =
            |row: &[f32]| row.iter().map(|weight| f64::from(weight.abs())).fold(0.0, f64::max);
        FilterBound {
            snapshots,
            filter_sum: sum(|angle| 2.0 - 2.0 * angle.cos()),
            filter_sum_as_printed: sum(|angle| 2.0 - angle.cos()),
            weight_sum: weights.iter().map(|weight| f64::from(weight.abs())).sum(),
            reach: kernel
                .chunks_exact(model.encoder().config.position_width)
                .map(largest)
                .collect(),
        }
    }

    /// The theorem's bound for positions that are at most this long.
    pub fn epsilon(&self, longest: f64) -> f64 {
        self.filter_sum * (2 * self.snapshots).saturating_sub(2) as f64 * self.weight_sum * longest
    }

    /// The moves of some nodes over a step: `before` and `after` are the states around it.
    pub fn movements(
        &self,
        model: &Lstep,
        before: &LstepState,
        after: &LstepState,
        nodes: &[NodeId],
    ) -> impl Iterator<Item = Movement> {
        let width = model.encoder().config.position_width;
        let [from, to] = [before, after]
            .map(|state| model.encoder().approximate_positions(model.parameters(), state, nodes));
        nodes.iter().enumerate().map(move |(place, &node)| {
            let span = place * width..(place + 1) * width;
            let [old, new] = [before, after].map(|state| Window::of(state, node, width));
            Movement {
                moved: distance(&from[span.clone()], &to[span]),
                bound: self.epsilon(old.longest().max(new.longest())),
                direct: self.direct(&old, &new),
            }
        })
    }

    /// After the step slot j holds what slot j + 1 held before it, so only where neighbouring slots
    /// differ has anything moved.
    fn direct(&self, old: &Window<'_>, new: &Window<'_>) -> f64 {
        if new.snapshots == old.snapshots {
            return 0.0;
        }
        let first = self.reach[0] * distance(old.at(0), new.at(0));
        let edges = new.runs.iter().flat_map(|run| [run[1] as usize, run[2] as usize]);
        let mut edges: Vec<usize> =
            edges.filter(|&slot| slot > 0 && slot < self.reach.len()).collect();
        // A run that begins where another one ends is one change.
        edges.sort_unstable();
        edges.dedup();
        let change = |slot: usize| self.reach[slot] * distance(new.at(slot - 1), new.at(slot));
        first + edges.into_iter().map(change).sum::<f64>()
    }
}

/// A node's positions in the window, as runs.
struct Window<'s> {
    vectors: &'s [f32],
    runs: Vec<Run>,
    zero: Vec<f32>,
    snapshots: u32,
}

impl<'s> Window<'s> {
    fn of(state: &'s LstepState, node: NodeId, width: usize) -> Window<'s> {
        let mut runs = Vec::new();
        state.positions.runs(node, &mut runs);
        let snapshots = state.positions.snapshots();
        Window { vectors: state.positions.vectors(), runs, zero: vec![0.0; width], snapshots }
    }

    fn row(&self, row: u32) -> &[f32] {
        let width = self.zero.len();
        &self.vectors[row as usize * width..][..width]
    }

    /// The position in a slot; zero before the first.
    fn at(&self, slot: usize) -> &[f32] {
        let run = self.runs.iter().find(|run| (run[1] as usize..run[2] as usize).contains(&slot));
        run.map_or(&self.zero, |run| self.row(run[0]))
    }

    fn longest(&self) -> f64 {
        self.runs.iter().map(|run| distance(self.row(run[0]), &self.zero)).fold(0.0, f64::max)
    }
}

fn distance(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (f64::from(*a) - f64::from(*b)).powi(2)).sum::<f64>().sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Time;
    use crate::model::{LstepConfig, Model, StreamInfo};
    use proptest::prelude::{prop, prop_assert, proptest};

    fn model(width: usize, snapshots: usize) -> Lstep {
        let config = LstepConfig { position_width: width, snapshots, ..LstepConfig::default() };
        Lstep::new(config, 3).expect("allowed settings")
    }

    fn begin(model: &Lstep) -> LstepState {
        let info = StreamInfo::new(2, (Time::ZERO, Time::ZERO));
        model.begin(&info).encoder
    }

    #[test]
    fn the_bound_of_a_filter_of_ones_is_counted_by_hand() {
        let mut model = model(1, 4);
        let [real, imaginary] = model.encoder().weights.filter;
        model.parameters_mut().values_mut(real).fill(1.0);
        model.parameters_mut().values_mut(imaginary).fill(0.0);
        let sum = model.encoder().weights.position_sum;
        model.parameters_mut().values_mut(sum).copy_from_slice(&[0.5, -0.25, 0.25, 1.0]);
        let bound = FilterBound::of(&model);
        // Eigenvalues of the ring of four: 0, 2, 4, 2. As printed: 1, 2, 3, 2.
        assert!((bound.filter_sum - 8.0).abs() < 1e-9, "{bound:?}");
        assert!((bound.filter_sum_as_printed - 8.0).abs() < 1e-9, "{bound:?}");
        assert_eq!(bound.weight_sum, 2.0);
        assert!((bound.epsilon(0.5) - 8.0 * 6.0 * 2.0 * 0.5).abs() < 1e-9);
        // A filter of ones leaves the weighted sum alone.
        for (reach, weight) in bound.reach.iter().zip([0.5, 0.25, 0.25, 1.0]) {
            assert!((reach - weight).abs() < 1e-6, "{bound:?}");
        }
    }

    proptest! {
        #[test]
        fn no_move_is_larger_than_the_direct_bound(
            steps in prop::collection::vec(prop::option::of(prop::array::uniform3(-2.0f32..2.0)), 2..14),
            snapshots in 1usize..6,
        ) {
            let model = model(3, snapshots);
            let bound = FilterBound::of(&model);
            let mut state = begin(&model);
            for change in &steps {
                let before = state.clone();
                match change {
                    Some(vector) => state.positions.push_snapshot(&[NodeId(1)], vector),
                    None => state.positions.push_snapshot(&[], &[]),
                }
                let movement = bound.movements(&model, &before, &state, &[NodeId(1)]).next().expect("one node");
                prop_assert!(movement.moved <= movement.direct + 1e-4, "{movement:?}");
            }
        }
    }

    #[test]
    fn a_node_that_never_moves_has_a_direct_bound_of_zero() {
        let model = model(2, 3);
        let bound = FilterBound::of(&model);
        let mut state = begin(&model);
        (0..4).for_each(|_| state.positions.push_snapshot(&[NodeId(1)], &[1.0, 1.0]));
        let before = state.clone();
        state.positions.push_snapshot(&[], &[]);
        let movement =
            bound.movements(&model, &before, &state, &[NodeId(1)]).next().expect("one node");
        assert_eq!(movement.direct, 0.0);
        assert!(movement.moved < 1e-5 && movement.bound > 0.0, "{movement:?}");
    }
}
