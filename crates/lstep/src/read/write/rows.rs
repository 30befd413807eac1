//! Results into a table: CSV, TSV, JSON Lines or Parquet, as the file's name says, a batch of rows
//! at a time.
//!
//! What is held in memory is one buffer of rows, however long the table becomes. Like every file it
//! has its name only when it is whole.

use super::super::options::without_compression;
use super::super::parquet::RowGroups;
use super::{quoted, write_packed};
use crate::disk::FileWriter;
use crate::error::{Error, Result};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Rows that are held before they are written; a row group of Parquet.
const BUFFER: usize = 1 << 16;

/// How a table is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableFormat {
    /// Comma-separated values with a header.
    Csv,
    /// The same with tabs.
    Tsv,
    /// A JSON object on each line.
    JsonLines,
    /// Apache Parquet.
    Parquet,
}

impl TableFormat {
    /// The format that a file's name asks for; text may be compressed (`.gz`, `.zst`).
    ///
    /// # Errors
    ///
    /// If the name ends in something else.
    pub fn of_path(path: impl AsRef<Path>) -> Result<TableFormat> {
        let path = path.as_ref();
        let name =
            path.file_name().map(|name| name.to_string_lossy().to_lowercase()).unwrap_or_default();
        let plain = without_compression(&name);
        let ending = plain.rsplit_once('.').map_or("", |(_, ending)| ending);
        match ending {
            "csv" => Ok(TableFormat::Csv),
            "tsv" => Ok(TableFormat::Tsv),
            "jsonl" | "ndjson" => Ok(TableFormat::JsonLines),
            "parquet" | "pq" if plain == name => Ok(TableFormat::Parquet),
            _ => Err(Error::refused(
                "out",
                path.display(),
                "its ending says no format of a table",
                "name a file .csv, .tsv, .jsonl (also .gz or .zst) or .parquet",
            )),
        }
    }
}

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnType {
    /// Integers of 64 bits.
    Integer,
    /// Doubles.
    Double,
    /// True or false.
    Boolean,
    /// Text.
    Text,
}

/// Some rows of one column.
#[derive(Debug, Clone, PartialEq)]
pub enum ColumnData {
    /// Of [`ColumnType::Integer`].
    Integers(Vec<i64>),
    /// Of [`ColumnType::Double`].
    Doubles(Vec<f64>),
    /// Of [`ColumnType::Boolean`].
    Booleans(Vec<bool>),
    /// Of [`ColumnType::Text`].
    Texts(Vec<String>),
}

impl ColumnData {
    /// A column without rows.
    pub fn empty(of: ColumnType) -> ColumnData {
        match of {
            ColumnType::Integer => ColumnData::Integers(Vec::new()),
            ColumnType::Double => ColumnData::Doubles(Vec::new()),
            ColumnType::Boolean => ColumnData::Booleans(Vec::new()),
            ColumnType::Text => ColumnData::Texts(Vec::new()),
        }
    }

