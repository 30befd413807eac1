//! The settings of a run, and where they come from: defaults, presets, files, single keys.

mod difference;
mod edgebank;
mod former;
mod preset;
mod run;
mod train;

pub(crate) use difference::difference;
pub use edgebank::{PUBLISHED_MEMORIES, published_memory};
pub use preset::preset_names;
pub use run::{DataConfig, Named, RunConfig};
pub use train::TrainConfig;
