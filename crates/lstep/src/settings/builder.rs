//! Where the settings of a run come from, in this order: defaults of the model and the protocol, a
//! preset, the purpose, a file, single keys.
//!
//! Later layers override earlier ones. They are laid over each other as tables, and only the result
//! becomes a [`RunConfig`], so every layer is checked by the same rules. A model or protocol that
//! the file or a key names brings its own defaults and preset, as if a flag had named it.

use super::former;
use super::preset::{Presets, check_preset};
use super::{DataConfig, Purpose, RunConfig};
use crate::error::{Error, Result};
use crate::model::{ModelConfig, merge, registry, value_of};
use crate::protocol::{Protocol, StreamProtocol};
use crate::read::dataset_name;
use serde::Deserialize;
use std::path::PathBuf;
use toml::{Table, Value};

/// Gathers the settings of a run. Start with [`RunConfig::builder`].
#[derive(Debug, Clone)]
#[must_use]
pub struct SettingsBuilder {
    data: DataConfig,
    names: Names,
    purpose: Option<Purpose>,
    model: Option<ModelConfig>,
    preset: Option<String>,
    file: Option<(String, String)>,
    keys: Vec<String>,
}

/// The names that decide which defaults settings are laid over.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Names {
    model: Option<String>,
    protocol: Option<String>,
}

/// A layer of settings, and what messages call it.
struct Layer {
    name: String,
    table: Table,
}

impl RunConfig {
    /// Settings for some data.
    pub fn builder(data: DataConfig) -> SettingsBuilder {
        SettingsBuilder {
            data,
            names: Names::default(),
            purpose: None,
            model: None,
            preset: None,
            file: None,
            keys: Vec::new(),
        }
    }

    /// The same with single `key=value` settings laid over it. A key is a path such as
    /// `model.recent`.
    pub fn with_keys(&self, keys: &[String]) -> Result<RunConfig> {
        lay(self, None, Layer::of_keys(keys)?)
    }
}

impl SettingsBuilder {
    /// The model to train, by name. Without one it is that of the purpose: `lstep-pair` for ranking,
    /// L-STEP for benchmarks.
    pub fn model<'a>(mut self, name: impl Into<Option<&'a str>>) -> SettingsBuilder {
        self.names.model = name.into().map(String::from);
        self
    }

    /// A model with settings of its own, which a preset is laid over.
    pub fn model_config(mut self, model: impl Into<ModelConfig>) -> SettingsBuilder {
        self.model = Some(model.into());
        self
    }

    /// The protocol, by name. Without one it is the preset's, else `stream`.
    pub fn protocol<'a>(mut self, name: impl Into<Option<&'a str>>) -> SettingsBuilder {
        self.names.protocol = name.into().map(String::from);
        self
    }

    /// What the run is for. Without one it is what the file says, else a benchmark.
    pub fn purpose(mut self, purpose: impl Into<Option<Purpose>>) -> SettingsBuilder {
        self.purpose = purpose.into();
        self
    }

    /// The published settings of a dataset.
    pub fn preset<'a>(mut self, name: impl Into<Option<&'a str>>) -> SettingsBuilder {
        self.preset = name.into().map(String::from);
        self
    }

    /// A file of settings: what messages call it, and its text.
    pub fn file(mut self, name: &str, text: &str) -> SettingsBuilder {
        self.file = Some((name.to_string(), text.to_string()));
        self
    }

    /// Single settings as `key=value`, laid over everything else.
    pub fn set(mut self, keys: &[String]) -> SettingsBuilder {
        self.keys.extend_from_slice(keys);
        self
    }

    /// The settings.
    pub fn build(self) -> Result<RunConfig> {
        let file = self.file.map(|(name, text)| Layer::of_file(name, &text)).transpose()?;
        let keys = Layer::of_keys(&self.keys)?;
        let named = Names::in_layers(file.as_ref(), &keys)?;
        let purpose = match self.purpose {
            Some(purpose) => purpose,
            None => purpose_in(file.as_ref(), &keys)?,
        };
        let model = match self.model {
            Some(model) => model,
            None => match self.names.model.or(named.model) {
                Some(name) => ModelConfig::of_run(&name)?,
                None => ModelConfig::of_run(purpose.model())?,
            },
        };
        let protocol = self.names.protocol.or(named.protocol);
        let mut base = defaults(self.data, model, self.preset.as_deref(), protocol.as_deref())?;
        purpose.apply(&mut base)?;
        lay(&base, file, keys)
    }
}

