//! The newest events of every node, as lists of a fixed length that only an observation changes.
//!
//! A history of the graph shows the events of its own step, too, where the visibility lets it;
//! these lists are what the last step left, as in models that PyTorch Geometric's
//! `LastNeighborLoader` feeds. They hold what is needed of an event themselves, because training
//! and evaluation number events differently.

use super::rows::NodeRows;
use crate::checkpoint::{Checkpoint, impossible};
use crate::error::{Error, Result};
use crate::event::{Event, NodeId};
use crate::graph::Revealed;
use crate::nn::{Around, TimeEncoder};
use lstep_tensor::{Tape, Var};
use std::collections::VecDeque;
use std::sync::Arc;

/// An event as one of its nodes remembers it.
#[derive(Debug, Clone, PartialEq)]
pub struct Meeting {
    /// The row of the other node.
    pub other: u32,
    /// When it was.
    pub time: f64,
    /// The event's features; nothing where the stream has none.
    pub features: Option<Arc<[f32]>>,
}

/// The newest meetings of every node that has interacted, oldest first. A meeting with oneself
/// counts twice.
#[derive(Debug, Clone)]
pub struct NewestLists {
    nodes: NodeRows,
    lists: Vec<VecDeque<Meeting>>,
    /// How many meetings a node remembers.
    most: usize,
}

impl NewestLists {
    /// No meetings yet.
    pub fn new(most: usize) -> NewestLists {
        NewestLists { nodes: NodeRows::default(), lists: Vec::new(), most }
    }

    /// The nodes that have interacted, and their rows.
    pub fn nodes(&self) -> &NodeRows {
        &self.nodes
    }

    /// The meetings of a row, oldest first; there is at least one.
    pub fn of(&self, row: u32) -> &VecDeque<Meeting> {
        &self.lists[row as usize]
    }

    /// The newest meeting of a row.
    pub fn newest(&self, row: u32) -> &Meeting {
        self.of(row).back().expect("a node has a row once it has met somebody")
    }

    /// How many features a remembered event has.
    fn feature_width(&self) -> usize {
        let first = self.lists.first().and_then(|list| list.front());
        first.and_then(|meeting| meeting.features.as_ref()).map_or(0, |features| features.len())
    }

    /// Takes over the events of a step. `changed` is told for every entry of a list its row, who is
    /// on it from now on, and who is no longer.
    pub fn observe(
        &mut self,
        known: Revealed<'_>,
        step: &[Event],
        mut changed: impl FnMut(u32, u32, Option<u32>),
    ) {
        for event in step {
            let [source, destination] =
                [event.source, event.destination].map(|node| self.row_or_new(node));
            let features = known.event_features(event);
            let features = (!features.is_empty()).then(|| Arc::from(features));
            for (row, other) in [(source, destination), (destination, source)] {
                let list = &mut self.lists[row as usize];
                let full = list.len() == self.most;
                let dropped = if full { list.pop_front() } else { None };
                let (time, features) = (event.time.value(), features.clone());
                list.push_back(Meeting { other, time, features });
                changed(row, other, dropped.map(|meeting| meeting.other));
            }
        }
    }

    fn row_or_new(&mut self, node: NodeId) -> u32 {
        let row = self.nodes.row_or_new(node);
        self.lists.resize_with(self.nodes.len(), VecDeque::new);
        row
    }

