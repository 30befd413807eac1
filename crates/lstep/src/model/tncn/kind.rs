//! TNCN in the registry.

use super::{Tncn, TncnConfig};
use crate::error::Result;
use crate::model::registry::ModelKind;
use crate::model::{
    FeatureWidths, ModelConfig, OptimizerConfig, Session, StreamInfo, Trainer, new_trainer, open,
};

/// TNCN as a kind of model.
pub struct TncnKind;

impl From<TncnConfig> for ModelConfig {
    fn from(settings: TncnConfig) -> ModelConfig {
        ModelConfig::new(&TncnKind, settings)
    }
}

impl ModelKind for TncnKind {
    type Settings = TncnConfig;

    fn name(&self) -> &'static str {
        "tncn"
    }

    fn about(&self) -> &'static str {
        "memories of nodes, and the encodings of common neighbours"
    }

    fn learns(&self) -> bool {
        true
    }

    fn defaults(&self) -> TncnConfig {
        TncnConfig::default()
    }

    fn presets(&self) -> &'static str {
        include_str!("presets.toml")
    }

    fn check(&self, settings: &TncnConfig) -> Result<()> {
        settings.check()
    }

    fn widen(&self, settings: &mut TncnConfig, features: FeatureWidths) {
        settings.edge_width = settings.edge_width.max(features.edge);
    }

    fn numbers_per_node(&self, settings: &TncnConfig) -> u64 {
        // A meeting takes eight numbers, and about as much again in the adjacency of both nodes.
        let features = settings.edge_width / 2;
        2 * (settings.node_width + settings.recent * (24 + features)) as u64 + 64
    }

    fn open(&self, settings: &TncnConfig, info: &StreamInfo) -> Result<Box<dyn Session>> {
        Ok(open(Tncn::new(settings.clone(), 0)?, info))
    }

    fn trainer(
        &self,
        settings: &TncnConfig,
        info: &StreamInfo,
        seed: u64,
        optimizer: OptimizerConfig,
    ) -> Result<Box<dyn Trainer>> {
        Ok(new_trainer(Tncn::new(settings.clone(), seed)?, info, optimizer))
    }
}
