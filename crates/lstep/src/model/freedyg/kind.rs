//! FreeDyG in the registry.

use super::{FreeDyG, FreeDyGConfig};
use crate::error::Result;
use crate::model::registry::ModelKind;
use crate::model::{
    FeatureWidths, ModelConfig, OptimizerConfig, Session, StreamInfo, Trainer, new_trainer, open,
};

/// FreeDyG as a kind of model.
pub struct FreeDyGKind;

impl From<FreeDyGConfig> for ModelConfig {
    fn from(settings: FreeDyGConfig) -> ModelConfig {
        ModelConfig::new(&FreeDyGKind, settings)
    }
}

impl ModelKind for FreeDyGKind {
    type Settings = FreeDyGConfig;

    fn name(&self) -> &'static str {
        "freedyg"
    }

    fn about(&self) -> &'static str {
        "a mixer with frequency filters over both histories of a pair"
    }

    fn learns(&self) -> bool {
        true
    }

    fn defaults(&self) -> FreeDyGConfig {
        FreeDyGConfig::default()
    }

    fn presets(&self) -> &'static str {
        include_str!("presets.toml")
    }

    fn check(&self, settings: &FreeDyGConfig) -> Result<()> {
        settings.check()
    }

    fn widen(&self, settings: &mut FreeDyGConfig, features: FeatureWidths) {
        features.widen(&mut settings.node_width, &mut settings.edge_width);
    }

    fn open(&self, settings: &FreeDyGConfig, info: &StreamInfo) -> Result<Box<dyn Session>> {
        Ok(open(FreeDyG::new(settings.clone(), 0)?, info))
    }

    fn trainer(
        &self,
        settings: &FreeDyGConfig,
        info: &StreamInfo,
        seed: u64,
        optimizer: OptimizerConfig,
    ) -> Result<Box<dyn Trainer>> {
        Ok(new_trainer(FreeDyG::new(settings.clone(), seed)?, info, optimizer))
    }
}
