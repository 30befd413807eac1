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
use super::memory::{AttentionReadout, Cell, CellKind, MemoryMessage, MemoryNet};
use super::mlp::Mlp;
use super::scratch::FeatureWidths;
use crate::error::Result;
use crate::nn::{AttentionWidths, TemporalAttention, TimeEncoder};

/// TGN.
pub type Tgn = Composite<MemoryNet<MemoryMessage, AttentionReadout>, Mlp>;

impl Tgn {
    /// A model with weights drawn from a seed.
    pub fn new(config: TgnConfig, seed: u64) -> Result<Tgn> {
        Composite::build(seed, |parameters| {
            config.check()?;
            let TgnConfig { time_width, node_width, edge_width, recent, sampling, heads, dropout } =
                config;
            let time = TimeEncoder::add(parameters, time_width);
            let message = 2 * node_width + time_width + edge_width;
            let cell = Cell::add(parameters, "updater", CellKind::Gru, message, node_width);
            let widths =
                AttentionWidths { node: node_width, time: time_width, edge: edge_width, heads };
            let attention = TemporalAttention::add(parameters, "attention", widths);
            let head = Mlp::add(parameters, node_width);
            let widths = FeatureWidths { node: node_width, edge: edge_width };
            let readout = AttentionReadout { recent, sampling, dropout, time, attention };
            Ok((MemoryNet::new(widths, time, cell, MemoryMessage, readout), head))
        })
    }
}