/// The purpose that a file or a key names.
fn purpose_in(file: Option<&Layer>, keys: &[Layer]) -> Result<Purpose> {
    let mut layers = file.into_iter().chain(keys).rev();
    let named = layers.find_map(|layer| layer.table.get("purpose")?.as_str());
    named.map_or(Ok(Purpose::default()), str::parse)
}

/// The defaults of a model and a protocol, or those of a preset.
fn defaults(
    data: DataConfig,
    model: ModelConfig,
    preset: Option<&str>,
    protocol: Option<&str>,
) -> Result<RunConfig> {
    let mut presets = Presets::of(model.kind())?;
    if !model.kind().learns() {
        // One pass over the events is all there is to do.
        (presets.train.epochs, presets.train.patience) = (1, 1);
    }
    let folder = data.events.parent().map(PathBuf::from);
    let mut config = match preset {
        None => {
            let protocol = Protocol::Stream(StreamProtocol::default());
            let purpose = Purpose::Benchmark;
            RunConfig { purpose, data, protocol, model, train: presets.train }
        }
        Some(name) => {
            check_preset(name)?;
            let preset = presets.dataset(model.kind(), name)?;
            let mut protocol = Protocol::of_published(name, folder.clone());
            if let Some(step) = preset.step {
                protocol = protocol.with_step(step);
            }
            let model = model.with(preset.model)?;
            RunConfig { purpose: Purpose::Benchmark, data, protocol, model, train: presets.train }
        }
    };
    // A preset's own protocol keeps the preset's step.
    if let Some(name) = protocol.filter(|name| config.protocol.name() != *name) {
        config.protocol = Protocol::named(name, &dataset_name(&config.data.events), folder)?;
    }
    Ok(config)
}

impl Layer {
    fn of_file(name: String, text: &str) -> Result<Layer> {
        let mut table: Table = text.parse().map_err(|error| refused(&name, &error))?;
        former::rename(&mut table);
        Ok(Layer { name, table })
    }

    fn of_keys(keys: &[String]) -> Result<Vec<Layer>> {
        let layer = |key: &String| {
            let (path, value) = key.split_once('=').ok_or_else(|| {
                Error::setting("set", key, "write it as key=value, for example model.recent=30")
            })?;
            let mut table = nested(path, value_of(value));
            former::rename(&mut table);
            Ok(Layer { name: key.clone(), table })
        };
        keys.iter().map(layer).collect()
    }

    /// Whether a single setting may complete a protocol that a file names without all it needs.
    fn completes(&self) -> bool {
        self.table.contains_key("protocol")
    }
}

/// A value below a path such as `model.recent`.
fn nested(path: &str, value: Value) -> Table {
    let (first, rest) = path.split_once('.').map_or((path, None), |(a, b)| (a, Some(b)));
    let value = match rest {
        Some(rest) => Value::Table(nested(rest, value)),
        None => value,
    };
    Table::from_iter([(first.to_string(), value)])
}

impl Names {
    /// What a file and keys name. A key that names another than the file is refused: the file's
    /// settings are not for it.
    fn in_layers(file: Option<&Layer>, keys: &[Layer]) -> Result<Names> {
        let of_file = file.map(|file| Names::in_table(&file.table)).unwrap_or_default();
        let mut names = of_file.clone();
        for key in keys {
            let said = Names::in_table(&key.table);
            names = Names {
                model: said.model.or(names.model),
                protocol: said.protocol.or(names.protocol),
            };
        }
        let parts = [
            ("model", of_file.model, &names.model),
            ("protocol", of_file.protocol, &names.protocol),
        ];
        for (what, of_file, said) in parts {
            if let (Some(file), Some(of_file), Some(said)) = (file, of_file, said)
                && of_file != *said
            {
                let remedy = format!(
                    "{} names {of_file}, whose settings are not for it: name one of the two",
                    file.name
                );
                return Err(Error::setting(what, said, remedy));
            }
        }
        Ok(names)
    }

    fn in_table(table: &Table) -> Names {
        let name = |part: &str| Some(table.get(part)?.get("name")?.as_str()?.to_string());
        let model = table.get("model").and_then(Value::as_table);
        // Stored settings may have another name than the model, and some settings tell the model
        // without a name.
        let kind = model.and_then(|model| match name("model") {
            Some(name) => registry::find_stored(&name, model),
            None => registry::find_claiming(model),
        });
        Names {
            model: kind.map(|kind| kind.name().to_string()).or_else(|| name("model")),
            protocol: name("protocol"),
        }
    }
}

