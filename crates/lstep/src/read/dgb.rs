//! The tables that lie beside `ml_NAME.csv`: `ml_NAME.npy` with the events' features and
//! `ml_NAME_node.npy` with the nodes'.
//!
//! Row 0 of both is padding, which does not exist here. An event's row is its `idx`, a node's row
//! its integer id. A table that is missing or all zeros is no table.

use super::Result;
use super::gather::unless_zero;
use super::npy::read_npy;
use super::options::stem;
use crate::error::InputFault;
use crate::event::{Features, Names, NodeId};
use std::path::{Path, PathBuf};

/// The features of the events, if there is such a table. `rows` are their rows; without any, they
/// are numbered from 1.
pub(super) fn event_features(path: &Path, events: usize, rows: &[u32]) -> Result<Option<Features>> {
    let Some(beside) = beside(path, "") else { return Ok(None) };
    let table = read_npy(&beside)?;
    if table.width() == 0 {
        return Ok(None);
    }
    let file = beside.display().to_string();
    if table.rows() != events + 1 {
        let problem = format!("has {} rows, but {events} events need {}", table.rows(), events + 1);
        return Err(InputFault::new(
            file,
            problem,
            "give it a row for padding, then one for each event",
        )
        .into());
    }
    let table = unless_zero(table)?;
    if table.width() == 0 {
        return Ok(Some(table));
    }
    let mut values = Vec::with_capacity(events * table.width());
    for event in 0..events {
        let row = rows.get(event).map_or(event + 1, |&row| row as usize);
        if row >= table.rows() {
            let problem = format!("of event {event} is beyond the {} rows of {file}", table.rows());
            let fault = InputFault::new(
                path.display().to_string(),
                problem,
                "number the feature rows from 1",
            );
            return Err(fault.column("idx").value(row.to_string()).into());
        }
        values.extend_from_slice(table.row(row));
    }
    Ok(Some(Features::new(table.width(), values)?))
}

/// The features of the nodes; none if there is no such table.
pub(super) fn node_features(path: &Path, names: &Names) -> Result<Features> {
    match beside(path, "_node") {
        Some(beside) => node_rows(&beside, names),
        None => Ok(Features::none()),
    }
}

/// A node's features are the row with its number.
pub(super) fn node_rows(path: &Path, names: &Names) -> Result<Features> {
    let table = unless_zero(read_npy(path)?)?;
    if table.width() == 0 {
        return Ok(table);
    }
    let file = path.display().to_string();
    if !names.are_integers() {
        let problem = "has rows for integer ids, but the ids of the events are text";
        return Err(InputFault::new(
            file,
            problem,
            "give node features as CSV or Parquet with the id first",
        )
        .into());
    }
    let mut values = Vec::with_capacity(names.len() * table.width());
    for node in 0..names.len() as u32 {
        let number = names.number(NodeId(node));
        let row =
            usize::try_from(number).ok().filter(|&row| row < table.rows()).ok_or_else(|| {
                let problem = format!(
                    "has {} rows, none for node {}",
                    table.rows(),
                    names.name(NodeId(node))
                );
                InputFault::new(
                    &file,
                    problem,
                    format!("add rows up to row {number}, or leave the table out"),
                )
            })?;
        values.extend_from_slice(table.row(row));
    }
    Features::new(table.width(), values)
}

/// The tables beside `ml_NAME.csv` that exist.
pub(super) fn tables_beside(path: &Path) -> impl Iterator<Item = PathBuf> {
    ["", "_node"].into_iter().filter_map(|ending| beside(path, ending))
}

/// Where the table beside `ml_NAME.csv` is, if there is one.
pub(super) fn named_beside(path: &Path, ending: &str) -> Option<PathBuf> {
    let (mut name, csv) = stem(path)?;
    csv.filter(|csv| csv.eq_ignore_ascii_case("csv"))?;
    name.push(ending);
    name.push(".npy");
    Some(path.with_file_name(name))
}

/// The table beside `ml_NAME.csv`, if it exists.
fn beside(path: &Path, ending: &str) -> Option<PathBuf> {
    named_beside(path, ending).filter(|beside| beside.exists())
}
