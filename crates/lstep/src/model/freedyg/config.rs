//! FreeDyG's settings. Defaults are those of its released code.

use crate::error::{Error, Result};
use crate::model::checks::{check_dropout, within};
use serde::{Deserialize, Serialize};

/// FreeDyG's settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FreeDyGConfig {
    /// d_T, at least 1.
    pub time_width: usize,
    /// d_N, at least 1, also the width of a token and of an encoding; a run on a stream with wider
    /// node features makes it as wide.
    pub node_width: usize,
    /// d_E; a run on a stream with wider event features makes it as wide.
    pub edge_width: usize,
    /// Width of the interaction frequency encoding, at least 1.
    pub count_width: usize,
    /// L, how many events of a history are mixed; even, at least 2.
    pub recent: usize,
    /// Mixer blocks, at least 1.
    pub layers: usize,
    /// Dropout within the mixers, in [0, 1).
    pub dropout: f64,
    /// Dropout behind the filters, in [0, 1). The released code has 0.1 whatever its setting is.
    pub filter_dropout: f64,
}

impl Default for FreeDyGConfig {
    fn default() -> FreeDyGConfig {
        FreeDyGConfig {
            time_width: 100,
            node_width: 172,
            edge_width: 172,
            count_width: 50,
            recent: 32,
            layers: 2,
            dropout: 0.1,
            filter_dropout: 0.1,
        }
    }
}

impl FreeDyGConfig {
    /// Refuses values that the model cannot have.
    pub fn check(&self) -> Result<()> {
        within(&[
            ("model.time_width", self.time_width, 1),
            ("model.node_width", self.node_width, 1),
            ("model.edge_width", self.edge_width, 0),
            ("model.count_width", self.count_width, 1),
            ("model.recent", self.recent, 2),
            ("model.layers", self.layers, 1),
        ])?;
        if !self.recent.is_multiple_of(2) {
            return Err(Error::setting("model.recent", self.recent, "it has to be even"));
        }
        check_dropout(self.dropout)?;
        check_dropout(self.filter_dropout)
    }
}
