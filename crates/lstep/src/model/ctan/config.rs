//! CTAN's settings. Defaults are the point that all searches of its authors on TGB have in common.

use crate::error::{Error, Result};
use crate::model::checks::within;
use serde::{Deserialize, Serialize};

/// CTAN's settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CtanConfig {
    /// d_T, at least 1.
    pub time_width: usize,
    /// Width d of memories, encodings and node features, at least 1; a run on a stream with wider
    /// node features makes it as wide.
    pub node_width: usize,
    /// d_E; a run on a stream with wider event features makes it as wide.
    pub edge_width: usize,
    /// K, how many of its newest events a node remembers, at least 1.
    pub recent: usize,
    /// How many steps of the differential equation an encoding is away from the memory, and how
    /// many hops it sees, at least 1.
    pub iterations: usize,
    /// The length of a step, above 0.
    pub epsilon: f64,
    /// How much a vector is damped, at least 0.
    pub gamma: f64,
}

impl Default for CtanConfig {
    fn default() -> CtanConfig {
        CtanConfig {
            time_width: 256,
            node_width: 256,
            edge_width: 172,
            recent: 32,
            iterations: 1,
            epsilon: 1.0,
            gamma: 0.1,
        }
    }
}

impl CtanConfig {
    /// Refuses values that the model cannot have.
    pub fn check(&self) -> Result<()> {
        within(&[
            ("model.time_width", self.time_width, 1),
            ("model.node_width", self.node_width, 1),
            ("model.edge_width", self.edge_width, 0),
            ("model.recent", self.recent, 1),
            ("model.iterations", self.iterations, 1),
        ])?;
        if !(self.epsilon.is_finite() && self.epsilon > 0.0) {
            let problem = "it has to be a number above 0";
            return Err(Error::setting("model.epsilon", self.epsilon, problem));
        }
        if !(self.gamma.is_finite() && self.gamma >= 0.0) {
            let problem = "it has to be a number that is at least 0";
            return Err(Error::setting("model.gamma", self.gamma, problem));
        }
        Ok(())
    }
}
