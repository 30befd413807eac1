//! TCL's settings. Defaults are DyGLib's, for a stream of unknown kind.

use crate::error::{Error, Result};
use crate::model::Sampling;
use crate::model::checks::{check_dropout, within};
use serde::{Deserialize, Serialize};

/// TCL's settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TclConfig {
    /// d_T, at least 1.
    pub time_width: usize,
    /// d_N, at least 1, also the width of a token and of an encoding; a run on a stream with wider
    /// node features makes it as wide.
    pub node_width: usize,
    /// d_E; a run on a stream with wider event features makes it as wide.
    pub edge_width: usize,
    /// K, how many events of a history are looked at, at least 1.
    pub recent: usize,
    /// Which events are looked at.
    pub sampling: Sampling,
    /// Layers of self- and cross-attention, at least 1.
    pub layers: usize,
    /// Heads of the attention, at least 1; they share the node width evenly.
    pub heads: usize,
    /// Dropout of the transformers, in [0, 1).
    pub dropout: f64,
}

impl Default for TclConfig {
    fn default() -> TclConfig {
        TclConfig {
            time_width: 100,
            node_width: 172,
            edge_width: 172,
            recent: 20,
            sampling: Sampling::Recent,
            layers: 2,
            heads: 2,
            dropout: 0.1,
        }
    }
}

impl TclConfig {
    /// Refuses values that the model cannot have.
    pub fn check(&self) -> Result<()> {
        within(&[
            ("model.time_width", self.time_width, 1),
            ("model.node_width", self.node_width, 1),
            ("model.edge_width", self.edge_width, 0),
            ("model.recent", self.recent, 1),
            ("model.layers", self.layers, 1),
            ("model.heads", self.heads, 1),
        ])?;
        if !self.node_width.is_multiple_of(self.heads) {
            return Err(Error::setting(
                "model.heads",
                self.heads,
                format!("node_width, {}, is no multiple", self.node_width),
            ));
        }
        check_dropout(self.dropout)
    }
}