    /// Writes everything.
    pub fn save<'a>(&self, checkpoint: &mut Checkpoint<'a>) {
        let meetings = || self.lists.iter().flatten();
        let features = meetings().filter_map(|meeting| meeting.features.as_deref()).flatten();
        self.nodes.save(checkpoint);
        let lengths = self.lists.iter().map(|list| list.len() as u32);
        checkpoint.push_u32("state.lists", lengths.collect::<Vec<_>>());
        checkpoint.push_u32("state.others", meetings().map(|m| m.other).collect::<Vec<_>>());
        checkpoint.push_f64("state.times", meetings().map(|m| m.time).collect::<Vec<_>>());
        checkpoint.push_f32("state.features", features.copied().collect::<Vec<_>>());
    }

    /// Reads lists of so many meetings at most, of events with at most so many features, that
    /// [`NewestLists::save`] wrote.
    pub fn load(
        checkpoint: &mut Checkpoint<'_>,
        most: usize,
        most_features: usize,
    ) -> Result<NewestLists> {
        let nodes = NodeRows::load(checkpoint)?;
        let features = checkpoint.take_f32("state.features")?;
        let (lengths, others) = (checkpoint.u32("state.lists")?, checkpoint.u32("state.others")?);
        let times = checkpoint.f64("state.times")?;
        // A file that somebody made up may say anything.
        let rows = nodes.len();
        let meetings =
            lengths.iter().fold(0usize, |sum, &length| sum.saturating_add(length as usize));
        let width = features.len().checked_div(times.len()).unwrap_or(0);
        for (what, left, right) in [
            ("stored nodes and their lists", lengths.len(), rows),
            ("stored lists and whom they name", others.len(), meetings),
            ("stored lists and their times", times.len(), meetings),
            ("numbers of stored event features", features.len(), width * times.len()),
        ] {
            if left != right {
                return Err(Error::LengthMismatch { what, left, right });
            }
        }
        let exact = checkpoint.extent().map(|extent| extent.event_features);
        if width > most_features || rows > 0 && exact.is_some_and(|exact| exact != width) {
            return Err(impossible(format!("has {width} features of an event")));
        }
        if let Some(length) = lengths.iter().find(|&&length| length == 0 || length as usize > most)
        {
            return Err(impossible(format!("has a list of {length}, and {most} are remembered")));
        }
        if others.iter().any(|&row| row as usize >= rows) {
            return Err(impossible("has a node that met nobody"));
        }
        if !times.iter().all(|time| time.is_finite()) {
            return Err(impossible("has events that were at no time"));
        }
        let meeting = |place: usize| Meeting {
            other: others[place],
            time: times[place],
            features: (width > 0).then(|| Arc::from(&features[place * width..][..width])),
        };
        let mut next = 0;
        let lists = lengths.iter().map(|&length| {
            let first = next;
            next += length as usize;
            (first..next).map(meeting).collect()
        });
        Ok(NewestLists { lists: lists.collect(), nodes, most })
    }
}

/// The events of [`ListBlocks`] on a tape: encodings of their times, and their features.
#[derive(Debug, Clone, Copy)]
pub struct Edges {
    times: Var,
    features: Option<Var>,
}

/// The lists of some nodes in blocks of the same number of rows, as a
/// [`TransformerConv`](crate::nn::TransformerConv) takes them.
#[derive(Debug, Default)]
pub struct ListBlocks {
    rows: usize,
    partners: Vec<u32>,
    /// How long before its other node's newest event each event was.
    gaps: Vec<f64>,
    counts: Vec<u32>,
    feature_width: usize,
    features: Vec<f32>,
}

impl ListBlocks {
    /// Takes the lists of rows, nothing for a node that has met nobody. `place` tells the place of
    /// a row among the vectors that the layer is applied to.
    pub fn fill(
        &mut self,
        lists: &NewestLists,
        asked: &[Option<u32>],
        mut place: impl FnMut(u32) -> u32,
    ) {
        self.partners.clear();
        self.gaps.clear();
        self.counts.clear();
        self.features.clear();
        self.feature_width = lists.feature_width();
        // Blocks are as long as the longest list; what is beyond a list takes no part.
        let length = |row: &Option<u32>| row.map_or(0, |row| lists.of(row).len());
        self.rows = asked.iter().map(length).max().unwrap_or(0).max(1);
        for (block, row) in asked.iter().enumerate() {
            for meeting in row.iter().flat_map(|&row| lists.of(row)) {
                self.partners.push(place(meeting.other));
                self.gaps.push(lists.newest(meeting.other).time - meeting.time);
                self.features.extend_from_slice(meeting.features.as_deref().unwrap_or(&[]));
            }
            self.counts.push(length(row) as u32);
            let end = (block + 1) * self.rows;
            self.partners.resize(end, 0);
            self.gaps.resize(end, 0.0);
            self.features.resize(end * self.feature_width, 0.0);
        }
    }

