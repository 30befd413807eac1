//! CSV and TSV into events: the header is read first, then blocks of lines are parsed side by side.
//!
//! Depends on `record` for the cutting, on `columns` for what each column means, and on `gather`
//! for putting blocks together.

use super::Result;
use super::columns::{Columns, Encoding, Role, is_jodie};
use super::faults::{Faults, unless_skipped};
use super::gather::{Gather, Part};
use super::input::Input;
use super::jsonl::{self, NO_OBJECT, as_csv, is_array, is_json};
use super::nodes::EMPTY_ID;
use super::number::{self, Refusal};
use super::options::{Format, ReadOptions};
use super::record::{Blocks, End, Field, LONGEST_RECORD, is_blank, preamble, split};
use super::times::{MIXED, Times};
use crate::error::{FaultKind, InputFault, Remedy};
use crate::event::{Instant, Names, Side, TimeFormat};
use rayon::prelude::*;
use std::borrow::Cow;
use std::io::Read;

/// How much is taken at once, and how much at all. Tests take less, to reach the seams and the end.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Bytes in a block.
    pub block: usize,
    /// Nodes in a stream.
    pub nodes: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        // Blocks are large enough that joining them costs little, and small enough for a few on
        // each thread.
        Limits { block: 4 << 20, nodes: Names::MOST }
    }
}

/// What the beginning of a table says about the rest.
pub(super) struct Opening {
    /// The layout, after a look at the header.
    format: Format,
    pub columns: Columns,
    pub separator: u8,
    /// Whether rows are lines of JSON.
    pub json: bool,
    /// Where data begin in the first block.
    pub start: usize,
    /// Lines before the data.
    pub lines: u64,
}

/// A table that has been read: what its header says, and its events.
pub(super) struct Table {
    /// The layout, after a look at the header.
    pub format: Format,
    pub columns: Columns,
    pub events: Gather,
}

/// What was read before a file, where a stream lies in several.
#[derive(Default)]
pub(super) struct Before {
    /// Whether there are several files.
    pub several: bool,
    /// The files so far.
    pub table: Option<Table>,
}

impl Before {
    /// The stream that a file's events are added to. A file has to have the columns of those
    /// before it.
    pub(super) fn gather(
        self,
        file: &str,
        columns: &Columns,
        lines: u64,
        names: Names,
        options: &ReadOptions,
    ) -> Result<Gather> {
        match self.table {
            Some(Table { columns: former, events: mut gather, .. }) => {
                if let Some(problem) = columns.differs_from(&former) {
                    let remedy = "give all files of a stream the same columns";
                    let fault = InputFault::new(file, problem, remedy);
                    return Err(fault.kind(FaultKind::Columns).into());
                }
                gather.next_file(file, lines);
                Ok(gather)
            }
            None => {
                let time = columns.place(Role::Time);
                let gather = Gather::new(file, &columns.names[time], lines, names, options);
                Ok(if self.several { gather.of_several() } else { gather })
            }
        }
    }
}

/// Reads a table.
pub(super) fn read_table(
    input: Input<'_>,
    format: Format,
    options: &ReadOptions,
    limits: Limits,
    before: Before,
) -> Result<Table> {
    let Input { label, stream, compression, .. } = input;
    let fault = |error| Input::fault(&label, compression, error);
    let mut blocks = Blocks::new(stream, limits.block, options.separator);
    let mut first = blocks.next().map_err(fault)?.unwrap_or_default();
    let separator = blocks.separator();
    let opening = open(&label, &first, separator, format, options)?;
    first.drain(..opening.start);
    let mut parser = Parser::new(&label, &opening, options);
    parser.look_at_times(&first);
    let columns = &opening.columns;
    let names = Names::with_most(columns.separated, limits.nodes);
    let several = before.several;
    let mut gather = before.gather(&label, columns, opening.lines, names, options)?;
    let events_before = gather.events();
    let mut batch = vec![first];
    let many = 2 * rayon::current_num_threads();
    loop {
        // While these blocks are parsed, the next ones are read and unpacked.
        let (next, parts) = rayon::join(
            || next_blocks(&mut blocks, many),
            || batch.par_iter().map(|block: &Vec<u8>| parser.parse(block)).collect::<Vec<_>>(),
        );
        for part in parts {
            gather.append(part)?;
        }
        batch = next.map_err(fault)?;
        if batch.is_empty() {
            break;
        }
    }
    // Of several files some may be empty.
    if gather.events() == events_before && !several {
        let problem = match (gather.bad_rows(), columns.headerless) {
            (0, true) => "has no events",
            (0, false) => "has a header but no events",
            _ => "has no row without a fault",
        };
        return Err(InputFault::new(&label, problem, "give a file with at least one event").into());
    }
    if columns.truncated {
        gather.truncate_times()?;
    }
    Ok(Table { format: opening.format, columns: opening.columns, events: gather })
}

