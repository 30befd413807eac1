//! A run as one TOML: `[data] [protocol] [model] [train]`. Unknown keys are refused; defaults are
//! written once.
//!
//! Settings are laid over each other as tables, in this order: defaults, preset, file, single keys.
//! Only the last table is turned into a [`RunConfig`], so every layer is checked by the same rules.

use super::former;
use crate::error::{Error, Result};
use crate::model::ModelConfig;
use crate::protocol::dyglib::DyglibProtocol;
use crate::protocol::tgb::TgbProtocol;
use crate::protocol::{Protocol, StreamProtocol};
use crate::read::{FeatureColumns, ReadOptions, dataset_name};
use crate::settings::TrainConfig;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use toml::{Table, Value};

/// Everything a run depends on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunConfig {
    /// The events.
    pub data: DataConfig,
    /// How they are split, stepped and asked about.
    pub protocol: Protocol,
    /// What learns.
    pub model: ModelConfig,
    /// How it learns.
    pub train: TrainConfig,
}

/// A file of events and how to read it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DataConfig {
    /// The file.
    pub events: PathBuf,
    /// Column of sources.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub src: Option<String>,
    /// Column of destinations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dst: Option<String>,
    /// Column of times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<String>,
    /// Columns that are features, separated by commas; `none`, or `all`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub features: Option<String>,
    /// Table of node features.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_features: Option<PathBuf>,
    /// Whether the same id as source and as destination names two nodes.
    #[serde(default)]
    pub bipartite: bool,
    /// Whether events are sorted instead of refused.
    #[serde(default)]
    pub sort: bool,
}

impl DataConfig {
    /// How to read the file.
    pub fn options(&self) -> ReadOptions {
        ReadOptions {
            source: self.src.clone(),
            destination: self.dst.clone(),
            time: self.time.clone(),
            features: match self.features.as_deref() {
                None => FeatureColumns::Automatic,
                Some("none") => FeatureColumns::None,
                Some("all") => FeatureColumns::All,
                Some(columns) => FeatureColumns::Named(
                    columns.split(',').map(|column| column.trim().to_string()).collect(),
                ),
            },
            bipartite: self.bipartite,
            sort: self.sort,
            node_features: self.node_features.clone(),
            ..ReadOptions::default()
        }
    }
}

/// The names that decide which defaults settings are laid over.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Named {
    /// A learned model's.
    pub model: Option<String>,
    /// A protocol's.
    pub protocol: Option<String>,
}

impl Named {
    /// What a file's text or single settings name. A key that names another than the file is
    /// refused: the file's settings are not for it.
    fn in_settings(file: Option<(&str, &str)>, keys: &[String]) -> Result<Named> {
        let mut named = match file {
            Some((name, text)) => {
                Named::in_table(&text.parse().map_err(|error| refused(name, &error))?)
            }
            None => Named::default(),
        };
        let of_file = named.clone();
        for key in keys {
            // One by one and apart from the others: laid over each other they would be spelt out.
            let mut table = Table::new();
            lay_key_over(&mut table, key)?;
            let said = Named::in_table(&table);
            named = Named {
                model: said.model.or(named.model),
                protocol: said.protocol.or(named.protocol),
            };
        }
        let parts = [
            ("model", of_file.model, &named.model),
            ("protocol", of_file.protocol, &named.protocol),
        ];
        for (what, of_file, said) in parts {
            if let (Some((file, _)), Some(of_file), Some(said)) = (file, of_file, said)
                && of_file != *said
            {
                let remedy = format!(
                    "{file} names {of_file}, whose settings are not for it: name one of the two"
                );
                return Err(Error::setting(what, said, remedy));
            }
        }
        Ok(named)
    }

    fn in_table(table: &Table) -> Named {
        let name = |part: &str| Some(table.get(part)?.get("name")?.as_str()?.to_string());
        // The settings of a run have the pair's in a table of their own, under the name of L-STEP.
        let tells_of_pairs = table.get("model").is_some_and(|model| model.get("pair").is_some());
        let model = name("model").filter(|name| name != "lstep" || !tells_of_pairs);
        Named {
            model: model.or_else(|| tells_of_pairs.then(|| "lstep-pair".into())),
            protocol: name("protocol"),
        }
    }
}

