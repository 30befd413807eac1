//! Events and node features in Apache Parquet, with the same columns by name as in text.
//!
//! Ids are integers or text; times are integers, floats, dates, timestamps or text; features are
//! numbers. Empty cells are refused. Messages count rows from 1 and call them lines. Only flat
//! columns are read, without Arrow.

mod cells;
mod write;

pub(super) use write::{RowGroups, write};

use super::Result;
use super::columns::{Columns, Encoding, Role};
use super::faults::unless_skipped;
use super::gather::Part;
use super::input::Input;
use super::node_features::{NodeRows, parse_side, side_column};
use super::number::{self, Refusal};
use super::options::{Format, ReadOptions};
use super::table::{self, Before};
use crate::disk::STREAM_LIMIT;
use crate::error::{Error, InputFault};
use crate::event::{Features, Names, Side, TimeFormat};
use ::parquet::column::reader::ColumnReader;
use ::parquet::errors::ParquetError;
use ::parquet::file::reader::{ChunkReader, FileReader, SerializedFileReader};
use cells::{Cells, Missing};
use std::borrow::Cow;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Rows that are read at once.
const ROWS: usize = 1 << 16;

/// The key under which our own files say that the sides are separated.
const SEPARATED: &str = "lstep.separated";

pub(super) fn read_file(
    path: &Path,
    options: &ReadOptions,
    before: Before,
) -> Result<table::Table> {
    let file = File::open(path).map_err(|error| Error::io(path, error))?;
    read_chunks(&path.display().to_string(), file, options, before)
}

/// Reads from a stream, which has to be held in memory: a Parquet file is read from its end.
pub(super) fn read_stream(input: Input<'_>, options: &ReadOptions) -> Result<table::Table> {
    let Input { label, mut stream, compression, .. } = input;
    let mut bytes = Vec::new();
    let limited = (&mut stream).take(STREAM_LIMIT + 1).read_to_end(&mut bytes);
    limited.map_err(|error| Input::fault(&label, compression, error))?;
    if bytes.len() as u64 > STREAM_LIMIT {
        let problem = format!(
            "is Parquet of more than {} MiB, the most that is held of what does not come from a plain file",
            STREAM_LIMIT >> 20
        );
        let remedy = "write it to a file, unpacked, which is read in pieces";
        return Err(InputFault::new(label, problem, remedy).into());
    }
    read_chunks(&label, bytes::Bytes::from(bytes), options, Before::default())
}

fn read_chunks(
    file: &str,
    chunks: impl ChunkReader + 'static,
    options: &ReadOptions,
    before: Before,
) -> Result<table::Table> {
    let table = Table::open(file, chunks)?;
    let mut columns = Columns::find(file, &table.names, None, Format::Parquet, options)?;
    let entries = table.reader.metadata().file_metadata().key_value_metadata();
    columns.separated |= entries.is_some_and(|entries| {
        entries.iter().any(|entry| entry.key == SEPARATED && entry.value.as_deref() == Some("true"))
    });
    let features = (0..columns.roles.len())
        .filter(|&column| columns.roles[column] == Role::Feature(Encoding::Plain));
    let wanted: Vec<usize> = [Role::Source, Role::Destination, Role::Time]
        .map(|role| columns.place(role))
        .into_iter()
        .chain(features)
        .collect();
    let several = before.several;
    let names = Names::new(columns.separated);
    let mut gather = before.gather(file, &columns, 0, names, options)?;
    let events_before = gather.events();
    let format = options.time_format.as_ref();
    let missing = if options.skip_bad { Missing::Marked } else { Missing::Refused };
    table.each_batch(&wanted, missing, |_, cells| {
        let part = (|| {
            let mut part = Part::new(columns.separated);
            let rows = cells[0].len();
            for row in 0..rows {
                let features = part.features.len();
                let read = read_event(cells, row, format, &mut part);
                let read = read.map_err(|(column, refusal)| {
                    let fault = InputFault::new(file, refusal.problem, refusal.remedy);
                    let name = &columns.names[wanted[column]];
                    fault.line(row as u64).column(name).value(cells[column].show(row))
                });
                if unless_skipped(read, options.skip_bad.then_some(&mut part.faults))? {
                    part.event_lines.push(row as u32);
                } else {
                    part.features.truncate(features);
                }
            }
            part.lines = rows as u64;
            Ok(part)
        })();
        gather.append(part)
    })?;
    if gather.events() == events_before && !several {
        let problem = match gather.bad_rows() {
            0 => "has no events",
            _ => "has no row without a fault",
        };
        return Err(InputFault::new(file, problem, "give a file with at least one event").into());
    }
    Ok(table::Table { format: Format::Parquet, columns, events: gather })
}

/// Adds the event of a row: source, destination, time, features. After a fault, which has its
/// column, ids and times are as they were.
fn read_event(
    cells: &[Cells],
    row: usize,
    format: Option<&TimeFormat>,
    part: &mut Part,
) -> Result<(), (usize, Refusal)> {
    let of = |column: usize| move |refusal: Refusal| (column, refusal);
    for (column, cells) in cells.iter().enumerate() {
        cells.check(row).map_err(of(column))?;
    }
    cells[0].check_id(row).map_err(of(0))?;
    cells[1].check_id(row).map_err(of(1))?;
    for (column, feature) in cells.iter().enumerate().skip(3) {
        let value = feature.number(row).and_then(number::narrow);
        part.features.push(value.map_err(of(column))?);
    }
    cells[2].push_time(row, format, &mut part.times).map_err(of(2))?;
    cells[0].push_id(row, Side::Source, &mut part.nodes).map_err(of(0))?;
    cells[1].push_id(row, Side::Destination, &mut part.nodes).map_err(of(1))
}

