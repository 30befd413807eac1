//! The layouts in which a stream can be written, and what each of them cannot hold.
//!
//! Nothing is lost silently: [`remarks`] lists beforehand what a layout loses and which arguments a
//! reader needs. [`write_as`] then writes all the files of the layout.

use super::{dgb, jodie, nodes, write_events};
use crate::disk::path_text;
use crate::error::{Argument, Error, Front, Plain, Remedy};
use crate::event::{Clock, Name, NodeId, Unit};
use crate::read::options::Format;
use crate::read::{Dataset, Result};
use serde::Serialize;
use serde::ser::{SerializeStruct, Serializer};
use std::fmt;
use std::path::{Path, PathBuf};

/// A form in which events are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Layout {
    /// CSV or TSV with the columns `source`, `destination`, `time`, `f0`, ..., perhaps compressed.
    Table,
    /// Apache Parquet with the same columns.
    Parquet,
    /// The Dynamic Graph Benchmark's `ml_NAME.csv`, `ml_NAME.npy` and `ml_NAME_node.npy`.
    Dgb,
    /// User, item, time, label, features, where ids of users and of items are told apart.
    Jodie,
}

impl Layout {
    /// The form that a file's name promises.
    pub fn of_name(path: &Path) -> Layout {
        match Format::of_name(path) {
            Format::Parquet => Layout::Parquet,
            Format::Dgb => Layout::Dgb,
            Format::TgbWiki => Layout::Jodie,
            _ => Layout::Table,
        }
    }

    fn is_numeric(self) -> bool {
        matches!(self, Layout::Dgb | Layout::Jodie)
    }
}

/// What is to be known about a stream in another form.
///
/// Serialised as `kind` and `text`, the text being that of `Display`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remark {
    /// Whether anything is lost.
    pub kind: RemarkKind,
    text: String,
    remedy: Option<Remedy>,
}

/// Whether a [`Remark`] tells of a loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RemarkKind {
    /// Nothing is lost if this is heeded, or it was left aside already when the file was read.
    Note,
    /// This does not come back.
    Loss,
}

impl Remark {
    pub(crate) fn note(text: impl Into<String>, remedy: Option<Remedy>) -> Remark {
        Remark { kind: RemarkKind::Note, text: text.into(), remedy }
    }

    fn loss(text: String) -> Remark {
        Remark { kind: RemarkKind::Loss, text, remedy: None }
    }

    /// The same remark in the words of a front end.
    #[must_use]
    pub fn said_by(&self, front: &dyn Front) -> Remark {
        let text = match &self.remedy {
            Some(remedy) => format!("{}: {}", self.text, remedy.render(front)),
            None => self.text.clone(),
        };
        Remark { kind: self.kind, text, remedy: None }
    }
}

impl fmt::Display for Remark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.said_by(&Plain).text)
    }
}

impl Serialize for Remark {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Remark", 2)?;
        fields.serialize_field("kind", &self.kind)?;
        fields.serialize_field("text", &self.to_string())?;
        fields.end()
    }
}

/// The files of a stream that was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Written {
    /// The form.
    pub layout: Layout,
    /// The files, the events first.
    #[serde(serialize_with = "path_text::list::serialize")]
    pub files: Vec<PathBuf>,
}

/// What a layout cannot hold of a stream, or holds only if the reader gets the right arguments.
pub fn remarks(data: &Dataset, layout: Layout) -> Vec<Remark> {
    let mut remarks = Vec::new();
    let mut note = |text: &str, remedy: Option<Remedy>| remarks.push(Remark::note(text, remedy));
    if data.ignored_columns.iter().any(|name| is_content(name)) {
        let named: Vec<&str> = data
            .ignored_columns
            .iter()
            .map(String::as_str)
            .filter(|name| is_content(name))
            .collect();
        let text = format!("column {} is left aside when reading", named.join(", "));
        note(&text, Some(Remedy::KeepAsFeature));
    }
    if data.unused_node_rows > 0 {
        let rows = data.unused_node_rows;
        note(&format!("left aside when reading: features of {rows} nodes without events"), None);
    }
    if layout == Layout::Table && data.bipartite() {
        let text = "an id as source and as destination names two nodes";
        note(text, Some(Remedy::ReadWith(Argument::Bipartite)));
    }
    if layout == Layout::Jodie && !data.names.are_integers() {
        note("ids are text, which lstep reads in this layout and other readers may not", None);
    }
    if layout != Layout::Dgb && data.node_features.width() > 0 {
        let text = "node features are in a file of their own";
        note(text, Some(Remedy::ReadWith(Argument::NodeFeatures)));
    }
    let mut loss = |text: String| remarks.push(Remark::loss(text));
    if layout.is_numeric()
        && let Clock::Iso8601 { unit, .. } = data.clock
    {
        loss(format!("dates become numbers: {} since 1970-01-01T00:00:00Z", plural(unit)));
    }
    if layout == Layout::Dgb
        && let Some(text) = dgb::numbering(&data.names)
    {
        loss(text);
    }
    if layout == Layout::Jodie {
        let both = on_both_sides(data);
        if both > 0 {
            loss(format!(
                "{both} nodes are both source and destination; each of them becomes two nodes"
            ));
        }
    }
    remarks
}

