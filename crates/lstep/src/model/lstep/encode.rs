//! The equations on the tape: positions and encodings. The link predictor is the head, `mlp.rs`.
//!
//! Each distinct seed is encoded once. Sums over the K recent events come before the layers they
//! could also come after: (H W1)^T w = W1^T (H^T w), one product instead of K. A feature table that
//! is absent has width zero, and the columns of the weights that would meet it are left out of the
//! product.

use super::LstepState;
use super::config::{LstepConfig, Variant};
use super::digest::{Columns, Digested, feature_width};
use super::fold::Parts;
use super::gather::Gathered;
use super::parameters::{PositionIn, Weights};
use super::position::{Positions, Run};
use crate::event::NodeId;
use crate::graph::Past;
use crate::model::encoder::edge_features;
use std::sync::Arc;

use lstep_tensor::{Activation, Indices, Runs, Segments, Tape, Times, Var, Weighting};

/// Lists of a call on the tape, used by several equations.
struct Lists {
    own: Indices,
    offsets: Indices,
    slots: Indices,
    partners: Indices,
    ages: Times,
    frequencies: Times,
}

/// What a call encodes.
pub struct EncodedSeeds {
    /// p~, [nodes, d_P] of all nodes gathered, or [seeds, d_P]; absent without positions.
    pub approximate: Option<Var>,
    /// Whether the rows of `approximate` are those of seeds.
    pub by_seed: bool,
    /// h of Eq. temporal_rep, [seeds, d_N]; or the inputs of the linear layers that lead to it.
    pub hidden: Var,
}

/// The encoder's equations: settings and weights.
#[derive(Clone, Copy)]
pub struct Equations<'a> {
    pub config: &'a LstepConfig,
    pub weights: &'a Weights,
    /// Of the values of the weights.
    pub version: u64,
    /// Whether the last linear layers are left to the head.
    pub fold: bool,
}

