//! Published settings by dataset, from the `presets.toml` of each model: those of the paper for
//! L-STEP, those of DyGLib's tables for the models it compares with.

use super::TrainConfig;
use crate::error::{Error, Remedy, Result};
use crate::model::{AnyModelKind, ModelConfig, registry};
use crate::protocol::Strategy;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use toml::Table;

/// A model's `presets.toml`.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Presets {
    /// How the experiments behind the published numbers were trained.
    pub train: TrainConfig,
    datasets: Table,
}

/// What a model's `presets.toml` says about a dataset.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Preset {
    /// Events in a step, if not the protocol's own number.
    pub step: Option<u32>,
    /// Settings that differ from the model's defaults.
    pub model: Table,
    /// Settings for one kind of negatives alone.
    negatives: Table,
}

impl Presets {
    /// Those of a model.
    pub fn of(kind: &dyn AnyModelKind) -> Result<Presets> {
        let table = kind.presets().parse().map_err(|error| refused(kind, &error))?;
        read(kind, table)
    }

    /// What they say about a dataset. Nothing where they do not name it: the model's defaults hold.
    pub fn dataset(&self, kind: &dyn AnyModelKind, name: &str) -> Result<Preset> {
        match self.datasets.get(name) {
            Some(preset) => read(kind, preset.as_table().cloned().unwrap_or_default()),
            None => Ok(Preset::default()),
        }
    }
}

fn read<T: DeserializeOwned>(kind: &dyn AnyModelKind, table: Table) -> Result<T> {
    table.try_into().map_err(|error| refused(kind, &error))
}

fn refused(kind: &dyn AnyModelKind, error: &toml::de::Error) -> Error {
    Error::setting("presets of the model", kind.name(), error.to_string().trim_end().to_string())
}

/// The datasets that any model has published settings for.
pub fn preset_names() -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for kind in registry::kinds() {
        // What is wrong with a model's presets is said when it is asked for one.
        let datasets = Presets::of(kind).unwrap_or_default().datasets;
        for (name, _) in datasets {
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    names
}

/// Refuses the name of a dataset without a preset.
pub(super) fn check_preset(name: &str) -> Result<()> {
    let known = preset_names();
    if known.iter().any(|preset| preset == name) {
        return Ok(());
    }
    Err(Error::setting("preset", name, format!("choose one of {}", known.join(", "))))
}

/// A model with the settings behind its published number for a dataset and a kind of negatives. The
/// dataset's name may have any of its spellings (`Can. Parl.`, `CanParl`).
///
/// Only models whose published settings depend on the negatives have such: EdgeBank, whose memory
/// DyGLib chooses for each table.
pub fn published(model: &ModelConfig, dataset: &str, strategy: Strategy) -> Result<ModelConfig> {
    let kind = model.kind();
    let presets = Presets::of(kind)?;
    let plain = |name: &str| {
        let plain: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
        let plain = plain.to_lowercase();
        if plain == "contact" { "contacts".to_string() } else { plain }
    };
    let (mut choice, mut known) = (None, Vec::new());
    for name in presets.datasets.keys() {
        let preset = presets.dataset(kind, name)?;
        if !preset.negatives.is_empty() {
            known.push(name.as_str());
        }
        if plain(name) == plain(dataset) {
            choice = preset.negatives.get(&strategy.to_string()).cloned();
        }
    }
    match choice {
        Some(toml::Value::Table(settings)) => model.with(settings),
        _ => Err(Error::refused(
            kind.name(),
            format!("published for dataset {dataset:?} with {strategy} negatives"),
            format!("there is a published choice only for {}", known.join(", ")),
            Remedy::NameDataset,
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{DyGFormerConfig, EdgeBankConfig, LstepConfig, Memory, Sampling, TgnConfig};
    use crate::settings::{DataConfig, RunConfig};

    fn preset(model: &str, name: &str) -> RunConfig {
        let data = DataConfig { events: "events.csv".into(), ..DataConfig::default() };
        RunConfig::builder(data).model(model).preset(name).build().expect("known")
    }

    #[test]
    fn every_preset_of_every_model_is_right_and_reads_back_from_its_toml() {
        assert_eq!(preset_names().len(), 16);
        for name in preset_names() {
            for kind in registry::learned_kinds() {
                let config = preset(kind.name(), &name);
                config.model.check().expect("right settings");
                config.train.check().expect("right settings");
                let read =
                    RunConfig::from_toml("config.toml", &config.to_toml()).expect("read back");
                assert_eq!(read, config, "{name}");
            }
        }
    }

    #[test]
    fn presets_hold_the_values_of_the_published_tables() {
        let uci = preset("lstep", "uci");
        let expected = LstepConfig {
            snapshots: 200,
            gap: 500.0,
            recent: 30,
            position_width: 172,
            ..LstepConfig::default()
        };
        assert_eq!(uci.model, expected.into());
        assert_eq!(uci.protocol.step(), crate::protocol::StepRule::Events(100));
        let socialevo = preset("lstep", "socialevo").model;
        let width = |model: &ModelConfig| model.settings().map(|s: &LstepConfig| s.position_width);
        assert_eq!(width(&socialevo), Some(72));
        let canparl = preset("tgn", "canparl");
        let expected =
            TgnConfig { dropout: 0.3, sampling: Sampling::Uniform, ..TgnConfig::default() };
        assert_eq!(canparl.model, expected.into());
        assert_eq!((canparl.train.epochs, canparl.train.patience), (100, 20));
        assert_eq!(canparl.protocol.step(), crate::protocol::StepRule::Events(200));
        let expected = DyGFormerConfig { longest: 2048, patch: 64, ..DyGFormerConfig::default() };
        assert_eq!(preset("dygformer", "canparl").model, expected.into());
        let pair = preset("lstep-pair", "canparl");
        assert_eq!(pair.model, LstepConfig::pair().into());
        assert_eq!((pair.train.epochs, pair.train.clip, pair.train.novel), (30, Some(1.0), 0.04));
        assert_eq!(preset("tgn", "tgbl-wiki").protocol.name(), "tgb");
    }

    #[test]
    fn a_preset_that_is_not_there_is_refused_with_those_that_are() {
        let error = RunConfig::builder(DataConfig::default()).preset("ucy").build();
        let error = error.expect_err("no such dataset").to_string();
        assert!(error.contains("uci"), "{error}");
    }

    #[test]
    fn a_published_memory_is_found_in_any_spelling_of_the_dataset() {
        let edgebank = ModelConfig::from(EdgeBankConfig { memory: Memory::Unlimited });
        let memory = |dataset: &str, strategy| {
            let model = published(&edgebank, dataset, strategy).expect("known");
            model.settings().map(|settings: &EdgeBankConfig| settings.memory)
        };
        assert_eq!(memory("Can. Parl.", Strategy::Random), Some(Memory::WindowProportion));
        assert_eq!(memory("UCI", Strategy::Inductive), Some(Memory::WindowRepeat));
        assert_eq!(memory("Contact", Strategy::Inductive), Some(Memory::RepeatThreshold));
        assert!(published(&edgebank, "mine", Strategy::Random).is_err());
        assert!(published(&edgebank, "uci", Strategy::Tgb).is_err());
        let tgn = ModelConfig::learned("tgn").expect("known");
        assert!(published(&tgn, "uci", Strategy::Random).is_err());
    }
}
