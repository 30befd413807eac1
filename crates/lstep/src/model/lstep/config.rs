//! L-STEP's settings. Defaults are the paper's (appendix "Model Configurations"), for a
//! stream of unknown kind.

use crate::error::{Error, Result};
use crate::model::checks::within;
use crate::model::features::PairConfig;
use serde::{Deserialize, Serialize};

/// Where positions start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Start {
    /// Eigenvectors of the normalised Laplacian of the first step's graph.
    Laplacian,
    /// Return probabilities of random walks on the first step's graph.
    RandomWalk,
    /// Nowhere.
    Zeros,
}

/// Whose position is updated after a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// The nodes of the step's events; the others keep their position.
    Touched,
    /// Every node that has interacted so far, as the paper has it.
    All,
}

/// What is stored in a snapshot for a node that has a position and that the step did not update.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Untouched {
    /// Its old position. Equal positions in a row do not tell in which steps it was active.
    #[default]
    Keep,
    /// The approximation p~ that the filter makes of its earlier positions. As slow, and as large,
    /// as scope `all`.
    Approximate,
    /// Zeros: a position stands only in the snapshot that made it.
    Zero,
}

/// In which form new positions are stored after a step.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stored {
    /// As Eq. pe_updated makes them.
    #[default]
    AsIs,
    /// Each divided by its root mean square, so that all have the same size; zeros stay zeros.
    Normalised,
    /// Without their mean, which is what the nodes of the step have in common, and then normalised.
    Centred,
}

/// Which parts of the encoder are used: the paper's ablations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Variant {
    /// Node, link and position.
    Full,
    /// Only positions ("only LPE").
    PositionOnly,
    /// Only node and link features ("w/o LPE").
    NoPosition,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// What makes one vector of the recent events around a node, before it changes the node's position.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Aggregation {
    /// Their sum and a layer, as the equations have it.
    Mlp,
    /// Attention over them ("L-STEP + Attention"): slower, and with more memory for K events than
    /// for their sum.
    Attention,
}

/// L-STEP's settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LstepConfig {
    /// d_T, at least 1.
    pub time_width: usize,
    /// d_N, at least 1; a run on a stream with wider node features makes it as wide.
    pub node_width: usize,
    /// d_E; a run on a stream with wider event features makes it as wide.
    pub edge_width: usize,
    /// d_P, at least 1.
    pub position_width: usize,
    /// L, how many snapshots of positions are filtered, at least 1.
    pub snapshots: usize,
    /// K, how many recent events are encoded, at least 1.
    pub recent: usize,
    /// t_gap, the window of the node encoding in the stream's unit of time, not negative.
    pub gap: f64,
    /// alpha of the time encoding, above 1.
    pub alpha: f64,
    /// beta of the time encoding, above 0.
    pub beta: f64,
    /// Weight of negatives in the positional loss, in [0, 1].
    pub alpha_neg: f64,
    /// Weight of the positional loss, in [0, 1].
    pub alpha_pe: f64,
    /// Deviation of the normal numbers that the filter's weights start with, at least 0. The paper
    /// does not say.
    pub filter_deviation: f64,
    /// Where positions start.
    pub start: Start,
    /// Whose position is updated after a step. `touched` by default: on validation `all` is no
    /// better (one seed), and takes several times the time and memory
    /// (docs/experiments/013-scope.md).
    pub scope: Scope,
    /// What a snapshot has for nodes that were not updated.
    #[serde(default, skip_serializing_if = "is_default")]
    pub untouched: Untouched,
    /// In which form new positions are stored. As they are, those of a small busy network become
    /// the same vector for all nodes, which turns over whenever the weights move
    /// (docs/experiments/031-one-position-for-all.md).
    #[serde(default, skip_serializing_if = "is_default")]
    pub stored: Stored,
    /// Which parts are used.
    pub variant: Variant,
    /// What makes one vector of the recent events around a node; attention needs positions.
    pub aggregation: Aggregation,
    /// Heads of the attention, at least 1 and a divisor of d_P. The paper names none; 2 are
    /// DyGLib's for TGAT and TGN.
    pub heads: usize,
    /// Features of the pair that the predictor reads; none in the paper's model. With it the model
    /// is `lstep-pair`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pair: Option<PairConfig>,
}

