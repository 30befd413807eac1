//! Flags that several commands share: how a file of events is read.

use anyhow::{Context, Result};
use clap::Args;
use lstep::run::{Dataset, FeatureColumns, ReadOptions, read};
use std::path::PathBuf;

/// A file of events and what to know about it.
#[derive(Args)]
pub struct EventsFile {
    /// CSV, TSV or Parquet, plain, .gz or .zst; DGB's ml_NAME.csv, JODIE's and TGB's layouts; `-` is standard input
    #[arg(value_name = "EVENTS")]
    pub events: PathBuf,

    /// Column of sources: its name, or its number from 1
    #[arg(long, value_name = "COLUMN", help_heading = "Reading")]
    src: Option<String>,

    /// Column of destinations
    #[arg(long, value_name = "COLUMN", help_heading = "Reading")]
    dst: Option<String>,

    /// Column of times: integers, decimals or ISO 8601
    #[arg(long, value_name = "COLUMN", help_heading = "Reading")]
    time: Option<String>,

    /// Columns that are features, separated by commas; or `none`, or `all` [default: w, weight, f0, f1, ..., feat...]
    #[arg(long, value_name = "COLUMNS", help_heading = "Reading")]
    features: Option<String>,

    /// Table of node features: CSV or Parquet with the id first, or .npy with a row for each integer id
    #[arg(long, value_name = "FILE", help_heading = "Reading")]
    node_features: Option<PathBuf>,

    /// The same id as source and as destination names two nodes
    #[arg(long, help_heading = "Reading")]
    bipartite: bool,

    /// Sort events by time, keeping the order of equal times, instead of refusing a file that is not sorted
    #[arg(long, help_heading = "Reading")]
    sort: bool,
}

impl EventsFile {
    /// Reads the file.
    pub fn read(&self) -> Result<Dataset> {
        let busy = crate::progress::busy(&format!("reading {}", self.events.display()));
        let dataset = read(&self.events, &self.options());
        busy.finish_and_clear();
        dataset.context("cannot read the events")
    }

    fn options(&self) -> ReadOptions {
        let features = match self.features.as_deref() {
            None => FeatureColumns::Automatic,
            Some("none") => FeatureColumns::None,
            Some("all") => FeatureColumns::All,
            Some(columns) => {
                FeatureColumns::Named(columns.split(',').map(|column| column.trim().to_string()).collect())
            }
        };
        ReadOptions {
            source: self.src.clone(),
            destination: self.dst.clone(),
            time: self.time.clone(),
            features,
            bipartite: self.bipartite,
            sort: self.sort,
            node_features: self.node_features.clone(),
            ..ReadOptions::default()
        }
    }
}
