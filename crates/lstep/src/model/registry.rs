//! Every model by name. A [`ModelKind`] says how a model is named, configured and built; [`MODELS`]
//! has one line for each model of this crate.
//!
//! A model from another crate joins with [`register`]. From then on it is trained, resumed,
//! evaluated, compared and audited by its name like the others.

use super::config::{AnySettings, ModelConfig};
use super::{
    CawnKind, CtanKind, DyGFormerKind, DyRepKind, EdgeBankKind, FeatureWidths, FreeDyGKind,
    GraphMixerKind, HeuristicKind, JodieKind, LSTEP, LSTEP_PAIR, NatKind, OptimizerConfig,
    PintKind, PopTrackKind, Session, StreamInfo, TclKind, TgatKind, TgnKind, TncnKind, TpnetKind,
    Trainer,
};
use crate::error::{Error, Remedy, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::any::Any;
use std::fmt::Debug;
use std::sync::{PoisonError, RwLock};
use toml::Table;

/// The models of this crate, in the order in which help and messages name them.
pub static MODELS: &[&dyn AnyModelKind] = &[
    &LSTEP,
    &LSTEP_PAIR,
    &GraphMixerKind,
    &TgnKind,
    &JodieKind,
    &DyRepKind,
    &NatKind,
    &PintKind,
    &TncnKind,
    &CtanKind,
    &TgatKind,
    &DyGFormerKind,
    &CawnKind,
    &TclKind,
    &FreeDyGKind,
    &TpnetKind,
    &EdgeBankKind,
    &PopTrackKind,
    &HeuristicKind,
];

/// Models of other crates.
static REGISTERED: RwLock<Vec<&'static dyn AnyModelKind>> = RwLock::new(Vec::new());

/// What settings of a model have to be. A plain struct with serde's derives is; put
/// `#[serde(deny_unknown_fields)]` on it, so that misspelt settings are refused.
pub trait ModelSettings:
    Clone + PartialEq + Debug + Serialize + DeserializeOwned + Send + Sync + 'static
{
}

impl<S> ModelSettings for S where
    S: Clone + PartialEq + Debug + Serialize + DeserializeOwned + Send + Sync + 'static
{
}

/// A kind of model: its name, its settings, and how to build it from them.
pub trait ModelKind: Send + Sync + 'static {
    /// Its settings, stored in a run's `[model]` table beside the name.
    type Settings: ModelSettings;

    /// What users call it.
    fn name(&self) -> &'static str;

    /// One line for help.
    fn about(&self) -> &'static str;

    /// Whether it has to be trained.
    fn learns(&self) -> bool;

    /// The settings of a stream of unknown kind.
    fn defaults(&self) -> Self::Settings;

    /// Published settings as TOML: a `[train]` table for all datasets, and for each dataset
    /// `step`, `model` (settings that differ from the defaults) and `negatives` (settings for one
    /// kind of negatives alone). All parts are optional.
    fn presets(&self) -> &'static str {
        ""
    }

    /// Refuses values that the model cannot have.
    fn check(&self, settings: &Self::Settings) -> Result<()>;

    /// Widens settings that are too narrow for a stream's features. Wider ones stay as they are:
    /// the paper's models have room for 172 numbers whatever the stream has.
    fn widen(&self, _settings: &mut Self::Settings, _features: FeatureWidths) {}

    /// What tables call the model with these settings.
    fn label(&self, _settings: &Self::Settings) -> String {
        self.name().to_string()
    }

    /// The settings that decide its size, in a few words.
    fn summary(&self, settings: &Self::Settings) -> String {
        self.label(settings)
    }

    /// Numbers of four bytes that training keeps for each node at its peak, a copy of the state for
    /// validation included. A rough figure for planning.
    fn numbers_per_node(&self, _settings: &Self::Settings) -> u64 {
        0
    }

    /// The model before the first event; a learned one with weights that have learned nothing yet.
    fn open(&self, settings: &Self::Settings, info: &StreamInfo) -> Result<Box<dyn Session>>;

    /// The model ready to learn, with weights drawn from a seed.
    fn trainer(
        &self,
        settings: &Self::Settings,
        _info: &StreamInfo,
        _seed: u64,
        _optimizer: OptimizerConfig,
    ) -> Result<Box<dyn Trainer>> {
        Err(Error::refused(
            "model",
            self.label(settings),
            "it only counts",
            Remedy::EvaluateInstead,
        ))
    }

    /// Settings worth showing side by side, for a model that needs no training.
    fn variants(&self) -> Vec<Self::Settings> {
        vec![self.defaults()]
    }

    /// How help and messages write the name.
    fn spelling(&self) -> String {
        self.name().to_string()
    }

    /// Reads what users write for it; nothing if the text names another model.
    fn parse(&self, text: &str) -> Option<Result<Self::Settings>> {
        (text == self.name()).then(|| Ok(self.defaults()))
    }

    /// The name in stored settings, where it is not [`ModelKind::name`].
    fn stored_as(&self) -> &'static str {
        self.name()
    }

    /// Whether a `[model]` table can only be of this kind, for kinds that share a stored name.
    fn claims(&self, _table: &Table) -> bool {
        false
    }
}

