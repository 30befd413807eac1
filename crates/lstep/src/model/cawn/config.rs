//! CAWN's settings. Defaults are DyGLib's, for a stream of unknown kind.

use crate::error::{Error, Result};
use crate::model::checks::{check_dropout, within};
use serde::{Deserialize, Serialize};

/// By which law the events of walks are drawn. With a rate r, an event at t_k weighs
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WalkLaw {
    /// exp(w_k), where w_k is e^(r t_k) divided by the sum of e^(r t_j) over the node's events up to
    /// it: what DyGLib does and the published figures have. It is nearly uniform.
    Softmax,
    /// e^(r t_k), the law of the paper: the newer, the likelier.
    Recency,
}

/// CAWN's settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CawnConfig {
    /// d_T, at least 1.
    pub time_width: usize,
    /// d_N, at least 1, also the width of an encoding; a run on a stream with wider node features
    /// makes it as wide.
    pub node_width: usize,
    /// d_E; a run on a stream with wider event features makes it as wide.
    pub edge_width: usize,
    /// Width of position codes, at least 2.
    pub position_width: usize,
    /// K, how many walks begin at a node, at least 1.
    pub walks: usize,
    /// By which law their events are drawn.
    pub law: WalkLaw,
    /// The rate of that law in a unit of the stream's time, at least 0.
    pub rate: f64,
    /// Heads of the attention over walks, at least 1.
    pub heads: usize,
    /// Dropout of the transformer, in [0, 1).
    pub dropout: f64,
}

impl Default for CawnConfig {
    fn default() -> CawnConfig {
        CawnConfig {
            time_width: 100,
            node_width: 172,
            edge_width: 172,
            position_width: 172,
            walks: 32,
            law: WalkLaw::Softmax,
            rate: 1e-6,
            heads: 8,
            dropout: 0.1,
        }
    }
}

impl CawnConfig {
    /// Refuses values that the model cannot have.
    pub fn check(&self) -> Result<()> {
        within(&[
            ("model.time_width", self.time_width, 1),
            ("model.node_width", self.node_width, 1),
            ("model.edge_width", self.edge_width, 0),
            ("model.position_width", self.position_width, 2),
            ("model.walks", self.walks, 1),
            ("model.heads", self.heads, 1),
        ])?;
        if !(self.rate >= 0.0 && self.rate.is_finite()) {
            return Err(Error::setting("model.rate", self.rate, "it has to be at least 0"));
        }
        check_dropout(self.dropout)
    }

    /// Columns of a token.
    pub fn token_width(&self) -> usize {
        self.node_width + self.time_width + self.edge_width + self.position_width
    }

    /// Width of the attention over walks: half a token, raised to a multiple of the heads.
    pub fn attention_width(&self) -> usize {
        (self.token_width() / 2).next_multiple_of(self.heads)
    }
}
