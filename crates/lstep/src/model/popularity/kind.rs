//! PopTrack in the registry.

use super::PopTrack;
use crate::error::Result;
use crate::model::registry::ModelKind;
use crate::model::{
    ModelConfig, OptimizerConfig, Session, StreamInfo, Trainer, counting_trainer, open,
};
use serde::{Deserialize, Serialize};

/// PopTrack as a kind of model.
pub struct PopTrackKind;

/// PopTrack's settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PopTrackConfig {
    /// What is left of a counter after a step, in (0, 1]. The authors search it for each dataset,
    /// from 0.36 to 0.99.
    pub decay: f64,
}

impl Default for PopTrackConfig {
    fn default() -> PopTrackConfig {
        PopTrackConfig { decay: 0.94 }
    }
}

impl From<PopTrackConfig> for ModelConfig {
    fn from(settings: PopTrackConfig) -> ModelConfig {
        ModelConfig::new(&PopTrackKind, settings)
    }
}

impl ModelKind for PopTrackKind {
    type Settings = PopTrackConfig;

    fn name(&self) -> &'static str {
        "poptrack"
    }

    fn about(&self) -> &'static str {
        "decayed popularity of the destination"
    }

    fn learns(&self) -> bool {
        false
    }

    fn defaults(&self) -> PopTrackConfig {
        PopTrackConfig::default()
    }

    fn check(&self, settings: &PopTrackConfig) -> Result<()> {
        PopTrack::new(settings.decay).map(drop)
    }

    fn label(&self, settings: &PopTrackConfig) -> String {
        format!("poptrack (decay {})", settings.decay)
    }

    fn numbers_per_node(&self, _: &PopTrackConfig) -> u64 {
        64
    }

    fn open(&self, settings: &PopTrackConfig, info: &StreamInfo) -> Result<Box<dyn Session>> {
        Ok(open(PopTrack::new(settings.decay)?, info))
    }

    fn trainer(
        &self,
        settings: &PopTrackConfig,
        info: &StreamInfo,
        _: u64,
        _: OptimizerConfig,
    ) -> Result<Box<dyn Trainer>> {
        Ok(counting_trainer(PopTrack::new(settings.decay)?, info))
    }
}
