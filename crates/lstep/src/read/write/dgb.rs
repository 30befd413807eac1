//! The Dynamic Graph Benchmark's files: `ml_NAME.csv`, `ml_NAME.npy` with the events' features and
//! `ml_NAME_node.npy` with the nodes'.
//!
//! Nodes are integers from 1, because row 0 of both tables is padding. Ids that are no such
//! integers are renumbered, which [`numbering`] states. A table that is absent is written as one
//! column of zeros, as the benchmark does, and read as absent.

use super::layout::{id_range, number};
use super::{write_lines, write_packed};
use crate::disk::write_file;
use crate::error::Error;
use crate::event::{Names, NodeId};
use crate::read::dgb::named_beside;
use crate::read::npy::write_npy;
use crate::read::{Dataset, Result};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Rows of the table of nodes that are allowed for each node: a table with a row for every id is no
/// table for ids of 64 bits.
const ROWS_A_NODE: i64 = 1_000;

/// What happens to ids, if they change.
pub(super) fn numbering(names: &Names) -> Option<String> {
    let Some((least, _)) = id_range(names) else {
        return Some("text ids become integers from 1, in order of first appearance".into());
    };
    if names.separated() {
        Some("ids of the two sides become one numbering: sources from 1, then destinations, as DyGLib does".into())
    } else if least < 1 {
        Some(format!(
            "ids grow by {}: this layout counts from 1, and 0 is padding",
            1 - i128::from(least)
        ))
    } else {
        None
    }
}

/// Writes the three files; gives the two beside the events.
pub(super) fn write(path: &Path, data: &Dataset) -> Result<[PathBuf; 2]> {
    let numbers = numbers(&data.names)?;
    let beside = |ending: &str| {
        named_beside(path, ending).expect("this layout is only written under ml_NAME.csv")
    };
    let (events, nodes) = (beside(""), beside("_node"));
    let zeros = vec![0.0; data.events.features().width().max(data.node_features.width()).max(1)];

    let features = data.events.features();
    let width = features.width().max(1);
    write_file(&events, |out| {
        let row = |row: usize| match row.checked_sub(1).filter(|_| features.width() > 0) {
            Some(event) => features.row(event),
            None => &zeros[..width],
        };
        write_npy(out, width, (0..data.events.len() + 1).map(row))
    })?;

    let features = &data.node_features;
    let width = features.width().max(1);
    let most = numbers.iter().copied().max().unwrap_or(0);
    let mut owners = vec![None; most as usize + 1];
    numbers.iter().enumerate().for_each(|(node, &row)| owners[row as usize] = Some(node));
    write_file(&nodes, |out| {
        let row = |row: usize| match owners[row].filter(|_| features.width() > 0) {
            Some(node) => features.row(node),
            None => &zeros[..width],
        };
        write_npy(out, width, (0..owners.len()).map(row))
    })?;

    write_packed(path, |out| {
        write_lines(out, data, ",u,i,ts,label,idx", |line, event| {
            let [source, destination] =
                [event.source, event.destination].map(|node| numbers[node.index()]);
            let (row, time) = (event.number, number(&data.clock, event.time));
            write!(line, "{row},{source},{destination},{time},0.0,{}", u64::from(row) + 1)
        })
    })?;
    Ok([events, nodes])
}

/// A row of the table for each node, from 1.
fn numbers(names: &Names) -> Result<Vec<i64>> {
    let shift = match id_range(names) {
        Some((least, _)) if !names.separated() => (1 - i128::from(least)).max(0),
        _ => 0,
    };
    let most = (names.len() as i64).saturating_mul(ROWS_A_NODE).max(1 << 20);
    (0..names.len() as u32)
        .map(|node| {
            let number = i128::from(names.number(NodeId(node))) + shift;
            i64::try_from(number).ok().filter(|number| (1..=most).contains(number)).ok_or_else(|| {
                let remedy = format!(
                    "the layout has a row for every integer up to the largest id, here at most {most}: number the nodes \
                     anew, or convert to Parquet"
                );
                Error::setting("the id of a node", names.name(NodeId(node)), remedy)
            })
        })
        .collect()
}