/// A [`ModelKind`] whose settings may be of any type. Implemented for every kind.
pub trait AnyModelKind: Send + Sync {
    /// See [`ModelKind::name`].
    fn name(&self) -> &'static str;
    /// See [`ModelKind::about`].
    fn about(&self) -> &'static str;
    /// See [`ModelKind::learns`].
    fn learns(&self) -> bool;
    /// See [`ModelKind::presets`].
    fn presets(&self) -> &'static str;
    /// See [`ModelKind::spelling`].
    fn spelling(&self) -> String;
    /// See [`ModelKind::stored_as`].
    fn stored_as(&self) -> &'static str;
    /// See [`ModelKind::claims`].
    fn claims(&self, table: &Table) -> bool;
    /// The model with its default settings.
    fn defaults(&'static self) -> ModelConfig;
    /// See [`ModelKind::variants`].
    fn variants(&'static self) -> Vec<ModelConfig>;
    /// See [`ModelKind::parse`].
    fn parse(&'static self, text: &str) -> Option<Result<ModelConfig>>;
    /// Reads settings from a table without the name. Unknown keys are refused.
    fn read(&'static self, table: Table) -> std::result::Result<ModelConfig, toml::de::Error>;
    /// See [`ModelKind::check`].
    fn check(&self, settings: &dyn AnySettings) -> Result<()>;
    /// See [`ModelKind::widen`].
    fn widened_for(
        &'static self,
        settings: &dyn AnySettings,
        features: FeatureWidths,
    ) -> ModelConfig;
    /// See [`ModelKind::label`].
    fn label(&self, settings: &dyn AnySettings) -> String;
    /// See [`ModelKind::summary`].
    fn summary(&self, settings: &dyn AnySettings) -> String;
    /// See [`ModelKind::numbers_per_node`].
    fn numbers_per_node(&self, settings: &dyn AnySettings) -> u64;
    /// See [`ModelKind::open`].
    fn open(&self, settings: &dyn AnySettings, info: &StreamInfo) -> Result<Box<dyn Session>>;
    /// See [`ModelKind::trainer`].
    fn trainer(
        &self,
        settings: &dyn AnySettings,
        info: &StreamInfo,
        seed: u64,
        optimizer: OptimizerConfig,
    ) -> Result<Box<dyn Trainer>>;
}

/// The settings as the kind's own type.
fn own<K: ModelKind>(settings: &dyn AnySettings) -> &K::Settings {
    (settings as &dyn Any).downcast_ref().expect("a ModelConfig holds settings of its kind")
}

impl<K: ModelKind> AnyModelKind for K {
    fn name(&self) -> &'static str {
        ModelKind::name(self)
    }

    fn about(&self) -> &'static str {
        ModelKind::about(self)
    }

    fn learns(&self) -> bool {
        ModelKind::learns(self)
    }

    fn presets(&self) -> &'static str {
        ModelKind::presets(self)
    }

    fn spelling(&self) -> String {
        ModelKind::spelling(self)
    }

    fn stored_as(&self) -> &'static str {
        ModelKind::stored_as(self)
    }

    fn claims(&self, table: &Table) -> bool {
        ModelKind::claims(self, table)
    }

    fn defaults(&'static self) -> ModelConfig {
        ModelConfig::new(self, ModelKind::defaults(self))
    }

    fn variants(&'static self) -> Vec<ModelConfig> {
        let variants = ModelKind::variants(self).into_iter();
        variants.map(|settings| ModelConfig::new(self, settings)).collect()
    }

    fn parse(&'static self, text: &str) -> Option<Result<ModelConfig>> {
        let settings = ModelKind::parse(self, text)?;
        Some(settings.map(|settings| ModelConfig::new(self, settings)))
    }

    fn read(&'static self, table: Table) -> std::result::Result<ModelConfig, toml::de::Error> {
        table.try_into().map(|settings| ModelConfig::new(self, settings))
    }

    fn check(&self, settings: &dyn AnySettings) -> Result<()> {
        ModelKind::check(self, own::<K>(settings))
    }

    fn widened_for(
        &'static self,
        settings: &dyn AnySettings,
        features: FeatureWidths,
    ) -> ModelConfig {
        let mut settings = own::<K>(settings).clone();
        ModelKind::widen(self, &mut settings, features);
        ModelConfig::new(self, settings)
    }

    fn label(&self, settings: &dyn AnySettings) -> String {
        ModelKind::label(self, own::<K>(settings))
    }

