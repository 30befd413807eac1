//! A table that is in memory already: columns of a data frame, as a program hands them over.
//!
//! It becomes a [`Dataset`] by the rules for Parquet files, so that a program gets the nodes, times
//! and numbers that the command reads from a file of the same table.

use super::Result;
use super::gather::{Gather, Part};
use super::node_features::{NodeRows, no_side};
use super::nodes::EMPTY_ID;
use super::number::{Refusal, narrow};
use super::times::Times;
use super::{Dataset, ReadOptions, finish};
use crate::error::{Error, InputFault, Remedy};
use crate::event::{Clock, Features, Instant, Names, NodeId, Side, Time, Unit};
use std::mem;

/// What a column counts as missing among dates: numpy's `NaT`, the smallest integer.
const NOT_A_TIME: i64 = i64::MIN;

const NO_TIME: Refusal =
    Refusal::new("is empty, but every event needs a time", "fill it or drop the row");

/// A column of a table in memory.
#[derive(Debug, Clone, Copy)]
pub enum Column<'a> {
    /// Integers.
    Integer(&'a [i64]),
    /// Decimals.
    Float(&'a [f64]),
    /// Text: distinct values, and for each row which of them it has. A negative number is an empty
    /// cell.
    Text {
        /// The values.
        values: &'a [String],
        /// Which of them each row has.
        rows: &'a [i64],
    },
    /// Moments, counted in a unit from the beginning of 1970. The smallest integer is an empty
    /// cell.
    Instant(Unit, &'a [i64]),
}

/// A table of events in memory.
#[derive(Debug, Clone, Copy)]
pub struct MemoryTable<'a> {
    /// What the dataset is called, and messages about the table.
    pub name: &'a str,
    /// Who acts: the column's name and its values.
    pub source: (&'a str, Column<'a>),
    /// With whom.
    pub destination: (&'a str, Column<'a>),
    /// When.
    pub time: (&'a str, Column<'a>),
    /// How many features each event has.
    pub feature_width: usize,
    /// The features, event after event.
    pub features: &'a [f64],
}

/// Takes events from memory. Of the options `bipartite`, `sort` and `node_features` count.
pub fn read_memory(table: &MemoryTable<'_>, options: &ReadOptions) -> Result<Dataset> {
    let MemoryTable { name, source, destination, time, feature_width: width, features } = *table;
    let rows = source.1.len();
    for (what, found) in [
        ("sources and destinations", destination.1.len()),
        ("sources and times", time.1.len()),
        ("sources and rows of features", features.len().checked_div(width).unwrap_or(rows)),
    ] {
        if found != rows {
            return Err(Error::LengthMismatch { what, left: rows, right: found });
        }
    }
    if rows == 0 {
        let remedy = "give a table with at least one event";
        return Err(InputFault::new(name, "has no events", remedy).into());
    }
    let part = || {
        let mut part = part_of(name, [source, destination], Some(time), options.bipartite)?;
        part.features.reserve(features.len());
        for (place, &value) in features.iter().enumerate() {
            let feature = narrow(value).map_err(|refusal| {
                let (row, column) = (place / width, place % width);
                refused(name, row, &format!("feature {column}"), value.to_string(), refusal)
            })?;
            part.features.push(feature);
        }
        Ok(part)
    };
    let mut gather = Gather::new(name, time.0, 0, Names::new(options.bipartite), options);
    gather.append(part())?;
    let features = gather.take_features(width)?;
    let dataset = finish(gather, features, Vec::new(), options)?;
    Ok(Dataset { name: name.to_string(), ..dataset })
}

/// Features of nodes in memory: an id and a row of features for each node of the events.
#[derive(Debug, Clone, Copy)]
pub struct MemoryNodeTable<'a> {
    /// What messages call the table.
    pub name: &'a str,
    /// Whose features: the column's name and its values.
    pub id: (&'a str, Column<'a>),
    /// On which side each of them stands, where an id may be both a source and a destination.
    pub sides: Option<&'a [Side]>,
    /// How many features each node has.
    pub feature_width: usize,
    /// The features, row after row.
    pub features: &'a [f64],
}

