//! Events back into files, so that reading them again gives the same stream: names, times and features.
//!
//! A file is written beside its place and then renamed, so that an interrupted run leaves no half file.

use super::Dataset;
use super::Result;
use super::options::{Format, without_compression};
use crate::error::Error;
use crate::event::Name;
use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Writes events to a file: Parquet if it is named so, otherwise CSV, or TSV for `.tsv`, compressed for `.gz` and `.zst`.
///
/// CSV has no place to say that the sides are separated: such a file is read again with `bipartite` set.
pub fn write_events(path: impl AsRef<Path>, data: &Dataset) -> Result<()> {
    let path = path.as_ref();
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let partial = path.with_file_name(format!(".{name}.partial"));
    let written = write_to(&partial, &name, data).and_then(|()| std::fs::rename(&partial, path));
    written.map_err(|error| {
        let _ = std::fs::remove_file(&partial);
        Error::io(path, error)
    })
}

fn write_to(partial: &Path, name: &str, data: &Dataset) -> io::Result<()> {
    let lower = name.to_lowercase();
    let separator = if without_compression(&lower).ends_with(".tsv") { b'\t' } else { b',' };
    let file = BufWriter::with_capacity(1 << 20, File::create(partial)?);
    if Format::of_name(Path::new(name)) == Format::Parquet {
        super::parquet::write(file, data)
    } else if lower.ends_with(".gz") {
        let mut packed = flate2::write::GzEncoder::new(file, flate2::Compression::default());
        write_csv(&mut packed, data, separator)?;
        packed.finish()?.flush()
    } else if lower.ends_with(".zst") {
        let mut packed = zstd::Encoder::new(file, 0)?;
        write_csv(&mut packed, data, separator)?;
        packed.finish()?.flush()
    } else {
        let mut file = file;
        write_csv(&mut file, data, separator)?;
        file.flush()
    }
}

/// Writes events as text with the columns `source`, `destination`, `time`, `f0`, `f1`, ...
pub fn write_csv(out: &mut impl Write, data: &Dataset, separator: u8) -> io::Result<()> {
    let features = data.events.features();
    let between = char::from(separator);
    write!(out, "source{between}destination{between}time")?;
    for feature in 0..features.width() {
        write!(out, "{between}f{feature}")?;
    }
    writeln!(out)?;
    // Lines are collected first: the writer below may be slow to call.
    let mut lines = Vec::with_capacity(1 << 16);
    for event in data.events.iter() {
        for node in [event.source, event.destination] {
            match data.names.name(node) {
                Name::Integer(number) => write!(lines, "{number}")?,
                Name::Text(text) => lines.extend_from_slice(quoted(text, separator).as_bytes()),
            }
            lines.push(separator);
        }
        lines.extend_from_slice(data.clock.show(event.time).as_bytes());
        if features.width() > 0 {
            for value in features.row(event.number as usize) {
                write!(lines, "{between}{value:?}")?;
            }
        }
        lines.push(b'\n');
        if lines.len() > (1 << 16) - 4096 {
            out.write_all(&lines)?;
            lines.clear();
        }
    }
    out.write_all(&lines)
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
