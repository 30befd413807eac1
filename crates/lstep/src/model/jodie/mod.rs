//! JODIE: a memory for each node, stretched by how long the node has been silent.
//!
//! Kumar, Zhang and Leskovec, "Predicting Dynamic Embedding Trajectory in Temporal Interaction
//! Networks", KDD 2019, <https://arxiv.org/abs/1908.01207>, in the form that DyGLib gives it and
//! with its hyper-parameters. No graph is asked. With d the width of memories, d_T of time
//! encodings and d_E of event features, an event of u and v at t leaves each a message, here u's,
//! in which m are the memories [d] as they are then and t_u is when m_u last changed:
//!
//! ```text
//! x = [m_u | m_v | f_T(t - t_u) | e],                                   2 d + d_T + d_E numbers
//! m' = tanh(W_ih x + b_ih + W_hh m_u + b_hh),                           see `memory`
//! ```
//!
//! A node that is asked about at t, and whose memory with its message applied is m' of t', counts
//! with
//!
//! ```text
//! D = (t - t' - mean) / deviation,        h = dropout(m' * (1 + w D + c)),        w and c [d]
//! ```
//!
//! where mean and deviation are those of [`Silence`] over training: between events as a source for
//! the source of a pair, as a destination for its candidate. The logit is the field's
//! [`Predictor`](crate::nn::Predictor) of h_u and h_v. Node features are not used.
//!
//! Nothing trains f_T: a message is used a step after it was made, when only its numbers are left.
//! DyGLib's does not learn either.
//!
//! While scoring, W_1 h is affine in D: W_1 (m' * (1 + c)) + D W_1 (m' * w). Both products are kept
//! by node until the next step, so a pair costs two scaled sums, a ReLU and a product of d.
//!
//! Where DyGLib differs: among the messages of one step it keeps, for a node that was source and
//! destination, the last one as destination even if it is not the newest; a node's first event
//! counts from time 0 there and from the first time of training here, which is 0 in the published
//! data; silences that do not differ have a deviation of 1 here, where it divides by zero.

mod config;
mod kind;

pub use config::JodieConfig;
pub use kind::JodieKind;

use super::encoder::{Chunk, Encoded, FirstLayer, ForwardContext, Mode, Sides};
use super::memory::{
    Cell, CellKind, MemoryMessage, MemoryNet, MemoryView, NodePlaces, ProductCache, Readout,
};
use super::mlp::Mlp;
use super::scratch::FeatureWidths;
use super::{Composite, Moments, Silence, StreamInfo};
use crate::checkpoint::{Checkpoint, impossible};
use crate::error::Result;
use crate::graph::Seed;
use crate::nn::{Linear, TimeEncoder};
use lstep_tensor::{Activation, Parameters, Tape, Var};

/// JODIE.
pub type Jodie = Composite<MemoryNet<MemoryMessage, ProjectionReadout>, Mlp>;

impl Jodie {
    /// A model with weights drawn from a seed.
    pub fn new(config: JodieConfig, seed: u64) -> Result<Jodie> {
        Composite::build(seed, |parameters| {
            config.check()?;
            let JodieConfig { time_width, node_width, edge_width, dropout } = config;
            let time = TimeEncoder::add(parameters, time_width);
            let message = 2 * node_width + time_width + edge_width;
            let cell = Cell::add(parameters, "updater", CellKind::Rnn, message, node_width);
            let readout = ProjectionReadout::add(parameters, node_width, dropout);
            let widths = FeatureWidths { node: node_width, edge: edge_width };
            let net = MemoryNet::new(widths, time, cell, MemoryMessage, readout);
            Ok((net, Mlp::add(parameters, node_width).by_role()))
        })
    }
}

/// A memory times 1 + w D + c, where D is how long the node has been silent.
#[derive(Debug, Clone)]
pub struct ProjectionReadout {
    /// w and c.
    projection: Linear,
    dropout: f32,
}

/// What the readout keeps.
#[derive(Debug, Clone)]
pub struct ProjectionState {
    silence: Silence,
    products: ProductCache,
}

/// Lists of a call.
#[derive(Default)]
pub struct Lists {
    nodes: NodePlaces,
    own: Vec<u32>,
}

impl Lists {
    fn fill(&mut self, seeds: &[Seed]) {
        self.nodes.clear();
        self.own.clear();
        self.own.extend(seeds.iter().map(|seed| self.nodes.place(seed.node())));
    }
}

impl ProjectionReadout {
    fn add(parameters: &mut Parameters, width: usize, dropout: f64) -> ProjectionReadout {
        let projection = Linear::add(parameters, "projection", 1, width);
        ProjectionReadout { projection, dropout: dropout as f32 }
    }

