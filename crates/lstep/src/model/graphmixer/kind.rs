//! GraphMixer in the registry.

use super::{GraphMixer, GraphMixerConfig};
use crate::error::Result;
use crate::model::registry::ModelKind;
use crate::model::{
    FeatureWidths, ModelConfig, OptimizerConfig, Session, StreamInfo, Trainer, new_trainer, open,
};

/// GraphMixer as a kind of model.
pub struct GraphMixerKind;

impl From<GraphMixerConfig> for ModelConfig {
    fn from(settings: GraphMixerConfig) -> ModelConfig {
        ModelConfig::new(&GraphMixerKind, settings)
    }
}

impl ModelKind for GraphMixerKind {
    type Settings = GraphMixerConfig;

    fn name(&self) -> &'static str {
        "graphmixer"
    }

    fn about(&self) -> &'static str {
        "an MLP-Mixer over recent events"
    }

    fn learns(&self) -> bool {
        true
    }

    fn defaults(&self) -> GraphMixerConfig {
        GraphMixerConfig::default()
    }

    fn presets(&self) -> &'static str {
        include_str!("presets.toml")
    }

    fn check(&self, settings: &GraphMixerConfig) -> Result<()> {
        settings.check()
    }

    fn widen(&self, settings: &mut GraphMixerConfig, features: FeatureWidths) {
        features.widen(&mut settings.node_width, &mut settings.edge_width);
    }

    fn open(&self, settings: &GraphMixerConfig, info: &StreamInfo) -> Result<Box<dyn Session>> {
        Ok(open(GraphMixer::new(settings.clone(), 0)?, info))
    }

    fn trainer(
        &self,
        settings: &GraphMixerConfig,
        info: &StreamInfo,
        seed: u64,
        optimizer: OptimizerConfig,
    ) -> Result<Box<dyn Trainer>> {
        Ok(new_trainer(GraphMixer::new(settings.clone(), seed)?, info, optimizer))
    }
}
