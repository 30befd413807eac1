//! TCL in the registry.

use super::{Tcl, TclConfig};
use crate::error::Result;
use crate::model::registry::ModelKind;
use crate::model::{
    FeatureWidths, ModelConfig, OptimizerConfig, Session, StreamInfo, Trainer, new_trainer, open,
};

/// TCL as a kind of model.
pub struct TclKind;

impl From<TclConfig> for ModelConfig {
    fn from(settings: TclConfig) -> ModelConfig {
        ModelConfig::new(&TclKind, settings)
    }
}

impl ModelKind for TclKind {
    type Settings = TclConfig;

    fn name(&self) -> &'static str {
        "tcl"
    }

    fn about(&self) -> &'static str {
        "a transformer within and between both histories of a pair"
    }

    fn learns(&self) -> bool {
        true
    }

    fn defaults(&self) -> TclConfig {
        TclConfig::default()
    }

    fn presets(&self) -> &'static str {
        include_str!("presets.toml")
    }

    fn check(&self, settings: &TclConfig) -> Result<()> {
        settings.check()
    }

    fn widen(&self, settings: &mut TclConfig, features: FeatureWidths) {
        let node = features.node.next_multiple_of(settings.heads.max(1));
        let features = FeatureWidths { node, ..features };
        features.widen(&mut settings.node_width, &mut settings.edge_width);
    }

    fn open(&self, settings: &TclConfig, info: &StreamInfo) -> Result<Box<dyn Session>> {
        Ok(open(Tcl::new(settings.clone(), 0)?, info))
    }

    fn trainer(
        &self,
        settings: &TclConfig,
        info: &StreamInfo,
        seed: u64,
        optimizer: OptimizerConfig,
    ) -> Result<Box<dyn Trainer>> {
        Ok(new_trainer(Tcl::new(settings.clone(), seed)?, info, optimizer))
    }
}
