//! EdgeBank in the registry, and the names of its memories.

use super::{EdgeBank, Memory};
use crate::error::{Error, Result};
use crate::model::registry::ModelKind;
use crate::model::{
    ModelConfig, OptimizerConfig, Session, StreamInfo, Trainer, counting_trainer, open,
};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// EdgeBank as a kind of model.
pub struct EdgeBankKind;

/// EdgeBank's settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EdgeBankConfig {
    /// What it remembers.
    pub memory: Memory,
}

impl From<EdgeBankConfig> for ModelConfig {
    fn from(settings: EdgeBankConfig) -> ModelConfig {
        ModelConfig::new(&EdgeBankKind, settings)
    }
}

impl ModelKind for EdgeBankKind {
    type Settings = EdgeBankConfig;

    fn name(&self) -> &'static str {
        "edgebank"
    }

    fn about(&self) -> &'static str {
        "a pair that is in memory meets again"
    }

    fn learns(&self) -> bool {
        false
    }

    fn defaults(&self) -> EdgeBankConfig {
        EdgeBankConfig { memory: Memory::Unlimited }
    }

    fn presets(&self) -> &'static str {
        include_str!("presets.toml")
    }

    fn check(&self, _: &EdgeBankConfig) -> Result<()> {
        Ok(())
    }

    fn label(&self, settings: &EdgeBankConfig) -> String {
        format!("edgebank ({})", settings.memory)
    }

    fn numbers_per_node(&self, _: &EdgeBankConfig) -> u64 {
        64
    }

    fn open(&self, settings: &EdgeBankConfig, info: &StreamInfo) -> Result<Box<dyn Session>> {
        Ok(open(EdgeBank { memory: settings.memory }, info))
    }

    fn trainer(
        &self,
        settings: &EdgeBankConfig,
        info: &StreamInfo,
        _: u64,
        _: OptimizerConfig,
    ) -> Result<Box<dyn Trainer>> {
        Ok(counting_trainer(EdgeBank { memory: settings.memory }, info))
    }

    fn variants(&self) -> Vec<EdgeBankConfig> {
        MEMORIES.map(|(_, memory)| EdgeBankConfig { memory }).to_vec()
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

impl TryFrom<String> for Memory {
    type Error = Error;

    fn try_from(text: String) -> Result<Memory> {
        text.parse()
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
    fn a_memory_is_known_by_our_name_and_by_dyglibs() {
        for (name, memory) in MEMORIES {
            assert_eq!(name.parse::<Memory>().expect("known"), memory);
        }
        assert_eq!("fixed_proportion".parse::<Memory>().expect("known"), Memory::WindowProportion);
        assert_eq!("repeat_interval".parse::<Memory>().expect("known"), Memory::WindowRepeat);
        assert!("forever".parse::<Memory>().is_err());
    }
}
