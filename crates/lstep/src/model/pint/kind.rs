//! PINT in the registry.

use super::{Pint, PintConfig};
use crate::error::Result;
use crate::model::registry::ModelKind;
use crate::model::{
    FeatureWidths, ModelConfig, OptimizerConfig, Session, StreamInfo, Trainer, new_trainer, open,
};

/// PINT as a kind of model.
pub struct PintKind;

impl From<PintConfig> for ModelConfig {
    fn from(settings: PintConfig) -> ModelConfig {
        ModelConfig::new(&PintKind, settings)
    }
}

impl ModelKind for PintKind {
    type Settings = PintConfig;

    fn name(&self) -> &'static str {
        "pint"
    }

    fn about(&self) -> &'static str {
        "memories of nodes, and decayed sums over two hops that know the pair"
    }

    fn learns(&self) -> bool {
        true
    }

    fn defaults(&self) -> PintConfig {
        PintConfig::default()
    }

    fn presets(&self) -> &'static str {
        include_str!("presets.toml")
    }

    fn check(&self, settings: &PintConfig) -> Result<()> {
        settings.check()
    }

    fn widen(&self, settings: &mut PintConfig, features: FeatureWidths) {
        features.widen(&mut settings.node_width, &mut settings.edge_width);
    }

    fn numbers_per_node(&self, _: &PintConfig) -> u64 {
        2 * 1024
    }

    fn open(&self, settings: &PintConfig, info: &StreamInfo) -> Result<Box<dyn Session>> {
        Ok(open(Pint::new(settings.clone(), 0)?, info))
    }

    fn trainer(
        &self,
        settings: &PintConfig,
        info: &StreamInfo,
        seed: u64,
        optimizer: OptimizerConfig,
    ) -> Result<Box<dyn Trainer>> {
        Ok(new_trainer(Pint::new(settings.clone(), seed)?, info, optimizer))
    }
}