fn next_blocks<R: Read>(blocks: &mut Blocks<R>, many: usize) -> std::io::Result<Vec<Vec<u8>>> {
    let mut batch = Vec::with_capacity(many);
    while batch.len() < many {
        match blocks.next()? {
            Some(block) => batch.push(block),
            None => break,
        }
    }
    Ok(batch)
}

/// Passes over comments, reads the header, and finds the columns.
pub(super) fn open(
    file: &str,
    block: &[u8],
    separator: u8,
    format: Format,
    options: &ReadOptions,
) -> Result<Opening, InputFault> {
    let (start, lines) = preamble(block);
    let further = |mut fault: InputFault, lines: u64| {
        fault.line = fault.line.map(|line| line + lines);
        fault
    };
    if start == block.len() {
        return Err(InputFault::new(
            file,
            "is empty",
            "give a file with a header and at least one event",
        ));
    }
    if is_array(&block[start..]) {
        let remedy = "write one object on each line, for example with jq -c '.[]'";
        return Err(InputFault::new(file, "is a JSON array", remedy));
    }
    if format == Format::Table && is_json(&block[start..]) {
        let line = block[start..].split(|&byte| byte == b'\n').next().unwrap_or_default();
        let names = std::str::from_utf8(line).map_err(|_| NO_OBJECT).and_then(jsonl::names);
        let refused = |refusal: Refusal| {
            InputFault::new(file, refusal.problem, refusal.remedy).line(lines + 1)
        };
        let options = ReadOptions { header: Some(true), ..options.clone() };
        let columns = Columns::find(file, &names.map_err(refused)?, None, format, &options)
            .map_err(|fault| further(fault, lines))?;
        return Ok(Opening { format, columns, separator, json: true, start, lines });
    }
    let block = if options.skip_bad { valid_lines(block) } else { block };
    let text = checked_text(file, block, separator, None).map_err(|fault| further(fault, 1))?;
    let mut fields = Vec::new();
    let next = match split(block, start, separator, &mut fields) {
        End::Line(next) => next,
        End::Block if block.len() <= LONGEST_RECORD => block.len(),
        End::Block | End::OpenQuote | End::AfterQuote(_) => {
            let remedy = "close its quotes, and check that the file is a table";
            return Err(
                InputFault::new(file, "has a header that cannot be read", remedy).line(lines + 1)
            );
        }
    };
    let first: Vec<String> = fields.iter().map(|field| field.text(text).into_owned()).collect();
    let found_jodie = format == Format::Table && options.format.is_none() && is_jodie(&first);
    let format = if found_jodie { Format::Jodie } else { format };
    split(block, next, separator, &mut fields);
    let second = (next < block.len() && !is_blank(text, &fields)).then_some(fields.len());
    let columns = Columns::find(file, &first, second, format, options)
        .map_err(|fault| further(fault, lines))?;
    let (start, lines) = match columns.headerless {
        true => (start, lines),
        false => (next, lines + count_lines(&text[start..next])),
    };
    Ok(Opening { format, columns, separator, json: false, start, lines })
}

/// Turns blocks of lines into parts.
struct Parser<'a> {
    file: &'a str,
    columns: &'a Columns,
    separator: u8,
    json: bool,
    time_format: Option<&'a TimeFormat>,
    source: usize,
    destination: usize,
    time: usize,
    /// Columns with another use.
    others: Vec<(usize, Role)>,
    /// Whether rows with a fault are left out.
    skip_bad: bool,
    /// Whether times have to be dates, or must not be; only where rows with a fault are left out,
    /// since otherwise the file is refused when its parts are joined.
    dates: Option<bool>,
}

/// A row, cut into fields.
struct Row<'a> {
    text: &'a str,
    fields: &'a [Field],
}

impl<'a> Row<'a> {
    fn text(&self, column: usize) -> Cow<'a, str> {
        self.fields[column].text(self.text)
    }

    /// As [`Row::text`], for numbers.
    fn raw(&self, column: usize) -> &'a str {
        self.fields[column].raw(self.text)
    }
}

