//! CTAN: a node's memory is its last encoding, which follows a differential equation on the graph.
//!
//! Gravina, Lovisotto, Gallicchio, Bacciu and Grohnfeldt, "Long Range Propagation on
//! Continuous-Time Dynamic Graphs", ICML 2024,
//! <https://proceedings.mlr.press/v235/gravina24a.html>. No graph is asked: every node remembers
//! its K newest events as the last step left them. A node i has a memory m_i [d], zeros before its
//! first event, and features v_i. Its encoding is k Euler steps away:
//!
//! ```text
//! x_i <- W m_i + F v_i + b                                            [d]
//! x_i <- x_i + epsilon tanh((A - A^T - gamma I) x_i + c + Phi_i)      k times
//! ```
//!
//! where Phi_i is a [`TransformerConv`] of one head, without a root term, of x_i and over the
//! events j of i's list, of which it sees [x_j | f_T(D_j) | e_j]: the other node's vector of the
//! same step, the event's features, and how long before the other node's newest event it was. D
//! counts in deviations of the time between events of a node in training, from its mean. So an
//! encoding sees k hops, and the time of the question does not enter. The logit is the field's
//! [`Predictor`](crate::nn::Predictor). An observation writes the encodings of its nodes into their
//! memories, as they are before the step, and only then puts the step on their lists. What is
//! stored carries no gradient.
//!
//! While scoring, what the predictor's first layer makes of an encoding is kept by node until the
//! next step: a pair costs a few sums of the layer's width.
//!
//! Where the released code differs: it has a bias of keys in Phi, which softmax does not see, and a
//! bias for each node of a pair in the predictor, of which only the sum counts. An edge's features
//! stand before its time. A tanh behind the last step was part of its authors' search, as were
//! widths, steps and damping; it is left out. They let the learning rate fall when validation no
//! longer improves, and add the mean losses of true pairs and of others; here it stays, and all
//! pairs are averaged.

mod config;
mod kind;

pub use config::CtanConfig;
pub use kind::CtanKind;

use super::cache::NodeCache;
use super::encoder::{
    Chunk, Encoded, FirstLayer, ForwardContext, Mode, NodeEncoder, ObserveScratch, Sides,
};
use super::memory::NodePlaces;
use super::mlp::{Mlp, added_to};
use super::newest::{ListBlocks, NewestLists};
use super::scratch::FeatureWidths;
use super::silence::Moments;
use super::{Composite, StreamInfo, feature_rows};
use crate::checkpoint::Checkpoint;
use crate::error::{Error, Result};
use crate::event::{Event, NodeId};
use crate::graph::{Past, Revealed, Seed};
use crate::nn::{ConvWidths, Linear, TimeEncoder, TransformerConv};
use lstep_tensor::{Activation, Init, ParameterId, Parameters, Tape, Var};
use std::sync::Arc;

/// Numbers that scoring keeps at most: 64 MB.
const MOST: usize = 16 << 20;

/// CTAN.
pub type Ctan = Composite<CtanEncoder, Mlp>;

impl Ctan {
    /// A model with weights drawn from a seed.
    pub fn new(config: CtanConfig, seed: u64) -> Result<Ctan> {
        Composite::build(seed, |parameters| {
            config.check()?;
            let width = config.node_width;
            let encoder = CtanEncoder::add(parameters, config);
            Ok((encoder, Mlp::add(parameters, width).by_role()))
        })
    }
}

/// The encoder: Euler steps from memories.
#[derive(Debug, Clone)]
pub struct CtanEncoder {
    config: CtanConfig,
    time: TimeEncoder,
    /// W and b.
    input: Linear,
    /// F.
    features: ParameterId,
    /// A and c.
    antisymmetric: Linear,
    conv: TransformerConv,
}

/// Memories and lists.
#[derive(Debug, Clone)]
pub struct CtanState {
    lists: NewestLists,
    /// [rows, d].
    memories: Vec<f32>,
    /// Of the time between two events of a node.
    silence: Moments,
    /// What the predictor's first layer makes of nodes.
    kept: NodeCache<NodeId, Arc<[f32]>>,
}

/// Lists of a call.
#[derive(Debug, Default)]
pub struct Lists {
    asked: NodePlaces,
    nodes: NodePlaces,
    blocks: ListBlocks,
}

impl CtanState {
    fn new(config: &CtanConfig, info: &StreamInfo) -> CtanState {
        CtanState {
            lists: NewestLists::new(config.recent),
            memories: Vec::new(),
            silence: info.silence.either,
            kept: NodeCache::new(MOST),
        }
    }
}

