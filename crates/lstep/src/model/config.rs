//! From a name and its settings to a model: the one place of the program that knows all models.

use super::{
    Aggregation, DyGFormer, DyGFormerConfig, EdgeBank, FeatureWidths, GraphMixer, GraphMixerConfig,
    Heuristic, Lstep, LstepConfig, Memory, OptimizerConfig, PopTrack, Session, Signal, StreamInfo,
    Tgn, TgnConfig, Trainer, Variant, new_trainer, open,
};
use crate::error::{Error, Remedy, Result};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A model with its settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "lowercase")]
pub enum ModelConfig {
    /// Pairs that met meet again.
    EdgeBank {
        /// What it remembers.
        memory: Memory,
    },
    /// Popular destinations stay popular.
    PopTrack {
        /// What is left of a counter after a step, in (0, 1]. The authors search it for each
        /// dataset, from 0.36 to 0.99.
        decay: f64,
    },
    /// Recency and popularity, compared one after the other.
    Heuristic {
        /// The signals in the order in which they are compared.
        signals: Vec<Signal>,
    },
    /// Learnable spatial-temporal positional encoding.
    Lstep(LstepConfig),
    /// An MLP-Mixer over recent events.
    GraphMixer(GraphMixerConfig),
    /// Memories and attention.
    Tgn(TgnConfig),
    /// A transformer over two joined histories.
    DyGFormer(DyGFormerConfig),
}

const SIGNALS: [(&str, Signal); 4] = [
    ("local-recency", Signal::LocalRecency),
    ("local-popularity", Signal::LocalPopularity),
    ("global-recency", Signal::GlobalRecency),
    ("global-popularity", Signal::GlobalPopularity),
];

impl ModelConfig {
    /// Decay of [`ModelConfig::PopTrack`] where none is given.
    pub const DECAY: f64 = 0.94;

    /// The models that `lstep` shows side by side when none is named.
    pub fn counting_models() -> Vec<ModelConfig> {
        let heuristic = |signals: &[Signal]| ModelConfig::Heuristic { signals: signals.to_vec() };
        let mut models = vec![
            ModelConfig::EdgeBank { memory: Memory::Unlimited },
            ModelConfig::EdgeBank { memory: Memory::WindowProportion },
            ModelConfig::EdgeBank { memory: Memory::WindowRepeat },
            ModelConfig::EdgeBank { memory: Memory::RepeatThreshold },
            ModelConfig::EdgeBank { memory: Memory::WindowTgb },
            ModelConfig::PopTrack { decay: ModelConfig::DECAY },
        ];
        models.extend(SIGNALS.iter().map(|(_, signal)| heuristic(&[*signal])));
        models.push(heuristic(&[Signal::LocalRecency, Signal::GlobalPopularity]));
        models.push(heuristic(&SIGNALS.map(|(_, signal)| signal)));
        models
    }

    /// The names of the models that can be trained.
    pub const LEARNED: [&'static str; 5] =
        ["lstep", "lstep-pair", "graphmixer", "tgn", "dygformer"];

    /// What kind of model it is: of one that can be trained, its name among
    /// [`ModelConfig::LEARNED`].
    pub fn kind(&self) -> &'static str {
        match self {
            ModelConfig::EdgeBank { .. } => "edgebank",
            ModelConfig::PopTrack { .. } => "poptrack",
            ModelConfig::Heuristic { .. } => "heuristic",
            ModelConfig::Lstep(config) if config.pair.is_some() => "lstep-pair",
            ModelConfig::Lstep(_) => "lstep",
            ModelConfig::GraphMixer(_) => "graphmixer",
            ModelConfig::Tgn(_) => "tgn",
            ModelConfig::DyGFormer(_) => "dygformer",
        }
    }

    /// A model that can be trained, by name, with default settings.
    pub fn learned(name: &str) -> Result<ModelConfig> {
        match name {
            "lstep" => Ok(ModelConfig::Lstep(LstepConfig::default())),
            "lstep-pair" => Ok(ModelConfig::Lstep(LstepConfig::pair())),
            "graphmixer" => Ok(ModelConfig::GraphMixer(GraphMixerConfig::default())),
            "tgn" => Ok(ModelConfig::Tgn(TgnConfig::default())),
            "dygformer" => Ok(ModelConfig::DyGFormer(DyGFormerConfig::default())),
            _ => Err(Error::unknown("model", name, ModelConfig::LEARNED)),
        }
    }

