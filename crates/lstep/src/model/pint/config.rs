//! PINT's settings. Defaults are the most common of those published by dataset.

use crate::error::{Error, Result};
use crate::model::checks::within;
use serde::{Deserialize, Serialize};

/// Where a node stands relative to the two nodes of a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PintPositions {
    /// Whether it is one of them. The published figures are of this.
    Identity,
    /// How many walks of 0 to 3 steps lead back in time from each of them to it, as in the paper.
    Walks,
}

/// PINT's settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PintConfig {
    /// d_T, at least 1.
    pub time_width: usize,
    /// Width of memories, node features and encodings, at least 1; a run on a stream with wider
    /// node features makes it as wide.
    pub node_width: usize,
    /// d_E; a run on a stream with wider event features makes it as wide.
    pub edge_width: usize,
    /// How many events a node looks at, at least 1.
    pub recent: usize,
    /// How many hops it looks, 1 or 2.
    pub layers: usize,
    /// How fast an event's weight falls with its age, in one over the unit of time, at least 0.
    pub decay: f64,
    /// Where a node stands relative to the two nodes of a pair.
    pub positions: PintPositions,
}

impl Default for PintConfig {
    fn default() -> PintConfig {
        PintConfig {
            time_width: 100,
            node_width: 172,
            edge_width: 172,
            recent: 20,
            layers: 2,
            decay: 1e-4,
            positions: PintPositions::Identity,
        }
    }
}

impl PintConfig {
    /// Refuses values that the model cannot have.
    pub fn check(&self) -> Result<()> {
        within(&[
            ("model.time_width", self.time_width, 1),
            ("model.node_width", self.node_width, 1),
            ("model.edge_width", self.edge_width, 0),
            ("model.recent", self.recent, 1),
        ])?;
        if !(1..=2).contains(&self.layers) {
            return Err(Error::setting("model.layers", self.layers, "it has to be 1 or 2"));
        }
        if !(self.decay.is_finite() && self.decay >= 0.0) {
            return Err(Error::setting("model.decay", self.decay, "it has to be at least 0"));
        }
        Ok(())
    }
}
