//! CAWN in the registry.

use super::{Cawn, CawnConfig};
use crate::error::Result;
use crate::model::registry::ModelKind;
use crate::model::{
    FeatureWidths, ModelConfig, OptimizerConfig, Session, StreamInfo, Trainer, new_trainer, open,
};

/// CAWN as a kind of model.
pub struct CawnKind;

impl From<CawnConfig> for ModelConfig {
    fn from(settings: CawnConfig) -> ModelConfig {
        ModelConfig::new(&CawnKind, settings)
    }
}

impl ModelKind for CawnKind {
    type Settings = CawnConfig;

    fn name(&self) -> &'static str {
        "cawn"
    }

    fn about(&self) -> &'static str {
        "anonymous walks from both nodes of a pair"
    }

    fn learns(&self) -> bool {
        true
    }

    fn defaults(&self) -> CawnConfig {
        CawnConfig::default()
    }

    fn presets(&self) -> &'static str {
        include_str!("presets.toml")
    }

    fn check(&self, settings: &CawnConfig) -> Result<()> {
        settings.check()
    }

    fn widen(&self, settings: &mut CawnConfig, features: FeatureWidths) {
        features.widen(&mut settings.node_width, &mut settings.edge_width);
    }

    fn open(&self, settings: &CawnConfig, info: &StreamInfo) -> Result<Box<dyn Session>> {
        Ok(open(Cawn::new(settings.clone(), 0)?, info))
    }

    fn trainer(
        &self,
        settings: &CawnConfig,
        info: &StreamInfo,
        seed: u64,
        optimizer: OptimizerConfig,
    ) -> Result<Box<dyn Trainer>> {
        Ok(new_trainer(Cawn::new(settings.clone(), seed)?, info, optimizer))
    }
}
