//! The settings of a run, and where they come from: defaults, presets, files, single keys.

mod builder;
mod difference;
mod former;
mod preset;
mod run;
mod train;

pub use builder::SettingsBuilder;
pub(crate) use difference::difference;
pub use preset::{preset_names, published};
pub use run::{DataConfig, RunConfig};
pub use train::TrainConfig;
