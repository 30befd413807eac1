//! How a file becomes a checked stream of events.
//!
//! ```text
//! path, pipe or bytes -> input (unpacks) -> record (cuts) -> columns (names) -> table or parquet (parses) -> gather -> Dataset
//! ```
//!
//! A [`Dataset`] is either complete and checked or there is none: times are finite and in order,
//! features are finite and have one row for each event, every id is known. What is wrong with a
//! file is said with file, line, column, value and remedy. `synthetic` makes a stream instead of
//! reading one, `write` is the way back.
//!
//! # Layouts
//! Found from the file's name and its first line, see [`Format`]: tables of text with a header (or,
//! if the first row has only numbers, with source, destination, time and features by position),
//! JSON Lines, JODIE, the Dynamic Graph Benchmark, TGB's edge lists and Parquet. Text may be plain, gzip or
//! Zstandard; separators are tab, comma, semicolon or blank; lines that begin with `#` or `%`
//! before the header are passed over. A stream may lie in several files, or in a folder of parts.
//!
//! ```
//! use lstep::read::{ReadOptions, read_from};
//!
//! let text = "source,target,time\nann,bob,2021-03-04\nbob,ann,2021-03-05T12:00:00Z\n";
//! let data = read_from("letters.csv", text.as_bytes(), &ReadOptions::default())?;
//! assert_eq!(data.events.len(), 2);
//! assert_eq!(data.names.name(data.events.at(1).source).to_string(), "bob");
//! assert_eq!(data.clock.show(data.events.at(1).time), "2021-03-05T12:00:00Z");
//! # Ok::<(), lstep::Error>(())
//! ```

#![allow(
    clippy::result_large_err,
    reason = "a fault is made once and ends the reading: boxing it would save nothing"
)]

mod columns;
mod dgb;
mod doctor;
mod faults;
mod gather;
mod input;
mod jsonl;
mod memory;
mod node_features;
mod nodes;
mod npy;
mod number;
mod options;
#[cfg(feature = "parquet")]
mod parquet;
#[cfg(not(feature = "parquet"))]
#[path = "no_parquet.rs"]
mod parquet;
mod parts;
pub mod pickle;
mod record;
mod rows;
pub mod synthetic;
mod table;
mod tgb;
mod times;
mod write;

pub use doctor::{Diagnosis, diagnose};
pub use faults::{FaultCount, LeftOut};
pub use memory::{
    Column, MemoryNodeTable, MemoryPairs, MemoryTable, read_memory, read_memory_node_features,
    read_memory_pairs,
};
pub use npy::{read_npy, read_npy_from};
pub(crate) use options::dataset_name;
pub use options::{FeatureColumns, Format, ReadOptions};
pub use parts::part_files;
pub use rows::{Picked, each_row, read_ids};
pub use write::{
    ColumnData, ColumnType, Layout, Remark, RemarkKind, TableFormat, TableWriter, Written,
    check_ending, remarks, write_as, write_csv, write_events, write_table,
};

use crate::error::{Error, InputFault};
use crate::event::{Clock, Events, Features, Names, NodeId};
use gather::Gather;
use input::Input;
use std::io::Read;
use std::path::{Path, PathBuf};
use table::{Before, Limits, Table};

/// What this room's functions give: most fail with the library's error, some with a fault that a
/// caller completes.
type Result<T, E = Error> = std::result::Result<T, E>;

/// A stream of events with everything needed to show it as the file had it.
#[derive(Debug, Clone, PartialEq)]
pub struct Dataset {
    /// What it is called: after the file or its folder.
    pub name: String,
    /// The events in time order.
    pub events: Events,
    /// The ids of the nodes.
    pub names: Names,
    /// How times are written.
    pub clock: Clock,
    /// A row of features for each node; width zero where there are none.
    pub node_features: Features,
    /// Columns of the file that were left aside.
    pub ignored_columns: Vec<String>,
    /// Rows of the table of node features whose id occurs in no event.
    pub unused_node_rows: usize,
    /// Rows that are no events because the caller wished so.
    pub left_out: LeftOut,
}

impl Dataset {
    /// Whether sources and destinations were told apart as different kinds of nodes.
    pub fn bipartite(&self) -> bool {
        self.names.separated()
    }

    /// The first `count` events with their nodes, and the later ones if there are any. Nodes are
    /// numbered by appearance here, so those of the first events are the first ones.
    pub(crate) fn split_at(self, count: usize) -> Result<(Dataset, Option<Dataset>)> {
        if count >= self.events.len() {
            return Ok((self, None));
        }
        let (first, all) = (self.events.first(count), &self.events);
        let nodes = first.node_bound();
        let order: Vec<NodeId> = (0..nodes as u32).map(NodeId).collect();
        let width = all.features().width();
        let features = Features::new(width, all.features().values()[count * width..].to_vec())?;
        let later = Events::new(
            all.sources()[count..].to_vec(),
            all.destinations()[count..].to_vec(),
            all.times()[count..].to_vec(),
            features,
        )?;
        let node_features = match self.node_features.width() {
            0 => self.node_features.clone(),
            _ => self.node_features.first(nodes),
        };
        let names = self.names.reordered(&order)?;
        let known = Dataset { events: first, names, node_features, ..self.clone() };
        Ok((known, Some(Dataset { events: later, ..self })))
    }
}

