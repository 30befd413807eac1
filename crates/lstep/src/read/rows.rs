//! Tables that are no events: lists of ids, questions and scores, read row by row as text.
//!
//! The caller looks at the header and picks columns; compression, quotes and Parquet are as they
//! are for events.

use super::columns::{DESTINATIONS, SOURCES, plain_name};
use super::input::{Input, is_parquet};
use super::jsonl::{NO_OBJECT, as_csv, names};
use super::number::Refusal;
use super::options::Format;
use super::record::{Blocks, End, Field, is_blank, preamble, split};
use super::{Result, parquet};
use crate::error::{Error, FaultKind, InputFault};
use crate::event::Side;
use std::borrow::Cow;
use std::path::Path;

/// What is read of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picked {
    /// The columns, by their places in the header, in the order in which they are wanted.
    pub columns: Vec<usize>,
    /// Whether the first row is data already; in Parquet it never is.
    pub headerless: bool,
}

impl Picked {
    /// Columns of a table with a header.
    pub fn columns(columns: Vec<usize>) -> Picked {
        Picked { columns, headerless: false }
    }
}

/// Reads a table: `pick` chooses columns by the header, `take` gets the number of a row's line (or
/// of the row, in Parquet) and its chosen cells as text.
///
/// # Errors
///
/// If the file cannot be read, a row has other columns than the header, or one of the two
/// functions fails.
pub fn each_row(
    path: impl AsRef<Path>,
    pick: impl FnOnce(&[String]) -> Result<Picked>,
    take: impl FnMut(u64, &[Cow<'_, str>]) -> Result<()>,
) -> Result<()> {
    let path = path.as_ref();
    if Format::of_name(path) == Format::Parquet || is_parquet(path) {
        return parquet::each_row(path, pick, take);
    }
    each_line(Input::open(path)?, false, pick, take)
}

/// Reads a list of ids: one on each line, or a column of a table. The column is `named`, or is
/// called as columns of that side usually are, or `id`; the only column of a table needs no name.
/// An id that comes again counts once.
pub fn read_ids(path: impl AsRef<Path>, side: Side, named: Option<&str>) -> Result<Vec<String>> {
    let path = path.as_ref();
    let usual = if side == Side::Source { SOURCES } else { DESTINATIONS };
    let file = path.display().to_string();
    let pick = |header: &[String]| {
        let is = |name: &str| header.iter().position(|column| column.eq_ignore_ascii_case(name));
        let called = |name: &str| header.iter().position(|column| plain_name(column) == name);
        let number = named.and_then(|name| name.parse::<usize>().ok());
        let number = number.and_then(|number| number.checked_sub(1));
        let found = named.and_then(is).or(number.filter(|place| *place < header.len()));
        let others: &[&str] = &["id", "node", "nodeid", "name"];
        let common = || usual.into_iter().chain([others]).flatten().copied();
        match found.or_else(|| common().find_map(called)) {
            Some(place) => Ok(Picked::columns(vec![place])),
            None if header.len() == 1 => Ok(Picked { columns: vec![0], headerless: true }),
            None => {
                let usual = if side == Side::Source { "source" } else { "destination" };
                let wanted = named.unwrap_or(usual);
                let problem = format!("has no column of ids among {}", header.join(", "));
                let remedy = format!("call it {wanted}, or give a list with an id on each line");
                Err(InputFault::new(&file, problem, remedy).kind(FaultKind::Columns).into())
            }
        }
    };
    let (mut ids, mut seen) = (Vec::new(), rustc_hash::FxHashSet::default());
    let take = |_: u64, cells: &[Cow<'_, str>]| {
        if !cells[0].is_empty() && seen.insert(cells[0].to_string()) {
            ids.push(cells[0].to_string());
        }
        Ok(())
    };
    if Format::of_name(path) == Format::Parquet || is_parquet(path) {
        parquet::each_row(path, pick, take)?;
    } else {
        each_line(Input::open(path)?, true, pick, take)?;
    }
    if ids.is_empty() {
        return Err(InputFault::new(file, "has no ids", "give at least one").into());
    }
    Ok(ids)
}

/// Reads text. In a list, blanks are part of an id and not between two.
fn each_line(
    input: Input<'_>,
    list: bool,
    pick: impl FnOnce(&[String]) -> Result<Picked>,
    mut take: impl FnMut(u64, &[Cow<'_, str>]) -> Result<()>,
) -> Result<()> {
    /// A byte that no text has.
    const NOTHING: u8 = 0xff;
    let Input { label, stream, compression, .. } = input;
    let mut blocks = Blocks::new(stream, 1 << 20, None);
    let (mut pick, mut picked): (_, Option<(Picked, usize)>) = (Some(pick), None);
    let (mut line, mut fields) = (0, Vec::new());
    let mut keys: Option<Vec<String>> = None;
    while let Some(mut block) =
        blocks.next().map_err(|error| Input::fault(&label, compression, error))?
    {
        if blocks.is_json() {
            let refused = |line: u64, refusal: Refusal| {
                InputFault::new(&label, refusal.problem, refusal.remedy).line(line + 1)
            };
            if keys.is_none() {
                let (start, before) = preamble(&block);
                let first = block[start..].split(|&byte| byte == b'\n').next().unwrap_or_default();
                let names = std::str::from_utf8(first).map_err(|_| NO_OBJECT).and_then(names);
                let names = names.map_err(|refusal| refused(before, refusal))?;
                if let Some(pick) = pick.take() {
                    picked = Some((pick(&names)?, names.len()));
                }
                block.drain(..start);
                line += before;
                keys = Some(names);
            }
            let names = keys.as_deref().unwrap_or_default();
            block = as_csv(&block, names, &|_| true, |at, _, refusal| {
                Err(Error::from(refused(line + at, refusal)))
            })?;
        }
        let text = std::str::from_utf8(&block).map_err(|_| {
            let remedy = "convert the file, for example with iconv -t UTF-8";
            InputFault::new(&label, "is not valid UTF-8", remedy)
        })?;
        let separator = match blocks.separator() {
            b' ' if list => NOTHING,
            other => other,
        };
        let (mut at, before) = if picked.is_none() { preamble(&block) } else { (0, 0) };
        line += before;
        let mut cells: Vec<Cow<'_, str>> = Vec::new();
        while at < block.len() {
            let next = match split(&block, at, separator, &mut fields) {
                End::Line(next) => next,
                End::Block => block.len(),
                End::OpenQuote | End::AfterQuote(_) => {
                    let problem = "has quotes that do not match";
                    let fault = InputFault::new(&label, problem, "double quotes that are text");
                    return Err(fault.line(line + 1).into());
                }
            };
            if !is_blank(text, &fields) {
                let mut is_data = true;
                if let Some(pick) = pick.take() {
                    let header: Vec<String> =
                        fields.iter().map(|field| field.text(text).into_owned()).collect();
                    let found = pick(&header)?;
                    is_data = found.headerless;
                    picked = Some((found, header.len()));
                }
                let (picked, width) = picked.as_ref().expect("the first line picks");
                if fields.len() != *width {
                    let problem = format!("has {} fields where {width} are expected", fields.len());
                    let remedy = "give all rows the same columns";
                    return Err(InputFault::new(&label, problem, remedy).line(line + 1).into());
                }
                if is_data {
                    cells.clear();
                    cells.extend(picked.columns.iter().map(|&column| fields[column].text(text)));
                    take(line + 1, &cells)?;
                }
            }
            line += if !blocks.is_json() && fields.iter().any(Field::is_quoted) {
                memchr::memchr_iter(b'\n', &block[at..next]).count().max(1) as u64
            } else {
                1
            };
            at = next;
        }
    }
    match picked {
        Some(_) => Ok(()),
        None => Err(Error::from(InputFault::new(label, "is empty", "give at least one row"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(text: &str, side: Side, named: Option<&str>) -> Result<Vec<String>> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("ids.csv");
        std::fs::write(&path, text).expect("written");
        read_ids(path, side, named)
    }

    #[test]
    fn a_list_has_an_id_on_each_line_with_or_without_a_header() {
        let list = |text| ids(text, Side::Source, None).expect("a list");
        assert_eq!(list("ann\nbob\n\nann\n"), ["ann", "bob"]);
        assert_eq!(list("user_id\n17\n4\n"), ["17", "4"]);
        assert_eq!(list("New York\nRio de Janeiro\n"), ["New York", "Rio de Janeiro"]);
        assert_eq!(list("\"a,b\"\nc\n"), ["a,b", "c"]);
        assert_eq!(list("{\"x\":1,\"user_id\":17}\n{\"user_id\":\"4\"}\n"), ["17", "4"]);
    }

    #[test]
    fn a_table_of_ids_is_read_by_the_name_of_its_column() {
        let table = "when,who,what\n1,ann,x\n2,bob,y\n";
        assert_eq!(ids(table, Side::Source, Some("who")).expect("named"), ["ann", "bob"]);
        assert_eq!(ids(table, Side::Destination, Some("3")).expect("by number"), ["x", "y"]);
        let error = ids(table, Side::Source, None).expect_err("no such column").to_string();
        assert!(error.contains("who") && error.contains("call it source"), "{error}");
        assert!(ids("id\n", Side::Source, None).is_err());
        assert!(ids("", Side::Source, None).is_err());
        let error = ids("id,x\n1\n", Side::Source, None).expect_err("one field").to_string();
        assert!(error.contains("line 2"), "{error}");
    }
}