    /// The same model with room for a stream's features, where its own widths are smaller. What is
    /// wider stays: the paper's models have room for 172 numbers whatever the stream has.
    #[must_use]
    pub fn widened_for(&self, features: FeatureWidths) -> ModelConfig {
        let mut model = self.clone();
        let widths = match &mut model {
            ModelConfig::Lstep(config) => Some((&mut config.node_width, &mut config.edge_width)),
            ModelConfig::GraphMixer(config) => {
                Some((&mut config.node_width, &mut config.edge_width))
            }
            ModelConfig::Tgn(config) => {
                // Heads have to divide what they attend with.
                let heads = config.heads.max(1);
                let widened = (config.node_width < features.node).then(|| {
                    (features.node + config.time_width).next_multiple_of(heads) - config.time_width
                });
                config.node_width = widened.unwrap_or(config.node_width);
                Some((&mut config.node_width, &mut config.edge_width))
            }
            ModelConfig::DyGFormer(config) => {
                Some((&mut config.node_width, &mut config.edge_width))
            }
            ModelConfig::EdgeBank { .. }
            | ModelConfig::PopTrack { .. }
            | ModelConfig::Heuristic { .. } => None,
        };
        if let Some((node, edge)) = widths {
            (*node, *edge) = ((*node).max(features.node), (*edge).max(features.edge));
        }
        model
    }

    /// The model at work, before the first event; a learned one with weights that have learned
    /// nothing yet.
    pub fn open(&self, info: &StreamInfo) -> Result<Box<dyn Session>> {
        Ok(match self {
            ModelConfig::EdgeBank { memory } => open(EdgeBank { memory: *memory }, info),
            ModelConfig::PopTrack { decay } => open(PopTrack::new(*decay)?, info),
            ModelConfig::Heuristic { signals } => open(Heuristic::new(signals)?, info),
            ModelConfig::Lstep(config) => open(Lstep::new(config.clone(), 0)?, info),
            ModelConfig::GraphMixer(config) => open(GraphMixer::new(config.clone(), 0)?, info),
            ModelConfig::Tgn(config) => open(Tgn::new(config.clone(), 0)?, info),
            ModelConfig::DyGFormer(config) => open(DyGFormer::new(config.clone(), 0)?, info),
        })
    }

    /// The model ready to learn, with weights drawn from a seed. Refuses a model that learns
    /// nothing.
    pub fn trainer(
        &self,
        info: &StreamInfo,
        seed: u64,
        optimizer: OptimizerConfig,
    ) -> Result<Box<dyn Trainer>> {
        match self {
            ModelConfig::Lstep(config) => {
                Ok(new_trainer(Lstep::new(config.clone(), seed)?, info, optimizer))
            }
            ModelConfig::GraphMixer(config) => {
                Ok(new_trainer(GraphMixer::new(config.clone(), seed)?, info, optimizer))
            }
            ModelConfig::Tgn(config) => {
                Ok(new_trainer(Tgn::new(config.clone(), seed)?, info, optimizer))
            }
            ModelConfig::DyGFormer(config) => {
                Ok(new_trainer(DyGFormer::new(config.clone(), seed)?, info, optimizer))
            }
            counting => {
                Err(Error::refused("model", counting, "it only counts", Remedy::EvaluateInstead))
            }
        }
    }
}

impl fmt::Display for ModelConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ModelConfig::EdgeBank { memory } => write!(f, "edgebank ({memory})"),
            ModelConfig::PopTrack { decay } => write!(f, "poptrack (decay {decay})"),
            ModelConfig::Lstep(config) => {
                f.write_str(self.kind())?;
                f.write_str(match (config.variant, config.aggregation) {
                    (Variant::Full, Aggregation::Mlp) => "",
                    (Variant::Full, Aggregation::Attention) => " (attention)",
                    (Variant::PositionOnly, Aggregation::Mlp) => " (position only)",
                    (Variant::PositionOnly, Aggregation::Attention) => {
                        " (position only, attention)"
                    }
                    (Variant::NoPosition, _) => " (no position)",
                })
            }
            ModelConfig::GraphMixer(_) | ModelConfig::Tgn(_) | ModelConfig::DyGFormer(_) => {
                f.write_str(self.kind())
            }
            ModelConfig::Heuristic { signals } if *signals == SIGNALS.map(|known| known.1) => {
                f.write_str("heuristics")
            }
            ModelConfig::Heuristic { signals } => {
                let name = |signal| {
                    SIGNALS.iter().find(|known| known.1 == signal).map_or("?", |known| known.0)
                };
                f.write_str(
                    &signals.iter().map(|&signal| name(signal)).collect::<Vec<_>>().join("+"),
                )
            }
        }
    }
}