/// Reads events from a file, or from standard input for `-`.
pub fn read(path: impl AsRef<Path>, options: &ReadOptions) -> Result<Dataset> {
    let path = path.as_ref();
    let format = options.format.unwrap_or_else(|| Format::of_name(path));
    let files = files_of_stream(path, options)?;
    let table = match &files[..] {
        [only] if input::is_standard_input(only) => {
            return read_stream("standard input", Input::open(only)?, format, options);
        }
        [only] => {
            let format = options.format.unwrap_or_else(|| Format::of_name(only));
            read_part(only, format, options, Before::default())?
        }
        several => read_several(several, options)?,
    };
    let mut data = finish_table(table, files.first().filter(|_| files.len() == 1), options)?;
    data.name = options::dataset_name(path);
    Ok(data)
}

/// The files in which a stream lies.
fn files_of_stream(path: &Path, options: &ReadOptions) -> Result<Vec<PathBuf>> {
    let further = options.more.iter().map(PathBuf::as_path);
    part_files(std::iter::once(path).chain(further))
}

/// Reads files one after the other into one table.
fn read_several(files: &[PathBuf], options: &ReadOptions) -> Result<Table> {
    let mut before = Before { several: true, table: None };
    for file in files {
        if input::is_standard_input(file) {
            let remedy = "give files only, or standard input only";
            return Err(
                InputFault::new("standard input", "cannot be one of several", remedy).into()
            );
        }
        let format = options.format.unwrap_or_else(|| Format::of_name(file));
        before = Before { several: true, table: Some(read_part(file, format, options, before)?) };
    }
    let table = before.table.expect("there are several files");
    if table.events.events() == 0 {
        let names: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
        let remedy = "give at least one event";
        return Err(InputFault::new(names.join(", "), "have no events", remedy).into());
    }
    Ok(table)
}

/// Reads a file, which may be one of several.
fn read_part(path: &Path, format: Format, options: &ReadOptions, before: Before) -> Result<Table> {
    if format == Format::Parquet || input::is_parquet(path) {
        return parquet::read_file(path, options, before);
    }
    table::read_table(Input::open(path)?, format, options, Limits::default(), before)
}

/// All files that [`read`] takes a dataset from: the events, and tables of features beside them.
pub fn files_of(path: &Path, options: &ReadOptions) -> Vec<PathBuf> {
    let stream = files_of_stream(path, options);
    let mut files = stream.unwrap_or_else(|_| vec![path.to_path_buf()]);
    files.extend(options.node_features.clone());
    files.extend(dgb::tables_beside(path));
    files
}

/// Reads events from a stream, compressed or not; `name` is what messages and the data set are
/// called.
pub fn read_from<'a>(
    name: &str,
    stream: impl Read + Send + 'a,
    options: &ReadOptions,
) -> Result<Dataset> {
    let format = options.format.unwrap_or_else(|| Format::of_name(Path::new(name)));
    read_stream(name, Input::new(name.into(), stream)?, format, options)
}

fn read_stream(
    name: &str,
    input: Input<'_>,
    format: Format,
    options: &ReadOptions,
) -> Result<Dataset> {
    let table = if format == Format::Parquet || input.parquet {
        parquet::read_stream(input, options)?
    } else {
        table::read_table(input, format, options, Limits::default(), Before::default())?
    };
    let mut data = finish_table(table, None, options)?;
    data.name = match name {
        "standard input" => "stdin".into(),
        name => options::dataset_name(Path::new(name)),
    };
    Ok(data)
}

/// Joins a table's columns, with the features that lie beside the file in some layouts.
fn finish_table(table: Table, path: Option<&PathBuf>, options: &ReadOptions) -> Result<Dataset> {
    let Table { format, columns, events: mut gather } = table;
    let mut features = gather.take_features(columns.width())?;
    let dgb = path.filter(|_| format == Format::Dgb);
    if let Some(path) = dgb
        && options.features != FeatureColumns::None
        && let Some(table) = dgb::event_features(path, gather.events(), &gather.rows)?
    {
        features = table;
    }
    let mut data = finish(gather, features, columns.ignored(), options)?;
    if let Some(path) = dgb
        && options.node_features.is_none()
    {
        data.node_features = dgb::node_features(path, &data.names)?;
    }
    Ok(data)
}

/// Joins the columns and reads the nodes' features.
fn finish(
    gather: Gather,
    features: Features,
    ignored_columns: Vec<String>,
    options: &ReadOptions,
) -> Result<Dataset> {
    let (events, names, clock, left_out) = gather.finish(features)?;
    let (node_features, unused_node_rows) = match &options.node_features {
        Some(path) => node_features::read(path, &names)?,
        None => (Features::none(), 0),
    };
    Ok(Dataset {
        name: String::new(),
        events,
        names,
        clock,
        node_features,
        ignored_columns,
        unused_node_rows,
        left_out,
    })
}