impl Equations<'_> {
    /// Eqs. transform_pe and approx_pe for all nodes gathered: [nodes, d_P]. What is known since
    /// the last snapshot is not computed again, unless gradients are wanted.
    pub fn approximate<'t>(
        &self,
        tape: &mut Tape<'t>,
        gathered: &Gathered,
        state: &'t LstepState,
        runs: &mut Vec<Run>,
    ) -> Var {
        let width = self.config.position_width;
        let (stamp, nodes) = ((self.version, 0), &gathered.nodes);
        let keep = |tape: &Tape<'_>, nodes: &[NodeId], filtered: Var| {
            let rows = tape.value(filtered);
            let values = nodes.iter().zip(rows.iter_rows());
            state
                .approximations
                .insert(stamp, values.map(|(&node, row)| (node, Arc::from(row), 1)));
        };
        if tape.is_training() {
            let filtered = self.filter(tape, nodes, &state.positions, runs);
            keep(tape, nodes, filtered);
            return filtered;
        }
        let mut known = state.approximations.get(stamp, nodes.iter().copied());
        let unknown: Vec<NodeId> = nodes
            .iter()
            .zip(&known)
            .filter(|(_, known)| known.is_none())
            .map(|(&node, _)| node)
            .collect();
        if !unknown.is_empty() {
            let filtered = self.filter(tape, &unknown, &state.positions, runs);
            keep(tape, &unknown, filtered);
            if unknown.len() == nodes.len() {
                return filtered;
            }
            let missing = known.iter_mut().filter(|known| known.is_none());
            for (known, row) in missing.zip(tape.value(filtered).iter_rows()) {
                *known = Some(Arc::from(row));
            }
        }
        tape.input(nodes.len(), width, |rows| {
            for (row, known) in rows.chunks_exact_mut(width).zip(&known) {
                row.copy_from_slice(known.as_ref().expect("known or computed"));
            }
        })
    }

    /// p~_d = sum over slots j of g[j, d] p_d[j], with the kernel g folded from the filter, both
    /// transforms and the weighted sum: [nodes, d_P].
    pub fn filter<'t>(
        &self,
        tape: &mut Tape<'t>,
        nodes: &[NodeId],
        positions: &'t Positions,
        runs: &mut Vec<Run>,
    ) -> Var {
        let kernel = self.kernel(tape);
        runs.clear();
        let mut ends = Vec::with_capacity(nodes.len() + 1);
        ends.push(0u32);
        for &node in nodes {
            positions.runs(node, runs);
            ends.push(runs.len() as u32);
        }
        let table = tape.borrow(positions.vectors(), self.config.position_width);
        let runs = Runs {
            offsets: tape.indices(ends),
            runs: tape.indices(runs.as_flattened().iter().copied()),
        };
        tape.run_kernel(kernel, table, runs)
    }

    /// The kernel g: [L, d_P].
    pub fn kernel(&self, tape: &mut Tape<'_>) -> Var {
        let [re, im] = self.weights.filter.map(|id| tape.parameter(id));
        let sum = tape.parameter(self.weights.position_sum);
        tape.fold_filter(re, im, sum)
    }

    /// Eqs. agg_neighbor_pe and pe (and pe_updated, which has the same layers): h_P = p~ +
    /// tanh(W_self p~ + W2 relu(W1 q)), q the sum over recent events of [f_T(age) | p~ of the other
    /// node]; see `attention.rs` for attention instead. [seeds, d_P].
    pub fn updated(&self, tape: &mut Tape<'_>, gathered: &Gathered, approximate: Var) -> Var {
        let lists = self.lists(tape, gathered);
        let q = tape.zeros(gathered.seeds(), self.config.time_width + self.config.position_width);
        let times = tape.columns(q, 0..self.config.time_width);
        tape.time_sum_into(times, lists.ages, lists.offsets, lists.frequencies, Weighting::Sum);
        self.position(tape, gathered, &lists, q, approximate)
    }

    /// All equations of the encoder, up to Eq. temporal_rep.
    pub fn encode<'t>(
        &self,
        tape: &mut Tape<'t>,
        past: Past<'t>,
        gathered: &Gathered,
        state: &'t LstepState,
        runs: &mut Vec<Run>,
    ) -> EncodedSeeds {
        let approximate = (self.config.variant != Variant::NoPosition)
            .then(|| self.approximate(tape, gathered, state, runs));
        self.encode_at(tape, past, gathered, approximate)
    }

    /// The same for given approximate positions of all nodes gathered.
    pub fn encode_at<'t>(
        &self,
        tape: &mut Tape<'t>,
        past: Past<'t>,
        gathered: &Gathered,
        approximate: Option<Var>,
    ) -> EncodedSeeds {
        let (d_t, d_p) = (self.config.time_width, self.config.position_width);
        let seeds = gathered.seeds();
        let lists = self.lists(tape, gathered);
        let edge_width = feature_width(self.config, past);
        let q = tape.zeros(seeds, d_t + d_p);
        let s = tape.zeros(seeds, d_t + edge_width);
        let (q_times, s_times) = (tape.columns(q, 0..d_t), tape.columns(s, 0..d_t));
        let link_sum = tape.parameter(self.weights.link_sum);
        tape.time_sums_into(
            q_times,
            s_times,
            lists.ages,
            lists.offsets,
            lists.frequencies,
            link_sum,
            Some(lists.slots),
        );

        if edge_width > 0 {
            let (table, rows) =
                edge_features(tape, past, &gathered.recent).expect("the stream has features");
            let features = tape.columns(s, d_t..d_t + edge_width);
            let weighting = Weighting::By { weights: link_sum, slots: Some(lists.slots) };
            tape.segment_sum_into(
                features,
                table,
                Segments { rows: Some(rows), offsets: lists.offsets },
                weighting,
            );
        }
        let position =
            approximate.map(|approximate| self.position(tape, gathered, &lists, q, approximate));
        let hidden = self.hidden(tape, past, gathered, s, position);
        EncodedSeeds { approximate, by_seed: false, hidden }
    }

    /// The same from digests of the seeds, which are all that is gathered.
    pub fn encode_digests<'t>(
        &self,
        tape: &mut Tape<'t>,
        past: Past<'t>,
        gathered: &Gathered,
        digested: &Digested,
    ) -> EncodedSeeds {
        let features = feature_width(self.config, past);
        let Columns { q, s, own } = Columns::new(self.config, features);
        let all = tape
            .input(gathered.seeds(), own.end, |rows| digested.fill(self.config, features, rows));
        let [q, s, own] = [q, s, own].map(|columns| tape.columns(all, columns));
        let own = (self.config.variant != Variant::NoPosition).then_some(own);
        let position = own.map(|own| match self.weights.position_in {
            PositionIn::Mlp(layer) => {
                let inner = layer.apply(tape, q, Activation::Relu);
                self.moved(tape, own, inner)
            }
            PositionIn::Attention(_) => unreachable!("attention goes over the events"),
        });
        let hidden = self.hidden(tape, past, gathered, s, position);
        EncodedSeeds { approximate: own, by_seed: true, hidden }
    }

    /// From sums over recent events and Eq. pe to Eq. temporal_rep, or to the inputs of the linear
    /// layers before it.
    fn hidden<'t>(
        &self,
        tape: &mut Tape<'t>,
        past: Past<'t>,
        gathered: &Gathered,
        s: Var,
        position: Option<Var>,
    ) -> Var {
        let parts = self.fold.then(|| {
            let parts = Parts::new(self.config, past.node_feature_width());
            let width = parts.width();
            (parts, tape.zeros(gathered.seeds(), width))
        });
        let has_links = self.config.variant != Variant::PositionOnly;
        let links = has_links.then(|| {
            let link_sum = tape.parameter(self.weights.link_sum);
            let out =
                parts.as_ref().map(|(parts, inputs)| tape.columns(*inputs, parts.links.clone()));
            self.links(tape, s, link_sum, out)
        });
        let node_width = past.node_feature_width();
        let nodes =
            (has_links && node_width > 0).then(|| self.node(tape, past, gathered, node_width));
        match parts {
            Some((parts, inputs)) => {
                for (part, columns) in [(nodes, parts.nodes), (position, parts.positions)] {
                    if let Some(part) = part {
                        let out = tape.columns(inputs, columns);
                        tape.copy_into(out, part);
                    }
                }
                inputs
            }
            None => {
                let node_link = links.map(|links| self.node_link(tape, links, nodes));
                self.merge(tape, node_link, position)
            }
        }
    }

    /// Eq. temporal_rep, over what the variant has: [seeds, d_N].
    fn merge(&self, tape: &mut Tape<'_>, node_link: Option<Var>, position: Option<Var>) -> Var {
        let (d_n, d_p) = (self.config.node_width, self.config.position_width);
        let merge = self.weights.merge;
        let (weight, bias) = (tape.parameter(merge.weight), tape.parameter(merge.bias));
        match (node_link, position) {
            (Some(node_link), Some(position)) => {
                let both = tape.concat_columns(&[node_link, position]);
                tape.linear(both, weight, Some(bias), Activation::Identity)
            }
            (Some(node_link), None) => {
                let weight = tape.columns(weight, 0..d_n);
                tape.linear(node_link, weight, Some(bias), Activation::Identity)
            }
            (None, position) => {
                let position = position.expect("a variant has at least one of the two parts");
                let weight = tape.columns(weight, d_n..d_n + d_p);
                tape.linear(position, weight, Some(bias), Activation::Identity)
            }
        }
    }

    fn lists(&self, tape: &mut Tape<'_>, gathered: &Gathered) -> Lists {
        Lists {
            own: tape.indices(gathered.own.iter().copied()),
            offsets: tape.indices(gathered.offsets.iter().copied()),
            slots: tape.indices(gathered.slots.iter().copied()),
            partners: tape.indices(gathered.partners.iter().copied()),
            ages: tape.times(gathered.ages.iter().copied()),
            frequencies: tape.times(self.config.frequencies()),
        }
    }

    /// The rest of `q`, and Eq. pe. The time columns of `q` are filled; attention has its own way
    /// and needs no `q`.
    fn position(
        &self,
        tape: &mut Tape<'_>,
        gathered: &Gathered,
        lists: &Lists,
        q: Var,
        approximate: Var,
    ) -> Var {
        if let PositionIn::Mlp(_) = self.weights.position_in {
            let (d_t, d_p) = (self.config.time_width, self.config.position_width);
            let partners = tape.columns(q, d_t..d_t + d_p);
            let segments = Segments { rows: Some(lists.partners), offsets: lists.offsets };
            tape.segment_sum_into(partners, approximate, segments, Weighting::Sum);
        }
        let own = tape.gather(approximate, lists.own);
        let inner = match self.weights.position_in {
            PositionIn::Mlp(layer) => layer.apply(tape, q, Activation::Relu),
            PositionIn::Attention(weights) => {
                let times = (lists.ages, lists.frequencies);
                self.attend(tape, weights, gathered, times, (own, approximate))
            }
        };
        self.moved(tape, own, inner)
    }

    /// p~ + tanh(W_self p~ + W2 inner).
    fn moved(&self, tape: &mut Tape<'_>, own: Var, inner: Var) -> Var {
        let inner = self.weights.position_out.apply(tape, inner, Activation::Identity);
        let from_self = self.weights.position_self.apply(tape, own, Activation::Identity);
        let change = tape.add(from_self, inner);
        let change = tape.tanh(change);
        tape.add(own, change)
    }

    /// The inside of Eq. link_encoding_1, [seeds, d_T + d_E], written into `out` if there is one.
    /// `s` is the sum of the K rows weighted by W_link^sum.
    fn links(&self, tape: &mut Tape<'_>, s: Var, link_sum: Var, out: Option<Var>) -> Var {
        // The bias of the first layer is added to each of the K rows, padded ones too, and so to
        // the sum sum(w) times.
        let (weight, bias) = (
            tape.parameter(self.weights.link_in.weight),
            tape.parameter(self.weights.link_in.bias),
        );
        let used = tape.shape(s).1;
        let weight = tape.columns(weight, 0..used);
        let total = tape.sum(link_sum);
        let bias = tape.matmul(total, bias);
        match out {
            Some(out) => {
                tape.linear_into(out, s, weight, Some(bias), Activation::Relu);
                out
            }
            None => tape.linear(s, weight, Some(bias), Activation::Relu),
        }
    }

    /// The outside of Eq. link_encoding_1, and Eq. node-link-encoding: [seeds, d_N].
    fn node_link(&self, tape: &mut Tape<'_>, links: Var, nodes: Option<Var>) -> Var {
        let (d_n, width) =
            (self.config.node_width, self.config.time_width + self.config.edge_width);
        let link = self.weights.link_out.apply(tape, links, Activation::Identity);
        let layer = self.weights.node_link;
        let (weight, bias) = (tape.parameter(layer.weight), tape.parameter(layer.bias));
        let of_link = tape.columns(weight, d_n..d_n + width);
        let from_link = tape.linear(link, of_link, Some(bias), Activation::Identity);
        let Some(nodes) = nodes else {
            return from_link;
        };
        let of_node = tape.columns(weight, 0..tape.shape(nodes).1);
        let from_node = tape.linear(nodes, of_node, None, Activation::Identity);
        tape.add(from_link, from_node)
    }

    /// Eq. node_encoding: x_u + the mean of x over the neighbours in [t - t_gap, t). A node without
    /// a row counts as zeros.
    fn node(&self, tape: &mut Tape<'_>, past: Past<'_>, gathered: &Gathered, width: usize) -> Var {
        let row = |node: u32| past.node_features(NodeId(node));
        tape.input(gathered.seeds(), width, |values| {
            for (seed, sum) in values.chunks_mut(width).enumerate() {
                let span = gathered.window_offsets[seed] as usize
                    ..gathered.window_offsets[seed + 1] as usize;
                let share = 1.0 / span.len().max(1) as f32;
                for &neighbour in &gathered.window[span] {
                    sum.iter_mut().zip(row(neighbour)).for_each(|(sum, x)| *sum += share * x);
                }
                let own = gathered.nodes[gathered.own[seed] as usize].0;
                sum.iter_mut().zip(row(own)).for_each(|(sum, x)| *sum += x);
            }
        })
    }
}
