//! Each node's own events, oldest first, in one block of memory that can grow: a T-CSR with room to
//! append.
//!
//! Built at once, every node's run has just the room it needs. A run that is full moves to the end
//! of the block with twice the room; when more than half of the block is abandoned, it is packed
//! anew. Appending is therefore amortised O(1), a history is always one slice, and memory stays
//! within a constant factor of the neighbours held.

use super::past::Seed;
use crate::event::{Events, NodeId, Time};

/// One event as one of its two nodes saw it: who was on the other side, and when. An event of a
/// node with itself gives it two neighbours, as in the field's samplers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Neighbour {
    time: Time,
    event: u32,
    node: NodeId,
}

impl Neighbour {
    pub(crate) fn new(time: Time, event: u32, node: NodeId) -> Neighbour {
        Neighbour { time, event, node }
    }

    /// The node on the other side.
    #[inline]
    pub fn node(&self) -> NodeId {
        self.node
    }

    /// When they met.
    #[inline]
    pub fn time(&self) -> Time {
        self.time
    }

    /// The event's number. It tells events apart; features are read through
    /// [`Past::event_features`](super::Past::event_features), which takes the neighbour itself.
    #[inline]
    pub fn event(&self) -> u32 {
        self.event
    }

    /// The other node just before this event: where a second hop goes on.
    #[inline]
    pub fn seed(&self) -> Seed {
        Seed::new(self.node, self.time)
    }
}

/// The last `most` of some neighbours, or all of them if there are fewer.
#[inline]
pub(crate) fn newest(neighbours: &[Neighbour], most: usize) -> &[Neighbour] {
    &neighbours[neighbours.len().saturating_sub(most)..]
}

/// Where a node's neighbours are in the block.
#[derive(Debug, Clone, Copy, Default)]
struct Extent {
    start: usize,
    length: u32,
    room: u32,
}

/// Each node's own neighbours in the total order of events.
#[derive(Debug, Clone, Default)]
pub struct Histories {
    runs: Vec<Extent>,
    block: Vec<Neighbour>,
    abandoned: usize,
}

/// Fills room that no neighbour has taken yet; never read.
const EMPTY: Neighbour = Neighbour { time: Time::ZERO, event: u32::MAX, node: NodeId(u32::MAX) };

impl Histories {
    /// The histories of all nodes of a stream. O(events).
    pub fn build(events: &Events) -> Histories {
        let mut runs = vec![Extent::default(); events.node_bound()];
        for (&source, &destination) in events.sources().iter().zip(events.destinations()) {
            runs[source.index()].room += 1;
            runs[destination.index()].room += 1;
        }
        let mut start = 0;
        for run in &mut runs {
            run.start = start;
            start += run.room as usize;
        }
        let mut block = vec![EMPTY; start];
        for event in events.iter() {
            for (node, neighbour) in
                [(event.source, event.destination), (event.destination, event.source)]
            {
                let run = &mut runs[node.index()];
                block[run.start + run.length as usize] =
                    Neighbour::new(event.time, event.number, neighbour);
                run.length += 1;
            }
        }
        Histories { runs, block, abandoned: 0 }
    }

    /// A node's neighbours, oldest first; empty for a node that has none.
    #[inline]
    pub fn of(&self, node: NodeId) -> &[Neighbour] {
        match self.runs.get(node.index()) {
            Some(run) => &self.block[run.start..run.start + run.length as usize],
            None => &[],
        }
    }

    /// One more than the largest node that has a history.
    pub fn node_bound(&self) -> usize {
        self.runs.len()
    }

    /// Appends a neighbour, which must come after all that the node has. Amortised O(1).
    pub fn push(&mut self, node: NodeId, neighbour: Neighbour) {
        if node.index() >= self.runs.len() {
            self.runs.resize(node.index() + 1, Extent::default());
        }
        let run = self.runs[node.index()];
        if run.length == run.room {
            self.enlarge(node);
        }
        let run = &mut self.runs[node.index()];
        self.block[run.start + run.length as usize] = neighbour;
        run.length += 1;
    }

    /// Moves a full run to the end of the block, with twice the room.
    fn enlarge(&mut self, node: NodeId) {
        if self.abandoned > self.block.len() / 2 {
            self.pack();
        }
        let run = self.runs[node.index()];
        let used = run.start..run.start + run.length as usize;
        let start = self.block.len();
        let room = (run.room * 2).max(4);
        self.block.extend_from_within(used);
        self.block.resize(start + room as usize, EMPTY);
        self.abandoned += run.room as usize;
        self.runs[node.index()] = Extent { start, length: run.length, room };
    }

    /// Writes the runs one after the other again, dropping what was abandoned.
    fn pack(&mut self) {
        let mut packed = Vec::with_capacity(self.block.len() - self.abandoned);
        for run in &mut self.runs {
            let start = packed.len();
            packed.extend_from_slice(&self.block[run.start..run.start + run.room as usize]);
            run.start = start;
        }
        self.block = packed;
        self.abandoned = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// One event at every time.
    fn stream(pairs: &[(u32, u32)]) -> Events {
        lstep_testkit::stream!((0u32..).zip(pairs).map(|(time, &(a, b))| (a, b, time)))
    }

    proptest! {
        #[test]
        fn growing_event_by_event_gives_the_same_histories_as_building_at_once(
            pairs in prop::collection::vec((0u32..12, 0u32..12), 0..400)
        ) {
            let events = stream(&pairs);
            let built = Histories::build(&events);
            let mut grown = Histories::default();
            for event in events.iter() {
                for (node, neighbour) in [(event.source, event.destination), (event.destination, event.source)] {
                    grown.push(node, Neighbour::new(event.time, event.number, neighbour));
                }
            }
            for node in 0..13 {
                prop_assert_eq!(built.of(NodeId(node)), grown.of(NodeId(node)));
            }
            let neighbours = 2 * pairs.len();
            prop_assert!(grown.block.len() <= 8 * neighbours + 64, "{} for {neighbours}", grown.block.len());
        }
    }

    #[test]
    fn an_event_of_a_node_with_itself_is_two_meetings() {
        assert_eq!(Histories::build(&stream(&[(3, 3)])).of(NodeId(3)).len(), 2);
    }
}