impl CtanEncoder {
    fn add(parameters: &mut Parameters, config: CtanConfig) -> CtanEncoder {
        let CtanConfig { time_width, node_width: width, edge_width, .. } = config;
        let time = TimeEncoder::add_as_linear(parameters, time_width);
        let input = Linear::add(parameters, "input", width, width);
        let init = Init::Linear { inputs: width };
        let features = parameters.add("features.weight", width, width, init);
        // As PyTorch Geometric's AntiSymmetricConv starts.
        let antisymmetric = Linear {
            weight: parameters.add("antisymmetric.weight", width, width, init),
            bias: parameters.add("antisymmetric.bias", 1, width, Init::Zeros),
        };
        let edge = time_width + edge_width;
        let widths = ConvWidths { node: width, edge, out: width, heads: 1, root: false };
        let conv = TransformerConv::add(parameters, "conv", widths);
        CtanEncoder { config, time, input, features, antisymmetric, conv }
    }

    /// The first x of nodes, [nodes, d].
    fn start<'t>(
        &self,
        tape: &mut Tape<'t>,
        past: Past<'t>,
        state: &CtanState,
        nodes: &[NodeId],
    ) -> Var {
        let width = self.config.node_width;
        let memory = |&node: &NodeId| match state.lists.nodes().row(node) {
            Some(row) => &state.memories[row as usize * width..][..width],
            None => &[],
        };
        let memories = feature_rows::feature_rows(tape, width, nodes.iter().map(memory));
        let vectors = self.input.apply(tape, memories, Activation::Identity);
        let feature_width = past.node_feature_width();
        if feature_width == 0 {
            return vectors;
        }
        let each = nodes.iter().map(|&node| Some(node));
        let features = feature_rows::node_features(tape, past, feature_width, each);
        let weight = tape.parameter(self.features);
        let weight = tape.columns(weight, 0..feature_width);
        tape.layer(features, weight, None, added_to(vectors))
    }

    /// A - A^T - gamma I.
    fn drift(&self, tape: &mut Tape<'_>) -> Var {
        let width = self.config.node_width;
        let weight = tape.parameter(self.antisymmetric.weight);
        let transposed = tape.transpose_blocks(weight, width);
        let weight = tape.sub(weight, transposed);
        let damping = tape.input(width, width, |values| {
            let diagonal = values.iter_mut().step_by(width + 1);
            diagonal.for_each(|value| *value = self.config.gamma as f32);
        });
        tape.sub(weight, damping)
    }

    /// The encodings of distinct nodes, [nodes, d].
    fn encodings<'t>(
        &self,
        tape: &mut Tape<'t>,
        past: Past<'t>,
        state: &CtanState,
        asked: &[NodeId],
        nodes: &mut NodePlaces,
        blocks: &mut ListBlocks,
    ) -> Var {
        nodes.clear();
        asked.iter().for_each(|&node| {
            nodes.place(node);
        });
        // The nodes of each hop follow those of the hops before: every step makes the vectors of
        // fewer of them, the last those of the nodes that are asked.
        let known = state.lists.nodes();
        let mut counts = vec![asked.len()];
        for hop in 0..self.config.iterations {
            let seen = nodes.items().len();
            let begin = if hop == 0 { 0 } else { counts[hop - 1] };
            for place in begin..seen {
                let Some(row) = known.row(nodes.items()[place]) else { continue };
                for meeting in state.lists.of(row) {
                    nodes.place(known.node(meeting.other));
                }
            }
            counts.push(nodes.items().len());
        }
        let looking = counts[self.config.iterations - 1];
        let rows: Vec<Option<u32>> =
            nodes.items()[..looking].iter().map(|&node| known.row(node)).collect();
        blocks.fill(&state.lists, &rows, |row| {
            nodes.find(known.node(row)).expect("it was placed as a neighbour")
        });
        let edges = blocks.edges(tape, self.time, |gap| state.silence.standardised(gap));
        let drift = self.drift(tape);
        let bias = tape.parameter(self.antisymmetric.bias);
        let mut vectors = self.start(tape, past, state, nodes.items());
        for &count in counts[..self.config.iterations].iter().rev() {
            let around = blocks.around(tape, vectors, count, edges);
            let seen = self.conv.apply(tape, around, 0.0);
            let own = tape.rows(vectors, 0..count);
            let change = tape.layer(own, drift, Some(bias), added_to(seen));
            let change = tape.tanh(change);
            let change = tape.scale(change, self.config.epsilon as f32);
            vectors = tape.add(own, change);
        }
        vectors
    }

    /// What the head's first layer makes of distinct nodes, from what is kept of them where it is.
    fn sides<'t>(
        &self,
        context: &mut ForwardContext<'_, 't>,
        state: &CtanState,
        layer: &'t FirstLayer,
        Lists { asked, nodes, blocks }: &mut Lists,
    ) -> [Var; 2] {
        let stamp = (context.parameters.version(), context.past.log_identity());
        let (tape, past, width) = (&mut *context.tape, context.past, layer.bias.len());
        let kept = state.kept.get_or_make(stamp, asked.items(), |missing| {
            let vectors = self.encodings(tape, past, state, missing, nodes, blocks);
            let roles = [&layer.source, &layer.candidate].map(|weight| {
                let weight = tape.borrow(weight, layer.inputs);
                tape.linear(vectors, weight, None, Activation::Identity)
            });
            let both = tape.concat_columns(&roles);
            tape.value(both).iter_rows().map(|row| (Arc::from(row), 2 * width)).collect()
        });
        [0, width].map(|first| {
            let rows = kept.iter().map(|kept| &kept[first..first + width]);
            feature_rows::feature_rows(tape, width, rows)
        })
    }
}

