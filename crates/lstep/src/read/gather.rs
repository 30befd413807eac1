//! Parts of a file put together into one stream.
//!
//! Parts are added in the order of the file, so dense numbers follow first appearance in the whole
//! file. The result does not depend on where the parts were cut.

use super::Result;
use super::faults::{Faults, LeftOut};
use super::nodes::{Nodes, SmallIds};
use super::number::Refusal;
use super::options::ReadOptions;
use super::times::Times;
use crate::error::{Error, InputFault, Remedy};
use crate::event::{Clock, Events, Features, Names, NodeId};
use rustc_hash::FxHashSet;

/// Events of a part of a file, with ids that are not numbered yet, or only within the part.
pub(super) struct Part {
    pub nodes: Nodes,
    pub times: Times,
    pub features: Vec<f32>,
    /// Rows of a separate feature table, where a column gives them.
    pub rows: Vec<u32>,
    /// Lines in the part.
    pub lines: u64,
    /// Line of each event within the part, counted from 0.
    pub event_lines: Vec<u32>,
    /// Rows that were left out, on lines of the part.
    pub faults: Faults,
}

impl Part {
    pub(super) fn new(separated: bool) -> Part {
        Part {
            nodes: Nodes::new(separated),
            times: Times::default(),
            features: Vec::new(),
            rows: Vec::new(),
            lines: 0,
            event_lines: Vec::new(),
            faults: Faults::default(),
        }
    }
}

/// The stream as far as it has been read.
pub(super) struct Gather {
    file: String,
    time_column: String,
    sort: bool,
    skip_bad: bool,
    dedup: bool,
    faults: Faults,
    /// Events that are before one above them, which are left out in the end.
    early: Vec<u32>,
    /// The last event that is not.
    latest: usize,
    /// Whether there are several files.
    several: bool,
    /// Lines before the next part.
    lines: u64,
    names: Names,
    small: SmallIds,
    sources: Vec<NodeId>,
    destinations: Vec<NodeId>,
    times: Times,
    features: Vec<f32>,
    pub rows: Vec<u32>,
}

impl Gather {
    /// `lines` is how many lines come before the first part, `names` are the nodes known before,
    /// usually none.
    pub(super) fn new(
        file: &str,
        time_column: &str,
        lines: u64,
        names: Names,
        options: &ReadOptions,
    ) -> Self {
        Gather {
            file: file.to_string(),
            time_column: time_column.to_string(),
            sort: options.sort,
            skip_bad: options.skip_bad,
            dedup: options.dedup,
            faults: Faults::default(),
            early: Vec::new(),
            latest: 0,
            several: false,
            lines,
            names,
            small: SmallIds::default(),
            sources: Vec::new(),
            destinations: Vec::new(),
            times: Times::default(),
            features: Vec::new(),
            rows: Vec::new(),
        }
    }

    /// Appends the next part, or says where it is wrong; a fault's line counts from the beginning
    /// of its part.
    pub(super) fn append(&mut self, part: Result<Part, InputFault>) -> Result<()> {
        let mut part = part.map_err(|mut fault| {
            fault.line = fault.line.map(|line| line + self.lines + 1);
            fault
        })?;
        let faults = std::mem::take(&mut part.faults);
        self.faults.absorb(faults, self.lines + 1, self.several.then_some(self.file.as_str()));
        let first = self.times.len();
        let before = self.lines + 1;
        let line =
            |event: usize| before + part.event_lines.get(event).map_or(0, |&line| u64::from(line));
        if (first + part.times.len()) as u64 > Events::MOST {
            return Err(InputFault::new(
                &self.file,
                "has more than 2^32 - 1 events",
                "split the file",
            )
            .line(line(0))
            .into());
        }
        if part.times.len() > 0 {
            let shown = part.times.show(0);
            if let Err(fault) = self.times.append(part.times) {
                return Err(self.time_fault(fault).line(line(0)).value(shown).into());
            }
            if self.skip_bad && !self.sort {
                self.note_early(first, before, &part.event_lines);
            } else if !self.sort
                && let Some(event) = self.times.first_decrease(first)
            {
                let problem =
                    format!("is before the event above it, at {}", self.times.show(event - 1));
                let fault = InputFault::new(&self.file, problem, Remedy::Sort);
                return Err(fault
                    .line(line(event - first))
                    .column(&self.time_column)
                    .value(self.times.show(event))
                    .into());
            }
        }
        let columns = [&mut self.sources, &mut self.destinations];
        part.nodes.join(&mut self.names, &mut self.small, columns).map_err(|id| {
            let problem =
                format!("is one node too many: a stream has at most {} nodes", self.names.len());
            InputFault::new(&self.file, problem, "split the file or merge ids").value(id)
        })?;
        self.features.extend(part.features);
        self.rows.extend(part.rows);
        self.lines += part.lines;
        Ok(())
    }

    /// Faults are told with their file.
    pub(super) fn of_several(mut self) -> Gather {
        self.several = true;
        self
    }

