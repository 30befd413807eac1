//! DyRep: a memory for each node, and messages that tell of the sender's neighbourhood.
//!
//! Trivedi et al., "DyRep: Learning Representations over Dynamic Graphs", ICLR 2019,
//! <https://openreview.net/forum?id=HyePrhR5KX>, in the form that DyGLib gives it and with its
//! hyper-parameters. With d the width of memories, d_T of time encodings and d_E of event features,
//! an event of u and v at t leaves each a message, here u's, in which m_u is its memory [d] as it is
//! then, t_u when that last changed, and h_v the [`TemporalAttention`] of v over its K events before
//! t, in which nodes are their memories plus their features:
//!
//! ```text
//! x = [m_u | h_v | f_T(t - t_u) | e],                                   2 d + d_T + d_E numbers
//! m' = tanh(W_ih x + b_ih + W_hh m_u + b_hh),                           see `memory`
//! ```
//!
//! The logit is the field's [`Predictor`](crate::nn::Predictor) of m'_u and m'_v, the memories with
//! pending messages applied. The time of the question does not enter it, and no features do.
//!
//! Nothing trains the attention and f_T: a message is used a step after it was made, when only its
//! numbers are left. They stay the random maps they start as, in DyGLib as here; training them
//! would be another model.
//!
//! While scoring, the predictor's first layer of m' is kept by node until the next step, so a pair
//! costs a sum, a ReLU and a product of d. The attention runs only where a message is kept, at most
//! once for each node of a step.
//!
//! Where DyGLib differs: among the messages of one step it keeps, for a node that was source and
//! destination, the last one as destination even if it is not the newest; and a node without events
//! attends to padding, where it here gets zeros.

mod config;
mod kind;

pub use config::DyRepConfig;
pub use kind::DyRepKind;

use super::encoder::{Chunk, Encoded, ForwardContext, Mode, Sides};
use super::memory::{
    AttentionReadout, Cell, CellKind, EncodingMessage, MemoryNet, MemoryView, NodePlaces,
    ProductCache, Readout,
};
use super::mlp::Mlp;
use super::scratch::FeatureWidths;
use super::{Composite, StreamInfo};
use crate::error::Result;
use crate::graph::Seed;
use crate::nn::{AttentionWidths, TemporalAttention, TimeEncoder};
use lstep_tensor::{Tape, Var};

/// DyRep.
pub type DyRep = Composite<MemoryNet<EncodingMessage<AttentionReadout>, MemoryReadout>, Mlp>;

impl DyRep {
    /// A model with weights drawn from a seed.
    pub fn new(config: DyRepConfig, seed: u64) -> Result<DyRep> {
        Composite::build(seed, |parameters| {
            config.check()?;
            let DyRepConfig { time_width, node_width, edge_width, heads, .. } = config;
            let time = TimeEncoder::add(parameters, time_width);
            let message = 2 * node_width + time_width + edge_width;
            let cell = Cell::add(parameters, "updater", CellKind::Rnn, message, node_width);
            let widths =
                AttentionWidths { node: node_width, time: time_width, edge: edge_width, heads };
            let attention = TemporalAttention::add(parameters, "attention", widths);
            let DyRepConfig { recent, sampling, dropout, .. } = config;
            let readout = AttentionReadout { recent, sampling, dropout, time, attention };
            let widths = FeatureWidths { node: node_width, edge: edge_width };
            let message = EncodingMessage { readout };
            let net = MemoryNet::new(widths, time, cell, message, MemoryReadout);
            Ok((net, Mlp::add(parameters, node_width).by_role()))
        })
    }
}

/// The memory itself.
#[derive(Debug, Clone, Copy, Default)]
pub struct MemoryReadout;

impl Readout for MemoryReadout {
    type State = ProductCache;
    type Scratch = NodePlaces;

    fn chunk(&self, mode: Mode) -> Chunk {
        match mode {
            Mode::Train => Chunk { seeds: 1_024, pairs: 65_536 },
            Mode::Score => Chunk { seeds: 1_024, pairs: 4_096 },
        }
    }

    fn init(&self, _: &StreamInfo) -> ProductCache {
        ProductCache::default()
    }

    fn encode<'t>(
        &self,
        context: &mut ForwardContext<'_, 't>,
        memories: MemoryView<'_, 't>,
        kept: &'t ProductCache,
        seeds: &[Seed],
        nodes: &mut NodePlaces,
    ) -> Encoded {
        nodes.clear();
        let own: Vec<u32> = seeds.iter().map(|seed| nodes.place(seed.node())).collect();
        let nodes = nodes.items();
        let Some(layer) = context.first_layer() else {
            let vectors = memories.updated(context.tape, nodes);
            let own = context.tape.indices(own);
            let hidden = context.tape.gather(vectors, own);
            return Encoded { hidden: Some(hidden), ..Encoded::default() };
        };
        let products = kept.products(context, layer, memories, nodes);
        let width = layer.bias.len();
        let [source, candidate] = [0, width].map(|first| {
            context.tape.input(nodes.len(), width, |rows| {
                for (row, products) in rows.chunks_mut(width).zip(&products) {
                    let Some(products) = products else { continue };
                    row.copy_from_slice(&products[first..first + width]);
                }
            })
        });
        let sides = Sides { source, candidate, rows: Some(own) };
        Encoded { sides: Some(sides), ..Encoded::default() }
    }

    fn folds(&self) -> bool {
        true
    }

    fn fold(&self, tape: &mut Tape<'_>, weight: Var) -> (Var, Var) {
        let outputs = tape.shape(weight).0;
        (weight, tape.zeros(1, outputs))
    }

    fn forget(&self, kept: &mut ProductCache) {
        kept.clear();
    }
}