impl<'a> Parser<'a> {
    fn new(file: &'a str, opening: &'a Opening, options: &'a ReadOptions) -> Parser<'a> {
        let Opening { columns, separator, json, .. } = opening;
        let others = columns.roles.iter().copied().enumerate();
        Parser {
            file,
            columns,
            separator: *separator,
            json: *json,
            time_format: options.time_format.as_ref(),
            source: columns.place(Role::Source),
            destination: columns.place(Role::Destination),
            time: columns.place(Role::Time),
            others: others
                .filter(|(_, role)| matches!(role, Role::Row | Role::Feature(_)))
                .collect(),
            skip_bad: options.skip_bad,
            dates: None,
        }
    }

    /// Looks for the first good time, whose manner the others have to follow, where rows with a
    /// fault are left out.
    fn look_at_times(&mut self, block: &[u8]) {
        if !self.skip_bad || self.time_format.is_some() {
            return;
        }
        let mut faults = Faults::default();
        let Ok(block) = self.rows_of(block, &mut faults) else { return };
        let text = std::str::from_utf8(&block).expect("what is not text was blanked");
        let (mut at, mut fields) = (0, Vec::new());
        while at < block.len() && self.dates.is_none() {
            at = match split(&block, at, self.separator, &mut fields) {
                End::Line(next) => next,
                End::Block => block.len(),
                End::OpenQuote | End::AfterQuote(_) => {
                    fields.clear();
                    line_end(&block, at)
                }
            };
            if fields.len() == self.columns.roles.len() {
                let time = fields[self.time].raw(text);
                let good = Times::default().push(time).is_ok();
                self.dates = good.then(|| Instant::parse(time).is_some());
            }
        }
    }

    /// Parses whole lines. A fault's line counts from 0 at the beginning of the block.
    fn parse(&self, block: &[u8]) -> Result<Part, InputFault> {
        let mut part = Part::new(self.columns.separated);
        let block = self.rows_of(block, &mut part.faults)?;
        let block = &*block;
        let text = checked_text(self.file, block, self.separator, Some(self.columns))?;
        let mut fields = Vec::with_capacity(self.columns.roles.len());
        let (mut at, mut line) = (0, 0);
        while at < block.len() {
            let cut = match split(block, at, self.separator, &mut fields) {
                End::Line(next) => Ok(next),
                End::Block => Ok(block.len()),
                End::OpenQuote => {
                    let remedy = "close it, or double quotes that are text";
                    Err(self.fault(line, "opens a quote that is never closed", remedy))
                }
                End::AfterQuote(place) => {
                    let fault = self.fault(
                        line,
                        "stands after a closing quote",
                        "double quotes that are text",
                    );
                    Err(fault.value(text[place..].lines().next().unwrap_or_default()))
                }
            };
            // After 64 MiB without an end the rest of the file has not been read.
            let next = match cut {
                Ok(next) => next,
                Err(fault) if self.skip_bad && block.len() <= LONGEST_RECORD => {
                    part.faults.note_fault(&fault);
                    fields.clear();
                    line_end(block, at)
                }
                Err(fault) => return Err(fault),
            };
            if next - at > LONGEST_RECORD {
                let remedy = "check that the file is a table and that no quote is left open";
                return Err(self.fault(line, "is longer than 64 MiB", remedy));
            }
            if !fields.is_empty() && !is_blank(text, &fields) {
                let (features, rows) = (part.features.len(), part.rows.len());
                let read = self.event(&Row { text, fields: &fields }, line, &mut part);
                if unless_skipped(read, self.skip_bad.then_some(&mut part.faults))? {
                    part.event_lines.push(line as u32);
                } else {
                    part.features.truncate(features);
                    part.rows.truncate(rows);
                }
            }
            // A record with quotes may hold line ends, which JSON writes otherwise.
            let quoted = !self.json && fields.iter().any(Field::is_quoted);
            line += if quoted { count_lines(&text[at..next]).max(1) } else { 1 };
            at = next;
        }
        part.lines = line;
        Ok(part)
    }

    /// Adds an event. After a fault ids and times are as they were, features may be too many.
    #[inline]
    fn event(&self, row: &Row<'_>, line: u64, part: &mut Part) -> Result<(), InputFault> {
        if row.fields.len() != self.columns.roles.len() {
            let problem = format!(
                "has {} fields where {} are expected",
                row.fields.len(),
                self.columns.roles.len()
            );
            let remedy = "give all rows the same columns; quote fields that contain the separator";
            return Err(self.fault(line, problem, remedy));
        }
        let refused = |column: usize, refusal: Refusal| {
            let fault = self.fault(line, refusal.problem, refusal.remedy);
            fault.column(&self.columns.names[column]).value(row.text(column).as_bytes())
        };
        let (source, destination) = (row.text(self.source), row.text(self.destination));
        for (column, id) in [(self.source, &source), (self.destination, &destination)] {
            if id.is_empty() {
                return Err(refused(column, EMPTY_ID));
            }
        }
        let time = row.raw(self.time);
        if self.dates.is_some_and(|dates| dates != Instant::parse(time).is_some())
            && self.push_time(time, &mut Times::default()).is_ok()
        {
            return Err(refused(self.time, MIXED));
        }
        for &(column, role) in &self.others {
            let read = match role {
                Role::Row => number::row(row.raw(column)).map(|row| part.rows.push(row)),
                Role::Feature(Encoding::Plain) => {
                    number::feature(row.raw(column)).map(|value| part.features.push(value))
                }
                Role::Feature(encoding) => {
                    super::tgb::encode(encoding, &row.text(column), &mut part.features)
                }
                Role::Ignored | Role::Source | Role::Destination | Role::Time => Ok(()),
            };
            if let Err(refusal) = read {
                // Of several faults that of the time is told.
                let of_time = self.push_time(time, &mut Times::default()).err();
                return Err(match of_time {
                    Some(first) => refused(self.time, first),
                    None => refused(column, refusal),
                });
            }
        }
        self.push_time(time, &mut part.times).map_err(|refusal| refused(self.time, refusal))?;
        // The source comes first: its number is the smaller one if both nodes are new.
        part.nodes.push(&source, Side::Source).map_err(|refusal| refused(self.source, refusal))?;
        part.nodes
            .push(&destination, Side::Destination)
            .map_err(|refusal| refused(self.destination, refusal))
    }

    #[inline]
    fn push_time(&self, text: &str, times: &mut Times) -> Result<(), Refusal> {
        match self.time_format {
            Some(format) => times.push_as(text, format),
            None => times.push(text),
        }
    }

    /// The block as rows of CSV. Rows that are no text or no object are left blank where rows with
    /// a fault are left out.
    fn rows_of<'b>(
        &self,
        block: &'b [u8],
        faults: &mut Faults,
    ) -> Result<Cow<'b, [u8]>, InputFault> {
        if !self.json {
            return Ok(match self.skip_bad {
                true => self.without_broken_text(block, faults),
                false => Cow::Borrowed(block),
            });
        }
        let used = |place: usize| self.columns.roles[place] != Role::Ignored;
        let csv = as_csv(block, &self.columns.names, &used, |line, text, refusal| {
            let fault = self.fault(line, refusal.problem, refusal.remedy);
            let fault = fault.value(String::from_utf8_lossy(text).trim());
            unless_skipped(Err(fault), self.skip_bad.then_some(&mut *faults)).map(drop)
        });
        csv.map(Cow::Owned)
    }

    /// The block with blanks in place of the rows that are not UTF-8.
    fn without_broken_text<'b>(&self, block: &'b [u8], faults: &mut Faults) -> Cow<'b, [u8]> {
        if std::str::from_utf8(block).is_ok() {
            return Cow::Borrowed(block);
        }
        let (mut cleaned, mut fields) = (block.to_vec(), Vec::new());
        let (mut at, mut line) = (0, 0);
        while at < block.len() {
            let next = match split(block, at, self.separator, &mut fields) {
                End::Line(next) => next,
                End::Block => block.len(),
                End::OpenQuote | End::AfterQuote(_) => line_end(block, at),
            };
            let row = &block[at..next];
            if std::str::from_utf8(row).is_err() {
                let shown = String::from_utf8_lossy(row);
                faults.note("row", "is not valid UTF-8", line, shown.trim());
                let bytes = cleaned[at..next].iter_mut();
                bytes.filter(|byte| **byte != b'\n').for_each(|byte| *byte = b' ');
            }
            line += memchr::memchr_iter(b'\n', row).count().max(1) as u64;
            at = next;
        }
        Cow::Owned(cleaned)
    }

    #[cold]
    fn fault(
        &self,
        line: u64,
        problem: impl Into<String>,
        remedy: impl Into<Remedy>,
    ) -> InputFault {
        InputFault::new(self.file, problem, remedy).line(line)
    }
}

