//! The library against outside numbers, laws, real data and files that are wrong.

mod cheats;
mod dyglib;
mod dyglib_pyset;
mod examples;
mod laws;
mod learning;
mod metric_reference;
mod read_faults;
mod read_laws;
mod read_layouts;
mod read_parquet;
mod read_skipping;
mod registry;
mod results_docs;
mod rooms;
mod systems;
mod tgb_end_to_end;
mod tgb_negatives;
