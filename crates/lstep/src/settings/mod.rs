//! The settings of a run, and where they come from: defaults, presets, files, single keys.

mod builder;
mod difference;
mod former;
mod keys;
mod preset;
mod purpose;
mod run;
mod train;

pub use builder::SettingsBuilder;
pub(crate) use difference::difference;
pub use difference::differences;
pub use keys::{SettingInfo, common_settings, model_settings};
pub use preset::{preset_names, published};
pub use purpose::Purpose;
pub use run::{DataConfig, RunConfig, separator};
pub use train::{SelectBy, TrainConfig};
