//! TGN: a memory for each node, changed by messages, and attention over recent events.
//!
//! Rossi et al., "Temporal Graph Networks for Deep Learning on Dynamic Graphs", 2020, with the
//! hyper-parameters of DyGLib. An event of u and v at t leaves each a message, here u's, in which m
//! are the memories as they are then and t_u is when m_u last changed:
//!
//! ```text
//! [m_u | m_v | f_T(t - t_u) | e]
//! ```
//!
//! Messages become memories by a GRU, see [`memory`](super::memory). A seed's vector is
//! [`TemporalAttention`] over its recent events, in which nodes are their memories plus their
//! features.
//!
//! Where DyGLib differs: among the messages of one step it keeps, for a node that was source and
//! destination, the last one as destination even if it is not the newest; and a node without events
//! attends to padding, where it here gets zeros.

mod config;
mod kind;

pub use config::TgnConfig;
pub use kind::TgnKind;

use super::Composite;
use super::encoder::{Chunk, ForwardContext, Mode};
use super::memory::{Cell, CellKind, MemoryMessage, MemoryNet, MemoryView, NodePlaces, Readout};
use super::mlp::Mlp;
use super::neighbours::NeighbourBatch;
use super::scratch::FeatureWidths;
use crate::error::Result;
use crate::graph::{Past, Seed};
use crate::nn::{AttentionWidths, Neighbourhood, TemporalAttention, TimeEncoder};
use lstep_tensor::{Tape, Var};

/// TGN.
pub type Tgn = Composite<MemoryNet<MemoryMessage, AttentionReadout>, Mlp>;

impl Tgn {
    /// A model with weights drawn from a seed.
    pub fn new(config: TgnConfig, seed: u64) -> Result<Tgn> {
        Composite::build(seed, |parameters| {
            config.check()?;
            let TgnConfig { time_width, node_width, edge_width, heads, .. } = config;
            let time = TimeEncoder::add(parameters, time_width);
            let message = 2 * node_width + time_width + edge_width;
            let cell = Cell::add(parameters, "updater", CellKind::Gru, message, node_width);
            let widths =
                AttentionWidths { node: node_width, time: time_width, edge: edge_width, heads };
            let attention = TemporalAttention::add(parameters, "attention", widths);
            let head = Mlp::add(parameters, node_width);
            let widths = FeatureWidths { node: node_width, edge: edge_width };
            let readout = AttentionReadout { config, time, attention };
            Ok((MemoryNet::new(widths, time, cell, MemoryMessage, readout), head))
        })
    }
}

/// Attention of a seed's node over its recent events.
#[derive(Debug, Clone)]
pub struct AttentionReadout {
    config: TgnConfig,
    time: TimeEncoder,
    attention: TemporalAttention,
}

/// Lists of a call.
#[derive(Default)]
pub struct Lists {
    neighbours: NeighbourBatch,
    nodes: NodePlaces,
}

impl Readout for AttentionReadout {
    type Scratch = Lists;

    fn chunk(&self, _: Mode) -> Chunk {
        Chunk { seeds: 1_024, pairs: 65_536 }
    }

    fn encode<'t>(
        &self,
        context: &mut ForwardContext<'_, 't>,
        memories: MemoryView<'_, 't>,
        seeds: &[Seed],
        Lists { neighbours, nodes }: &mut Lists,
    ) -> Var {
        let (past, most) = (context.past, self.config.recent);
        let tape = &mut *context.tape;
        neighbours.gather(past, seeds, most, self.config.sampling);
        nodes.clear();
        let own: Vec<u32> = seeds.iter().map(|seed| nodes.place(seed.node())).collect();
        let met: Vec<u32> =
            neighbours.neighbours().iter().map(|other| nodes.place(other.node())).collect();
        let vectors = memories.vectors(tape, past, nodes.nodes());
        let nobody = nodes.nodes().len() as u32;
        let (mut partners, mut ages) = (Vec::new(), Vec::new());
        for (seed, span) in neighbours.spans().enumerate() {
            let span = span.start as usize..span.end as usize;
            partners.extend_from_slice(&met[span.clone()]);
            ages.extend_from_slice(&neighbours.ages()[span]);
            partners.resize((seed + 1) * most, nobody);
            ages.resize((seed + 1) * most, 0.0);
        }
        let around = Neighbourhood {
            nodes: vectors,
            own: tape.indices(own),
            partners: tape.indices(partners),
            ages: tape.times(ages),
            features: features(tape, past, neighbours, most),
            counts: tape.indices(neighbours.spans().map(|span| span.len() as u32)),
            rows: most,
        };
        self.attention.apply(tape, self.time, around, self.config.dropout as f32)
    }
}

/// Features of the events looked at, in blocks; nothing where the stream has none.
fn features<'t>(
    tape: &mut Tape<'t>,
    past: Past<'t>,
    neighbours: &NeighbourBatch,
    most: usize,
) -> Option<Var> {
    let width = past.event_feature_width();
    (width > 0).then(|| {
        tape.input(neighbours.seeds() * most, width, |values| {
            for (block, span) in values.chunks_mut(most * width).zip(neighbours.spans()) {
                for (row, place) in block.chunks_mut(width).zip(span) {
                    let neighbour = &neighbours.neighbours()[place as usize];
                    row.copy_from_slice(past.event_features(neighbour));
                }
            }
        })
    })
}
