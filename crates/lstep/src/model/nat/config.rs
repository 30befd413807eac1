//! NAT's settings. Defaults are the most common of those published by dataset.

use crate::error::{Error, Result};
use crate::model::checks::{check_dropout, within};
use serde::{Deserialize, Serialize};

/// NAT's settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NatConfig {
    /// d_T, at least 1.
    pub time_width: usize,
    /// Width d of self vectors and node features, at least 1; a run on a stream with wider node
    /// features makes it as wide.
    pub node_width: usize,
    /// d_E; a run on a stream with wider event features makes it as wide.
    pub edge_width: usize,
    /// Width g of the vector that a cache keeps of a neighbour, at least 1.
    pub neighbour_width: usize,
    /// Slots for neighbours, at least 1.
    pub first_hop: usize,
    /// Slots for neighbours of neighbours.
    pub second_hop: usize,
    /// How likely a neighbour takes a slot that another one holds, in [0, 1].
    pub replace: f64,
    /// Dropout of what two caches hold together, in [0, 1).
    pub dropout: f64,
}

impl Default for NatConfig {
    fn default() -> NatConfig {
        NatConfig {
            time_width: 100,
            node_width: 172,
            edge_width: 172,
            neighbour_width: 4,
            first_hop: 64,
            second_hop: 32,
            replace: 0.9,
            dropout: 0.1,
        }
    }
}

impl NatConfig {
    /// Refuses values that the model cannot have.
    pub fn check(&self) -> Result<()> {
        within(&[
            ("model.time_width", self.time_width, 1),
            ("model.node_width", self.node_width, 1),
            ("model.edge_width", self.edge_width, 0),
            ("model.neighbour_width", self.neighbour_width, 1),
            ("model.first_hop", self.first_hop, 1),
            ("model.second_hop", self.second_hop, 0),
        ])?;
        if !(0.0..=1.0).contains(&self.replace) {
            return Err(Error::setting("model.replace", self.replace, "it has to be in [0, 1]"));
        }
        check_dropout(self.dropout)
    }
}