    fn summary(&self, settings: &dyn AnySettings) -> String {
        ModelKind::summary(self, own::<K>(settings))
    }

    fn numbers_per_node(&self, settings: &dyn AnySettings) -> u64 {
        ModelKind::numbers_per_node(self, own::<K>(settings))
    }

    fn open(&self, settings: &dyn AnySettings, info: &StreamInfo) -> Result<Box<dyn Session>> {
        ModelKind::open(self, own::<K>(settings), info)
    }

    fn trainer(
        &self,
        settings: &dyn AnySettings,
        info: &StreamInfo,
        seed: u64,
        optimizer: OptimizerConfig,
    ) -> Result<Box<dyn Trainer>> {
        ModelKind::trainer(self, own::<K>(settings), info, seed, optimizer)
    }
}

impl Debug for dyn AnyModelKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// Adds a model of another crate. Its name has to be new, and free of the signs that settings and
/// lists of models are written with.
pub fn register(kind: &'static dyn AnyModelKind) -> Result<()> {
    let refused = |remedy: &str| Err(Error::setting("name of a model", kind.name(), remedy));
    for name in [kind.name(), kind.stored_as()] {
        if name.is_empty() || name.contains(|c: char| c.is_whitespace() || ":,+=/".contains(c)) {
            return refused("a name has at least one letter, and no space or any of : , + = /");
        }
    }
    let mut registered = REGISTERED.write().unwrap_or_else(PoisonError::into_inner);
    let taken = |known: &&dyn AnyModelKind| {
        [known.name(), known.stored_as()]
            .iter()
            .any(|name| *name == kind.name() || *name == kind.stored_as())
    };
    if kind.name() == "all" || MODELS.iter().chain(registered.iter()).any(taken) {
        return refused("there is a model of that name already: choose another");
    }
    registered.push(kind);
    Ok(())
}

/// All models: those of this crate, then those that were registered.
pub fn kinds() -> Vec<&'static dyn AnyModelKind> {
    let registered = REGISTERED.read().unwrap_or_else(PoisonError::into_inner);
    MODELS.iter().chain(registered.iter()).copied().collect()
}

/// The models that can be trained.
pub fn learned_kinds() -> Vec<&'static dyn AnyModelKind> {
    kinds().into_iter().filter(|kind| kind.learns()).collect()
}

/// A model by the name that users write.
pub fn find(name: &str) -> Option<&'static dyn AnyModelKind> {
    kinds().into_iter().find(|kind| kind.name() == name)
}

/// The kind that a stored `[model]` table is of, under the name it has there.
pub fn find_stored(name: &str, table: &Table) -> Option<&'static dyn AnyModelKind> {
    let same: Vec<_> = kinds().into_iter().filter(|kind| kind.stored_as() == name).collect();
    same.iter().find(|kind| kind.claims(table)).or_else(|| same.first()).copied()
}

/// The kind that a `[model]` table without a name can only be of.
pub fn find_claiming(table: &Table) -> Option<&'static dyn AnyModelKind> {
    kinds().into_iter().find(|kind| kind.claims(table))
}

/// The names of some models for a message.
pub(crate) fn spellings(which: impl Fn(&dyn AnyModelKind) -> bool) -> String {
    let spellings = kinds().into_iter().filter(|kind| which(*kind)).map(|kind| kind.spelling());
    spellings.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_models_share_a_name() {
        for (place, kind) in MODELS.iter().enumerate() {
            assert!(MODELS[..place].iter().all(|other| other.name() != kind.name()), "{kind:?}");
        }
    }

    #[test]
    fn a_taken_or_unspeakable_name_is_refused() {
        struct Named(&'static str);
        impl ModelKind for Named {
            type Settings = Table;
            fn name(&self) -> &'static str {
                self.0
            }
            fn about(&self) -> &'static str {
                "nothing"
            }
            fn learns(&self) -> bool {
                false
            }
            fn defaults(&self) -> Table {
                Table::new()
            }
            fn check(&self, _: &Table) -> Result<()> {
                Ok(())
            }
            fn open(&self, _: &Table, _: &StreamInfo) -> Result<Box<dyn Session>> {
                Err(Error::setting("model", self.0, "it cannot be opened"))
            }
        }
        static NAMES: [Named; 5] =
            [Named("tgn"), Named("heuristic"), Named("all"), Named("a+b"), Named("")];
        for kind in &NAMES {
            let error = register(kind).expect_err(kind.0).to_string();
            assert!(error.contains("name"), "{error}");
        }
    }

    #[test]
    fn defaults_of_every_model_pass_its_own_check() {
        for kind in MODELS {
            assert!(kind.defaults().check().is_ok(), "{kind:?}");
            assert!(!kind.about().is_empty(), "{kind:?}");
        }
    }
}