/// Lays a file and single settings over a configuration.
fn lay(base: &RunConfig, file: Option<Layer>, keys: Vec<Layer>) -> Result<RunConfig> {
    let mut table = Table::try_from(base).expect("settings are plain data");
    let mut last = "settings".to_string();
    if let Some(file) = file {
        lay_over(&mut table, file.table);
        // A fault of the file is not blamed on a key; only what the file leaves to keys may still
        // be missing.
        if !keys.iter().any(Layer::completes)
            && let Err(error) = RunConfig::deserialize(table.clone())
        {
            return Err(refused(&file.name, &error));
        }
        last = file.name;
    }
    let without_keys = table.clone();
    keys.iter().for_each(|key| lay_over(&mut table, key.table.clone()));
    table.try_into().map_err(|error| {
        // Which key it is shows when they are laid over one by one.
        let mut table = without_keys;
        for key in keys {
            lay_over(&mut table, key.table);
            if let Err(error) = RunConfig::deserialize(table.clone()) {
                return refused(&key.name, &error);
            }
        }
        refused(&last, &error)
    })
}

/// Puts one table over another, key by key. A protocol or model of another name replaces the old
/// one wholly.
fn lay_over(under: &mut Table, mut over: Table) {
    settle_model(under, &mut over);
    for (key, value) in over {
        match (under.get_mut(&key), value) {
            (Some(Value::Table(under)), Value::Table(over))
                if over.get("name").is_none_or(|name| under.get("name") == Some(name)) =>
            {
                merge(under, over);
            }
            (_, value) => {
                under.insert(key, value);
            }
        }
    }
}

/// Where a table names another model than the one it is laid over, that model's defaults come
/// first. The name becomes the one that stored settings have.
fn settle_model(under: &mut Table, over: &mut Table) {
    let Some(Value::Table(over)) = over.get_mut("model") else { return };
    let Some(name) = over.get("name").and_then(Value::as_str) else { return };
    let old = under.get("model").and_then(Value::as_table);
    let old_name = old.and_then(|model| model.get("name")).and_then(Value::as_str);
    let Some(kind) = registry::find(name).filter(|_| old_name != Some(name)) else { return };
    let old_kind = old.zip(old_name).and_then(|(old, name)| registry::find_stored(name, old));
    over.insert("name".into(), kind.stored_as().into());
    if old_kind.is_none_or(|old| old.name() != kind.name()) {
        let defaults = Value::try_from(kind.defaults()).expect("settings are plain data");
        under.insert("model".into(), defaults);
    }
}

