//! JODIE in the registry.

use super::{Jodie, JodieConfig};
use crate::error::Result;
use crate::model::registry::ModelKind;
use crate::model::{
    FeatureWidths, ModelConfig, OptimizerConfig, Session, StreamInfo, Trainer, new_trainer, open,
};

/// JODIE as a kind of model.
pub struct JodieKind;

impl From<JodieConfig> for ModelConfig {
    fn from(settings: JodieConfig) -> ModelConfig {
        ModelConfig::new(&JodieKind, settings)
    }
}

impl ModelKind for JodieKind {
    type Settings = JodieConfig;

    fn name(&self) -> &'static str {
        "jodie"
    }

    fn about(&self) -> &'static str {
        "memories of nodes, stretched by how long they have been silent"
    }

    fn learns(&self) -> bool {
        true
    }

    fn defaults(&self) -> JodieConfig {
        JodieConfig::default()
    }

    fn presets(&self) -> &'static str {
        include_str!("presets.toml")
    }

    fn check(&self, settings: &JodieConfig) -> Result<()> {
        settings.check()
    }

    fn widen(&self, settings: &mut JodieConfig, features: FeatureWidths) {
        features.widen(&mut settings.node_width, &mut settings.edge_width);
    }

    fn numbers_per_node(&self, _: &JodieConfig) -> u64 {
        2 * 1024 + 4 * 172
    }

    fn open(&self, settings: &JodieConfig, info: &StreamInfo) -> Result<Box<dyn Session>> {
        Ok(open(Jodie::new(settings.clone(), 0)?, info))
    }

    fn trainer(
        &self,
        settings: &JodieConfig,
        info: &StreamInfo,
        seed: u64,
        optimizer: OptimizerConfig,
    ) -> Result<Box<dyn Trainer>> {
        Ok(new_trainer(Jodie::new(settings.clone(), seed)?, info, optimizer))
    }
}
