//! TNCN's settings. Defaults are those of the released scripts.

use crate::error::{Error, Result};
use crate::model::checks::{check_dropout, within};
use serde::{Deserialize, Serialize};

/// What TNCN's predictor is told of a pair beside the product of its two encodings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TncnMode {
    /// Common neighbours. Released mode 1, the default.
    OneHop,
    /// Common neighbours, and both nodes if they are neighbours of each other. Released mode 0.
    ZeroAndOneHop,
}

/// TNCN's settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TncnConfig {
    /// d_T, at least 1.
    pub time_width: usize,
    /// Width d of memories and encodings, a multiple of the heads. Node features are not read.
    pub node_width: usize,
    /// d_E; a run on a stream with wider event features makes it as wide.
    pub edge_width: usize,
    /// K, how many of its newest events a node remembers, at least 1.
    pub recent: usize,
    /// Heads of the attention, at least 1.
    pub heads: usize,
    /// Width of the predictor's hidden layer, at least 1.
    pub hidden: usize,
    /// What the predictor is told of a pair.
    pub mode: TncnMode,
    /// Dropout of the attention, in [0, 1).
    pub dropout: f64,
}

impl Default for TncnConfig {
    fn default() -> TncnConfig {
        TncnConfig {
            time_width: 100,
            node_width: 100,
            edge_width: 172,
            recent: 10,
            heads: 2,
            hidden: 256,
            mode: TncnMode::OneHop,
            dropout: 0.1,
        }
    }
}

impl TncnConfig {
    /// Refuses values that the model cannot have.
    pub fn check(&self) -> Result<()> {
        within(&[
            ("model.time_width", self.time_width, 1),
            ("model.node_width", self.node_width, 1),
            ("model.edge_width", self.edge_width, 0),
            ("model.recent", self.recent, 1),
            ("model.heads", self.heads, 1),
            ("model.hidden", self.hidden, 1),
        ])?;
        if !self.node_width.is_multiple_of(self.heads) {
            let problem = format!("node_width, {}, is no multiple", self.node_width);
            return Err(Error::setting("model.heads", self.heads, problem));
        }
        check_dropout(self.dropout)
    }
}
