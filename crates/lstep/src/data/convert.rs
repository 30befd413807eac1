//! Converts a stream from one layout to another and reports what the new layout cannot hold.
//!
//! A loss is refused unless the caller accepts it beforehand. Columns that were ignored when the
//! file was read are reported in any case.

use crate::error::{Error, Remedy, Result};
use crate::read::{
    Format, Layout, LeftOut, Remark, RemarkKind, Written, check_ending, read, remarks, write_as,
};
use crate::settings::DataConfig;
use serde::Serialize;
use std::path::Path;

/// What a conversion did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ConvertReport {
    /// Events written.
    pub events: usize,
    /// Their nodes.
    pub nodes: usize,
    /// The form and its files.
    #[serde(flatten)]
    pub written: Written,
    /// What a reader needs to know, and what was lost.
    pub remarks: Vec<Remark>,
    /// Rows that were left out.
    #[serde(skip_serializing_if = "LeftOut::is_empty")]
    pub left_out: LeftOut,
    /// The version of this library.
    pub version: String,
}

/// Reads a stream and writes it in another form, that of the file's name if none is given. What the
/// form cannot hold is refused unless `lossy`.
pub fn convert(
    from: &DataConfig,
    to: &Path,
    layout: Option<Layout>,
    lossy: bool,
) -> Result<ConvertReport> {
    check_ending(to)?;
    let data = read(&from.events, &from.options())?;
    let layout = layout.unwrap_or_else(|| Layout::of_name(to));
    let mut remarks = remarks(&data, layout);
    remarks.extend(encoded(&from.events).map(|text| Remark::note(text, None)));
    let losses: Vec<String> = remarks
        .iter()
        .filter(|remark| remark.kind == RemarkKind::Loss)
        .map(ToString::to_string)
        .collect();
    if !lossy && !losses.is_empty() {
        let problem = format!("its layout cannot hold all of the stream ({})", losses.join("; "));
        return Err(Error::refused("out", to.display(), problem, Remedy::AcceptLoss));
    }
    if to.exists() && same_file(&from.events, to) {
        return Err(Error::setting(
            "out",
            to.display(),
            "it is the file that is read: give another name",
        ));
    }
    let written = write_as(to, &data, layout)?;
    let version = env!("CARGO_PKG_VERSION").to_string();
    Ok(ConvertReport {
        events: data.events.len(),
        nodes: data.names.len(),
        written,
        remarks,
        left_out: data.left_out,
        version,
    })
}

/// What TGB's readers make of a column, and therefore stands in the new file.
fn encoded(path: &Path) -> Option<&'static str> {
    match Format::of_name(path) {
        Format::TgbWeight => {
            Some("the weight is written as its logarithm to base 2, as TGB reads it")
        }
        Format::TgbComment => Some("words are written as two shares of 5,000, as TGB reads them"),
        Format::TgbFlight => {
            Some("call sign and type code are written as 16 numbers, as TGB reads them")
        }
        Format::TgbWiki => Some("times are cut to integers, as TGB reads them"),
        Format::Table | Format::Dgb | Format::Jodie | Format::Parquet => None,
    }
}

fn same_file(left: &Path, right: &Path) -> bool {
    matches!((left.canonicalize(), right.canonicalize()), (Ok(left), Ok(right)) if left == right)
}