pub(super) fn refused(name: &str, error: &toml::de::Error) -> Error {
    Error::setting("configuration", name, error.to_string().trim_end().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{LstepConfig, PairConfig, Scope};
    use crate::protocol::dyglib::DyglibProtocol;

    fn builder() -> SettingsBuilder {
        RunConfig::builder(DataConfig { events: "events.csv".into(), ..DataConfig::default() })
    }

    fn lstep(config: &RunConfig) -> &LstepConfig {
        config.model.settings().expect("lstep")
    }

    fn key(key: &str) -> [String; 1] {
        [key.to_string()]
    }

    fn learned_names() -> impl Iterator<Item = &'static str> {
        registry::learned_kinds().into_iter().map(|kind| kind.name())
    }

    #[test]
    fn later_layers_override_earlier_ones() {
        let file = "[model]\nname = \"lstep\"\nrecent = 7\n[train]\nepochs = 3\n";
        let keys = ["model.recent=9".to_string(), "model.scope=all".to_string()];
        let config = builder().preset("uci").file("my.toml", file).set(&keys).build();
        let config = config.expect("known keys");
        let model = lstep(&config);
        assert_eq!((model.recent, model.snapshots, config.train.epochs), (9, 200, 3));
        assert_eq!(model.scope, Scope::All);
    }

    #[test]
    fn a_switch_that_came_later_is_on_for_new_runs_and_off_for_those_of_before() {
        let new = builder().model("lstep-pair").build().expect("known");
        let switch = |config: &RunConfig| {
            let pair: &PairConfig = lstep(config).pair.as_ref().expect("lstep-pair");
            (pair.neighbour_popularity, pair.history)
        };
        let changed = builder().model("lstep-pair").file("my.toml", "[model.pair]\nhistory = 32\n");
        assert_eq!(switch(&changed.build().expect("known keys")), (true, 32));
        let stored = new.to_toml();
        let before: RunConfig =
            toml::from_str(&stored.replace("neighbour_popularity = true\n", ""))
                .expect("a run of before");
        assert_eq!((switch(&new), switch(&before)), ((true, 64), (false, 64)));
    }

    #[test]
    fn a_protocol_comes_with_its_settings_for_the_data() {
        let events = "data/tgbl-wiki_edgelist_v2.csv".into();
        let data = DataConfig { events, ..DataConfig::default() };
        let config = RunConfig::builder(data).protocol("tgb").build().expect("known");
        let Protocol::Tgb(tgb) = &config.protocol else { panic!("tgb") };
        assert_eq!(
            (tgb.dataset.as_str(), tgb.per_event, tgb.folder.as_deref()),
            ("tgbl-wiki", 12_000, Some("data".as_ref()))
        );
        // One that is there already keeps its settings.
        let config = builder().preset("uci").protocol("dyglib").build().expect("known");
        assert_eq!(
            config.protocol,
            Protocol::Dyglib(DyglibProtocol { step: 100, ..DyglibProtocol::default() })
        );
        assert!(builder().protocol("tbg").build().is_err());
    }

    #[test]
    fn a_fault_of_the_file_is_not_blamed_on_a_key() {
        let error = builder()
            .file("my.toml", "[model]\nrecnt = 3\n")
            .set(&key("train.epochs=1"))
            .build()
            .expect_err("misspelt")
            .to_string();
        assert!(error.contains("my.toml") && !error.contains("epochs"), "{error}");
    }

    #[test]
    fn a_model_is_named_in_a_file_as_on_the_command_line() {
        let start = builder().build().expect("defaults");
        for name in learned_names() {
            let over = Layer::of_file("my.toml".into(), &format!("[model]\nname = \"{name}\"\n"));
            let config = lay(&start, Some(over.expect("TOML")), Vec::new()).expect("a known name");
            assert_eq!(config.model, ModelConfig::learned(name).expect("known"));
            let config = start.with_keys(&key(&format!("model.name={name}")));
            assert_eq!(config.expect("a known name").model.name(), name);
        }
        let file = "[model]\nname = \"lstep-pair\"\nrecent = 7\n";
        let config = builder().file("my.toml", file).build().expect("known keys");
        assert_eq!(config.model, LstepConfig { recent: 7, ..LstepConfig::pair() }.into());
    }

    #[test]
    fn a_model_named_in_settings_brings_its_own_defaults_and_preset() {
        for name in learned_names() {
            for preset in [None, Some("canparl")] {
                let expected = builder().model(name).preset(preset).build().expect("known");
                let file = format!("[model]\nname = \"{name}\"\n");
                let by_file = builder().preset(preset).file("my.toml", &file).build();
                assert_eq!(by_file.expect("known"), expected);
                let by_key = builder().preset(preset).set(&key(&format!("model.name={name}")));
                assert_eq!(by_key.build().expect("known"), expected);
                let again = builder().file("config.toml", &expected.to_toml()).build();
                assert_eq!(again.expect("known"), expected);
            }
        }
        let tgb = builder().file("my.toml", "[protocol]\nname = \"tgb\"\n").build().expect("known");
        let named = builder().protocol("tgb").build().expect("known");
        assert_eq!(tgb.protocol, named.protocol);
        for (text, name) in [
            ("model.name='tgn'", "tgn"),
            ("model={name=\"tgn\"}", "tgn"),
            ("model.pair.history=8", "lstep-pair"),
        ] {
            let found = builder().set(&key(text)).build().expect("known");
            let named = builder().model(name).build().expect("known");
            assert_eq!((found.model.name(), found.train), (name, named.train), "{text}");
        }
    }

    #[test]
    fn a_model_that_is_unknown_or_named_twice_is_refused() {
        let refused = |builder: SettingsBuilder| {
            builder.preset("canparl").build().expect_err("no such model").to_string()
        };
        let error = refused(builder().set(&key("model.name=edgebnk")));
        assert!(error.contains("edgebnk") && error.contains("lstep-pair"), "{error}");
        let file = builder().file("tgn.toml", "[model]\nname = \"tgn\"\n");
        let error = refused(file.set(&key("model.name=graphmixer")));
        assert!(error.contains("tgn.toml names tgn") && error.contains("graphmixer"), "{error}");
    }

    #[test]
    fn a_model_that_only_counts_has_one_epoch() {
        let config = builder().model("heuristics").build().expect("a run of a counting model");
        assert_eq!((config.train.epochs, config.train.patience), (1, 1));
    }

    #[test]
    fn an_unknown_key_is_refused() {
        let start = builder().build().expect("defaults");
        let error = start.with_keys(&key("model.recnt=9")).expect_err("misspelt");
        assert!(error.to_string().contains("recnt"), "{error}");
        assert!(start.with_keys(&key("epochs")).is_err());
        let keys = ["train.epochs=3", "model.recent=-1", "train.seed=2"].map(String::from);
        let error = start.with_keys(&keys).expect_err("no count").to_string();
        assert!(error.contains("model.recent=-1") && !error.contains("train"), "{error}");
    }
}