    /// Notes the events of the last part that are before one above them.
    fn note_early(&mut self, first: usize, before: u64, lines: &[u32]) {
        let mut faults = Faults::default();
        for event in first..self.times.len() {
            if self.times.is_before(event, self.latest) {
                let line = lines.get(event - first).map_or(0, |&line| u64::from(line));
                let shown = self.times.show(event);
                faults.note(&self.time_column, "is before an event above it", line, &shown);
                self.early.push(event as u32);
            } else {
                self.latest = event;
            }
        }
        self.faults.absorb(faults, before, self.several.then_some(self.file.as_str()));
    }

    /// Goes on with another file, whose parts begin after so many lines.
    pub(super) fn next_file(&mut self, file: &str, lines: u64) {
        self.file = file.to_string();
        self.lines = lines;
    }

    /// How many events there are.
    pub(super) fn events(&self) -> usize {
        self.sources.len()
    }

    /// How many rows were left out so far.
    pub(super) fn bad_rows(&self) -> u64 {
        self.faults.total()
    }

    /// Drops fractions of times, as TGB does.
    pub(super) fn truncate_times(&mut self) -> Result<()> {
        let fault = self.times.truncate().err();
        fault.map_or(Ok(()), |fault| Err(self.time_fault(fault).into()))
    }

    /// Sources, destinations and names, as they were read.
    pub(super) fn into_nodes(self) -> (Vec<NodeId>, Vec<NodeId>, Names) {
        (self.sources, self.destinations, self.names)
    }

    /// Sorts and leaves out if asked to, and joins the columns.
    pub(super) fn finish(
        mut self,
        mut features: Features,
    ) -> Result<(Events, Names, Clock, LeftOut)> {
        let mut left_out =
            LeftOut { faults: std::mem::take(&mut self.faults).finish(), duplicates: 0 };
        if !self.early.is_empty() {
            let early = std::mem::take(&mut self.early);
            let mut early = early.iter().copied().peekable();
            let order: Vec<u32> = (0..self.sources.len() as u32)
                .filter(|event| early.next_if_eq(event).is_none())
                .collect();
            features = self.take_rows(&order, features)?;
            self.number_by_appearance()?;
        }
        if self.sort && self.times.first_decrease(0).is_some() {
            let order = self.times.order();
            features = self.take_rows(&order, features)?;
            self.number_by_appearance()?;
        }
        if self.dedup {
            let order = self.first_of_equals(&features);
            left_out.duplicates = (self.sources.len() - order.len()) as u64;
            if left_out.duplicates > 0 {
                // A node is where it was: what goes has come before.
                features = self.take_rows(&order, features)?;
            }
        }
        let Gather { file, time_column, .. } = self;
        let (times, clock) = self.times.finish().map_err(|fault| {
            Error::from(InputFault::new(file, fault.problem, fault.remedy).column(time_column))
        })?;
        let events = Events::new(self.sources, self.destinations, times, features)?;
        Ok((events, self.names, clock, left_out))
    }

    /// Keeps these events in this order.
    fn take_rows(&mut self, order: &[u32], features: Features) -> Result<Features> {
        self.times = self.times.reordered(order);
        for column in [&mut self.sources, &mut self.destinations] {
            *column = order.iter().map(|&place| column[place as usize]).collect();
        }
        if features.width() == 0 {
            return Ok(features);
        }
        let rows = order.iter().flat_map(|&place| features.row(place as usize)).copied();
        Features::new(features.width(), rows.collect())
    }

    /// The events that repeat none before them. They are in the order of time.
    fn first_of_equals(&self, features: &Features) -> Vec<u32> {
        let mut seen: FxHashSet<(NodeId, NodeId, Vec<u32>)> = FxHashSet::default();
        let mut first = 0;
        let bits = |event: usize| match features.width() {
            0 => Vec::new(),
            _ => features.row(event).iter().map(|value| value.to_bits()).collect(),
        };
        let is_new = |&event: &u32| {
            let event = event as usize;
            if self.times.is_before(first, event) {
                seen.clear();
                first = event;
            }
            seen.insert((self.sources[event], self.destinations[event], bits(event)))
        };
        (0..self.sources.len() as u32).filter(is_new).collect()
    }

    /// The features read so far as a table of this width, taken out; absent if all are zero.
    pub(super) fn take_features(&mut self, width: usize) -> Result<Features> {
        let values = std::mem::take(&mut self.features);
        if width == 0 { Ok(Features::none()) } else { unless_zero(Features::new(width, values)?) }
    }

    /// Gives nodes new numbers in order of first appearance, which sorting has changed.
    fn number_by_appearance(&mut self) -> Result<()> {
        let mut new = vec![None; self.names.len()];
        let mut order = Vec::with_capacity(self.names.len());
        for (source, destination) in self.sources.iter_mut().zip(&mut self.destinations) {
            for node in [source, destination] {
                *node = *new[node.index()].get_or_insert_with(|| {
                    order.push(*node);
                    NodeId(order.len() as u32 - 1)
                });
            }
        }
        self.names = self.names.reordered(&order)?;
        Ok(())
    }

    fn time_fault(&self, fault: Refusal) -> InputFault {
        InputFault::new(&self.file, fault.problem, fault.remedy).column(&self.time_column)
    }
}

/// The table, or none if all its values are zero: such a table says nothing and would cost as much
/// as a true one.
pub(super) fn unless_zero(features: Features) -> Result<Features> {
    if features.values().iter().all(|&value| value == 0.0) {
        Ok(Features::none())
    } else {
        Ok(features)
    }
}
