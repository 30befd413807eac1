//! DyRep in the registry.

use super::{DyRep, DyRepConfig};
use crate::error::Result;
use crate::model::registry::ModelKind;
use crate::model::{
    FeatureWidths, ModelConfig, OptimizerConfig, Session, StreamInfo, Trainer, new_trainer, open,
};

/// DyRep as a kind of model.
pub struct DyRepKind;

impl From<DyRepConfig> for ModelConfig {
    fn from(settings: DyRepConfig) -> ModelConfig {
        ModelConfig::new(&DyRepKind, settings)
    }
}

impl ModelKind for DyRepKind {
    type Settings = DyRepConfig;

    fn name(&self) -> &'static str {
        "dyrep"
    }

    fn about(&self) -> &'static str {
        "memories of nodes, told of each other's neighbourhoods"
    }

    fn learns(&self) -> bool {
        true
    }

    fn defaults(&self) -> DyRepConfig {
        DyRepConfig::default()
    }

    fn presets(&self) -> &'static str {
        include_str!("presets.toml")
    }

    fn check(&self, settings: &DyRepConfig) -> Result<()> {
        settings.check()
    }

    fn widen(&self, settings: &mut DyRepConfig, features: FeatureWidths) {
        if settings.node_width < features.node {
            // The attention heads have to divide node and time width together.
            let shared = features.node + settings.time_width;
            settings.node_width =
                shared.next_multiple_of(settings.heads.max(1)) - settings.time_width;
        }
        features.widen(&mut settings.node_width, &mut settings.edge_width);
    }

    fn numbers_per_node(&self, _: &DyRepConfig) -> u64 {
        2 * 1024 + 2 * 172
    }

    fn open(&self, settings: &DyRepConfig, info: &StreamInfo) -> Result<Box<dyn Session>> {
        Ok(open(DyRep::new(settings.clone(), 0)?, info))
    }

    fn trainer(
        &self,
        settings: &DyRepConfig,
        info: &StreamInfo,
        seed: u64,
        optimizer: OptimizerConfig,
    ) -> Result<Box<dyn Trainer>> {
        Ok(new_trainer(DyRep::new(settings.clone(), seed)?, info, optimizer))
    }
}
