//! CTAN in the registry.

use super::{Ctan, CtanConfig};
use crate::error::Result;
use crate::model::registry::ModelKind;
use crate::model::{
    FeatureWidths, ModelConfig, OptimizerConfig, Session, StreamInfo, Trainer, new_trainer, open,
};

/// CTAN as a kind of model.
pub struct CtanKind;

impl From<CtanConfig> for ModelConfig {
    fn from(settings: CtanConfig) -> ModelConfig {
        ModelConfig::new(&CtanKind, settings)
    }
}

impl ModelKind for CtanKind {
    type Settings = CtanConfig;

    fn name(&self) -> &'static str {
        "ctan"
    }

    fn about(&self) -> &'static str {
        "memories that follow an antisymmetric differential equation on the graph"
    }

    fn learns(&self) -> bool {
        true
    }

    fn defaults(&self) -> CtanConfig {
        CtanConfig::default()
    }

    fn presets(&self) -> &'static str {
        include_str!("presets.toml")
    }

    fn check(&self, settings: &CtanConfig) -> Result<()> {
        settings.check()
    }

    fn widen(&self, settings: &mut CtanConfig, features: FeatureWidths) {
        features.widen(&mut settings.node_width, &mut settings.edge_width);
    }

    fn numbers_per_node(&self, settings: &CtanConfig) -> u64 {
        // A meeting takes eight numbers, and half of its event's features.
        let features = settings.edge_width / 2;
        2 * (settings.node_width + settings.recent * (8 + features)) as u64 + 64
    }

    fn open(&self, settings: &CtanConfig, info: &StreamInfo) -> Result<Box<dyn Session>> {
        Ok(open(Ctan::new(settings.clone(), 0)?, info))
    }

    fn trainer(
        &self,
        settings: &CtanConfig,
        info: &StreamInfo,
        seed: u64,
        optimizer: OptimizerConfig,
    ) -> Result<Box<dyn Trainer>> {
        Ok(new_trainer(Ctan::new(settings.clone(), seed)?, info, optimizer))
    }
}
