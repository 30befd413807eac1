//! A model's kind and its settings as one value, which files and reports hold.

use super::registry::{self, AnyModelKind, ModelKind, ModelSettings};
use super::{FeatureWidths, OptimizerConfig, Session, StreamInfo, Trainer};
use crate::error::{Error, Result};
use serde::de::Error as _;
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::any::Any;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use toml::{Table, Value};

/// A model with its settings.
///
/// Stored as the kind's name and its settings in one table: `name = "tgn"`, `recent = 10`, ...
#[derive(Clone)]
pub struct ModelConfig {
    kind: &'static dyn AnyModelKind,
    settings: Arc<dyn AnySettings>,
}

/// Settings of any kind of model. Implemented for all [`ModelSettings`].
pub trait AnySettings: Any + fmt::Debug + Send + Sync {
    /// Whether these are of the same type and equal.
    fn equals(&self, other: &dyn AnySettings) -> bool;
    /// The settings as a table, in the order of their fields.
    fn table(&self) -> Table;
}

impl<S: ModelSettings> AnySettings for S {
    fn equals(&self, other: &dyn AnySettings) -> bool {
        (other as &dyn Any).downcast_ref::<S>().is_some_and(|other| other == self)
    }

    fn table(&self) -> Table {
        Table::try_from(self).expect("settings are plain data")
    }
}

impl ModelConfig {
    /// A kind with settings. `LstepConfig` and its like become one with `into()`, too.
    pub fn new<K: ModelKind>(kind: &'static K, settings: K::Settings) -> ModelConfig {
        ModelConfig { kind, settings: Arc::new(settings) }
    }

    /// What kind of model it is.
    pub fn kind(&self) -> &'static dyn AnyModelKind {
        self.kind
    }

    /// The name of its kind.
    pub fn name(&self) -> &'static str {
        self.kind.name()
    }

    /// The settings, if they are of this type.
    pub fn settings<S: ModelSettings>(&self) -> Option<&S> {
        (&*self.settings as &dyn Any).downcast_ref()
    }

    /// The settings as a table, without the name.
    pub fn table(&self) -> Table {
        self.settings.table()
    }

    /// The same model with some settings laid over its own.
    pub fn with(&self, over: Table) -> Result<ModelConfig> {
        let mut table = self.table();
        merge(&mut table, over);
        let kind = self.kind;
        kind.read(table).map_err(|error| Error::setting("model", kind.name(), error.message()))
    }

    /// Whether it has a setting of this name.
    pub fn has_setting(&self, key: &str) -> bool {
        self.table().contains_key(key)
    }

    /// The same model with one setting as users write it.
    pub fn set(&self, key: &str, value: &str) -> Result<ModelConfig> {
        let table = self.table();
        if table.contains_key(key) {
            return self.with(Table::from_iter([(key.to_string(), value_of(value))]));
        }
        let known: Vec<&str> = table.keys().map(String::as_str).collect();
        let remedy = format!("{} takes {}", self.name(), known.join(", "));
        Err(Error::setting("setting of a model", format!("{key}={value}"), remedy))
    }

    /// The models that need no training, with the settings that `lstep` shows side by side.
    pub fn counting_models() -> Vec<ModelConfig> {
        let counting = registry::kinds().into_iter().filter(|kind| !kind.learns());
        counting.flat_map(|kind| kind.variants()).collect()
    }

    /// A model that can be trained, by name, with default settings.
    pub fn learned(name: &str) -> Result<ModelConfig> {
        match registry::find(name).filter(|kind| kind.learns()) {
            Some(kind) => Ok(kind.defaults()),
            None => {
                let known = registry::spellings(|kind| kind.learns());
                Err(Error::setting("model", name, format!("choose one of {known}")))
            }
        }
    }

    /// A model that a run can hold, as users write it: a learned one by its name, or a counting one,
    /// whose run has a state and no weights.
    pub fn of_run(text: &str) -> Result<ModelConfig> {
        text.parse()
    }

    /// A model that needs no training, as users write it.
    pub fn counting(text: &str) -> Result<ModelConfig> {
        let counts = |kind: &dyn AnyModelKind| !kind.learns();
        let found = registry::kinds().into_iter().filter(|kind| counts(*kind));
        found.filter_map(|kind| kind.parse(text)).next().unwrap_or_else(|| {
            let known = registry::spellings(counts);
            Err(Error::setting("model", text, format!("choose one of {known}")))
        })
    }

    /// Refuses settings that the model cannot have.
    pub fn check(&self) -> Result<()> {
        self.kind.check(&*self.settings)
    }

    /// The same model with room for a stream's features, where its own widths are smaller.
    #[must_use]
    pub fn widened_for(&self, features: FeatureWidths) -> ModelConfig {
        self.kind.widened_for(&*self.settings, features)
    }

    /// The settings that decide its size, in a few words.
    pub fn summary(&self) -> String {
        self.kind.summary(&*self.settings)
    }

    /// Numbers of four bytes that training keeps for each node, roughly.
    pub fn numbers_per_node(&self) -> u64 {
        self.kind.numbers_per_node(&*self.settings)
    }

    /// The model at work, before the first event; a learned one with weights that have learned
    /// nothing yet.
    pub fn open(&self, info: &StreamInfo) -> Result<Box<dyn Session>> {
        self.kind.open(&*self.settings, info)
    }

    /// The model ready to learn, with weights drawn from a seed. Refuses a model that learns
    /// nothing.
    pub fn trainer(
        &self,
        info: &StreamInfo,
        seed: u64,
        optimizer: OptimizerConfig,
    ) -> Result<Box<dyn Trainer>> {
        self.kind.trainer(&*self.settings, info, seed, optimizer)
    }
}

