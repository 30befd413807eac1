//! What several commands share: flags for reading a file of events, and choices by name.

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use lstep::model::{AnyModelKind, ModelConfig, registry};
use lstep::read::{Dataset, read};
use lstep::settings::{DataConfig, separator};
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// A file of events and what to know about it.
#[derive(Args)]
pub struct EventsFile {
    /// CSV, TSV or Parquet, plain, .gz or .zst; DGB's ml_NAME.csv, JODIE's and TGB's layouts; `-`
    /// is standard input
    #[arg(value_name = "EVENTS")]
    pub events: PathBuf,

    #[command(flatten)]
    pub reading: Reading,
}

impl EventsFile {
    /// Reads the file.
    pub fn read(&self) -> Result<Dataset> {
        read_showing(&self.reading.data(&self.events))
    }
}

/// What to know about a file of events.
#[derive(Args)]
#[command(next_help_heading = "Reading")]
pub struct Reading {
    /// Column of sources: its name, or its number from 1
    #[arg(long, value_name = "COLUMN")]
    src: Option<String>,

    /// Column of destinations
    #[arg(long, value_name = "COLUMN")]
    dst: Option<String>,

    /// Column of times: integers, decimals or ISO 8601
    #[arg(long, value_name = "COLUMN")]
    time: Option<String>,

    /// Columns that are features, separated by commas; or `none`, or `all` [default: w, weight, f0,
    /// f1, ..., feat...]
    #[arg(long, value_name = "COLUMNS")]
    features: Option<String>,

    /// Table of node features: CSV or Parquet with the id first, or .npy with a row for each
    /// integer id
    #[arg(long, value_name = "FILE")]
    node_features: Option<PathBuf>,

    /// The same id as source and as destination names two nodes
    #[arg(long)]
    bipartite: bool,

    /// Sort events by time, keeping the order of equal times, instead of refusing a file that is
    /// not sorted
    #[arg(long)]
    sort: bool,

    /// What stands between fields: one character, or `tab` [default: found in the first line]
    #[arg(long, value_name = "CHARACTER", value_parser = separator_text)]
    separator: Option<String>,

    /// The first line is an event already: source, destination, time and features by position
    #[arg(long)]
    no_header: bool,
}

fn separator_text(text: &str) -> Result<String> {
    match separator(text) {
        Some(_) => Ok(text.to_string()),
        None => bail!("give one character other than a quote, or tab"),
    }
}

impl Reading {
    /// The file with these flags.
    pub fn data(&self, events: &Path) -> DataConfig {
        DataConfig {
            events: events.to_path_buf(),
            src: self.src.clone(),
            dst: self.dst.clone(),
            time: self.time.clone(),
            features: self.features.clone(),
            node_features: self.node_features.clone(),
            bipartite: self.bipartite,
            sort: self.sort,
            separator: self.separator.clone(),
            no_header: self.no_header,
        }
    }

    /// The names of the flags that were given.
    pub fn given(&self) -> impl Iterator<Item = &'static str> {
        let flags = [
            ("--src", self.src.is_some()),
            ("--dst", self.dst.is_some()),
            ("--time", self.time.is_some()),
            ("--features", self.features.is_some()),
            ("--node-features", self.node_features.is_some()),
            ("--bipartite", self.bipartite),
            ("--sort", self.sort),
            ("--separator", self.separator.is_some()),
            ("--no-header", self.no_header),
        ];
        flags.into_iter().filter_map(|(flag, given)| given.then_some(flag))
    }

    /// Refuses flags that what is gone on with has settled when it began.
    pub fn refuse_on_resume(&self, resumes: bool) -> Result<()> {
        let given: Vec<&str> = self.given().collect();
        if resumes && !given.is_empty() {
            bail!(
                "{} has no meaning with --resume, which reads the events as it began: leave it out",
                given.join(", ")
            );
        }
        Ok(())
    }

    /// The file with these flags, and where a flag is not given, with what a configuration says.
    pub fn data_over(&self, events: &Path, under: DataConfig) -> DataConfig {
        let given = self.data(events);
        DataConfig {
            events: given.events,
            src: given.src.or(under.src),
            dst: given.dst.or(under.dst),
            time: given.time.or(under.time),
            features: given.features.or(under.features),
            node_features: given.node_features.or(under.node_features),
            bipartite: given.bipartite || under.bipartite,
            sort: given.sort || under.sort,
            separator: given.separator.or(under.separator),
            no_header: given.no_header || under.no_header,
        }
    }
}

/// Reads a file with a sign of life on the terminal.
pub fn read_showing(data: &DataConfig) -> Result<Dataset> {
    let busy = crate::progress::busy(&format!("reading {}", data.events.display()));
    let dataset = read(&data.events, &data.options());
    busy.finish_and_clear();
    dataset.context("cannot read the events")
}

/// Reads one of the library's choices by its name.
pub fn one_of<T, const N: usize>(choices: [T; N]) -> impl TypedValueParser<Value = T>
where
    T: Display + FromStr<Err = lstep::Error> + Clone + Send + Sync + 'static,
{
    PossibleValuesParser::new(choices.map(|choice| choice.to_string()))
        .try_map(|name| name.parse::<T>())
}

/// Checks the name of a model that a run can hold.
pub fn run_model(name: &str) -> Result<String> {
    ModelConfig::of_run(name).map(|_| name.to_string()).map_err(|error| anyhow!(error.to_string()))
}

/// The names of the models that can be trained.
pub fn learned_names() -> Vec<&'static str> {
    registry::learned_kinds().into_iter().map(|kind| kind.name()).collect()
}

/// Names of models with what they are, a line each, for help.
pub fn models_help(which: impl Fn(&dyn AnyModelKind) -> bool) -> String {
    let kinds: Vec<_> = registry::kinds().into_iter().filter(|kind| which(*kind)).collect();
    let width = kinds.iter().map(|kind| kind.name().len()).max().unwrap_or(0);
    let line = |kind: &&dyn AnyModelKind| format!("  {:width$}  {}\n", kind.name(), kind.about());
    kinds.iter().map(line).collect()
}