impl RunConfig {
    /// Lays a file's text and single `key=value` settings over this one. A key is a path such as
    /// `model.recent`.
    pub fn with(&self, file: Option<(&str, &str)>, keys: &[String]) -> Result<RunConfig> {
        let mut table = Table::try_from(self).expect("settings are plain data");
        if let Some((name, text)) = file {
            let mut over: Table = text.parse().map_err(|error| refused(name, &error))?;
            former::rename(&mut over);
            lay_over(&mut table, over);
            // A fault of the file is not blamed on a key; only what the file leaves to keys may
            // still be missing.
            if let (Err(error), false) =
                (RunConfig::deserialize(table.clone()), keys.iter().any(|key| completes(key)))
            {
                return Err(refused(name, &error));
            }
        }
        let without_keys = table.clone();
        for key in keys {
            lay_key_over(&mut table, key)?;
        }
        table.try_into().or_else(|error| {
            // Which key it is shows when they are laid over one by one.
            let mut table = without_keys;
            for key in keys {
                lay_key_over(&mut table, key)?;
                if let Err(error) = RunConfig::deserialize(table.clone()) {
                    return Err(refused(key, &error));
                }
            }
            Err(refused(file.map_or("settings", |(name, _)| name), &error))
        })
    }

    /// The settings of a model for some data, with a file's text and single settings laid over
    /// them. A model or protocol that these name brings its own defaults and its own preset, as if
    /// it had been named here.
    pub fn compose(
        data: DataConfig,
        named: Named,
        preset: Option<&str>,
        file: Option<(&str, &str)>,
        keys: &[String],
    ) -> Result<RunConfig> {
        let said = Named::in_settings(file, keys)?;
        let model = named.model.or(said.model);
        let model = ModelConfig::learned(model.as_deref().unwrap_or(ModelConfig::LEARNED[0]))?;
        let mut config = RunConfig::start(data, model, preset)?;
        if let Some(protocol) = named.protocol.or(said.protocol) {
            config = config.under(&protocol)?;
        }
        config.with(file, keys)
    }

    /// The same run under another protocol, with that protocol's own settings for the data.
    pub fn under(mut self, protocol: &str) -> Result<RunConfig> {
        if self.protocol.name() != protocol {
            self.protocol = match protocol {
                "stream" => Protocol::Stream(StreamProtocol::default()),
                "dyglib" => Protocol::Dyglib(DyglibProtocol { step: 200 }),
                "tgb" => {
                    let folder = self.data.events.parent().map(PathBuf::from);
                    Protocol::Tgb(TgbProtocol::for_dataset(
                        &dataset_name(&self.data.events),
                        folder,
                    ))
                }
                _ => {
                    return Err(Error::setting(
                        "protocol",
                        protocol,
                        "choose stream, dyglib or tgb",
                    ));
                }
            };
        }
        Ok(self)
    }

    /// The settings as TOML.
    pub fn to_toml(&self) -> String {
        toml::to_string_pretty(self).expect("settings are plain data")
    }

    /// Reads what [`RunConfig::to_toml`] wrote.
    pub fn from_toml(name: &str, text: &str) -> Result<RunConfig> {
        toml::from_str(text).map_err(|error| refused(name, &error))
    }
}

fn refused(name: &str, error: &toml::de::Error) -> Error {
    Error::setting("configuration", name, error.to_string().trim_end().to_string())
}

/// Puts one setting, `path=value`, over a table.
fn lay_key_over(table: &mut Table, key: &str) -> Result<()> {
    let (path, value) = key.split_once('=').ok_or_else(|| {
        Error::setting("set", key, "write it as key=value, for example model.recent=30")
    })?;
    // A value that is no TOML is a text, so that names need no quotes.
    let mut over = format!("value = {value}")
        .parse::<Table>()
        .ok()
        .and_then(|mut table| table.remove("value"))
        .unwrap_or_else(|| Value::String(value.to_string()));
    for part in path.split('.').rev() {
        over = Value::Table(Table::from_iter([(part.to_string(), over)]));
    }
    if let Value::Table(mut over) = over {
        former::rename(&mut over);
        lay_over(table, over);
    }
    Ok(())
}

