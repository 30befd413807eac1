//! L-STEP and `lstep-pair` in the registry. Both have [`LstepConfig`], and both are stored under
//! the name `lstep`: a `pair` table is what makes it `lstep-pair`.

use super::{Aggregation, Lstep, LstepConfig, Scope, Untouched, Variant};
use crate::error::Result;
use crate::model::registry::ModelKind;
use crate::model::{
    FeatureWidths, ModelConfig, OptimizerConfig, Session, StreamInfo, Trainer, new_trainer, open,
};
use toml::Table;

/// L-STEP as a kind of model, with or without features of the pair.
pub struct LstepKind {
    pair: bool,
}

/// L-STEP as the paper has it.
pub static LSTEP: LstepKind = LstepKind { pair: false };

/// L-STEP with features of the pair.
pub static LSTEP_PAIR: LstepKind = LstepKind { pair: true };

/// The name in stored settings.
const STORED: &str = "lstep";

impl From<LstepConfig> for ModelConfig {
    fn from(settings: LstepConfig) -> ModelConfig {
        ModelConfig::new(if settings.pair.is_some() { &LSTEP_PAIR } else { &LSTEP }, settings)
    }
}

impl ModelKind for LstepKind {
    type Settings = LstepConfig;

    fn name(&self) -> &'static str {
        if self.pair { "lstep-pair" } else { STORED }
    }

    fn about(&self) -> &'static str {
        if self.pair {
            "L-STEP with smaller layers and features of the pair"
        } else {
            "learnable spatial-temporal positional encoding, as in the paper"
        }
    }

    fn learns(&self) -> bool {
        true
    }

    fn defaults(&self) -> LstepConfig {
        if self.pair { LstepConfig::pair() } else { LstepConfig::default() }
    }

    fn presets(&self) -> &'static str {
        if self.pair { include_str!("pair_presets.toml") } else { include_str!("presets.toml") }
    }

    fn check(&self, settings: &LstepConfig) -> Result<()> {
        settings.check()
    }

    fn widen(&self, settings: &mut LstepConfig, features: FeatureWidths) {
        features.widen(&mut settings.node_width, &mut settings.edge_width);
    }

    fn label(&self, settings: &LstepConfig) -> String {
        let what = match (settings.variant, settings.aggregation) {
            (Variant::Full, Aggregation::Mlp) => "",
            (Variant::Full, Aggregation::Attention) => " (attention)",
            (Variant::PositionOnly, Aggregation::Mlp) => " (position only)",
            (Variant::PositionOnly, Aggregation::Attention) => " (position only, attention)",
            (Variant::NoPosition, _) => " (no position)",
        };
        format!("{}{what}", self.name())
    }

    fn summary(&self, settings: &LstepConfig) -> String {
        let LstepConfig { position_width, time_width, node_width, snapshots, recent, .. } =
            settings;
        format!(
            "d_P {position_width}, d_T {time_width}, d_N {node_width}, L {snapshots}, K {recent}"
        )
    }

    /// Positions of all snapshots, and a copy. With scope `touched` a node's snapshots are mostly
    /// the same and stored once.
    fn numbers_per_node(&self, settings: &LstepConfig) -> u64 {
        let every = settings.scope == Scope::All || settings.untouched == Untouched::Approximate;
        let snapshots = if every { settings.snapshots as u64 } else { 2 };
        2 * snapshots * settings.position_width as u64
    }

    fn open(&self, settings: &LstepConfig, info: &StreamInfo) -> Result<Box<dyn Session>> {
        Ok(open(Lstep::new(settings.clone(), 0)?, info))
    }

    fn trainer(
        &self,
        settings: &LstepConfig,
        info: &StreamInfo,
        seed: u64,
        optimizer: OptimizerConfig,
    ) -> Result<Box<dyn Trainer>> {
        Ok(new_trainer(Lstep::new(settings.clone(), seed)?, info, optimizer))
    }

    fn stored_as(&self) -> &'static str {
        STORED
    }

    fn claims(&self, table: &Table) -> bool {
        self.pair && table.contains_key("pair")
    }
}
