//! All that is wrong with a table of events: reading goes on after a fault, and faults are counted.
//!
//! [`read`](super::read()) refuses a file at its first fault. Somebody who has to mend it wants to
//! know all of them, by column, with how many there are and where the first one is. Only text is
//! looked at; Parquet has types of its own.

use super::Result;
use super::columns::{Encoding, Role};
use super::faults::{FaultCount, Faults};
use super::input::{Input, is_parquet};
use super::jsonl::as_csv;
use super::nodes::EMPTY_ID;
use super::number;
use super::options::{Format, ReadOptions};
use super::record::{Blocks, End, Field, is_blank, split};
use super::table::{Opening, open};
use super::times::OTHER_FORMAT;
use crate::event::{Instant, TimeFormat};
use rustc_hash::FxHashSet;
use serde::Serialize;
use std::borrow::Cow;
use std::convert::Infallible;
use std::path::Path;

/// What a look at a whole table has found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Diagnosis {
    /// Rows, blank lines and the header not counted.
    pub rows: u64,
    /// Rows without a fault.
    pub good_rows: u64,
    /// What each column was taken for.
    pub columns: Vec<(String, &'static str)>,
    /// The faults, in the order of their first lines.
    pub faults: Vec<FaultCount>,
    /// What looks odd, though it can be read.
    pub hints: Vec<String>,
}

/// Looks at all rows of tables of text, whatever is wrong with them. Nothing for Parquet and
/// standard input.
///
/// # Errors
///
/// If a file cannot be read, or its columns cannot be told apart.
pub fn diagnose(path: impl AsRef<Path>, options: &ReadOptions) -> Result<Option<Diagnosis>> {
    let files = super::files_of_stream(path.as_ref(), options)?;
    let mut whole: Option<Diagnosis> = None;
    for file in &files {
        let Some(mut found) = diagnose_file(file, options)? else { continue };
        if files.len() > 1 {
            let name = file.display().to_string();
            found.faults.iter_mut().for_each(|fault| fault.file = Some(name.clone()));
        }
        match &mut whole {
            None => whole = Some(found),
            Some(whole) => {
                whole.rows += found.rows;
                whole.good_rows += found.good_rows;
                whole.faults.extend(found.faults);
                found.hints.retain(|hint| !whole.hints.contains(hint));
                whole.hints.extend(found.hints);
            }
        }
    }
    Ok(whole)
}

fn diagnose_file(path: &Path, options: &ReadOptions) -> Result<Option<Diagnosis>> {
    let format = options.format.unwrap_or_else(|| Format::of_name(path));
    if format == Format::Parquet || is_parquet(path) || super::input::is_standard_input(path) {
        return Ok(None);
    }
    let Input { label, stream, compression, .. } = Input::open(path)?;
    let fault = |error| Input::fault(&label, compression, error);
    let mut blocks = Blocks::new(stream, 1 << 22, options.separator);
    let mut block = blocks.next().map_err(fault)?.unwrap_or_default();
    let opening = open(&label, &block, blocks.separator(), format, options)?;
    let mut doctor = Doctor::new(&opening, options);
    block.drain(..opening.start);
    loop {
        doctor.look(&block);
        match blocks.next().map_err(fault)? {
            Some(next) => block = next,
            None => break,
        }
    }
    Ok(Some(doctor.finish()))
}

/// How a time is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    Number,
    Date,
}

struct Doctor<'a> {
    opening: &'a Opening,
    sorts: bool,
    time_format: Option<&'a TimeFormat>,
    line: u64,
    rows: u64,
    bad_rows: u64,
    faults: Faults,
    /// The manner of the first time, which the others have to follow.
    manner: Option<Manner>,
    last: f64,
    /// Formats that all times so far could have which are neither numbers nor ISO 8601.
    formats: Vec<(&'static str, TimeFormat)>,
    odd_times: u64,
    /// Dates with a time of day that name their zone, and those that do not.
    zones: [u64; 2],
    nulls: u64,
    decimal_ids: u64,
    /// Ids of both sides, as long as they are small integers.
    sides: Option<[FxHashSet<u32>; 2]>,
    meets_itself: bool,
}

/// Usual ways to write a time that are not ISO 8601.
const FORMATS: [&str; 20] = [
    "%d.%m.%Y",
    "%d.%m.%Y %H:%M",
    "%d.%m.%Y %H:%M:%S",
    "%m/%d/%Y",
    "%m/%d/%Y %H:%M",
    "%m/%d/%Y %H:%M:%S",
    "%m/%d/%Y %I:%M:%S %p",
    "%m/%d/%Y %I:%M %p",
    "%m/%d/%y %H:%M",
    "%d/%m/%Y",
    "%d/%m/%Y %H:%M",
    "%d/%m/%Y %H:%M:%S",
    "%d-%m-%Y %H:%M",
    "%d-%m-%Y %H:%M:%S",
    "%Y/%m/%d",
    "%Y/%m/%d %H:%M:%S",
    "%Y-%m-%d %H:%M:%S UTC",
    "%d/%b/%Y:%H:%M:%S %z",
    "%a %b %d %H:%M:%S %Y",
    "%d %b %Y %H:%M:%S",
];