/// Where the line that begins at a place ends.
fn line_end(block: &[u8], at: usize) -> usize {
    memchr::memchr(b'\n', &block[at..]).map_or(block.len(), |end| at + end + 1)
}

/// The lines before the first that is not UTF-8; all of the block if that is the first one.
fn valid_lines(block: &[u8]) -> &[u8] {
    match std::str::from_utf8(block) {
        Ok(_) => block,
        Err(error) => match memchr::memrchr(b'\n', &block[..error.valid_up_to()]) {
            Some(end) => &block[..=end],
            None => block,
        },
    }
}

/// The block as text, or where it is not UTF-8. The fault's line counts from 0.
fn checked_text<'a>(
    file: &str,
    block: &'a [u8],
    separator: u8,
    columns: Option<&Columns>,
) -> Result<&'a str, InputFault> {
    std::str::from_utf8(block).map_err(|error| {
        let (good, bad) = block.split_at(error.valid_up_to());
        let line = memchr::memchr_iter(b'\n', good).count() as u64;
        let record = memchr::memrchr(b'\n', good).map_or(good, |end| &good[end + 1..]);
        let column = memchr::memchr_iter(separator, record).count();
        let field = memchr::memrchr(separator, record).map_or(record, |end| &record[end + 1..]);
        let rest = bad.split(|&byte| byte == separator || byte == b'\n').next().unwrap_or_default();
        let name = columns.and_then(|columns| columns.names.get(column).cloned());
        InputFault::new(
            file,
            "is not valid UTF-8",
            "convert the file, for example with iconv -t UTF-8",
        )
        .line(line)
        .column(name.unwrap_or_else(|| (column + 1).to_string()))
        .value([field, rest].concat())
    })
}

