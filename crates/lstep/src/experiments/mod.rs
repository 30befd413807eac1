//! A grid of datasets, models and seeds, and what came out of it.
//!
//! A [`Grid`] becomes cells, each an ordinary run folder (or, for a model that only counts, a
//! report). Cells are run side by side, survive interruption, and are gathered into a
//! [`Comparison`]: everything that tables, files and reports of a grid need.

mod cell;
mod comparison;
mod grid;
mod lead;
mod memory;
pub mod paper;
mod schedule;
mod spec;
mod sweep;
mod table;
mod write;

pub use cell::{Cell, CellRun, CellState};
pub use comparison::{CellResult, ComparedDataset, Comparison, FailedCell, LeadRow, Published};
pub use grid::{DatasetDigest, Grid, GridData, PresetChoice};
pub use lead::Lead;
pub use schedule::{GridEvent, GridWatch, Jobs, Ran, fill_cells, run_cells};
pub use spec::ModelSpec;
pub use sweep::{Axis, search_points};
pub use table::{
    ComparisonTable, Mark, Metric, Spread, TableRow, TiesRow, TrainingRow, average_ranks, places,
};
pub use write::{
    csv as comparison_csv, latex as comparison_latex, markdown as comparison_markdown,
    read_comparison, write_comparison,
};