impl FromStr for ModelConfig {
    type Err = Error;

    /// Reads `edgebank`, `poptrack`, or signals joined by `+`, with default settings.
    fn from_str(text: &str) -> Result<ModelConfig> {
        match text {
            "edgebank" => Ok(ModelConfig::EdgeBank { memory: Memory::Unlimited }),
            "poptrack" => Ok(ModelConfig::PopTrack { decay: ModelConfig::DECAY }),
            "heuristics" => {
                Ok(ModelConfig::Heuristic { signals: SIGNALS.map(|(_, signal)| signal).to_vec() })
            }
            _ => {
                let signal =
                    |name: &str| SIGNALS.iter().find(|known| known.0 == name).map(|known| known.1);
                let signals: Option<Vec<Signal>> = text.split('+').map(signal).collect();
                let signals = signals.ok_or_else(|| {
                    let known = SIGNALS.map(|(name, _)| name).join(", ");
                    Error::setting(
                        "model",
                        text,
                        format!(
                            "choose edgebank, poptrack, heuristics, or signals joined by +: {known}"
                        ),
                    )
                })?;
                Heuristic::new(&signals)?;
                Ok(ModelConfig::Heuristic { signals })
            }
        }
    }
}

const MEMORIES: [(&str, Memory); 5] = [
    ("unlimited", Memory::Unlimited),
    ("window-proportion", Memory::WindowProportion),
    ("window-repeat", Memory::WindowRepeat),
    ("repeat-threshold", Memory::RepeatThreshold),
    ("window-tgb", Memory::WindowTgb),
];

impl fmt::Display for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MEMORIES.iter().find(|known| known.1 == *self).map_or("?", |known| known.0))
    }
}

impl FromStr for Memory {
    type Err = Error;

    /// Reads our names, and DyGLib's for the same memories.
    fn from_str(text: &str) -> Result<Memory> {
        let plain = text.replace('_', "-");
        let name = match plain.as_str() {
            "unlimited-memory" => "unlimited",
            "fixed-proportion" => "window-proportion",
            "repeat-interval" => "window-repeat",
            "repeat-threshold-memory" => "repeat-threshold",
            other => other,
        };
        MEMORIES.iter().find(|known| known.0 == name).map(|known| known.1).ok_or_else(|| {
            let known = MEMORIES.map(|(name, _)| name).join(", ");
            Error::setting("memory", text, format!("choose one of {known}, or published"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_model_is_read_back_from_its_json() {
        let learned = ModelConfig::LEARNED
            .map(|name| ModelConfig::learned(name).expect("every name is known"));
        for model in ModelConfig::counting_models().into_iter().chain(learned) {
            let text = serde_json::to_string(&model).expect("serialised");
            assert_eq!(
                serde_json::from_str::<ModelConfig>(&text).expect("read back"),
                model,
                "{text}"
            );
        }
    }

    #[test]
    fn a_learned_model_is_of_the_kind_it_is_named_by() {
        for name in ModelConfig::LEARNED {
            assert_eq!(ModelConfig::learned(name).expect("known").kind(), name);
        }
    }

    #[test]
    fn signals_are_joined_by_a_plus() {
        let model: ModelConfig = "local-recency+global-popularity".parse().expect("two signals");
        assert_eq!(model.to_string(), "local-recency+global-popularity");
        let error = "local-recencies".parse::<ModelConfig>().expect_err("no such signal");
        assert!(error.to_string().contains("local-recency, local-popularity"), "{error}");
    }

    #[test]
    fn a_memory_is_known_by_our_name_and_by_dyglibs() {
        for (name, memory) in MEMORIES {
            assert_eq!(name.parse::<Memory>().expect("known"), memory);
        }
        assert_eq!("fixed_proportion".parse::<Memory>().expect("known"), Memory::WindowProportion);
        assert_eq!("repeat_interval".parse::<Memory>().expect("known"), Memory::WindowRepeat);
        assert!("forever".parse::<Memory>().is_err());
    }
}
