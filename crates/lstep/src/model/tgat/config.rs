//! TGAT's settings. Defaults are DyGLib's, for a stream of unknown kind.

use crate::error::Result;
use crate::model::Sampling;
use crate::model::checks::{check_dropout, check_heads, within};
use serde::{Deserialize, Serialize};

/// TGAT's settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TgatConfig {
    /// d_T, at least 1.
    pub time_width: usize,
    /// Width of node features and encodings, at least 1; a run on a stream with wider
    /// node features makes it as wide.
    pub node_width: usize,
    /// d_E; a run on a stream with wider event features makes it as wide.
    pub edge_width: usize,
    /// How many events a node looks at, at least 1.
    pub recent: usize,
    /// Which events a node looks at.
    pub sampling: Sampling,
    /// Heads of the attention, at least 1; they share node and time width evenly.
    pub heads: usize,
    /// Dropout of the attention, in [0, 1).
    pub dropout: f64,
}

impl Default for TgatConfig {
    fn default() -> TgatConfig {
        TgatConfig {
            time_width: 100,
            node_width: 172,
            edge_width: 172,
            recent: 20,
            sampling: Sampling::Recent,
            heads: 2,
            dropout: 0.1,
        }
    }
}

impl TgatConfig {
    /// Refuses values that the model cannot have.
    pub fn check(&self) -> Result<()> {
        within(&[
            ("model.time_width", self.time_width, 1),
            ("model.node_width", self.node_width, 1),
            ("model.edge_width", self.edge_width, 0),
            ("model.recent", self.recent, 1),
            ("model.heads", self.heads, 1),
        ])?;
        check_heads(self.heads, self.node_width + self.time_width)?;
        check_dropout(self.dropout)
    }
}