    /// How many rows.
    pub fn len(&self) -> usize {
        match self {
            ColumnData::Integers(cells) => cells.len(),
            ColumnData::Doubles(cells) => cells.len(),
            ColumnData::Booleans(cells) => cells.len(),
            ColumnData::Texts(cells) => cells.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn append(&mut self, more: ColumnData) {
        match (self, more) {
            (ColumnData::Integers(cells), ColumnData::Integers(more)) => cells.extend(more),
            (ColumnData::Doubles(cells), ColumnData::Doubles(more)) => cells.extend(more),
            (ColumnData::Booleans(cells), ColumnData::Booleans(more)) => cells.extend(more),
            (ColumnData::Texts(cells), ColumnData::Texts(more)) => cells.extend(more),
            _ => unreachable!("a column keeps its type, see `TableWriter::write`"),
        }
    }

    fn clear(&mut self) {
        match self {
            ColumnData::Integers(cells) => cells.clear(),
            ColumnData::Doubles(cells) => cells.clear(),
            ColumnData::Booleans(cells) => cells.clear(),
            ColumnData::Texts(cells) => cells.clear(),
        }
    }

    fn push_json(&self, row: usize, line: &mut Vec<u8>) -> io::Result<()> {
        match self {
            ColumnData::Integers(cells) => write!(line, "{}", cells[row]),
            ColumnData::Doubles(cells) => Ok(serde_json::to_writer(line, &cells[row])?),
            ColumnData::Booleans(cells) => write!(line, "{}", cells[row]),
            ColumnData::Texts(cells) => Ok(serde_json::to_writer(line, &cells[row])?),
        }
    }

    fn push_text(&self, row: usize, separator: u8, line: &mut Vec<u8>) -> io::Result<()> {
        match self {
            ColumnData::Integers(cells) => write!(line, "{}", cells[row]),
            ColumnData::Doubles(cells) => write!(line, "{:?}", cells[row]),
            ColumnData::Booleans(cells) => write!(line, "{}", cells[row]),
            ColumnData::Texts(cells) => line.write_all(quoted(&cells[row], separator).as_bytes()),
        }
    }
}

/// A table that is being written.
pub struct TableWriter<'out> {
    path: PathBuf,
    names: Vec<String>,
    sink: Sink<'out>,
    buffer: Vec<ColumnData>,
    rows: u64,
}

enum Sink<'out> {
    /// Fields between this separator.
    Fields(&'out mut dyn Write, u8),
    Json(&'out mut dyn Write),
    Parquet(RowGroups<&'out mut FileWriter>),
}

impl TableWriter<'_> {
    /// Appends rows: a column for each of the table's, in order and of its type, all of one length.
    ///
    /// # Panics
    /// If the columns are others.
    pub fn write(&mut self, rows: Vec<ColumnData>) -> Result<()> {
        let length = rows.first().map_or(0, ColumnData::len);
        let fits = rows.len() == self.buffer.len()
            && rows.iter().zip(&self.buffer).all(|(more, column)| {
                more.len() == length
                    && std::mem::discriminant(more) == std::mem::discriminant(column)
            });
        assert!(fits, "rows have the columns of their table");
        for (column, more) in self.buffer.iter_mut().zip(rows) {
            column.append(more);
        }
        self.rows += length as u64;
        if self.buffer.first().is_some_and(|column| column.len() >= BUFFER) {
            self.flush()
        } else {
            Ok(())
        }
    }

    /// How many rows have been written.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    fn flush(&mut self) -> Result<()> {
        let length = self.buffer.first().map_or(0, ColumnData::len);
        if length > 0 {
            let written = self.sink.write(&self.names, &self.buffer, length);
            written.map_err(|error| Error::io(&self.path, error))?;
            self.buffer.iter_mut().for_each(ColumnData::clear);
        }
        Ok(())
    }
}

impl Sink<'_> {
    fn write(&mut self, names: &[String], columns: &[ColumnData], rows: usize) -> io::Result<()> {
        let mut lines = Vec::with_capacity(64 * rows);
        match self {
            Sink::Parquet(groups) => groups.write(columns),
            Sink::Fields(out, separator) => {
                for row in 0..rows {
                    for (place, column) in columns.iter().enumerate() {
                        if place > 0 {
                            lines.push(*separator);
                        }
                        column.push_text(row, *separator, &mut lines)?;
                    }
                    lines.push(b'\n');
                }
                out.write_all(&lines)
            }
            Sink::Json(out) => {
                for row in 0..rows {
                    for (place, (name, column)) in names.iter().zip(columns).enumerate() {
                        lines.push(if place > 0 { b',' } else { b'{' });
                        write!(lines, "\"{name}\":")?;
                        column.push_json(row, &mut lines)?;
                    }
                    lines.extend_from_slice(b"}\n");
                }
                out.write_all(&lines)
            }
        }
    }
}