/// Writes a stream in a form, with the files that belong to it.
pub fn write_as(path: impl AsRef<Path>, data: &Dataset, layout: Layout) -> Result<Written> {
    let path = path.as_ref();
    check_name(path, data, layout)?;
    let mut files = vec![path.to_path_buf()];
    if layout == Layout::Dgb {
        files.extend(dgb::write(path, data)?);
        return Ok(Written { layout, files });
    }
    if data.node_features.width() > 0 {
        files.push(nodes::write(path, data, layout == Layout::Jodie)?);
    }
    match layout {
        Layout::Jodie => jodie::write(path, data)?,
        _ => write_events(path, data)?,
    }
    Ok(Written { layout, files })
}

/// Refuses a name under which a reader would take the file for something else.
fn check_name(path: &Path, data: &Dataset, layout: Layout) -> Result<()> {
    let remedy = match (layout, Format::of_name(path)) {
        (Layout::Table | Layout::Jodie, Format::Table)
        | (Layout::Parquet, Format::Parquet)
        | (Layout::Dgb, Format::Dgb) => return Ok(()),
        (Layout::Jodie, Format::TgbWiki) if matches!(data.clock, Clock::Integer { .. }) => {
            return Ok(());
        }
        (Layout::Jodie, Format::TgbWiki) => {
            "times are cut to integers under this name: choose another"
        }
        (_, Format::TgbWeight | Format::TgbComment | Format::TgbFlight) => {
            "this name promises columns of TGB that are not written: choose another"
        }
        (Layout::Dgb, _) => "this layout is named ml_NAME.csv, so that readers know it",
        (Layout::Parquet, _) => "this layout is named NAME.parquet, so that readers know it",
        (Layout::Table | Layout::Jodie, _) => {
            let problem = "this name promises another layout";
            return Err(Error::refused("out", path.display(), problem, Remedy::OtherLayout));
        }
    };
    Err(Error::setting("out", path.display(), remedy))
}

/// Whether a column is more than a row's number.
fn is_content(name: &str) -> bool {
    !matches!(name.to_lowercase().as_str(), "" | "idx" | "index" | "edge_idx" | "unnamed: 0")
}

/// Nodes that act and are acted upon, where the sides are not told apart.
fn on_both_sides(data: &Dataset) -> usize {
    if data.bipartite() {
        return 0;
    }
    let mut acts = vec![false; data.names.len()];
    data.events.sources().iter().for_each(|node| acts[node.index()] = true);
    let mut both: Vec<NodeId> =
        data.events.destinations().iter().copied().filter(|node| acts[node.index()]).collect();
    both.sort_unstable();
    both.dedup();
    both.len()
}

fn plural(unit: Unit) -> &'static str {
    match unit {
        Unit::Second => "seconds",
        Unit::Millisecond => "milliseconds",
        Unit::Microsecond => "microseconds",
        Unit::Nanosecond => "nanoseconds",
    }
}

/// A time as a number: dates as their units since 1970, everything else as the file had it.
pub(super) fn number(clock: &Clock, time: crate::event::Time) -> String {
    match *clock {
        Clock::Iso8601 { origin, .. } => Clock::Integer { origin }.show(time),
        _ => clock.show(time),
    }
}

/// The largest and the smallest integer id; nothing where ids are text.
pub(super) fn id_range(names: &crate::event::Names) -> Option<(i64, i64)> {
    names.iter().try_fold((i64::MAX, i64::MIN), |(least, most), name| match name {
        Name::Integer(id) => Some((least.min(id), most.max(id))),
        Name::Text(_) => None,
    })
}