fn count_lines(text: &str) -> u64 {
    memchr::memchr_iter(b'\n', text.as_bytes()).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Clock, Events};
    use crate::read::LeftOut;

    type Read = (Events, Names, Clock, LeftOut);

    fn read_with(text: &str, options: &ReadOptions, limits: Limits) -> Result<Read> {
        let input = Input::new("e.csv".into(), text.as_bytes())?;
        let Table { columns, mut events, .. } =
            read_table(input, Format::Table, options, limits, Before::default())?;
        let features = events.take_features(columns.width())?;
        events.finish(features)
    }

    #[test]
    fn where_blocks_are_cut_changes_nothing() {
        let mut text = String::from("u,i,ts,w\n");
        for event in 0..200 {
            let (source, destination) = (event * 7 % 13, event * 5 % 11);
            // Numbers first, then text with line ends, so that names change their kind on the way.
            match event {
                0..60 => text += &format!("{source},{destination},{event},0.5\n"),
                60..120 => text += &format!("{source},\"a\n{destination}\",{event}.5,1\n\n"),
                _ => text += &format!("\"{source}\"\"\",{destination},{event},2\r\n"),
            }
        }
        for bipartite in [false, true] {
            let options = ReadOptions { bipartite, ..ReadOptions::default() };
            let whole = read_with(&text, &options, Limits::default()).expect("a good file");
            for block in (1..200).chain([1000, 3000]) {
                let limits = Limits { block, ..Limits::default() };
                assert_eq!(
                    read_with(&text, &options, limits).expect("a good file"),
                    whole,
                    "blocks of {block}"
                );
            }
        }
    }

    #[test]
    fn a_fault_s_line_does_not_depend_on_blocks() {
        for (row, fault) in [
            ("1,2,x", "is not a time"),
            ("1,2", "has 2 fields"),
            ("1,2,5", "is before the event above"),
        ] {
            let mut text = String::from("u,i,ts\n");
            (0..100).for_each(|event| text += &format!("\"3\n3\",4,{event}\n\n"));
            text += &format!("{row}\n1,2,101\n");
            for block in 1..400 {
                let limits = Limits { block, ..Limits::default() };
                let error = read_with(&text, &ReadOptions::default(), limits)
                    .expect_err("a fault")
                    .to_string();
                assert!(error.starts_with("e.csv, line 302"), "{error}");
                assert!(error.contains(fault), "{error}");
            }
        }
    }

    #[test]
    fn more_nodes_than_fit_are_refused() {
        let limits = Limits { nodes: 3, ..Limits::default() };
        assert!(read_with("u,i,ts\n1,2,1\n3,1,2\n", &ReadOptions::default(), limits).is_ok());
        let error = read_with("u,i,ts\n1,2,1\n3,4,2\n", &ReadOptions::default(), limits)
            .expect_err("four nodes");
        assert_eq!(
            error.to_string(),
            "e.csv: \"4\" is one node too many: a stream has at most 3 nodes; split the file or merge ids"
        );
    }
}
