//! NAT in the registry.

use super::{Nat, NatConfig};
use crate::error::Result;
use crate::model::registry::ModelKind;
use crate::model::{
    FeatureWidths, ModelConfig, OptimizerConfig, Session, StreamInfo, Trainer, new_trainer, open,
};

/// NAT as a kind of model.
pub struct NatKind;

impl From<NatConfig> for ModelConfig {
    fn from(settings: NatConfig) -> ModelConfig {
        ModelConfig::new(&NatKind, settings)
    }
}

impl ModelKind for NatKind {
    type Settings = NatConfig;

    fn name(&self) -> &'static str {
        "nat"
    }

    fn about(&self) -> &'static str {
        "dictionaries of whom nodes met, joined for a pair"
    }

    fn learns(&self) -> bool {
        true
    }

    fn defaults(&self) -> NatConfig {
        NatConfig::default()
    }

    fn presets(&self) -> &'static str {
        include_str!("presets.toml")
    }

    fn check(&self, settings: &NatConfig) -> Result<()> {
        settings.check()
    }

    fn widen(&self, settings: &mut NatConfig, features: FeatureWidths) {
        features.widen(&mut settings.node_width, &mut settings.edge_width);
    }

    fn numbers_per_node(&self, settings: &NatConfig) -> u64 {
        let slots = 1 + settings.first_hop + settings.second_hop;
        2 * (settings.node_width + slots * (2 + settings.neighbour_width)) as u64 + 8 * 1024
    }

    fn open(&self, settings: &NatConfig, info: &StreamInfo) -> Result<Box<dyn Session>> {
        Ok(open(Nat::new(settings.clone(), 0)?, info))
    }

    fn trainer(
        &self,
        settings: &NatConfig,
        info: &StreamInfo,
        seed: u64,
        optimizer: OptimizerConfig,
    ) -> Result<Box<dyn Trainer>> {
        Ok(new_trainer(Nat::new(settings.clone(), seed)?, info, optimizer))
    }
}