/// Ids above this tell nothing about two numberings that both begin at 0.
const SMALL_ID: u32 = 1 << 24;

impl<'a> Doctor<'a> {
    fn new(opening: &'a Opening, options: &'a ReadOptions) -> Doctor<'a> {
        Doctor {
            opening,
            sorts: options.sort,
            time_format: options.time_format.as_ref(),
            line: opening.lines,
            rows: 0,
            bad_rows: 0,
            faults: Faults::default(),
            manner: None,
            last: f64::NEG_INFINITY,
            formats: FORMATS
                .iter()
                .filter_map(|text| Some((*text, TimeFormat::new(text)?)))
                .collect(),
            odd_times: 0,
            zones: [0; 2],
            nulls: 0,
            decimal_ids: 0,
            sides: Some(Default::default()),
            meets_itself: false,
        }
    }

    fn note(&mut self, column: &str, fault: &str, example: &str) {
        self.faults.note(column, fault, self.line + 1, example);
    }

    /// Looks at whole lines.
    fn look(&mut self, block: &[u8]) {
        let rows = match self.opening.json {
            true => Cow::Owned(self.rows_of_json(block)),
            false => Cow::Borrowed(block),
        };
        let text = String::from_utf8_lossy(&rows);
        let block = text.as_bytes();
        let mut fields = Vec::new();
        let mut at = 0;
        while at < block.len() {
            let line_end =
                memchr::memchr(b'\n', &block[at..]).map_or(block.len(), |end| at + end + 1);
            let (next, whole) = match split(block, at, self.opening.separator, &mut fields) {
                End::Line(next) => (next, true),
                End::Block => (block.len(), true),
                End::OpenQuote | End::AfterQuote(_) => (line_end, false),
            };
            if !whole {
                self.rows += 1;
                self.bad_rows += 1;
                self.note("row", "has quotes that do not match", text[at..line_end].trim());
            } else if !is_blank(&text, &fields) {
                let before = self.faults.total();
                self.row(&text, &text[at..next], &fields);
                let after = self.faults.total();
                self.rows += 1;
                self.bad_rows += u64::from(after > before);
            }
            // JSON writes line ends within a text otherwise.
            let lines = memchr::memchr_iter(b'\n', &block[at..next]).count().max(1) as u64;
            self.line += if self.opening.json { 1 } else { lines };
            at = next;
        }
    }

    /// Lines of JSON as rows; what is no object is noted and left blank.
    fn rows_of_json(&mut self, block: &[u8]) -> Vec<u8> {
        let columns = &self.opening.columns;
        let (used, mut bad) = (|_: usize| true, Vec::new());
        let csv = as_csv(block, &columns.names, &used, |line, text, refusal| {
            bad.push((line, String::from_utf8_lossy(text).trim().to_string(), refusal.problem));
            Ok::<(), Infallible>(())
        });
        for (line, text, problem) in bad {
            self.rows += 1;
            self.bad_rows += 1;
            self.faults.note("row", problem, self.line + line + 1, &text);
        }
        csv.unwrap_or_else(|never| match never {})
    }

    fn row(&mut self, text: &str, line: &str, fields: &[Field]) {
        let columns = &self.opening.columns;
        if fields.len() != columns.roles.len() {
            let fault = format!("does not have {} fields", columns.roles.len());
            return self.note("row", &fault, line.trim());
        }
        if line.contains('\u{fffd}') {
            self.note("row", "is not valid UTF-8", line.trim());
        }
        let mut ids: [Option<String>; 2] = [None, None];
        for ((field, role), name) in fields.iter().zip(&columns.roles).zip(&columns.names) {
            match role {
                Role::Source => ids[0] = self.id(name, &field.text(text)),
                Role::Destination => ids[1] = self.id(name, &field.text(text)),
                Role::Time => self.time(name, field.raw(text)),
                Role::Feature(Encoding::Plain) => {
                    if let Err(refusal) = number::feature(field.raw(text)) {
                        self.note(name, refusal.problem, field.raw(text));
                    }
                }
                Role::Ignored | Role::Row | Role::Feature(_) => {}
            }
        }
        if let [Some(source), Some(destination)] = ids {
            self.meets_itself |= source == destination;
            let numbers = [source, destination].map(|id| id.parse::<u32>());
            match (&mut self.sides, numbers) {
                (Some(sides), [Ok(source), Ok(destination)])
                    if source.max(destination) < SMALL_ID =>
                {
                    sides[0].insert(source);
                    sides[1].insert(destination);
                }
                (sides, _) => *sides = None,
            }
        }
    }

    fn id(&mut self, column: &str, id: &str) -> Option<String> {
        if id.is_empty() {
            self.note(column, EMPTY_ID.problem, id);
            return None;
        }
        let null = ["null", "none", "nan", "n/a", "na", "\\n", "undefined"];
        self.nulls += u64::from(null.iter().any(|word| id.eq_ignore_ascii_case(word)));
        let whole = id.strip_suffix(".0").is_some_and(|whole| whole.parse::<i64>().is_ok());
        self.decimal_ids += u64::from(whole);
        Some(id.to_string())
    }

    fn time(&mut self, column: &str, text: &str) {
        if let Some(format) = self.time_format {
            return match format.parse(text) {
                Some(moment) => self.in_order(column, text, moment.nanoseconds() as f64),
                None if text.is_empty() => self.note(column, "is empty", text),
                None => self.note(column, OTHER_FORMAT.problem, text),
            };
        }
        let number = text.parse::<f64>().ok().filter(|time| time.is_finite());
        let date = || Instant::parse(text).map(|moment| moment.nanoseconds() as f64);
        let (manner, time) = match (number, date) {
            (Some(time), _) => (Manner::Number, time),
            (None, date) => match date() {
                Some(time) => {
                    // A day alone has no zone, and needs none.
                    if let Some(clock) = text.get(11..) {
                        let named = clock.contains(['Z', 'z', '+', '-']);
                        self.zones[usize::from(!named)] += 1;
                    }
                    (Manner::Date, time)
                }
                None if text.is_empty() => return self.note(column, "is empty", text),
                None => {
                    self.guess_format(text);
                    return self.note(column, "is not a time", text);
                }
            },
        };
        if *self.manner.get_or_insert(manner) != manner {
            let fault = match manner {
                Manner::Number => "is a number where the first time is a date",
                Manner::Date => "is a date where the first time is a number",
            };
            return self.note(column, fault, text);
        }
        self.in_order(column, text, time);
    }

    /// Leaves out the formats that a time does not have. Words in place of a time tell nothing.
    fn guess_format(&mut self, text: &str) {
        if !text.starts_with(|letter: char| letter.is_ascii_digit()) && text.len() < 8 {
            return;
        }
        self.odd_times += 1;
        self.formats.retain(|(_, format)| format.parse(text).is_some());
    }

    /// Notes a time that is before one above.
    fn in_order(&mut self, column: &str, text: &str, time: f64) {
        if time < self.last && !self.sorts {
            return self.note(column, "is before an event above", text);
        }
        self.last = self.last.max(time);
    }

    fn finish(self) -> Diagnosis {
        let columns = &self.opening.columns;
        let taken = |role: &Role| match role {
            Role::Source => "source",
            Role::Destination => "destination",
            Role::Time => "time",
            Role::Row => "row of features",
            Role::Feature(_) => "feature",
            Role::Ignored => "left aside",
        };
        let mut hints = Vec::new();
        if self.odd_times > 0 && !self.formats.is_empty() {
            let formats: Vec<String> =
                self.formats.iter().map(|(text, _)| format!("{text:?}")).collect();
            hints.push(format!(
                "times can be read if their format is given: {}",
                formats.join(" or ")
            ));
        }
        let [named, bare] = self.zones;
        if named > 0 && bare > 0 {
            hints.push(format!(
                "{named} times name their zone and {bare} do not: those are taken as UTC"
            ));
        }
        if self.nulls > 0 {
            hints.push(format!(
                "{} ids are words for nothing, such as NULL: they are taken as one node",
                self.nulls
            ));
        }
        if self.decimal_ids > 0 {
            hints.push(format!(
                "{} ids end in .0: a tool has made decimals of integers, and 17.0 is not 17",
                self.decimal_ids
            ));
        }
        if let Some([sources, destinations]) = &self.sides
            && !columns.separated
            && !self.meets_itself
            && self.rows >= 100
            && [sources, destinations].iter().all(|ids| ids.contains(&0) || ids.contains(&1))
        {
            let shared = sources.intersection(destinations).count();
            // Two numberings from 0 share all ids of the smaller one.
            if shared * 10 >= sources.len().min(destinations.len()) * 9 {
                hints.push(format!(
                    "{shared} ids are on both sides, and none has met itself: if sources and \
                     destinations are different kinds, say that the stream is bipartite"
                ));
            }
        }
        Diagnosis {
            rows: self.rows,
            good_rows: self.rows - self.bad_rows,
            columns: columns.names.iter().cloned().zip(columns.roles.iter().map(taken)).collect(),
            faults: self.faults.finish(),
            hints,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn diagnosed(text: &str) -> Diagnosis {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("e.csv");
        std::fs::write(&path, text).expect("written");
        diagnose(path, &ReadOptions::default()).expect("columns are found").expect("text")
    }

    #[test]
    fn all_faults_are_counted_with_their_first_lines() {
        let found = diagnosed(
            "user,item,time,w,note\n1,2,1,0.5,a\n,2,2,0.5,b\n1,2,soon,x,c\n1,2\n1,2,0,0.5,d\n\
             1,,3,y,e\n1,2,2020-01-01,1,f\n3,4,5,1,g\n",
        );
        let rows: Vec<(&str, &str, u64, u64)> = found
            .faults
            .iter()
            .map(|row| (row.column.as_str(), row.fault.as_str(), row.count, row.first_line))
            .collect();
        assert_eq!(rows[0], ("user", EMPTY_ID.problem, 1, 3));
        assert!(rows.contains(&("time", "is not a time", 1, 4)), "{rows:?}");
        assert!(rows.iter().any(|row| row.0 == "w" && row.2 == 2 && row.3 == 4), "{rows:?}");
        assert!(rows.contains(&("row", "does not have 5 fields", 1, 5)), "{rows:?}");
        assert!(rows.contains(&("time", "is before an event above", 1, 6)), "{rows:?}");
        assert!(rows.contains(&("item", EMPTY_ID.problem, 1, 7)), "{rows:?}");
        assert!(rows.iter().any(|row| row.1.contains("is a date") && row.3 == 8), "{rows:?}");
        assert_eq!((found.rows, found.good_rows), (8, 2));
        assert_eq!(found.columns[4], ("note".to_string(), "left aside"));
    }

    #[test]
    fn the_format_of_times_is_guessed_from_all_of_them() {
        let hints = |times: &str| {
            let rows: String = times.split(',').map(|time| format!("1,2,{time}\n")).collect();
            diagnosed(&format!("u,i,ts\n{rows}")).hints
        };
        let found = hints("04/03/2021 10:00,n/a,05/03/2021 11:00,13/03/2021 12:00");
        assert!(found[0].ends_with("given: \"%d/%m/%Y %H:%M\""), "{found:?}");
        let found = hints("04/03/2021,05/03/2021");
        assert!(found[0].contains("\"%m/%d/%Y\" or \"%d/%m/%Y\""), "{found:?}");
        assert_eq!(hints("04/03/2021,yesterday evening"), [""; 0]);
    }

    #[test]
    fn faults_of_several_files_are_told_with_their_files() {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, text) in [("a.csv", "u,i,ts\n1,2,1\n,2,2\n"), ("b.csv", "u,i,ts\n1,2,x\n")] {
            std::fs::write(folder.path().join(name), text).expect("written");
        }
        let found = diagnose(folder.path(), &ReadOptions::default()).expect("read").expect("text");
        assert_eq!((found.rows, found.good_rows), (3, 1));
        let files: Vec<bool> = found
            .faults
            .iter()
            .zip(["a.csv", "b.csv"])
            .map(|(fault, name)| fault.file.as_deref().is_some_and(|file| file.ends_with(name)))
            .collect();
        assert_eq!(files, [true, true]);
    }

    #[test]
    fn what_looks_odd_is_hinted_at() {
        let rows: String =
            (0..200).map(|n| format!("{},{},{n}\n", n % 7, (n + 1) % 5 + 50)).collect();
        assert!(diagnosed(&format!("u,i,ts\n{rows}")).hints.is_empty());
        let rows: String = (0..200).map(|n| format!("{},{},{n}\n", n % 6, (n + 1) % 6)).collect();
        let hints = diagnosed(&format!("u,i,ts\n{rows}")).hints;
        assert!(hints[0].contains("bipartite"), "{hints:?}");
        let zones = "u,i,ts\n1,2,2021-03-04T10:00:00+01:00\n1,2,2021-03-04 12:00\n";
        assert!(diagnosed(zones).hints[0].contains("1 times name their zone and 1 do not"));
        assert!(diagnosed("u,i,ts\n1,2,2021-03-04\n1,2,2021-03-04 12:00Z\n").hints.is_empty());
        let hints = diagnosed("u,i,ts\nNULL,17.0,1\n").hints;
        assert!(hints[0].contains("NULL") && hints[1].contains(".0"), "{hints:?}");
    }
}