/// Takes features of nodes from memory, by the rules for files of them: every node needs one row.
/// Gives how many rows belong to no node, too.
pub fn read_memory_node_features(
    table: &MemoryNodeTable<'_>,
    names: &Names,
) -> Result<(Features, usize)> {
    let MemoryNodeTable { name, id: (column, ids), sides, feature_width: width, features } = *table;
    let rows = ids.len();
    for (what, found) in [
        ("ids and rows of features", features.len().checked_div(width).unwrap_or(rows)),
        ("ids and sides", sides.map_or(rows, <[Side]>::len)),
    ] {
        if found != rows {
            return Err(Error::LengthMismatch { what, left: rows, right: found });
        }
    }
    if names.separated() && sides.is_none() {
        return Err(no_side(name).into());
    }
    let mut found = NodeRows::new(name, names, width);
    let mut narrowed = vec![0.0; width];
    // Lines are counted from 1, as in files.
    let refused = |row: usize, column: &str, shown: String, refusal: Refusal| {
        refused(name, row + 1, column, shown, refusal)
    };
    for row in 0..rows {
        let shown = ids.show(row);
        if matches!(ids, Column::Float(_) | Column::Instant(..)) {
            let refusal = Refusal::with("is not an id", Remedy::WriteIds);
            return Err(refused(row, column, shown, refusal).into());
        }
        if shown.is_empty() {
            return Err(refused(row, column, shown, EMPTY_ID).into());
        }
        for (place, narrowed) in narrowed.iter_mut().enumerate() {
            let value = features[row * width + place];
            *narrowed = narrow(value).map_err(|refusal| {
                refused(row, &format!("feature {place}"), value.to_string(), refusal)
            })?;
        }
        let side = sides.map_or(Side::Source, |sides| sides[row]);
        found.add(&shown, side, &narrowed, row as u64 + 1)?;
    }
    found.finish()
}

/// Pairs to be asked about, in any order.
#[derive(Debug, Clone)]
pub struct MemoryPairs {
    /// What messages call them.
    pub name: String,
    /// Their nodes' names.
    pub names: Names,
    /// Who would act.
    pub sources: Vec<NodeId>,
    /// With whom.
    pub destinations: Vec<NodeId>,
    /// When, with the clock that they are written by; absent if nobody says when.
    pub times: Option<(Vec<Time>, Clock)>,
}

