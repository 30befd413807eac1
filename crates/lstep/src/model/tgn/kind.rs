//! Tgn in the registry.

use super::{Tgn, TgnConfig};
use crate::error::Result;
use crate::model::registry::ModelKind;
use crate::model::{
    FeatureWidths, ModelConfig, OptimizerConfig, Session, StreamInfo, Trainer, new_trainer, open,
};

/// Tgn as a kind of model.
pub struct TgnKind;

impl From<TgnConfig> for ModelConfig {
    fn from(settings: TgnConfig) -> ModelConfig {
        ModelConfig::new(&TgnKind, settings)
    }
}

impl ModelKind for TgnKind {
    type Settings = TgnConfig;

    fn name(&self) -> &'static str {
        "tgn"
    }

    fn about(&self) -> &'static str {
        "memories of nodes, and attention over recent events"
    }

    fn learns(&self) -> bool {
        true
    }

    fn defaults(&self) -> TgnConfig {
        TgnConfig::default()
    }

    fn presets(&self) -> &'static str {
        include_str!("presets.toml")
    }

    fn check(&self, settings: &TgnConfig) -> Result<()> {
        settings.check()
    }

    fn widen(&self, settings: &mut TgnConfig, features: FeatureWidths) {
        if settings.node_width < features.node {
            // The attention heads have to divide node and time width together.
            let shared = features.node + settings.time_width;
            settings.node_width =
                shared.next_multiple_of(settings.heads.max(1)) - settings.time_width;
        }
        features.widen(&mut settings.node_width, &mut settings.edge_width);
    }

    fn numbers_per_node(&self, _: &TgnConfig) -> u64 {
        2 * 1024
    }

    fn open(&self, settings: &TgnConfig, info: &StreamInfo) -> Result<Box<dyn Session>> {
        Ok(open(Tgn::new(settings.clone(), 0)?, info))
    }

    fn trainer(
        &self,
        settings: &TgnConfig,
        info: &StreamInfo,
        seed: u64,
        optimizer: OptimizerConfig,
    ) -> Result<Box<dyn Trainer>> {
        Ok(new_trainer(Tgn::new(settings.clone(), seed)?, info, optimizer))
    }
}
