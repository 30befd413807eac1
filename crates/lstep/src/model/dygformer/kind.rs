//! DyGFormer in the registry.

use super::{DyGFormer, DyGFormerConfig};
use crate::error::Result;
use crate::model::registry::ModelKind;
use crate::model::{
    FeatureWidths, ModelConfig, OptimizerConfig, Session, StreamInfo, Trainer, new_trainer, open,
};

/// DyGFormer as a kind of model.
pub struct DyGFormerKind;

impl From<DyGFormerConfig> for ModelConfig {
    fn from(settings: DyGFormerConfig) -> ModelConfig {
        ModelConfig::new(&DyGFormerKind, settings)
    }
}

impl ModelKind for DyGFormerKind {
    type Settings = DyGFormerConfig;

    fn name(&self) -> &'static str {
        "dygformer"
    }

    fn about(&self) -> &'static str {
        "a transformer over the joined histories of two nodes"
    }

    fn learns(&self) -> bool {
        true
    }

    fn defaults(&self) -> DyGFormerConfig {
        DyGFormerConfig::default()
    }

    fn presets(&self) -> &'static str {
        include_str!("presets.toml")
    }

    fn check(&self, settings: &DyGFormerConfig) -> Result<()> {
        settings.check()
    }

    fn widen(&self, settings: &mut DyGFormerConfig, features: FeatureWidths) {
        features.widen(&mut settings.node_width, &mut settings.edge_width);
    }

    fn summary(&self, settings: &DyGFormerConfig) -> String {
        let DyGFormerConfig { channel_width, longest, patch, .. } = settings;
        format!("channels of {channel_width}, histories of {longest} in patches of {patch}")
    }

    fn open(&self, settings: &DyGFormerConfig, info: &StreamInfo) -> Result<Box<dyn Session>> {
        Ok(open(DyGFormer::new(settings.clone(), 0)?, info))
    }

    fn trainer(
        &self,
        settings: &DyGFormerConfig,
        info: &StreamInfo,
        seed: u64,
        optimizer: OptimizerConfig,
    ) -> Result<Box<dyn Trainer>> {
        Ok(new_trainer(DyGFormer::new(settings.clone(), seed)?, info, optimizer))
    }
}
