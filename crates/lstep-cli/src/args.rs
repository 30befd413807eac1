//! What several commands share: flags for reading a file of events, and choices by name.

use crate::table::Table;
use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use lstep::event::TimeFormat;
use lstep::model::{AnyModelKind, ModelConfig, registry};
use lstep::read::{Dataset, FaultCount, LeftOut, read};
use lstep::settings::{DataConfig, separator};
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// A file of events and what to know about it.
#[derive(Args)]
pub struct EventsFile {
    /// CSV, TSV, JSON Lines or Parquet, plain, .gz or .zst; DGB's ml_NAME.csv, JODIE's and TGB's
    /// layouts; `-` is standard input. Several files, or a folder of parts, are one stream
    #[arg(value_name = "EVENTS", required = true)]
    pub events: Vec<PathBuf>,

    #[command(flatten)]
    pub reading: Reading,
}

impl EventsFile {
    /// Reads the file.
    pub fn read(&self) -> Result<Dataset> {
        read_showing(&self.data())
    }

    /// The files with their flags.
    pub fn data(&self) -> DataConfig {
        self.reading.data_of(&self.events)
    }

    /// The first of the files.
    pub fn first(&self) -> &Path {
        self.events.first().map_or(Path::new(""), PathBuf::as_path)
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

    /// How times are written, as in strptime, where they are neither numbers nor ISO 8601: for
    /// example "%d.%m.%Y %H:%M" or "%d/%b/%Y:%H:%M:%S %z"
    #[arg(long, value_name = "FORMAT", value_parser = time_format_text)]
    time_format: Option<String>,

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

    /// The first line is a header, even if it looks like an event
    #[arg(long, conflicts_with = "no_header")]
    header: bool,

    /// Leave out rows with a fault, and say how many and why, instead of refusing the file
    #[arg(long)]
    skip_bad: bool,

    /// Leave out events that repeat an earlier one exactly (source, destination, time and
    /// features), and say how many
    #[arg(long)]
    dedup: bool,
}

fn separator_text(text: &str) -> Result<String> {
    match separator(text) {
        Some(_) => Ok(text.to_string()),
        None => bail!("give one character other than a quote, or tab"),
    }
}

fn time_format_text(text: &str) -> Result<String> {
    match TimeFormat::new(text) {
        Some(format) if format.says_a_moment() => Ok(text.to_string()),
        Some(_) => bail!("a time needs a year, a month and a day (%Y %m %d), or seconds (%s)"),
        None => bail!("use %Y %m %d %H %M %S %f %b %p %z and the like, as in Python's strptime"),
    }
}

impl Reading {
    /// Files of one stream with these flags.
    pub fn data_of(&self, events: &[PathBuf]) -> DataConfig {
        let (first, more) = events
            .split_first()
            .map_or((Path::new(""), &[][..]), |(first, more)| (first.as_path(), more));
        DataConfig { more: more.to_vec(), ..self.data(first) }
    }

    /// The file with these flags.
    pub fn data(&self, events: &Path) -> DataConfig {
        DataConfig {
            events: events.to_path_buf(),
            more: Vec::new(),
            src: self.src.clone(),
            dst: self.dst.clone(),
            time: self.time.clone(),
            time_format: self.time_format.clone(),
            features: self.features.clone(),
            node_features: self.node_features.clone(),
            bipartite: self.bipartite,
            sort: self.sort,
            separator: self.separator.clone(),
            no_header: self.no_header,
            header: self.header,
            skip_bad: self.skip_bad,
            dedup: self.dedup,
        }
    }

    /// The names of the flags that were given.
    pub fn given(&self) -> impl Iterator<Item = &'static str> {
        let flags = [
            ("--src", self.src.is_some()),
            ("--dst", self.dst.is_some()),
            ("--time", self.time.is_some()),
            ("--time-format", self.time_format.is_some()),
            ("--features", self.features.is_some()),
            ("--node-features", self.node_features.is_some()),
            ("--bipartite", self.bipartite),
            ("--sort", self.sort),
            ("--separator", self.separator.is_some()),
            ("--no-header", self.no_header),
            ("--header", self.header),
            ("--skip-bad", self.skip_bad),
            ("--dedup", self.dedup),
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
    pub fn data_over(&self, events: &[PathBuf], under: DataConfig) -> DataConfig {
        let given = self.data_of(events);
        DataConfig {
            events: given.events,
            more: given.more,
            src: given.src.or(under.src),
            dst: given.dst.or(under.dst),
            time: given.time.or(under.time),
            time_format: given.time_format.or(under.time_format),
            features: given.features.or(under.features),
            node_features: given.node_features.or(under.node_features),
            bipartite: given.bipartite || under.bipartite,
            sort: given.sort || under.sort,
            separator: given.separator.or(under.separator),
            no_header: given.no_header || under.no_header && !given.header,
            header: given.header || under.header && !given.no_header,
            skip_bad: given.skip_bad || under.skip_bad,
            dedup: given.dedup || under.dedup,
        }
    }
}

/// Reads a file with a sign of life on the terminal.
pub fn read_showing(data: &DataConfig) -> Result<Dataset> {
    let busy = crate::progress::busy(&format!("reading {}", data.events.display()));
    let dataset = read(&data.events, &data.options());
    busy.finish_and_clear();
    let dataset = dataset.context("cannot read the events")?;
    tell_left_out(&dataset.left_out, dataset.events.len());
    Ok(dataset)
}

/// Says what of a file has not become events, beside so many that have.
pub fn tell_left_out(left_out: &LeftOut, events: usize) {
    if left_out.bad_rows() > 0 {
        let (bad, good) = (left_out.bad_rows(), events as u64 + left_out.duplicates);
        crate::tell(format!("{bad} of {} rows are left out:", bad + good));
        crate::tell(faults_table(&left_out.faults));
    }
    if left_out.duplicates > 0 {
        let repeats = left_out.duplicates;
        crate::tell(format!("{repeats} events are left out that repeat an earlier one exactly"));
    }
}

/// Faults as a table.
pub fn faults_table(faults: &[FaultCount]) -> String {
    let several = faults.iter().any(|fault| fault.file.is_some());
    let headers = ["column", "fault", "rows", "first line", "for example"];
    let mut table = Table::with_columns(
        several.then_some("file").into_iter().chain(headers).map(String::from).collect(),
    );
    for fault in faults {
        let file = several.then(|| fault.file.clone().unwrap_or_default());
        let cells = [
            fault.column.clone(),
            fault.fault.clone(),
            fault.count.to_string(),
            fault.first_line.to_string(),
            fault.example.clone(),
        ];
        table.row(file.into_iter().chain(cells).collect());
    }
    table.show().trim_end().to_string()
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