/// Node features: the id first, then numbers, and a column `side` where it is needed.
pub(super) fn read_node_features(path: &Path, names: &Names) -> Result<(Features, usize)> {
    let file = &path.display().to_string();
    let table = Table::open(file, File::open(path).map_err(|error| Error::io(path, error))?)?;
    let side = side_column(file, &table.names, names)?;
    let wanted: Vec<usize> = (0..table.names.len()).collect();
    let width = wanted.len().saturating_sub(1 + usize::from(side.is_some()));
    let mut found = NodeRows::new(file, names, width);
    let mut row_values = Vec::new();
    table.each_batch(&wanted, Missing::Refused, |first_row, cells| {
        for row in 0..cells[0].len() {
            let line = first_row + row as u64 + 1;
            let refused = |column: usize, refusal: Refusal| {
                let fault = InputFault::new(file, refusal.problem, refusal.remedy).line(line);
                fault.column(&table.names[column]).value(cells[column].show(row))
            };
            row_values.clear();
            let mut node_side = Side::Source;
            for (column, cell) in cells.iter().enumerate().skip(1) {
                let read = if Some(column) == side {
                    parse_side(&cell.show(row)).map(|found| node_side = found)
                } else {
                    cell.number(row).and_then(number::narrow).map(|value| row_values.push(value))
                };
                read.map_err(|refusal| refused(column, refusal))?;
            }
            found.add(&cells[0].show(row), node_side, &row_values, line)?;
        }
        Ok(())
    })?;
    found.finish()
}

/// Gives the columns that `pick` chooses, row by row as text.
pub(super) fn each_row(
    path: &Path,
    pick: impl FnOnce(&[String]) -> Result<super::Picked>,
    mut take: impl FnMut(u64, &[Cow<'_, str>]) -> Result<()>,
) -> Result<()> {
    let file = &path.display().to_string();
    let table = Table::open(file, File::open(path).map_err(|error| Error::io(path, error))?)?;
    let wanted = pick(&table.names)?.columns;
    let mut shown = Vec::with_capacity(wanted.len());
    table.each_batch(&wanted, Missing::Refused, |first_row, cells| {
        for row in 0..cells.first().map_or(0, Cells::len) {
            shown.clear();
            shown.extend(cells.iter().map(|column| Cow::Owned(column.show(row))));
            take(first_row + row as u64 + 1, &shown)?;
        }
        Ok(())
    })
}

/// An open file with the names of its flat columns.
struct Table<'a> {
    file: &'a str,
    reader: Box<dyn FileReader>,
    names: Vec<String>,
}

impl<'a> Table<'a> {
    fn open(file: &'a str, chunks: impl ChunkReader + 'static) -> Result<Table<'a>> {
        let length = chunks.len();
        let reader = guarded(file, || SerializedFileReader::new(chunks))?;
        for column in reader.metadata().row_groups().iter().flat_map(|group| group.columns()) {
            // The Parquet library takes these to be true, and a file may lie.
            let start =
                column.dictionary_page_offset().unwrap_or_else(|| column.data_page_offset());
            let end = start.checked_add(column.compressed_size());
            if start < 0
                || column.compressed_size() < 0
                || end.is_none_or(|end| end as u64 > length)
            {
                return Err(corrupt(file, "a column lies outside the file").into());
            }
        }
        let schema = reader.metadata().file_metadata().schema_descr();
        let names = schema.columns().iter().map(|column| column.path().string()).collect();
        Ok(Table { file, reader: Box::new(reader), names })
    }

    /// Gives the wanted columns, some rows at a time, with the number of the first of these rows.
    fn each_batch(
        &self,
        wanted: &[usize],
        missing: Missing,
        mut take: impl FnMut(u64, &[Cells]) -> Result<()>,
    ) -> Result<()> {
        let mut first_row = 0;
        for group in 0..self.reader.num_row_groups() {
            let mut readers: Vec<ColumnReader> = guarded(self.file, || {
                let group = self.reader.get_row_group(group)?;
                wanted.iter().map(|&column| group.get_column_reader(column)).collect()
            })?;
            loop {
                let mut cells = Vec::with_capacity(wanted.len());
                for (reader, &column) in readers.iter_mut().zip(wanted) {
                    let description =
                        self.reader.metadata().file_metadata().schema_descr().column(column);
                    let read =
                        guarded(self.file, || Cells::read(reader, &description, ROWS, missing))?;
                    cells.push(read.map_err(|fault| {
                        let line = fault.row.map(|row| first_row + row as u64 + 1);
                        let mut input = InputFault::new(self.file, fault.problem, fault.remedy);
                        input.line = line;
                        input.column(&self.names[column])
                    })?);
                }
                let rows = cells.first().map_or(0, Cells::len);
                if cells.iter().any(|column| column.len() != rows) {
                    return Err(corrupt(self.file, "its columns have different lengths").into());
                }
                if rows == 0 {
                    break;
                }
                take(first_row, &cells)?;
                first_row += rows as u64;
            }
        }
        Ok(())
    }
}

/// Calls the Parquet library, which has assertions where a broken file should be an error.
fn guarded<T>(file: &str, work: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, InputFault> {
    // What the call leaves half done is dropped with the file, so unwinding out of it breaks
    // nothing.
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)) {
        Ok(done) => done.map_err(|error| corrupt(file, error)),
        Err(_) => Err(corrupt(file, "the reader gave up on it")),
    }
}

fn corrupt(file: &str, error: impl std::fmt::Display) -> InputFault {
    InputFault::new(file, format!("cannot be read as Parquet ({error})"), "write the file again")
}
