//! Models as a grid names them: `lstep`, `lstep:variant=no-position:recent=30`,
//! `edgebank:memory=unlimited`, `local-recency+global-popularity`.

use crate::error::{Error, Result};
use crate::evaluation::EvaluatedModel;
use crate::fingerprint::Fingerprint;
use crate::model::{ModelConfig, registry};
use crate::protocol::Strategy;
use crate::settings::published;
use serde::{Deserialize, Serialize};
use std::str::FromStr;

/// Bytes of a folder's name that every file system takes, with room for what is written beside it.
const LONGEST_NAME: usize = 120;

/// The value that asks for the settings behind a published number.
const PUBLISHED: &str = "published";

/// A model of a grid: its name, and what is set differently from its preset.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelSpec {
    /// What tables call it.
    pub label: String,
    /// A model that learns, or one that counts.
    pub name: String,
    /// Settings as `key=value`; a key without a dot is one of the model.
    #[serde(default)]
    pub settings: Vec<String>,
}

impl ModelSpec {
    /// The same under another label.
    #[must_use]
    pub fn labelled(mut self, label: &str) -> ModelSpec {
        self.label = label.to_string();
        self
    }

    /// The same with more settings.
    #[must_use]
    pub fn with(mut self, settings: impl IntoIterator<Item = String>) -> ModelSpec {
        self.settings.extend(settings);
        self
    }

    /// Whether it has to be trained.
    pub fn learns(&self) -> bool {
        registry::find(&self.name).is_some_and(|kind| kind.learns())
    }

    /// A name for its folder. Equal settings give equal folders, whatever the label; a long name
    /// ends in a hash.
    pub fn folder(&self) -> String {
        let mut text = self.name.clone();
        self.settings.iter().for_each(|setting| text.extend([",", setting]));
        let name = file_name(&text);
        if name.len() <= LONGEST_NAME {
            return name;
        }
        let mut hash = Fingerprint::default();
        hash.take(&text);
        let begin: String = name.chars().take(LONGEST_NAME / 4).collect();
        format!("{begin}-{}", &hash.hex()[..16])
    }

    /// The model before presets and settings.
    pub(super) fn base(&self) -> Result<ModelConfig> {
        self.name.parse()
    }

    /// The settings as paths of a run's configuration.
    pub(super) fn keys(&self) -> Vec<String> {
        let path = |setting: &String| {
            let key = setting.split('=').next().unwrap_or_default();
            if key.contains('.') { setting.clone() } else { format!("model.{setting}") }
        };
        self.settings.iter().map(path).collect()
    }

    /// Who takes the pass for a model that counts: with the settings behind its published numbers
    /// where there are such and nothing else is set.
    pub(super) fn model(&self, dataset: &str, strategies: &[Strategy]) -> Result<EvaluatedModel> {
        let mut model = self.base()?;
        let published = |model: &ModelConfig| {
            strategies
                .iter()
                .try_for_each(|strategy| published(model, dataset, *strategy).map(drop))
        };
        let mut follows = published(&model).is_ok();
        for setting in &self.settings {
            let (key, value) = setting.split_once('=').unwrap_or((setting, ""));
            follows = value == PUBLISHED;
            if follows {
                published(&model)?;
            } else {
                model = model.set(key, value)?;
            }
        }
        model.check()?;
        let dataset = dataset.to_string();
        Ok(if follows {
            EvaluatedModel::Published { model, dataset }
        } else {
            EvaluatedModel::Fixed(model)
        })
    }
}

impl std::fmt::Display for ModelSpec {
    /// As the command line writes it.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.name)?;
        self.settings.iter().try_for_each(|setting| write!(f, ":{setting}"))
    }
}

impl FromStr for ModelSpec {
    type Err = Error;

    fn from_str(text: &str) -> Result<ModelSpec> {
        let mut parts = text.split(':');
        let name = parts.next().unwrap_or_default().to_string();
        let settings: Vec<String> = parts.map(String::from).collect();
        for setting in &settings {
            if setting.split_once('=').is_none_or(|(key, value)| key.is_empty() || value.is_empty())
            {
                let remedy = format!(
                    "write NAME:key=value, for example lstep:recent=30; {setting:?} is no setting"
                );
                return Err(Error::setting("model", text, remedy));
            }
        }
        let spec = ModelSpec { label: label(&name, &settings), name, settings };
        spec.base()?;
        Ok(spec)
    }
}

