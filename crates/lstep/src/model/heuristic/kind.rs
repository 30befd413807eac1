//! The heuristics in the registry, and the names of their signals.

use super::{Heuristic, Signal};
use crate::error::Result;
use crate::model::registry::ModelKind;
use crate::model::{
    ModelConfig, OptimizerConfig, Session, StreamInfo, Trainer, counting_trainer, open,
};
use serde::{Deserialize, Serialize};

/// The heuristics as a kind of model. Users write `heuristics`, or signals joined by `+`.
pub struct HeuristicKind;

/// The heuristics' settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HeuristicConfig {
    /// The signals in the order in which they are compared.
    pub signals: Vec<Signal>,
}

impl Default for HeuristicConfig {
    fn default() -> HeuristicConfig {
        HeuristicConfig { signals: SIGNALS.map(|(_, signal)| signal).to_vec() }
    }
}

impl From<HeuristicConfig> for ModelConfig {
    fn from(settings: HeuristicConfig) -> ModelConfig {
        ModelConfig::new(&HeuristicKind, settings)
    }
}

const SIGNALS: [(&str, Signal); 4] = [
    ("local-recency", Signal::LocalRecency),
    ("local-popularity", Signal::LocalPopularity),
    ("global-recency", Signal::GlobalRecency),
    ("global-popularity", Signal::GlobalPopularity),
];

impl ModelKind for HeuristicKind {
    type Settings = HeuristicConfig;

    fn name(&self) -> &'static str {
        "heuristics"
    }

    fn about(&self) -> &'static str {
        "recency and popularity of pair and destination; any of these signals alone or joined by +"
    }

    fn learns(&self) -> bool {
        false
    }

    fn defaults(&self) -> HeuristicConfig {
        HeuristicConfig::default()
    }

    fn check(&self, settings: &HeuristicConfig) -> Result<()> {
        Heuristic::new(&settings.signals).map(drop)
    }

    fn label(&self, settings: &HeuristicConfig) -> String {
        if *settings == HeuristicConfig::default() {
            return self.name().to_string();
        }
        let name =
            |signal| SIGNALS.iter().find(|known| known.1 == signal).map_or("?", |known| known.0);
        settings.signals.iter().map(|&signal| name(signal)).collect::<Vec<_>>().join("+")
    }

    fn numbers_per_node(&self, _: &HeuristicConfig) -> u64 {
        64
    }

    fn open(&self, settings: &HeuristicConfig, info: &StreamInfo) -> Result<Box<dyn Session>> {
        Ok(open(Heuristic::new(&settings.signals)?, info))
    }

    fn trainer(
        &self,
        settings: &HeuristicConfig,
        info: &StreamInfo,
        _: u64,
        _: OptimizerConfig,
    ) -> Result<Box<dyn Trainer>> {
        Ok(counting_trainer(Heuristic::new(&settings.signals)?, info))
    }

    fn variants(&self) -> Vec<HeuristicConfig> {
        let mut variants: Vec<_> = SIGNALS.iter().map(|(_, signal)| vec![*signal]).collect();
        variants.push(vec![Signal::LocalRecency, Signal::GlobalPopularity]);
        variants.push(HeuristicConfig::default().signals);
        variants.into_iter().map(|signals| HeuristicConfig { signals }).collect()
    }

    fn spelling(&self) -> String {
        let known = SIGNALS.map(|(name, _)| name).join(", ");
        format!("{}, or signals joined by + ({known})", self.name())
    }

    fn parse(&self, text: &str) -> Option<Result<HeuristicConfig>> {
        if text == self.name() {
            return Some(Ok(HeuristicConfig::default()));
        }
        let signal = |name: &str| SIGNALS.iter().find(|known| known.0 == name).map(|known| known.1);
        let signals: Vec<Signal> = text.split('+').map(signal).collect::<Option<_>>()?;
        let settings = HeuristicConfig { signals };
        Some(self.check(&settings).map(|()| settings))
    }

    fn stored_as(&self) -> &'static str {
        "heuristic"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_are_joined_by_a_plus() {
        let model: ModelConfig = "local-recency+global-popularity".parse().expect("two signals");
        assert_eq!(model.to_string(), "local-recency+global-popularity");
        let error = "local-recencies".parse::<ModelConfig>().expect_err("no such signal");
        assert!(error.to_string().contains("local-recency, local-popularity"), "{error}");
        assert!("local-recency+local-recency".parse::<ModelConfig>().is_err());
    }
}