/// Writes a table to a file, in the format that its name asks for: `fill` gives the rows. Gives how
/// many there were.
///
/// # Errors
///
/// If the name asks for no format, if `fill` fails, or if the disk refuses. An older file of that
/// name is then as it was.
pub fn write_table(
    path: impl AsRef<Path>,
    columns: &[(&str, ColumnType)],
    fill: impl FnOnce(&mut TableWriter<'_>) -> Result<()>,
) -> Result<u64> {
    let path = path.as_ref();
    let format = TableFormat::of_path(path)?;
    let names: Vec<String> = columns.iter().map(|(name, _)| name.to_string()).collect();
    // What goes wrong while rows are made is no error of the disk, and is told as it is.
    let mut failed = None;
    let mut written = 0;
    let run = |sink: Sink<'_>| {
        let mut table = TableWriter {
            path: path.to_path_buf(),
            names: names.clone(),
            sink,
            buffer: columns.iter().map(|(_, of)| ColumnData::empty(*of)).collect(),
            rows: 0,
        };
        let filled = fill(&mut table).and_then(|()| table.flush());
        written = table.rows;
        if let Err(error) = filled {
            failed = Some(error);
            return Err(io::Error::other("the rows ended early"));
        }
        match table.sink {
            Sink::Parquet(groups) => groups.finish(),
            Sink::Fields(..) | Sink::Json(_) => Ok(()),
        }
    };
    // `fill` is called at most once, by one of the two writers below.
    let result = if format == TableFormat::Parquet {
        crate::disk::write_file(path, |file| run(Sink::Parquet(RowGroups::new(file, columns)?)))
    } else {
        write_packed(path, |out| match format {
            TableFormat::JsonLines => run(Sink::Json(out)),
            _ => {
                let separator = if format == TableFormat::Tsv { b'\t' } else { b',' };
                let header = names.join(&char::from(separator).to_string());
                writeln!(out, "{header}")?;
                run(Sink::Fields(out, separator))
            }
        })
    };
    match failed {
        Some(error) => Err(error),
        None => result.map(|()| written),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [(&str, ColumnType); 4] = [
        ("id", ColumnType::Text),
        ("rank", ColumnType::Integer),
        ("score", ColumnType::Double),
        ("known", ColumnType::Boolean),
    ];

    fn rows(ids: &[&str]) -> Vec<ColumnData> {
        vec![
            ColumnData::Texts(ids.iter().map(|id| id.to_string()).collect()),
            ColumnData::Integers((1..=ids.len() as i64).collect()),
            ColumnData::Doubles(vec![0.5; ids.len()]),
            ColumnData::Booleans(vec![true; ids.len()]),
        ]
    }

    fn written(name: &str) -> Vec<u8> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(name);
        let count = write_table(&path, &COLUMNS, |table| {
            table.write(rows(&["a,b", "c"]))?;
            table.write(rows(&["d\"e"]))
        });
        assert_eq!(count.expect("written"), 3);
        std::fs::read(path).expect("there")
    }

    #[test]
    fn a_table_is_written_as_its_name_says() {
        let text = |name| String::from_utf8(written(name)).expect("UTF-8");
        assert_eq!(
            text("a.csv"),
            "id,rank,score,known\n\"a,b\",1,0.5,true\nc,2,0.5,true\n\"d\"\"e\",1,0.5,true\n"
        );
        assert!(text("a.tsv").starts_with("id\trank\tscore\tknown\na,b\t1\t0.5\ttrue\n"));
        let lines = text("a.jsonl");
        let first: serde_json::Value =
            serde_json::from_str(lines.lines().next().expect("a line")).expect("JSON");
        assert_eq!(first, serde_json::json!({"id": "a,b", "rank": 1, "score": 0.5, "known": true}));
        assert!(written("a.csv.gz").starts_with(&[0x1f, 0x8b]));
    }

    #[test]
    #[cfg(feature = "parquet")]
    fn a_parquet_table_is_read_back() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.parquet");
        write_table(&path, &COLUMNS, |table| table.write(rows(&["x", "y"]))).expect("written");
        let mut found = Vec::new();
        crate::read::each_row(
            &path,
            |header| Ok(crate::read::Picked::columns((0..header.len()).collect())),
            |_, cells| {
                found.push(cells.join("|"));
                Ok(())
            },
        )
        .expect("read");
        assert_eq!(found, ["x|1|0.5|1", "y|2|0.5|1"]);
    }

    #[test]
    fn an_ending_that_is_no_format_is_refused_and_a_failure_leaves_no_file() {
        let error = TableFormat::of_path("recs.xlsx").expect_err("no format").to_string();
        assert!(error.contains("recs.xlsx") && error.contains(".parquet"), "{error}");
        assert!(TableFormat::of_path("recs.parquet.gz").is_err());
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.csv");
        let failed = write_table(&path, &COLUMNS, |_| Err(Error::Interrupted));
        assert!(matches!(failed, Err(Error::Interrupted)));
        assert!(!path.exists());
    }
}
