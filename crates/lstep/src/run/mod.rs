//! The rooms joined: a stream, a protocol and a model become numbers.
//!
//! The command and other front ends know this room and `live`, nothing deeper.

mod answer;
mod bound;
mod compare;
mod config;
mod convert;
mod data;
mod difference;
mod evaluate;
mod examine;
mod fit;
mod folder;
mod ground;
mod inspect;
mod job;
mod origin;
mod paper;
mod preset;
mod record;
mod released_leak;
mod report;
mod tgb_files;
mod train;
mod trained;
mod training;

pub use answer::{Answerer, Audited, Scored, audit};
pub use bound::{BoundReport, NodeBound, bound};
pub use compare::{
    Axis, Cell, CellResult, CellState, ComparedDataset, Comparison, ComparisonTable, FailedCell, Grid, GridData,
    GridMoment, GridWatch, Jobs, Mark, Metric, ModelSpec, PresetChoice, Published, Ran, Spread, Survey, TableRow,
    TrainingRow, average_ranks, csv as comparison_csv, latex as comparison_latex, markdown as comparison_markdown,
    places, read_comparison, run_cells, search_points, write_comparison,
};
pub use config::{DataConfig, Named, RunConfig};
pub use convert::{ConvertReport, convert};
pub use data::{Catalogue, Checksum, Entry, where_to_get};
pub use evaluate::{Outcome, Watch, evaluate, evaluate_recording, facts, train_observing};
pub use examine::{Examined, Examinee};
pub use fit::{Fit, Moment};
pub use folder::RunFolder;
pub use ground::Spent;
pub use inspect::Portrait;
pub use job::{Contender, Evaluation, Stream, inspect};
pub use paper::{
    LEAK_NOTE, QUICK_EPOCHS, QUICK_EVENTS, RECIPES, Recipe, find_events, published, recipe, stream_in, thin,
};
pub use preset::preset_names;
pub use record::{Answer, MOST_PAIRS, Record};
pub use released_leak::{Fault, LeakCompared, LeakReport, LeakWatch, Quality, show_released_leak};
pub use report::{EvaluationReport, InspectReport, ResultRow};
pub use tgb_files::write_tgb;
pub use train::{Course, EpochReport, Progress, Selection, TrainConfig, ValidationRow};
pub use trained::Trained;
pub use training::Training;

// What front ends need to say what they want.
pub use crate::checkpoint::write_text;
pub use crate::model::laws::{Breach, Questions};
pub use crate::model::{Memory, ModelConfig};
pub use crate::protocol::dyglib::DyglibProtocol;
pub use crate::protocol::tgb::TgbProtocol;
pub use crate::protocol::{Asked, Part, Protocol, Setting, StepRule, Strategy, StreamProtocol, Visibility};
pub use crate::read::synthetic::{SyntheticConfig, generate};
pub use crate::read::{Dataset, FeatureColumns, Layout, ReadOptions, Remark, Written, read, write_events};