/// Whether a single setting may complete a protocol that a file names without all it needs.
fn completes(key: &str) -> bool {
    key.starts_with("protocol.")
}

/// `lstep-pair` is L-STEP with the pair's settings: where a table names it, these come before its
/// own.
fn spell_out_pair(under: &mut Table, over: &mut Table) {
    let name = |table: &Table| Some(table.get("model")?.get("name")?.as_str()?.to_string());
    if name(over).as_deref() != Some("lstep-pair") {
        return;
    }
    let is_pair = under.get("model").and_then(|model| model.get("pair")).is_some();
    if !is_pair {
        let pair = ModelConfig::learned("lstep-pair").expect("it is one of the learned");
        under.insert("model".into(), Value::try_from(pair).expect("settings are plain data"));
    }
    if let Some(Value::Table(model)) = over.get_mut("model") {
        model.insert("name".into(), Value::String("lstep".into()));
    }
}

/// Puts one table over another, key by key. A protocol or model of another name replaces the old
/// one wholly.
fn lay_over(under: &mut Table, mut over: Table) {
    spell_out_pair(under, &mut over);
    for (key, value) in over {
        match (under.get_mut(&key), value) {
            (Some(Value::Table(under)), Value::Table(over))
                if over.get("name").is_none_or(|name| under.get("name") == Some(name)) =>
            {
                lay_over(under, over);
            }
            (_, value) => {
                under.insert(key, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::LstepConfig;

    fn start(preset: Option<&str>) -> RunConfig {
        let data = DataConfig { events: "events.csv".into(), ..DataConfig::default() };
        RunConfig::start(data, ModelConfig::Lstep(LstepConfig::default()), preset).expect("known")
    }

    #[test]
    fn later_layers_override_earlier_ones() {
        let file = "[model]\nname = \"lstep\"\nrecent = 7\n[train]\nepochs = 3\n";
        let keys = ["model.recent=9".to_string(), "model.scope=all".to_string()];
        let config = start(Some("uci")).with(Some(("my.toml", file)), &keys).expect("known keys");
        let ModelConfig::Lstep(model) = &config.model else { panic!("lstep") };
        assert_eq!((model.recent, model.snapshots, config.train.epochs), (9, 200, 3));
        assert_eq!(model.scope, crate::model::Scope::All);
    }

    #[test]
    fn a_switch_that_came_later_is_on_for_new_runs_and_off_for_those_of_before() {
        let data = DataConfig { events: "events.csv".into(), ..DataConfig::default() };
        let new =
            RunConfig::start(data, ModelConfig::Lstep(LstepConfig::pair()), None).expect("known");
        let switch = |config: &RunConfig| {
            let ModelConfig::Lstep(LstepConfig { pair: Some(pair), .. }) = &config.model else {
                panic!("lstep-pair")
            };
            (pair.neighbour_popularity, pair.history)
        };
        let changed = new
            .clone()
            .with(Some(("my.toml", "[model.pair]\nhistory = 32\n")), &[])
            .expect("known keys");
        assert_eq!(switch(&changed), (true, 32));
        let stored = new.to_toml();
        let before: RunConfig =
            toml::from_str(&stored.replace("neighbour_popularity = true\n", ""))
                .expect("a run of before");
        assert_eq!((switch(&new), switch(&before)), ((true, 64), (false, 64)));
    }

    #[test]
    fn a_protocol_comes_with_its_settings_for_the_data() {
        let mut config = start(None);
        config.data.events = "data/tgbl-wiki_edgelist_v2.csv".into();
        let config = config.under("tgb").expect("known");
        let Protocol::Tgb(tgb) = &config.protocol else { panic!("tgb") };
        assert_eq!(
            (tgb.dataset.as_str(), tgb.per_event, tgb.folder.as_deref()),
            ("tgbl-wiki", 12_000, Some("data".as_ref()))
        );
        // One that is there already keeps its settings.
        let config = start(Some("uci")).under("dyglib").expect("known");
        assert_eq!(config.protocol, Protocol::Dyglib(DyglibProtocol { step: 100 }));
        assert!(start(None).under("tbg").is_err());
    }

    #[test]
    fn a_fault_of_the_file_is_not_blamed_on_a_key() {
        let error = start(None)
            .with(Some(("my.toml", "[model]\nrecnt = 3\n")), &["train.epochs=1".to_string()]);
        let error = error.expect_err("misspelt").to_string();
        assert!(error.contains("my.toml") && !error.contains("epochs"), "{error}");
    }

    #[test]
    fn a_model_is_named_in_a_file_as_on_the_command_line() {
        for name in ModelConfig::LEARNED {
            let file = format!("[model]\nname = \"{name}\"\n");
            let config = start(None).with(Some(("my.toml", &file)), &[]).expect("a known name");
            assert_eq!(config.model, ModelConfig::learned(name).expect("known"));
            let config =
                start(None).with(None, &[format!("model.name={name}")]).expect("a known name");
            assert_eq!(config.model.kind(), name);
        }
        let file = "[model]\nname = \"lstep-pair\"\nrecent = 7\n";
        let config = start(None).with(Some(("my.toml", file)), &[]).expect("known keys");
        assert_eq!(
            config.model,
            ModelConfig::Lstep(LstepConfig { recent: 7, ..LstepConfig::pair() })
        );
    }

    #[test]
    fn a_model_named_in_settings_brings_its_own_defaults_and_preset() {
        fn compose(
            named: Named,
            preset: Option<&str>,
            file: Option<(&str, &str)>,
            keys: &[String],
        ) -> RunConfig {
            let data = DataConfig { events: "events.csv".into(), ..DataConfig::default() };
            RunConfig::compose(data, named, preset, file, keys).expect("known names")
        }
        for name in ModelConfig::LEARNED {
            for preset in [None, Some("canparl")] {
                let flag = Named { model: Some(name.into()), protocol: None };
                let expected = compose(flag, preset, None, &[]);
                let file = format!("[model]\nname = \"{name}\"\n");
                assert_eq!(
                    compose(Named::default(), preset, Some(("my.toml", &file)), &[]),
                    expected
                );
                assert_eq!(
                    compose(Named::default(), preset, None, &[format!("model.name={name}")]),
                    expected
                );
                let written = expected.to_toml();
                assert_eq!(
                    compose(Named::default(), None, Some(("config.toml", &written)), &[]),
                    expected
                );
            }
        }
        let tgb =
            compose(Named::default(), None, Some(("my.toml", "[protocol]\nname = \"tgb\"\n")), &[]);
        assert_eq!(tgb.protocol, start(None).under("tgb").expect("known").protocol);
        for (key, name) in [
            ("model.name='tgn'", "tgn"),
            ("model={name=\"tgn\"}", "tgn"),
            ("model.pair.history=8", "lstep-pair"),
        ] {
            let flag = Named { model: Some(name.into()), protocol: None };
            let found = compose(Named::default(), None, None, &[key.to_string()]);
            assert_eq!(
                (found.model.kind(), found.train),
                (name, compose(flag, None, None, &[]).train),
                "{key}"
            );
        }
        let refused = |file: Option<(&str, &str)>, key: &str| {
            let keys = [key.to_string()];
            let config = RunConfig::compose(
                DataConfig::default(),
                Named::default(),
                Some("canparl"),
                file,
                &keys,
            );
            config.expect_err("no such model").to_string()
        };
        let error = refused(None, "model.name=edgebank");
        assert!(error.contains("edgebank") && error.contains("lstep-pair"), "{error}");
        let error =
            refused(Some(("tgn.toml", "[model]\nname = \"tgn\"\n")), "model.name=graphmixer");
        assert!(error.contains("tgn.toml names tgn") && error.contains("graphmixer"), "{error}");
    }

    #[test]
    fn an_unknown_key_is_refused() {
        let error = start(None).with(None, &["model.recnt=9".to_string()]).expect_err("misspelt");
        assert!(error.to_string().contains("recnt"), "{error}");
        assert!(start(None).with(None, &["epochs".to_string()]).is_err());
        let keys = ["train.epochs=3", "model.recent=-1", "train.seed=2"].map(String::from);
        let error = start(None).with(None, &keys).expect_err("no count").to_string();
        assert!(error.contains("model.recent=-1") && !error.contains("train"), "{error}");
    }
}
