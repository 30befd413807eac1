//! TPNet's settings. Defaults are those of its released code, for a stream of unknown kind.

use crate::error::{Error, Result};
use crate::model::Sampling;
use crate::model::checks::{check_dropout, within};
use serde::{Deserialize, Serialize};

/// What stands in a history's slots that have no event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MissingSlots {
    /// Tokens of a node of their own, met at the beginning of time: what the released code does and
    /// the published figures have.
    Released,
    /// Zeros, as the released code means to have it: it computes them and throws them away.
    Masked,
}

/// TPNet's settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TpnetConfig {
    /// d_T, at least 1.
    pub time_width: usize,
    /// d_N, at least 1, also the width of a token and of an encoding; a run on a stream with wider
    /// node features makes it as wide.
    pub node_width: usize,
    /// d_E; a run on a stream with wider event features makes it as wide.
    pub edge_width: usize,
    /// K, how many events of a history are mixed, at least 2.
    pub recent: usize,
    /// Which events are mixed.
    pub sampling: Sampling,
    /// What stands in slots without an event.
    pub padding: MissingSlots,
    /// Mixer blocks, at least 1.
    pub layers: usize,
    /// The longest walks that are counted, from 1 to 7.
    pub hops: usize,
    /// D, the width of random projections, at least 1. Released: the smaller of 10 floor(ln(2
    /// events)) and the number of nodes and one.
    pub projection_width: usize,
    /// lambda, by which walks decay in a second; at least 0.
    pub decay: f64,
    /// Seconds in a unit of the stream's time, above 0.
    pub time_unit: f64,
    /// Dropout within the mixers, in [0, 1).
    pub dropout: f64,
}

impl Default for TpnetConfig {
    fn default() -> TpnetConfig {
        TpnetConfig {
            time_width: 100,
            node_width: 172,
            edge_width: 172,
            recent: 20,
            sampling: Sampling::Recent,
            padding: MissingSlots::Released,
            layers: 2,
            hops: 3,
            projection_width: 120,
            decay: 1e-6,
            time_unit: 1.0,
            dropout: 0.1,
        }
    }
}

impl TpnetConfig {
    /// Refuses values that the model cannot have.
    pub fn check(&self) -> Result<()> {
        within(&[
            ("model.time_width", self.time_width, 1),
            ("model.node_width", self.node_width, 1),
            ("model.edge_width", self.edge_width, 0),
            ("model.recent", self.recent, 2),
            ("model.layers", self.layers, 1),
            ("model.hops", self.hops, 1),
            ("model.projection_width", self.projection_width, 1),
        ])?;
        if self.hops > 7 {
            return Err(Error::setting("model.hops", self.hops, "it has to be at most 7"));
        }
        if !(self.decay >= 0.0 && self.decay.is_finite()) {
            return Err(Error::setting("model.decay", self.decay, "it has to be at least 0"));
        }
        if !(self.time_unit > 0.0 && self.time_unit.is_finite()) {
            return Err(Error::setting("model.time_unit", self.time_unit, "it has to be above 0"));
        }
        check_dropout(self.dropout)
    }
}