/// A short label: a value that is a word speaks for itself, a number needs its key.
pub(super) fn label(name: &str, settings: &[String]) -> String {
    let short = |setting: &String| match setting.split_once('=') {
        Some((_, value))
            if value.starts_with(|c: char| c.is_ascii_alphabetic())
                && !["true", "false"].contains(&value) =>
        {
            value.to_string()
        }
        _ => setting.trim_start_matches("model.").to_string(),
    };
    match settings.iter().map(short).collect::<Vec<_>>().join(", ") {
        settings if settings.is_empty() => name.to_string(),
        settings => format!("{name} ({settings})"),
    }
}

/// A text as the name of a file or folder on any system.
pub(super) fn file_name(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_alphanumeric() || "._=+,-".contains(c) { c } else { '-' })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{EdgeBankConfig, Memory};

    #[test]
    fn a_spec_is_written_as_it_was_read_and_has_a_short_label() {
        for (text, label) in [
            ("lstep", "lstep"),
            ("lstep:variant=no-position", "lstep (no-position)"),
            ("lstep:aggregation=attention:recent=30", "lstep (attention, recent=30)"),
            ("tgn:train.learning_rate=0.001", "tgn (train.learning_rate=0.001)"),
            ("edgebank:memory=unlimited", "edgebank (unlimited)"),
            ("local-recency+global-popularity", "local-recency+global-popularity"),
        ] {
            let spec: ModelSpec = text.parse().expect(text);
            assert_eq!((spec.to_string().as_str(), spec.label.as_str()), (text, label));
        }
        let spec: ModelSpec = "lstep:recent=30:train.epochs=3".parse().expect("known");
        assert_eq!(spec.keys(), ["model.recent=30", "train.epochs=3"]);
        assert_eq!(spec.folder(), "lstep,recent=30,train.epochs=3");
    }

    #[test]
    fn a_folder_has_a_name_that_file_systems_take_and_no_two_models_share() {
        let many = |last: usize| -> ModelSpec {
            let settings: String =
                (0..30).map(|key| format!(":model.setting{key}={}", key / 29 * last)).collect();
            format!("lstep{settings}").parse().expect("settings are checked later")
        };
        assert!(many(1).folder().len() < 120);
        assert_ne!(many(1).folder(), many(2).folder());
        let strange: ModelSpec =
            "lstep:node_features=a/b".parse().expect("settings are checked later");
        assert_eq!(strange.folder(), "lstep,node_features=a-b");
    }

    #[test]
    fn what_is_no_model_is_refused_with_those_that_are() {
        let error = "lstp".parse::<ModelSpec>().expect_err("misspelt").to_string();
        assert!(
            error.contains("lstep, lstep-pair, graphmixer") && error.contains("edgebank"),
            "{error}"
        );
        let error = "lstep:recent".parse::<ModelSpec>().expect_err("no value").to_string();
        assert!(error.contains("lstep:recent=30"), "{error}");
    }

    #[test]
    fn edgebank_takes_the_published_memory_where_there_is_one() {
        let spec: ModelSpec = "edgebank".parse().expect("known");
        let asked = [Strategy::Random, Strategy::Historical];
        let model = |spec: &ModelSpec, dataset: &str, asked: &[Strategy]| {
            spec.model(dataset, asked).expect("known")
        };
        assert_eq!(
            model(&spec, "uci", &asked),
            EvaluatedModel::Published {
                model: EdgeBankConfig { memory: Memory::Unlimited }.into(),
                dataset: "uci".into()
            }
        );
        let unlimited = EvaluatedModel::Fixed(EdgeBankConfig { memory: Memory::Unlimited }.into());
        assert_eq!(model(&spec, "mine", &asked), unlimited);
        assert_eq!(model(&spec, "tgbl-wiki", &[Strategy::Tgb]), unlimited);
        assert_eq!(
            model(&"edgebank:memory=unlimited".parse().expect("known"), "uci", &asked),
            unlimited
        );
        let misspelt: ModelSpec =
            "edgebank:memry=unlimited".parse().expect("settings are checked later");
        assert!(misspelt.model("uci", &asked).is_err());
    }
}
