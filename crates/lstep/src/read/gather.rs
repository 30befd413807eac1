//! Parts of a file put together into one stream.
//!
//! Parts are added in the order of the file, so dense numbers follow first appearance in the whole
//! file. The result does not depend on where the parts were cut.

use super::Result;
use super::nodes::{Nodes, SmallIds};
use super::number::Refusal;
use super::times::Times;
use crate::error::{Error, InputFault, Remedy};
use crate::event::{Clock, Events, Features, Names, NodeId};

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
        }
    }
}

/// The stream as far as it has been read.
pub(super) struct Gather {
    file: String,
    time_column: String,
    sort: bool,
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
    pub(super) fn new(file: &str, time_column: &str, lines: u64, names: Names, sort: bool) -> Self {
        Gather {
            file: file.to_string(),
            time_column: time_column.to_string(),
            sort,
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
        let part = part.map_err(|mut fault| {
            fault.line = fault.line.map(|line| line + self.lines + 1);
            fault
        })?;
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
            if !self.sort
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

    /// How many events there are.
    pub(super) fn events(&self) -> usize {
        self.sources.len()
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

    /// Sorts if asked to, and joins the columns.
    pub(super) fn finish(mut self, features: Features) -> Result<(Events, Names, Clock)> {
        let mut features = features;
        if self.sort && self.times.first_decrease(0).is_some() {
            let order = self.times.order();
            self.times = self.times.reordered(&order);
            self.sources = order.iter().map(|&place| self.sources[place as usize]).collect();
            self.destinations =
                order.iter().map(|&place| self.destinations[place as usize]).collect();
            if features.width() > 0 {
                let rows = order.iter().flat_map(|&place| features.row(place as usize)).copied();
                features = Features::new(features.width(), rows.collect())?;
            }
            self.number_by_appearance()?;
        }
        let Gather { file, time_column, .. } = self;
        let (times, clock) = self.times.finish().map_err(|fault| {
            Error::from(InputFault::new(file, fault.problem, fault.remedy).column(time_column))
        })?;
        Ok((Events::new(self.sources, self.destinations, times, features)?, self.names, clock))
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