impl NodeEncoder for CtanEncoder {
    type State = CtanState;
    type Scratch = Lists;
    type Ahead = Vec<f32>;

    fn feature_widths(&self) -> FeatureWidths {
        FeatureWidths { node: self.config.node_width, edge: self.config.edge_width }
    }

    fn chunk(&self, mode: Mode) -> Chunk {
        match mode {
            Mode::Train => Chunk { seeds: usize::MAX, pairs: 100 },
            Mode::Score => Chunk { seeds: 512, pairs: 4_096 },
        }
    }

    fn init(&self, info: &StreamInfo) -> CtanState {
        CtanState::new(&self.config, info)
    }

    fn encode<'t>(
        &'t self,
        context: &mut ForwardContext<'_, 't>,
        state: &'t CtanState,
        seeds: &[Seed],
        lists: &mut Lists,
    ) -> Encoded {
        lists.asked.clear();
        let rows: Vec<u32> = seeds.iter().map(|seed| lists.asked.place(seed.node())).collect();
        if let Some(layer) = context.first_layer() {
            let [source, candidate] = self.sides(context, state, layer, lists);
            let sides = Sides { source, candidate, rows: Some(rows) };
            return Encoded { sides: Some(sides), ..Encoded::default() };
        }
        let (tape, past) = (&mut *context.tape, context.past);
        let Lists { asked, nodes, blocks } = lists;
        let vectors = self.encodings(tape, past, state, asked.items(), nodes, blocks);
        let rows = tape.indices(rows);
        Encoded { hidden: Some(tape.gather(vectors, rows)), ..Encoded::default() }
    }

    fn folds(&self) -> bool {
        true
    }

    /// There is no linear layer at the end; what the head makes of an encoding is kept instead.
    fn fold(&self, tape: &mut Tape<'_>, _: Past<'_>, weight: Var) -> (Var, Var) {
        let outputs = tape.shape(weight).0;
        (weight, tape.zeros(1, outputs))
    }

    fn ahead(
        &self,
        parameters: &Parameters,
        known: Revealed<'_>,
        state: &CtanState,
        step: &[Event],
        ObserveScratch { workspace, lists, .. }: &mut ObserveScratch<Lists>,
    ) -> Vec<f32> {
        let Lists { asked, nodes, blocks } = lists;
        asked.fill_from(step);
        let mut tape = workspace.infer(parameters);
        let vectors = self.encodings(&mut tape, known.past(), state, asked.items(), nodes, blocks);
        tape.value(vectors).to_vec()
    }

    fn observe(
        &self,
        _: &Parameters,
        known: Revealed<'_>,
        state: &mut CtanState,
        step: &[Event],
        ahead: Vec<f32>,
        ObserveScratch { lists: Lists { asked, .. }, .. }: &mut ObserveScratch<Lists>,
    ) {
        asked.fill_from(step);
        let width = self.config.node_width;
        for (&node, vector) in asked.items().iter().zip(ahead.chunks(width)) {
            match state.lists.nodes().row(node) {
                Some(row) => {
                    state.memories[row as usize * width..][..width].copy_from_slice(vector);
                }
                // Lists give new nodes the next rows in the same order.
                None => state.memories.extend_from_slice(vector),
            }
        }
        state.lists.observe(known, step, |_, _, _| {});
        state.kept.clear();
    }

    fn save_state<'a>(&self, state: &'a CtanState, checkpoint: &mut Checkpoint<'a>) {
        state.lists.save(checkpoint);
        checkpoint.push_f32("state.memories", &state.memories);
    }

    fn load_state(&self, info: &StreamInfo, checkpoint: &mut Checkpoint<'_>) -> Result<CtanState> {
        let CtanConfig { node_width, edge_width, recent, .. } = self.config;
        let lists = NewestLists::load(checkpoint, recent, edge_width)?;
        let memories = checkpoint.take_f32("state.memories")?;
        let (left, right) = (memories.len(), lists.nodes().len() * node_width);
        if left != right {
            let what = "numbers of stored memories";
            return Err(Error::LengthMismatch { what, left, right });
        }
        Ok(CtanState { lists, memories, ..CtanState::new(&self.config, info) })
    }
}
