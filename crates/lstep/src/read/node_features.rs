//! Features of nodes from a table of their own: CSV or Parquet with the id in the first column, or
//! `.npy` with a row for each id.
//!
//! Every node of the stream needs exactly one row; rows of other nodes are counted and left out.
//! Where sources and destinations are different kinds of nodes, a column `side` says `source` or
//! `destination`.

use super::Result;
use super::gather::unless_zero;
use super::input::Input;
use super::input::is_parquet;
use super::number::{self, Refusal};
use super::record::{Blocks, End, Field, is_blank, preamble, split};
use super::{dgb, parquet};
use crate::error::InputFault;
use crate::event::{Features, Names, NodeId, Side};
use std::path::Path;

/// The nodes' features, and how many rows belong to no node.
pub(super) fn read(path: &Path, names: &Names) -> Result<(Features, usize)> {
    let ending =
        path.extension().map(|ending| ending.to_string_lossy().to_lowercase()).unwrap_or_default();
    if ending == "npy" {
        return Ok((dgb::node_rows(path, names)?, 0));
    }
    if ending == "parquet" || ending == "pq" || is_parquet(path) {
        return parquet::read_node_features(path, names);
    }
    read_text(Input::open(path)?, names)
}

/// Rows found so far.
pub(super) struct NodeRows<'a> {
    file: &'a str,
    names: &'a Names,
    width: usize,
    values: Vec<f32>,
    seen: Vec<bool>,
    unused: usize,
}

impl<'a> NodeRows<'a> {
    pub(super) fn new(file: &'a str, names: &'a Names, width: usize) -> Self {
        let nodes = names.len();
        NodeRows {
            file,
            names,
            width,
            values: vec![0.0; nodes * width],
            seen: vec![false; nodes],
            unused: 0,
        }
    }

    /// Takes a row. The line is for the fault if a node has two rows.
    pub(super) fn add(
        &mut self,
        id: &str,
        side: Side,
        row: &[f32],
        line: u64,
    ) -> Result<(), InputFault> {
        let Some(node) = self.names.find(id, side) else {
            self.unused += 1;
            return Ok(());
        };
        if std::mem::replace(&mut self.seen[node.index()], true) {
            let fault = InputFault::new(
                self.file,
                "has a second row of features",
                "keep one row for each node",
            );
            return Err(fault.line(line).value(id));
        }
        self.values[node.index() * self.width..][..self.width].copy_from_slice(row);
        Ok(())
    }

    /// The table, if every node has its row.
    pub(super) fn finish(self) -> Result<(Features, usize)> {
        if let Some(node) = self.seen.iter().position(|seen| !seen) {
            let missing = self.seen.iter().filter(|seen| !**seen).count();
            let name = self.names.name(NodeId(node as u32)).to_string();
            let problem = format!("is a node without a row of features ({missing} in all)");
            return Err(InputFault::new(
                self.file,
                problem,
                "add a row for every node of the events",
            )
            .value(name)
            .into());
        }
        Ok((unless_zero(Features::new(self.width, self.values)?)?, self.unused))
    }
}

/// What the column `side` says.
pub(super) fn parse_side(text: &str) -> Result<Side, Refusal> {
    match text {
        "source" => Ok(Side::Source),
        "destination" => Ok(Side::Destination),
        _ => Err(Refusal::new("is no side", "write source or destination")),
    }
}

/// Which column is the side, if the names need one.
pub(super) fn side_column(
    file: &str,
    header: &[String],
    names: &Names,
) -> Result<Option<usize>, InputFault> {
    let place = header.iter().position(|name| name.eq_ignore_ascii_case("side"));
    if names.separated() && place.is_none() {
        return Err(no_side(file));
    }
    Ok(place)
}

/// What is said where the names need sides and there are none.
pub(super) fn no_side(file: &str) -> InputFault {
    let problem = "has no column \"side\", but an id may be both a source and a destination";
    InputFault::new(file, problem, "add a column \"side\" with source or destination")
}

fn read_text(input: Input<'_>, names: &Names) -> Result<(Features, usize)> {
    let Input { label, stream, compression, .. } = input;
    let mut blocks = Blocks::new(stream, 1 << 20, None);
    let mut rows: Option<(NodeRows<'_>, Vec<String>, Option<usize>)> = None;
    let (mut line, mut fields, mut row) = (0, Vec::new(), Vec::new());
    while let Some(block) =
        blocks.next().map_err(|error| Input::fault(&label, compression, error))?
    {
        let text = std::str::from_utf8(&block).map_err(|_| {
            InputFault::new(
                &label,
                "is not valid UTF-8",
                "convert the file, for example with iconv -t UTF-8",
            )
        })?;
        let (mut at, before) = if rows.is_none() { preamble(&block) } else { (0, 0) };
        line += before;
        while at < block.len() {
            let next = match split(&block, at, blocks.separator(), &mut fields) {
                End::Line(next) => next,
                End::Block => block.len(),
                End::OpenQuote | End::AfterQuote(_) => {
                    let fault = InputFault::new(
                        &label,
                        "has quotes that do not match",
                        "double quotes that are text",
                    );
                    return Err(fault.line(line + 1).into());
                }
            };
            match &mut rows {
                _ if is_blank(text, &fields) => {}
                None => {
                    let header: Vec<String> =
                        fields.iter().map(|field| field.text(text).into_owned()).collect();
                    let side = side_column(&label, &header, names)?;
                    let width = header.len() - 1 - usize::from(side.is_some());
                    rows = Some((NodeRows::new(&label, names, width), header, side));
                }
                Some((rows, header, side)) => {
                    let side = read_row(&label, text, &fields, header, *side, line + 1, &mut row)?;
                    rows.add(&fields[0].text(text), side, &row, line + 1)?;
                }
            }
            line += if fields.iter().any(Field::is_quoted) {
                memchr::memchr_iter(b'\n', &block[at..next]).count().max(1) as u64
            } else {
                1
            };
            at = next;
        }
    }
    match rows {
        Some((rows, ..)) => rows.finish(),
        None => {
            Err(InputFault::new(&label, "is empty", "give a header and a row for each node").into())
        }
    }
}

/// Reads the features of a row and gives its side.
fn read_row(
    file: &str,
    text: &str,
    fields: &[Field],
    header: &[String],
    side_column: Option<usize>,
    line: u64,
    row: &mut Vec<f32>,
) -> Result<Side, InputFault> {
    if fields.len() != header.len() {
        let problem = format!("has {} fields where {} are expected", fields.len(), header.len());
        return Err(InputFault::new(file, problem, "give all rows the same columns").line(line));
    }
    row.clear();
    let mut side = Side::Source;
    for (column, field) in fields.iter().enumerate().skip(1) {
        let read = if Some(column) == side_column {
            parse_side(&field.text(text)).map(|found| side = found)
        } else {
            number::feature(field.raw(text)).map(|value| row.push(value))
        };
        read.map_err(|refusal| {
            let fault = InputFault::new(file, refusal.problem, refusal.remedy);
            fault.line(line).column(&header[column]).value(field.text(text).as_bytes())
        })?;
    }
    Ok(side)
}
