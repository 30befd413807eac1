//! JODIE's settings. Defaults are DyGLib's, for a stream of unknown kind.

use crate::error::Result;
use crate::model::checks::{check_dropout, within};
use serde::{Deserialize, Serialize};

/// JODIE's settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct JodieConfig {
    /// d_T, at least 1.
    pub time_width: usize,
    /// Width of memories and encodings, at least 1; a run on a stream with wider node features
    /// makes it as wide.
    pub node_width: usize,
    /// d_E; a run on a stream with wider event features makes it as wide.
    pub edge_width: usize,
    /// Dropout of the encodings, in [0, 1).
    pub dropout: f64,
}

impl Default for JodieConfig {
    fn default() -> JodieConfig {
        JodieConfig { time_width: 100, node_width: 172, edge_width: 172, dropout: 0.1 }
    }
}

impl JodieConfig {
    /// Refuses values that the model cannot have.
    pub fn check(&self) -> Result<()> {
        within(&[
            ("model.time_width", self.time_width, 1),
            ("model.node_width", self.node_width, 1),
            ("model.edge_width", self.edge_width, 0),
        ])?;
        check_dropout(self.dropout)
    }
}
