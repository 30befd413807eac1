//! DyGFormer's settings. Defaults are DyGLib's, for a stream of unknown kind.

use crate::error::{Error, Result};
use crate::model::checks::{check_dropout, within};
use serde::{Deserialize, Serialize};

/// What is done with a history that is shorter than the longest one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Padding {
    /// It is filled up with empty patches that are attended to and averaged like others. DyGLib
    /// fills up to the longest history of its batch, which mostly is the longest there can be; the
    /// batch may not matter here, so it is always the latter.
    Full,
    /// It stays as it is, as in the paper.
    None,
}

/// DyGFormer's settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DyGFormerConfig {
    /// d_T, at least 1.
    pub time_width: usize,
    /// d_N, at least 1, also the width of an encoding; a run on a stream with wider node features
    /// makes it as wide.
    pub node_width: usize,
    /// d_E; a run on a stream with wider event features makes it as wide.
    pub edge_width: usize,
    /// Width of each of the four channels: node, event, time, co-occurrence; at least 1.
    pub channel_width: usize,
    /// Longest history, the node itself included; at least 2 and a multiple of the patch.
    pub longest: usize,
    /// Entries of a patch, at least 1.
    pub patch: usize,
    /// What is done with shorter histories.
    pub padding: Padding,
    /// Transformer blocks, at least 1.
    pub layers: usize,
    /// Heads of the attention, at least 1; they share four channels evenly.
    pub heads: usize,
    /// Dropout of the transformer, in [0, 1).
    pub dropout: f64,
}

impl Default for DyGFormerConfig {
    fn default() -> DyGFormerConfig {
        DyGFormerConfig {
            time_width: 100,
            node_width: 172,
            edge_width: 172,
            channel_width: 50,
            longest: 32,
            patch: 1,
            padding: Padding::Full,
            layers: 2,
            heads: 2,
            dropout: 0.1,
        }
    }
}

impl DyGFormerConfig {
    /// Refuses values that the model cannot have.
    pub fn check(&self) -> Result<()> {
        within(&[
            ("model.time_width", self.time_width, 1),
            ("model.node_width", self.node_width, 1),
            ("model.edge_width", self.edge_width, 0),
            ("model.channel_width", self.channel_width, 1),
            ("model.longest", self.longest, 2),
            ("model.patch", self.patch, 1),
            ("model.layers", self.layers, 1),
            ("model.heads", self.heads, 1),
        ])?;
        if !self.longest.is_multiple_of(self.patch) {
            return Err(Error::setting(
                "model.longest",
                self.longest,
                format!("it has to be a multiple of patch, {}", self.patch),
            ));
        }
        let width = 4 * self.channel_width;
        if !width.is_multiple_of(self.heads) {
            return Err(Error::setting(
                "model.heads",
                self.heads,
                format!("four channels, {width}, are no multiple of it"),
            ));
        }
        check_dropout(self.dropout)
    }
}