/// A value as users write it. One that is no TOML is a text, so that names need no quotes.
pub(crate) fn value_of(text: &str) -> Value {
    let table = format!("value = {text}").parse::<Table>();
    let value = table.ok().and_then(|mut table| table.remove("value"));
    value.unwrap_or_else(|| Value::String(text.to_string()))
}

/// Puts one table over another, key by key.
pub(crate) fn merge(under: &mut Table, over: Table) {
    for (key, value) in over {
        match (under.get_mut(&key), value) {
            (Some(Value::Table(under)), Value::Table(over)) => merge(under, over),
            (_, value) => {
                under.insert(key, value);
            }
        }
    }
}

impl fmt::Debug for ModelConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {:?}", self.name(), self.settings)
    }
}

impl PartialEq for ModelConfig {
    fn eq(&self, other: &ModelConfig) -> bool {
        self.name() == other.name() && self.settings.equals(&*other.settings)
    }
}

impl fmt::Display for ModelConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.kind.label(&*self.settings))
    }
}

impl FromStr for ModelConfig {
    type Err = Error;

    /// Reads the name of any model, with default settings; for the heuristics also signals joined
    /// by `+`.
    fn from_str(text: &str) -> Result<ModelConfig> {
        let found = registry::kinds().into_iter().filter_map(|kind| kind.parse(text)).next();
        found.unwrap_or_else(|| {
            let known = registry::spellings(|_| true);
            Err(Error::setting("model", text, format!("choose one of {known}")))
        })
    }
}

impl Serialize for ModelConfig {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let table = self.table();
        let mut map = serializer.serialize_map(Some(table.len() + 1))?;
        map.serialize_entry("name", self.kind.stored_as())?;
        table.iter().try_for_each(|(key, value)| map.serialize_entry(key, value))?;
        map.end()
    }
}

impl<'de> Deserialize<'de> for ModelConfig {
    fn deserialize<D: Deserializer<'de>>(
        deserializer: D,
    ) -> std::result::Result<ModelConfig, D::Error> {
        let mut table = Table::deserialize(deserializer)?;
        let name = table.remove("name").ok_or_else(|| D::Error::missing_field("name"))?;
        let name =
            name.as_str().ok_or_else(|| D::Error::custom("the name of a model is a text"))?;
        let kind = registry::find_stored(name, &table).ok_or_else(|| {
            let mut known: Vec<_> = registry::kinds().iter().map(|kind| kind.stored_as()).collect();
            known.dedup();
            D::Error::custom(format!(
                "unknown model `{name}`, expected one of {}",
                known.join(", ")
            ))
        })?;
        kind.read(table).map_err(|error| D::Error::custom(error.message()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{LstepConfig, TgnConfig};

    fn every_model() -> impl Iterator<Item = ModelConfig> {
        let learned = registry::learned_kinds().into_iter().map(|kind| kind.defaults());
        ModelConfig::counting_models().into_iter().chain(learned)
    }

    #[test]
    fn every_model_is_read_back_from_its_json_and_its_toml() {
        for model in every_model() {
            let text = serde_json::to_string(&model).expect("serialised");
            let read: ModelConfig = serde_json::from_str(&text).expect("read back");
            assert_eq!(read, model, "{text}");
            let text = toml::to_string(&model).expect("serialised");
            assert_eq!(toml::from_str::<ModelConfig>(&text).expect("read back"), model, "{text}");
        }
    }

    #[test]
    fn a_model_is_of_the_kind_it_is_named_by() {
        for kind in registry::learned_kinds() {
            assert_eq!(ModelConfig::learned(kind.name()).expect("known").name(), kind.name());
        }
    }

    #[test]
    fn stored_settings_have_the_name_first_and_then_the_fields_in_order() {
        let text = serde_json::to_string(&ModelConfig::from(TgnConfig::default()));
        assert_eq!(
            text.expect("serialised"),
            r#"{"name":"tgn","time_width":100,"node_width":172,"edge_width":172,"recent":10,"#
                .to_owned()
                + r#""sampling":"recent","heads":2,"dropout":0.1}"#
        );
        let text = toml::to_string_pretty(&ModelConfig::from(LstepConfig::pair()));
        let text = text.expect("serialised");
        assert!(text.starts_with("name = \"lstep\"\ntime_width = 64\nnode_width = 64\n"), "{text}");
        assert!(text.contains("\n[pair]\nhistory = 64\ncounts = true\n"), "{text}");
    }

    #[test]
    fn an_unknown_model_or_setting_is_refused_by_name() {
        let read =
            |text: &str| toml::from_str::<ModelConfig>(text).expect_err("refused").to_string();
        let error = read("name = \"tgm\"");
        assert!(error.contains("tgm") && error.contains("lstep, graphmixer, tgn"), "{error}");
        assert!(read("name = \"tgn\"\nrecnt = 3").contains("recnt"));
        assert!(read("recent = 3").contains("name"));
    }

    #[test]
    fn settings_are_reached_by_their_type() {
        let model = ModelConfig::from(LstepConfig { recent: 7, ..LstepConfig::default() });
        assert_eq!(model.settings::<LstepConfig>().map(|settings| settings.recent), Some(7));
        assert_eq!(model.settings::<TgnConfig>(), None);
    }
}
