//! TPNet in the registry.

use super::{Tpnet, TpnetConfig};
use crate::error::Result;
use crate::model::registry::ModelKind;
use crate::model::{
    FeatureWidths, ModelConfig, OptimizerConfig, Session, StreamInfo, Trainer, new_trainer, open,
};

/// TPNet as a kind of model.
pub struct TpnetKind;

impl From<TpnetConfig> for ModelConfig {
    fn from(settings: TpnetConfig) -> ModelConfig {
        ModelConfig::new(&TpnetKind, settings)
    }
}

impl ModelKind for TpnetKind {
    type Settings = TpnetConfig;

    fn name(&self) -> &'static str {
        "tpnet"
    }

    fn about(&self) -> &'static str {
        "a mixer over recent events that knows how near their nodes are to both of a pair"
    }

    fn learns(&self) -> bool {
        true
    }

    fn defaults(&self) -> TpnetConfig {
        TpnetConfig::default()
    }

    fn presets(&self) -> &'static str {
        include_str!("presets.toml")
    }

    fn check(&self, settings: &TpnetConfig) -> Result<()> {
        settings.check()
    }

    fn widen(&self, settings: &mut TpnetConfig, features: FeatureWidths) {
        features.widen(&mut settings.node_width, &mut settings.edge_width);
    }

    fn numbers_per_node(&self, settings: &TpnetConfig) -> u64 {
        2 * ((settings.hops + 1) * settings.projection_width) as u64
    }

    fn open(&self, settings: &TpnetConfig, info: &StreamInfo) -> Result<Box<dyn Session>> {
        Ok(open(Tpnet::new(settings.clone(), 0)?, info))
    }

    fn trainer(
        &self,
        settings: &TpnetConfig,
        info: &StreamInfo,
        seed: u64,
        optimizer: OptimizerConfig,
    ) -> Result<Box<dyn Trainer>> {
        Ok(new_trainer(Tpnet::new(settings.clone(), seed)?, info, optimizer))
    }
}