    /// What the head's first layer makes of the seeds: a product for memories as they are, and one
    /// for each unit of silence.
    fn sides<'t>(
        context: &mut ForwardContext<'_, 't>,
        layer: &'t FirstLayer,
        memories: MemoryView<'_, 't>,
        state: &ProjectionState,
        seeds: &[Seed],
        Lists { nodes, own }: &Lists,
    ) -> Sides {
        let products = state.products.products(context, layer, memories, nodes.items());
        let width = layer.bias.len();
        let mut side = |moments: Moments, first: usize| {
            context.tape.input(seeds.len(), width, |rows| {
                for ((row, seed), &place) in rows.chunks_mut(width).zip(seeds).zip(own) {
                    let Some(products) = &products[place as usize] else { continue };
                    let silence = silence(memories, *seed, moments);
                    let (still, moving) = products[first..first + 2 * width].split_at(width);
                    for ((out, still), moving) in row.iter_mut().zip(still).zip(moving) {
                        *out = still + silence * moving;
                    }
                }
            })
        };
        let source = side(state.silence.source, 0);
        let candidate = side(state.silence.destination, 2 * width);
        Sides { source, candidate, rows: None }
    }
}

/// D of a seed.
fn silence(memories: MemoryView<'_, '_>, seed: Seed, moments: Moments) -> f32 {
    let since = seed.time().value() - memories.memories().updated(seed.node());
    moments.standardised(since) as f32
}

impl Readout for ProjectionReadout {
    type State = ProjectionState;
    type Scratch = Lists;

    fn chunk(&self, mode: Mode) -> Chunk {
        match mode {
            Mode::Train => Chunk { seeds: 1_024, pairs: 65_536 },
            Mode::Score => Chunk { seeds: 512, pairs: 4_096 },
        }
    }

    fn init(&self, info: &StreamInfo) -> ProjectionState {
        ProjectionState { silence: info.silence, products: ProductCache::default() }
    }

    fn encode<'t>(
        &self,
        context: &mut ForwardContext<'_, 't>,
        memories: MemoryView<'_, 't>,
        state: &'t ProjectionState,
        seeds: &[Seed],
        lists: &mut Lists,
    ) -> Encoded {
        lists.fill(seeds);
        if let Some(layer) = context.first_layer() {
            let sides = Self::sides(context, layer, memories, state, seeds, lists);
            return Encoded { sides: Some(sides), ..Encoded::default() };
        }
        let tape = &mut *context.tape;
        let vectors = memories.updated(tape, lists.nodes.items());
        let own = tape.indices(lists.own.iter().copied());
        let vectors = tape.gather(vectors, own);
        let mut stretched = |moments: Moments| {
            let silence = tape.input(seeds.len(), 1, |values| {
                let each = values.iter_mut().zip(seeds);
                each.for_each(|(value, seed)| *value = silence(memories, *seed, moments));
            });
            let factor = self.projection.apply(tape, silence, Activation::Identity);
            let moved = tape.mul(vectors, factor);
            let moved = tape.add(vectors, moved);
            tape.dropout(moved, self.dropout)
        };
        let hidden = Some(stretched(state.silence.source));
        let as_candidates = Some(stretched(state.silence.destination));
        Encoded { hidden, as_candidates, ..Encoded::default() }
    }

    fn folds(&self) -> bool {
        true
    }

    /// The inputs are the memory and the memory times D: [W diag(1 + c) | W diag(w)].
    fn fold(&self, tape: &mut Tape<'_>, weight: Var) -> (Var, Var) {
        let (outputs, width) = tape.shape(weight);
        let moving = tape.parameter(self.projection.weight);
        let moving = tape.reshape(moving, 1, width);
        let ones = tape.input(1, width, |values| values.fill(1.0));
        let still = tape.parameter(self.projection.bias);
        let still = tape.add(still, ones);
        let parts = [still, moving].map(|factor| {
            let same = tape.indices(std::iter::repeat_n(0, outputs));
            let factors = tape.gather(factor, same);
            tape.mul(weight, factors)
        });
        (tape.concat_columns(&parts), tape.zeros(1, outputs))
    }

    fn forget(&self, state: &mut ProjectionState) {
        state.products.clear();
    }

    /// The silences belong to what was learned: a checkpoint on another training part is refused.
    fn save_state<'a>(&self, state: &'a ProjectionState, checkpoint: &mut Checkpoint<'a>) {
        checkpoint.push_f64("state.silence", state.silence.to_numbers().to_vec());
    }

    fn load_state(
        &self,
        info: &StreamInfo,
        checkpoint: &mut Checkpoint<'_>,
    ) -> Result<ProjectionState> {
        let stored = Silence::from_numbers(checkpoint.f64("state.silence")?);
        if stored != Some(info.silence) {
            return Err(impossible("has silences that are not those of its training"));
        }
        Ok(self.init(info))
    }
}