    /// What all events look like, with gaps as `unit` counts them.
    pub fn edges(
        &self,
        tape: &mut Tape<'_>,
        time: TimeEncoder,
        unit: impl Fn(f64) -> f64,
    ) -> Edges {
        let gaps = tape.times(self.gaps.iter().map(|&gap| unit(gap)));
        let times = time.apply(tape, gaps);
        let width = self.feature_width;
        let features =
            (width > 0).then(|| tape.constant(self.partners.len(), width, &self.features));
        Edges { times, features }
    }

    /// What the layer looks at if only the first so many are asked, given the vectors of nodes, of
    /// which those that are asked are first.
    pub fn around(&self, tape: &mut Tape<'_>, nodes: Var, asked: usize, edges: Edges) -> Around {
        let seen = asked * self.rows;
        Around {
            nodes,
            asked,
            partners: tape.indices(self.partners[..seen].iter().copied()),
            times: tape.rows(edges.times, 0..seen),
            features: edges.features.map(|features| tape.rows(features, 0..seen)),
            counts: tape.indices(self.counts[..asked].iter().copied()),
            rows: self.rows,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::EventLog;

    fn observed(most: usize) -> (NewestLists, Vec<(u32, u32, Option<u32>)>) {
        let rows = vec![(5u32, 3u32, 1u32), (5, 5, 2), (3, 7, 2), (5, 7, 4)];
        let log = EventLog::new(lstep_testkit::stream!(rows, 1, |source, _| [source as f32]));
        let events: Vec<Event> = log.events().iter().collect();
        let (mut lists, mut changes) = (NewestLists::new(most), Vec::new());
        lists.observe(log.revealed(4), &events, |row, added, dropped| {
            changes.push((row, added, dropped));
        });
        (lists, changes)
    }

    #[test]
    fn a_list_forgets_its_oldest_meeting_and_says_so() {
        let (lists, changes) = observed(2);
        // Rows by first observation: 5, 3, 7.
        assert_eq!([5, 3, 7].map(|node| lists.nodes().row(NodeId(node))), [0, 1, 2].map(Some));
        let names = |row| lists.of(row).iter().map(|m| (m.other, m.time)).collect::<Vec<_>>();
        assert_eq!(names(0), [(0, 2.0), (2, 4.0)], "the meeting with itself was there twice");
        assert_eq!(names(1), [(0, 1.0), (2, 2.0)]);
        assert_eq!(names(2), [(1, 2.0), (0, 4.0)]);
        assert_eq!(lists.newest(1).features.as_deref(), Some([3.0].as_slice()));
        let dropped: Vec<_> = changes.iter().filter(|change| change.2.is_some()).collect();
        assert_eq!(dropped, [&(0, 0, Some(1)), &(0, 2, Some(0))]);
    }

    #[test]
    fn lists_come_back_as_they_were_saved_and_impossible_ones_do_not() {
        let (lists, _) = observed(2);
        let mut saved = Checkpoint::default();
        lists.save(&mut saved);
        let reread = NewestLists::load(&mut saved.clone(), 2, 1).expect("what was saved");
        assert_eq!(reread.lists, lists.lists);
        assert!(NewestLists::load(&mut saved.clone(), 1, 1).is_err(), "lists too long");
        assert!(NewestLists::load(&mut saved.clone(), 2, 0).is_err(), "features too wide");
        let (mut wrong, mut saved) = (lists, Checkpoint::default());
        wrong.lists[1][0].other = 3;
        wrong.save(&mut saved);
        assert!(NewestLists::load(&mut saved, 2, 1).is_err(), "nobody has that row");
    }
}