impl Default for LstepConfig {
    fn default() -> LstepConfig {
        LstepConfig {
            time_width: 100,
            node_width: 172,
            edge_width: 172,
            position_width: 172,
            snapshots: 100,
            recent: 20,
            gap: 1000.0,
            alpha: 10.0,
            beta: 10.0,
            alpha_neg: 0.3,
            alpha_pe: 0.5,
            filter_deviation: 0.3,
            start: Start::Laplacian,
            scope: Scope::Touched,
            untouched: Untouched::Keep,
            stored: Stored::AsIs,
            variant: Variant::Full,
            aggregation: Aggregation::Mlp,
            heads: 2,
            pair: None,
        }
    }
}

impl LstepConfig {
    /// The defaults of `lstep-pair`, the same for every dataset. Layers are narrower than the
    /// paper's: on validation that costs nothing (docs/experiments/001-narrower-layers.md), and a
    /// score takes half of the products.
    ///
    /// The positional loss is left out: it is linear in the scale of all positions, so once
    /// partners are nearer than alpha_neg times the others, larger positions are always better, and
    /// at `lstep-pair`'s learning rate they grow until training breaks.
    pub fn pair() -> LstepConfig {
        LstepConfig {
            time_width: 64,
            beta: 6.4,
            node_width: 64,
            edge_width: 64,
            position_width: 64,
            snapshots: 50,
            alpha_pe: 0.0,
            pair: Some(PairConfig::default()),
            ..LstepConfig::default()
        }
    }

    /// Refuses values that the model cannot have.
    pub fn check(&self) -> Result<()> {
        within(&[
            ("model.time_width", self.time_width, 1),
            ("model.node_width", self.node_width, 1),
            ("model.edge_width", self.edge_width, 0),
            ("model.position_width", self.position_width, 1),
            ("model.snapshots", self.snapshots, 1),
            ("model.recent", self.recent, 1),
            ("model.heads", self.heads, 1),
        ])?;
        for (setting, value) in
            [("model.alpha_neg", self.alpha_neg), ("model.alpha_pe", self.alpha_pe)]
        {
            if !(0.0..=1.0).contains(&value) {
                return Err(Error::setting(setting, value, "it has to be between 0 and 1"));
            }
        }
        if !(self.filter_deviation.is_finite() && self.filter_deviation >= 0.0) {
            return Err(Error::setting(
                "model.filter_deviation",
                self.filter_deviation,
                "it has to be zero or more",
            ));
        }
        if !(self.gap.is_finite() && self.gap >= 0.0) {
            return Err(Error::setting(
                "model.gap",
                self.gap,
                "it is a length of time: zero or more",
            ));
        }
        if !(self.alpha > 1.0 && self.alpha.is_finite() && self.beta > 0.0 && self.beta.is_finite())
        {
            let value = format!("{} and {}", self.alpha, self.beta);
            return Err(Error::setting(
                "model.alpha and model.beta",
                value,
                "alpha has to be above 1 and beta above 0",
            ));
        }
        if let Some(pair) = &self.pair {
            pair.check()?;
            if pair.positions && self.variant == Variant::NoPosition {
                let remedy = "there are no positions to compare: set pair.positions to false";
                return Err(Error::setting("model.pair.positions", true, remedy));
            }
        }
        if self.aggregation == Aggregation::Attention {
            if self.variant == Variant::NoPosition {
                let remedy =
                    "there are no positions to attend to: set variant to full or position-only";
                return Err(Error::setting("model.aggregation", "attention", remedy));
            }
            if !self.position_width.is_multiple_of(self.heads) {
                let remedy = format!(
                    "position_width is {}: choose heads that divide it",
                    self.position_width
                );
                return Err(Error::setting("model.heads", self.heads, remedy));
            }
        }
        Ok(())
    }

    /// The frequencies of the time encoding, omega_i = alpha^(-i / beta), i from 0.
    pub fn frequencies(&self) -> impl Iterator<Item = f64> + '_ {
        (0..self.time_width).map(|i| self.alpha.powf(-(i as f64) / self.beta))
    }
}
