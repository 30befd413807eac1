//! TGAT in the registry.

use super::{Tgat, TgatConfig};
use crate::error::Result;
use crate::model::registry::ModelKind;
use crate::model::{
    FeatureWidths, ModelConfig, OptimizerConfig, Session, StreamInfo, Trainer, new_trainer, open,
};

/// TGAT as a kind of model.
pub struct TgatKind;

impl From<TgatConfig> for ModelConfig {
    fn from(settings: TgatConfig) -> ModelConfig {
        ModelConfig::new(&TgatKind, settings)
    }
}

impl ModelKind for TgatKind {
    type Settings = TgatConfig;

    fn name(&self) -> &'static str {
        "tgat"
    }

    fn about(&self) -> &'static str {
        "two layers of attention over recent events"
    }

    fn learns(&self) -> bool {
        true
    }

    fn defaults(&self) -> TgatConfig {
        TgatConfig::default()
    }

    fn presets(&self) -> &'static str {
        include_str!("presets.toml")
    }

    fn check(&self, settings: &TgatConfig) -> Result<()> {
        settings.check()
    }

    fn widen(&self, settings: &mut TgatConfig, features: FeatureWidths) {
        if settings.node_width < features.node {
            // The attention heads have to divide node and time width together.
            let shared = features.node + settings.time_width;
            settings.node_width =
                shared.next_multiple_of(settings.heads.max(1)) - settings.time_width;
        }
        features.widen(&mut settings.node_width, &mut settings.edge_width);
    }

    fn open(&self, settings: &TgatConfig, info: &StreamInfo) -> Result<Box<dyn Session>> {
        Ok(open(Tgat::new(settings.clone(), 0)?, info))
    }

    fn trainer(
        &self,
        settings: &TgatConfig,
        info: &StreamInfo,
        seed: u64,
        optimizer: OptimizerConfig,
    ) -> Result<Box<dyn Trainer>> {
        Ok(new_trainer(Tgat::new(settings.clone(), seed)?, info, optimizer))
    }
}
