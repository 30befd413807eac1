//! The equations on the tape: positions, encodings, link predictor.
//!
//! Each distinct seed is encoded once. Sums over the K recent events come before the layers they could also come after:
//! (H W1)^T w = W1^T (H^T w), one product instead of K. A feature table that is absent has width zero, and the columns of the
//! weights that would meet it are left out of the product.

use super::LstepState;
use super::config::{LstepConfig, Variant};
use super::gather::Gathered;
use super::pairs::{Pairs, Role};
use super::parameters::{Layer, PositionIn, Weights};
use super::position::{Positions, Run};
use crate::event::NodeId;
use crate::graph::Past;
use lstep_tensor::{Activation, Indices, Pair, Runs, Segments, Tape, Times, Var, Weighting};

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
pub struct Encoded {
    /// p~ of all nodes gathered, [nodes, d_P]; absent without positions.
    pub approximate: Option<Var>,
    /// h of all seeds gathered, [seeds, d_N].
    pub hidden: Var,
}

/// The encoder: settings, weights, and where the features are.
#[derive(Clone, Copy)]
pub struct Encoder<'a> {
    pub config: &'a LstepConfig,
    pub weights: &'a Weights,
    /// Of the values of the weights.
    pub version: u64,
}

impl<'a> Encoder<'a> {
    /// Eqs. transform_pe and approx_pe for all nodes gathered: [nodes, d_P]. What is known since the last snapshot is not computed
    /// again, unless gradients are wanted.
    pub fn approximate<'t>(
        &self,
        tape: &mut Tape<'t>,
        gathered: &Gathered,
        state: &'t LstepState,
        runs: &mut Vec<Run>,
    ) -> Var {
        let (width, memory) = (self.config.position_width, &state.approximations);
        let unknown = if tape.is_training() { &gathered.nodes } else { &memory.unknown(self.version, &gathered.nodes) };
        if !unknown.is_empty() {
            let filtered = self.filter(tape, unknown, &state.positions, runs);
            memory.keep(self.version, width, unknown.iter().copied().zip(tape.value(filtered).iter_rows()));
            if unknown.len() == gathered.nodes.len() {
                return filtered;
            }
        }
        let mut complete = false;
        let known = tape.input(gathered.nodes.len(), width, |rows| {
            complete = memory.recall(self.version, width, &gathered.nodes, rows);
        });
        if complete { known } else { self.filter(tape, &gathered.nodes, &state.positions, runs) }
    }

    /// p~_d = sum over slots j of g[j, d] p_d[j], with the kernel g folded from the filter, both transforms and the weighted sum:
    /// [nodes, d_P].
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
        let runs = Runs { offsets: tape.indices(ends), runs: tape.indices(runs.as_flattened().iter().copied()) };
        tape.run_kernel(kernel, table, runs)
    }

    /// The kernel g: [L, d_P].
    pub fn kernel(&self, tape: &mut Tape<'_>) -> Var {
        let [re, im] = self.weights.filter.map(|id| tape.parameter(id));
        let sum = tape.parameter(self.weights.position_sum);
        tape.fold_filter(re, im, sum)
    }

    /// Eqs. agg_neighbor_pe and pe (and pe_updated, which has the same layers): h_P = p~ + tanh(W_self p~ + W2 relu(W1 q)), q the
    /// sum over recent events of [f_T(age) | p~ of the other node]; see `attention.rs` for attention instead. [seeds, d_P].
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
    ) -> Encoded {
        let approximate =
            (self.config.variant != Variant::NoPosition).then(|| self.approximate(tape, gathered, state, runs));
        self.encode_at(tape, past, gathered, approximate)
    }

    /// The same for given approximate positions of all nodes gathered.
    pub fn encode_at<'t>(
        &self,
        tape: &mut Tape<'t>,
        past: Past<'t>,
        gathered: &Gathered,
        approximate: Option<Var>,
    ) -> Encoded {
        let (d_t, d_n, d_p) = (self.config.time_width, self.config.node_width, self.config.position_width);
        let seeds = gathered.seeds();
        let lists = self.lists(tape, gathered);
        let edge_table = past.event_feature_table();
        let edge_width = past.event_feature_width();
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

        let merge = self.weights.merge;
        let (merge_weight, merge_bias) = (tape.parameter(merge.weight), tape.parameter(merge.bias));
        let node_link = (self.config.variant != Variant::PositionOnly).then(|| {
            if edge_width > 0 {
                let table = tape.borrow(edge_table, edge_width);
                let features = tape.columns(s, d_t..d_t + edge_width);
                let rows = tape.indices(gathered.events.iter().copied());
                let weighting = Weighting::By { weights: link_sum, slots: Some(lists.slots) };
                tape.segment_sum_into(
                    features,
                    table,
                    Segments { rows: Some(rows), offsets: lists.offsets },
                    weighting,
                );
            }
            self.node_link(tape, past, gathered, s, link_sum)
        });
        let position = approximate.map(|approximate| self.position(tape, gathered, &lists, q, approximate));

        // Eq. temporal_rep, over what the variant has.
        let hidden = match (node_link, position) {
            (Some(node_link), Some(position)) => {
                let both = tape.concat_columns(&[node_link, position]);
                tape.linear(both, merge_weight, Some(merge_bias), Activation::Identity)
            }
            (Some(node_link), None) => {
                let weight = tape.columns(merge_weight, 0..d_n);
                tape.linear(node_link, weight, Some(merge_bias), Activation::Identity)
            }
            (None, position) => {
                let position = position.expect("a variant has at least one of the two parts");
                let weight = tape.columns(merge_weight, d_n..d_n + d_p);
                tape.linear(position, weight, Some(merge_bias), Activation::Identity)
            }
        };
        Encoded { approximate, hidden }
    }

    /// Eq. link_prediction before the sigmoid: [pairs, 1]. What is told about the pair joins the hidden layer as a further summand.
    pub fn predict(
        &self,
        tape: &mut Tape<'_>,
        (past, gathered, state): (Past<'_>, &Gathered, &LstepState),
        encoded: &Encoded,
        pairs: &Pairs,
    ) -> Var {
        let hidden = encoded.hidden;
        let d_n = self.config.node_width;
        let layer = self.weights.predict_in;
        let (weight, bias) = (tape.parameter(layer.weight), tape.parameter(layer.bias));
        // The layer of a concatenation is a sum of two layers, each made once for a seed in that role.
        let mut side = |role: &Role, columns| {
            let weight = tape.columns(weight, columns);
            let seeds = tape.indices(role.seeds.iter().copied());
            let hidden = tape.gather(hidden, seeds);
            let inner = tape.linear(hidden, weight, None, Activation::Identity);
            (inner, tape.indices(role.rows.iter().copied()))
        };
        let (u, u_rows) = side(&pairs.sources, 0..d_n);
        let (v, v_rows) = side(&pairs.candidates, d_n..2 * d_n);
        let inner = match (self.weights.pair, &self.config.pair, &state.pairs) {
            (Some(weights), Some(config), Some(memory)) => {
                let mut inner = tape.gather_pair(Pair { u, u_rows, v, v_rows }, Some(bias), Activation::Identity);
                if let Some(signals) = weights.signals {
                    let told =
                        tape.input(pairs.asked.len(), config.width(), |rows| memory.fill(past, &pairs.asked, rows));
                    let read = self.layer(tape, signals.first, told, Activation::Relu);
                    let read = self.layer(tape, signals.second, read, Activation::Relu);
                    let read = tape.dropout(read, config.dropout as f32);
                    let out = tape.parameter(signals.out);
                    let of_signals = tape.linear(read, out, None, Activation::Identity);
                    inner = tape.add(inner, of_signals);
                }
                if let (Some(weight), Some(approximate)) = (weights.positions, encoded.approximate) {
                    let mut side = |role: &Role| {
                        let own = role.rows.iter().map(|&row| gathered.own[role.seeds[row as usize] as usize]);
                        let own = tape.indices(own);
                        tape.gather(approximate, own)
                    };
                    let (u, v) = (side(&pairs.sources), side(&pairs.candidates));
                    let product = tape.mul(u, v);
                    let weight = tape.parameter(weight);
                    let of_positions = tape.linear(product, weight, None, Activation::Identity);
                    inner = tape.add(inner, of_positions);
                }
                tape.apply(inner, Activation::Relu)
            }
            _ => tape.gather_pair(Pair { u, u_rows, v, v_rows }, Some(bias), Activation::Relu),
        };
        self.layer(tape, self.weights.predict_out, inner, Activation::Identity)
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

    /// The rest of `q`, and Eq. pe. The time columns of `q` are filled; attention has its own way and needs no `q`.
    fn position(&self, tape: &mut Tape<'_>, gathered: &Gathered, lists: &Lists, q: Var, approximate: Var) -> Var {
        if let PositionIn::Mlp(_) = self.weights.position_in {
            let (d_t, d_p) = (self.config.time_width, self.config.position_width);
            let partners = tape.columns(q, d_t..d_t + d_p);
            let segments = Segments { rows: Some(lists.partners), offsets: lists.offsets };
            tape.segment_sum_into(partners, approximate, segments, Weighting::Sum);
        }
        let own = tape.gather(approximate, lists.own);
        let inner = match self.weights.position_in {
            PositionIn::Mlp(layer) => self.layer(tape, layer, q, Activation::Relu),
            PositionIn::Attention(weights) => {
                let times = (lists.ages, lists.frequencies);
                self.attend(tape, weights, gathered, times, (own, approximate))
            }
        };
        let inner = self.layer(tape, self.weights.position_out, inner, Activation::Identity);
        let from_self = self.layer(tape, self.weights.position_self, own, Activation::Identity);
        let change = tape.add(from_self, inner);
        let change = tape.tanh(change);
        tape.add(own, change)
    }

    /// Eqs. node_encoding, link_encoding_1 and node-link-encoding. `s` is the sum of the K rows weighted by W_link^sum.
    fn node_link(&self, tape: &mut Tape<'_>, past: Past<'_>, gathered: &Gathered, s: Var, link_sum: Var) -> Var {
        let (d_n, width) = (self.config.node_width, self.config.time_width + self.config.edge_width);
        // The bias of the first layer is added to each of the K rows, padded ones too, and so to the sum sum(w) times.
        let (weight, bias) = (tape.parameter(self.weights.link_in.weight), tape.parameter(self.weights.link_in.bias));
        let used = tape.shape(s).1;
        let weight = tape.columns(weight, 0..used);
        let total = tape.sum(link_sum);
        let bias = tape.matmul(total, bias);
        let inner = tape.linear(s, weight, Some(bias), Activation::Relu);
        let link = self.layer(tape, self.weights.link_out, inner, Activation::Identity);

        let layer = self.weights.node_link;
        let (weight, bias) = (tape.parameter(layer.weight), tape.parameter(layer.bias));
        let of_link = tape.columns(weight, d_n..d_n + width);
        let node_width = past.node_feature_width();
        if node_width == 0 {
            return tape.linear(link, of_link, Some(bias), Activation::Identity);
        }
        let node = self.node(tape, past, gathered, node_width);
        let of_node = tape.columns(weight, 0..node_width);
        let from_link = tape.linear(link, of_link, Some(bias), Activation::Identity);
        let from_node = tape.linear(node, of_node, None, Activation::Identity);
        tape.add(from_link, from_node)
    }

    /// Eq. node_encoding: x_u + the mean of x over the neighbours in [t - t_gap, t). A node without a row counts as zeros.
    fn node(&self, tape: &mut Tape<'_>, past: Past<'_>, gathered: &Gathered, width: usize) -> Var {
        let row = |node: u32| past.node_features(NodeId(node));
        tape.input(gathered.seeds(), width, |values| {
            for (seed, sum) in values.chunks_mut(width).enumerate() {
                let span = gathered.window_offsets[seed] as usize..gathered.window_offsets[seed + 1] as usize;
                let share = 1.0 / span.len().max(1) as f32;
                for &neighbour in &gathered.window[span] {
                    sum.iter_mut().zip(row(neighbour)).for_each(|(sum, x)| *sum += share * x);
                }
                let own = gathered.nodes[gathered.own[seed] as usize].0;
                sum.iter_mut().zip(row(own)).for_each(|(sum, x)| *sum += x);
            }
        })
    }

    pub(super) fn layer(&self, tape: &mut Tape<'_>, layer: Layer, x: Var, activation: Activation) -> Var {
        let (weight, bias) = (tape.parameter(layer.weight), tape.parameter(layer.bias));
        tape.linear(x, weight, Some(bias), activation)
    }
}
