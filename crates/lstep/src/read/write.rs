//! Events back into files, so that reading them again gives the same stream: names, times and
//! features.
//!
//! Here are tables and Parquet; `layout` knows the field's other forms and says what they cannot
//! hold.

mod dgb;
mod jodie;
mod layout;
mod nodes;
mod rows;

pub use layout::{Layout, Remark, RemarkKind, Written, remarks, write_as};
pub use rows::{ColumnData, ColumnType, TableFormat, TableWriter, write_table};

use super::Dataset;
use super::Result;
use super::options::{Format, without_compression};
use crate::disk::write_file;
use crate::error::Error;
use crate::event::{Event, Name};
use std::borrow::Cow;
use std::io::{self, Write};
use std::path::Path;

/// Writes events to a file: Parquet if it is named so, otherwise CSV, or TSV for `.tsv`, compressed
/// for `.gz` and `.zst`.
///
/// CSV has no place to say that the sides are separated: such a file is read again with `bipartite`
/// set.
///
/// # Errors
///
/// If the file's ending is another, or it cannot be written.
pub fn write_events(path: impl AsRef<Path>, data: &Dataset) -> Result<()> {
    let path = path.as_ref();
    check_ending(path)?;
    if Format::of_name(path) == Format::Parquet {
        return write_file(path, |file| super::parquet::write(file, data));
    }
    let name =
        path.file_name().map(|name| name.to_string_lossy().to_lowercase()).unwrap_or_default();
    let separator = if without_compression(&name).ends_with(".tsv") { b'\t' } else { b',' };
    write_packed(path, |mut out| write_csv(&mut out, data, separator))
}

/// Refuses a file whose name says no form in which events are written.
pub fn check_ending(path: &Path) -> Result<()> {
    let name =
        path.file_name().map(|name| name.to_string_lossy().to_lowercase()).unwrap_or_default();
    let plain = without_compression(&name);
    let packed = plain != name;
    match plain.rsplit_once('.').map_or("", |(_, ending)| ending) {
        "csv" | "tsv" | "txt" => Ok(()),
        "parquet" | "pq" if !packed => Ok(()),
        _ => Err(Error::refused(
            "out",
            path.display(),
            "its ending says no form in which events are written",
            "name a file .csv, .tsv or .txt (also .gz or .zst), or .parquet",
        )),
    }
}

/// Writes events as text with the columns `source`, `destination`, `time`, `f0`, `f1`, ...
pub fn write_csv(out: &mut impl Write, data: &Dataset, separator: u8) -> io::Result<()> {
    let features = data.events.features();
    let between = char::from(separator);
    let mut header = format!("source{between}destination{between}time");
    for feature in 0..features.width() {
        header.push_str(&format!("{between}f{feature}"));
    }
    write_lines(out, data, &header, |line, event| {
        for node in [event.source, event.destination] {
            push_name(line, data.names.name(node), separator)?;
            line.push(separator);
        }
        line.extend_from_slice(data.clock.show(event.time).as_bytes());
        features
            .row(event.number as usize)
            .iter()
            .try_for_each(|value| write!(line, "{between}{value:?}"))
    })
}

/// Writes a file of text, compressed if its name ends so.
fn write_packed(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
    let ending =
        path.extension().map(|ending| ending.to_string_lossy().to_lowercase()).unwrap_or_default();
    write_file(path, |file| match ending.as_str() {
        "gz" => {
            let mut packed = flate2::write::GzEncoder::new(file, flate2::Compression::default());
            write(&mut packed)?;
            packed.finish().map(drop)
        }
        "zst" => {
            let mut packed = zstd::Encoder::new(file, 0)?;
            write(&mut packed)?;
            packed.finish().map(drop)
        }
        _ => write(file),
    })
}

/// Writes a header and a line for each event.
fn write_lines(
    out: &mut (impl Write + ?Sized),
    data: &Dataset,
    header: &str,
    mut push: impl FnMut(&mut Vec<u8>, Event) -> io::Result<()>,
) -> io::Result<()> {
    writeln!(out, "{header}")?;
    // Lines are collected first: the writer below may be slow to call.
    let mut lines = Vec::with_capacity(1 << 16);
    for event in data.events.iter() {
        push(&mut lines, event)?;
        lines.push(b'\n');
        if lines.len() > (1 << 16) - 4096 {
            out.write_all(&lines)?;
            lines.clear();
        }
    }
    out.write_all(&lines)
}

fn push_name(line: &mut Vec<u8>, name: Name<'_>, separator: u8) -> io::Result<()> {
    match name {
        Name::Integer(number) => write!(line, "{number}"),
        Name::Text(text) => line.write_all(quoted(text, separator).as_bytes()),
    }
}

/// The text in quotes if it would not be read back as it is without them.
fn quoted(text: &str, separator: u8) -> Cow<'_, str> {
    let special = |byte: u8| byte == separator || matches!(byte, b'"' | b'\n' | b'\r');
    if text.bytes().any(special) || text.trim_ascii().len() != text.len() || text.is_empty() {
        Cow::Owned(format!("\"{}\"", text.replace('"', "\"\"")))
    } else {
        Cow::Borrowed(text)
    }
}
