//! What a build without the feature `parquet` says about Parquet files.

use super::input::Input;
use super::table::{Before, Table};
use super::{ColumnData, ColumnType, Dataset, Picked, ReadOptions, Result};
use crate::error::InputFault;
use crate::event::{Features, Names};
use std::borrow::Cow;
use std::io::{self, Write};
use std::marker::PhantomData;
use std::path::Path;

pub(super) fn read_file(path: &Path, _: &ReadOptions, _: Before) -> Result<Table> {
    Err(refused(&path.display().to_string()).into())
}

pub(super) fn read_stream(input: Input<'_>, _: &ReadOptions) -> Result<Table> {
    Err(refused(&input.label).into())
}

pub(super) fn read_node_features(path: &Path, _: &Names) -> Result<(Features, usize)> {
    Err(refused(&path.display().to_string()).into())
}

pub(super) fn each_row(
    path: &Path,
    _: impl FnOnce(&[String]) -> Result<Picked>,
    _: impl FnMut(u64, &[Cow<'_, str>]) -> Result<()>,
) -> Result<()> {
    Err(refused(&path.display().to_string()).into())
}

pub(super) fn write(_: impl Write, _: &Dataset) -> io::Result<()> {
    Err(unsupported())
}

/// A table that this build cannot write: none is ever made.
pub(super) struct RowGroups<W> {
    never: std::convert::Infallible,
    out: PhantomData<W>,
}

impl<W: Write> RowGroups<W> {
    pub(super) fn new(_: W, _: &[(&str, ColumnType)]) -> io::Result<RowGroups<W>> {
        Err(unsupported())
    }

    pub(super) fn write(&mut self, _: &[ColumnData]) -> io::Result<()> {
        match self.never {}
    }

    pub(super) fn finish(self) -> io::Result<()> {
        match self.never {}
    }
}

fn unsupported() -> io::Error {
    let problem = "this build of lstep has no Parquet: build it with the feature `parquet`";
    io::Error::new(io::ErrorKind::Unsupported, problem)
}

fn refused(file: &str) -> InputFault {
    let problem = "is a Parquet file, and this build of lstep has no Parquet";
    InputFault::new(
        file,
        problem,
        "build it with the feature `parquet`, or convert the file to CSV",
    )
}

#[cfg(test)]
mod tests {
    use crate::read::{ReadOptions, read_from};

    #[test]
    fn a_parquet_file_is_refused_with_the_feature_s_name() {
        let error = read_from("events", &b"PAR1 and the rest"[..], &ReadOptions::default())
            .expect_err("no Parquet here")
            .to_string();
        assert!(error.contains("feature `parquet`"), "{error}");
    }
}