/// Takes pairs from memory, in the order in which they stand.
pub fn read_memory_pairs(
    name: &str,
    source: (&str, Column<'_>),
    destination: (&str, Column<'_>),
    time: Option<(&str, Column<'_>)>,
    bipartite: bool,
) -> Result<MemoryPairs> {
    let rows = source.1.len();
    for (what, found) in [
        ("sources and destinations", destination.1.len()),
        ("sources and times", time.map_or(rows, |time| time.1.len())),
    ] {
        if found != rows {
            return Err(Error::LengthMismatch { what, left: rows, right: found });
        }
    }
    let time_column = time.map_or("", |time| time.0);
    // Times in any order are accepted by what would sort them; here nothing does.
    let options = ReadOptions { sort: true, ..ReadOptions::default() };
    let mut gather = Gather::new(name, time_column, 0, Names::new(bipartite), &options);
    let mut part = part_of(name, [source, destination], time, bipartite);
    let times = part.as_mut().map_or_else(|_| Times::default(), |part| mem::take(&mut part.times));
    gather.append(part)?;
    let (sources, destinations, names) = gather.into_nodes();
    let times = times.finish().map_err(|fault| {
        Error::from(InputFault::new(name, fault.problem, fault.remedy).column(time_column))
    })?;
    let times = time.map(|_| times);
    Ok(MemoryPairs { name: name.to_string(), names, sources, destinations, times })
}

/// Ids and times, without features.
fn part_of(
    name: &str,
    [source, destination]: [(&str, Column<'_>); 2],
    time: Option<(&str, Column<'_>)>,
    bipartite: bool,
) -> Result<Part, InputFault> {
    let mut part = Part::new(bipartite);
    let rows = source.1.len();
    for row in 0..rows {
        for ((column, cells), side) in [(source, Side::Source), (destination, Side::Destination)] {
            cells
                .push_id(row, side, &mut part)
                .map_err(|refusal| refused(name, row, column, cells.show(row), refusal))?;
        }
        if let Some((column, cells)) = time {
            cells
                .push_time(row, &mut part)
                .map_err(|refusal| refused(name, row, column, cells.show(row), refusal))?;
        }
    }
    part.lines = rows as u64;
    part.event_lines = (0..rows as u32).collect();
    Ok(part)
}

fn refused(name: &str, row: usize, column: &str, shown: String, refusal: Refusal) -> InputFault {
    let fault = InputFault::new(name, refusal.problem, refusal.remedy);
    fault.line(row as u64).column(column).value(shown)
}

impl Column<'_> {
    fn len(&self) -> usize {
        match self {
            Column::Integer(cells) | Column::Instant(_, cells) => cells.len(),
            Column::Float(cells) => cells.len(),
            Column::Text { rows, .. } => rows.len(),
        }
    }

    /// The text of a row; nothing if the cell is empty.
    fn text(&self, row: usize) -> Option<&str> {
        let Column::Text { values, rows } = self else { return None };
        let value = usize::try_from(rows[row]).ok().and_then(|place| values.get(place));
        value.map(String::as_str)
    }

    fn show(&self, row: usize) -> String {
        match self {
            Column::Integer(cells) => cells[row].to_string(),
            Column::Float(cells) => format!("{:?}", cells[row]),
            Column::Text { .. } => self.text(row).unwrap_or_default().to_string(),
            Column::Instant(_, cells) if cells[row] == NOT_A_TIME => String::new(),
            Column::Instant(unit, cells) => instant(*unit, cells[row]).show(*unit),
        }
    }

    fn push_id(&self, row: usize, side: Side, part: &mut Part) -> Result<(), Refusal> {
        match self {
            Column::Integer(cells) => part.nodes.push_integer(cells[row], side),
            Column::Text { .. } => match self.text(row) {
                None | Some("") => Err(EMPTY_ID),
                Some(text) => part.nodes.push(text, side),
            },
            Column::Float(_) | Column::Instant(..) => {
                Err(Refusal::with("is not an id", Remedy::WriteIds))
            }
        }
    }

    fn push_time(&self, row: usize, part: &mut Part) -> Result<(), Refusal> {
        let times = &mut part.times;
        match self {
            Column::Integer(cells) => times.push_integer(cells[row]),
            Column::Float(cells) => times.push_float(cells[row]),
            Column::Text { .. } => times.push(self.text(row).unwrap_or_default()),
            Column::Instant(_, cells) if cells[row] == NOT_A_TIME => Err(NO_TIME),
            Column::Instant(unit, cells) => times.push_instant(instant(*unit, cells[row])),
        }
    }
}

fn instant(unit: Unit, count: i64) -> Instant {
    Instant::from_nanoseconds(i128::from(count) * i128::from(1_000_000_000 / unit.per_second()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::read_from;

    fn table<'a>(source: Column<'a>, destination: Column<'a>, time: Column<'a>) -> MemoryTable<'a> {
        MemoryTable {
            name: "letters",
            source: ("from", source),
            destination: ("to", destination),
            time: ("at", time),
            feature_width: 0,
            features: &[],
        }
    }

    /// The same table as a file.
    fn of_file(text: &str, sort: bool) -> Dataset {
        let options = ReadOptions { sort, ..ReadOptions::default() };
        read_from("letters.csv", text.as_bytes(), &options).expect("a good file")
    }

    #[test]
    fn columns_become_what_a_file_of_them_is_read_as() {
        let names = ["ann".to_string(), "7".into(), "bob".into()];
        let (from, to) = ([0, 1, 2], [2, 0, 1]);
        let mut text = table(
            Column::Text { values: &names, rows: &from },
            Column::Text { values: &names, rows: &to },
            Column::Float(&[0.5, 3.0, 1.25]),
        );
        text.feature_width = 1;
        text.features = &[1.0, 2.0, 3.0];
        let options = ReadOptions { sort: true, ..ReadOptions::default() };
        assert_eq!(
            read_memory(&text, &options).expect("a good table"),
            of_file("source,target,time,f0\nann,bob,0.5,1\n7,ann,3.0,2\nbob,7,1.25,3\n", true)
        );
        let day = 86_400_000_000_000;
        let moments = [day, day + 250_000];
        let dates = table(
            Column::Integer(&[3, 1 << 40]),
            Column::Integer(&[-5, 3]),
            Column::Instant(Unit::Nanosecond, &moments),
        );
        let file = "source,target,time\n3,-5,1970-01-02T00:00:00Z\n\
                    1099511627776,3,1970-01-02T00:00:00.000250Z\n";
        let found = read_memory(&dates, &ReadOptions::default()).expect("a good table");
        assert_eq!(found, of_file(file, false));
    }

    #[test]
    fn what_cannot_be_is_refused_with_row_and_column() {
        let said = |table: &MemoryTable<'_>| {
            read_memory(table, &ReadOptions::default()).expect_err("refused").to_string()
        };
        let ids = Column::Integer(&[1, 2]);
        let never = table(ids, ids, Column::Instant(Unit::Second, &[0, NOT_A_TIME]));
        assert!(said(&never).contains("line 2, column \"at\": \"\" is empty"), "{}", said(&never));
        let back = table(ids, ids, Column::Integer(&[5, 4]));
        assert!(said(&back).contains("line 2, column \"at\": \"4\" is before"), "{}", said(&back));
        let floats = table(ids, Column::Float(&[1.0, 2.0]), Column::Integer(&[1, 2]));
        assert!(said(&floats).contains("\"1.0\" is not an id"), "{}", said(&floats));
        let short = table(ids, Column::Integer(&[1]), Column::Integer(&[1, 2]));
        assert!(said(&short).contains("sources and destinations"), "{}", said(&short));
        let mut features = table(ids, ids, Column::Integer(&[1, 2]));
        features.feature_width = 2;
        features.features = &[0.0, 1.0, f64::NAN, 1.0];
        assert!(said(&features).contains("line 2, column \"feature 0\""), "{}", said(&features));
        let empty = table(Column::Integer(&[]), Column::Integer(&[]), Column::Integer(&[]));
        assert!(said(&empty).contains("has no events"), "{}", said(&empty));
    }

    #[test]
    fn features_of_nodes_follow_the_rules_for_files() {
        let ids = Column::Integer(&[5, 3]);
        let events = table(ids, Column::Integer(&[9, 5]), Column::Integer(&[1, 2]));
        let names = read_memory(&events, &ReadOptions::default()).expect("a good table").names;
        let nodes = MemoryNodeTable {
            name: "people",
            id: ("id", Column::Integer(&[9, 4, 3, 5])),
            sides: None,
            feature_width: 2,
            features: &[9.0, 9.5, 4.0, 4.5, 3.0, 3.5, 5.0, 5.5],
        };
        let (found, unused) = read_memory_node_features(&nodes, &names).expect("a good table");
        assert_eq!(unused, 1);
        // Nodes are numbered by appearance: 5, 9, 3.
        assert_eq!(found.values(), [5.0, 5.5, 9.0, 9.5, 3.0, 3.5]);
        let said = |table: &MemoryNodeTable<'_>, names: &Names| {
            read_memory_node_features(table, names).expect_err("refused").to_string()
        };
        let missing =
            MemoryNodeTable { id: ("id", Column::Integer(&[9, 3])), features: &[0.5; 4], ..nodes };
        assert!(said(&missing, &names).contains("without a row of features"));
        let twice =
            MemoryNodeTable { id: ("id", Column::Integer(&[9, 9])), features: &[0.5; 4], ..nodes };
        assert!(said(&twice, &names).contains("line 2: \"9\" has a second row"));
        let short = MemoryNodeTable { features: &[0.5; 4], ..nodes };
        assert!(said(&short, &names).contains("ids and rows of features: 4 and 2"));
        let infinite = MemoryNodeTable { features: &[f64::INFINITY; 8], ..nodes };
        assert!(said(&infinite, &names).contains("line 1, column \"feature 0\""));
        let decimal = MemoryNodeTable { id: ("id", Column::Float(&[0.5; 4])), ..nodes };
        assert!(said(&decimal, &names).contains("is not an id"));

        let options = ReadOptions { bipartite: true, ..ReadOptions::default() };
        let names = read_memory(&events, &options).expect("a good table").names;
        assert!(said(&nodes, &names).contains("column \"side\""), "{}", said(&nodes, &names));
        let (source, destination) = (Side::Source, Side::Destination);
        let nodes = MemoryNodeTable {
            id: ("id", Column::Integer(&[5, 9, 3, 5])),
            sides: Some(&[destination, destination, source, source]),
            ..nodes
        };
        let (found, _) = read_memory_node_features(&nodes, &names).expect("a good table");
        assert_eq!(found.values()[..2], [5.0, 5.5]);
    }

    #[test]
    fn pairs_keep_the_order_in_which_they_stand() {
        let (from, to) = (Column::Integer(&[5, 3, 5]), Column::Integer(&[1, 5, 2]));
        let times = Column::Float(&[9.0, 1.5, 4.0]);
        let pairs =
            read_memory_pairs("pairs", ("from", from), ("to", to), Some(("at", times)), false)
                .expect("good pairs");
        let names: Vec<String> =
            pairs.sources.iter().map(|&node| pairs.names.name(node).to_string()).collect();
        assert_eq!(names, ["5", "3", "5"]);
        let (times, clock) = pairs.times.expect("they have times");
        assert_eq!(
            times.iter().map(|&time| clock.show(time)).collect::<Vec<_>>(),
            ["9.0", "1.5", "4.0"]
        );
        let pairs = read_memory_pairs("pairs", ("from", from), ("to", to), None, false);
        assert!(pairs.expect("good pairs").times.is_none());
        let short = Column::Integer(&[1]);
        assert!(read_memory_pairs("pairs", ("from", from), ("to", short), None, false).is_err());
    }
}
