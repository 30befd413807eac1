//! Histories of seeds as integers: who was met, and how often each of them appears in two
//! histories.
//!
//! Everything here happens before any tensor. A history begins with the seed's own node, then come
//! its newest recent, oldest first.

use crate::event::NodeId;
use crate::graph::{Neighbour, Past, Seed};
use crate::model::occurrence::Occurrences;
use std::ops::Range;

/// Histories of the distinct seeds of a call, one after the other.
#[derive(Debug, Default)]
pub struct Histories {
    offsets: Vec<usize>,
    nodes: Vec<NodeId>,
    ages: Vec<f64>,
    /// The neighbour; nothing for the seed's own node.
    neighbours: Vec<Option<Neighbour>>,
    /// How often each entry's node appears in its own history.
    counts: Vec<u32>,
    occurrences: Occurrences,
}

impl Histories {
    /// Looks up histories of at most `longest` entries, in place of those looked up before.
    pub fn gather(&mut self, past: Past<'_>, seeds: &[Seed], longest: usize) {
        self.offsets.clear();
        self.offsets.push(0);
        self.nodes.clear();
        self.ages.clear();
        self.neighbours.clear();
        self.counts.clear();
        for &seed in seeds {
            let recent = past.recent(seed, longest - 1);
            self.nodes.push(seed.node());
            self.ages.push(0.0);
            self.neighbours.push(None);
            self.nodes.extend(recent.iter().map(|neighbour| neighbour.node()));
            self.ages.extend(recent.iter().map(|neighbour| seed.time().since(neighbour.time())));
            self.neighbours.extend(recent.iter().copied().map(Some));
            let from = self.offsets[self.offsets.len() - 1];
            self.offsets.push(self.nodes.len());
            self.occurrences.count_own(&self.nodes[from..], &mut self.counts);
        }
    }

    /// How many histories there are.
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// The entries of a seed's history.
    pub fn span(&self, seed: u32) -> Range<usize> {
        self.offsets[seed as usize]..self.offsets[seed as usize + 1]
    }

    /// The nodes of entries.
    pub fn nodes(&self, span: Range<usize>) -> &[NodeId] {
        &self.nodes[span]
    }

    /// How long ago entries were.
    pub fn ages(&self, span: Range<usize>) -> &[f64] {
        &self.ages[span]
    }

    /// The neighbour of an entry; nothing for the seed's own node.
    pub fn neighbour(&self, entry: usize) -> Option<Neighbour> {
        self.neighbours[entry]
    }

    /// Calls `each(count in its own history, count in the other's)` for each entry of a seed's
    /// history. O(both lengths).
    pub fn count_with(&mut self, seed: u32, other: u32, mut each: impl FnMut(u32, u32)) {
        let (own, theirs) = (self.span(seed), self.span(other));
        let counts = &self.counts[own.clone()];
        let theirs = (&self.nodes[theirs.clone()], &self.counts[theirs]);
        self.occurrences.count_in(&self.nodes[own], theirs, |place, count| {
            each(counts[place], count);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Time;
    use crate::graph::EventLog;

    #[test]
    fn appearances_are_counted_in_both_histories_and_a_node_is_in_its_own() {
        let time = |value: f64| Time::new(value).expect("finite");
        let mut log = EventLog::default();
        for (number, (source, destination)) in
            [(0, 2), (0, 2), (1, 2), (0, 3), (1, 0)].into_iter().enumerate()
        {
            log.push(NodeId(source), NodeId(destination), time(number as f64), &[])
                .expect("in order");
        }
        let seeds = [0, 1, 9].map(|node| Seed::new(NodeId(node), time(9.0)));
        let mut histories = Histories::default();
        histories.gather(log.past(5), &seeds, 8);
        let mut counted = |seed, other| {
            let mut counts = Vec::new();
            histories.count_with(seed, other, |own, theirs| counts.push((own, theirs)));
            counts
        };
        // Node 0: itself, 2, 2, 3, 1. Node 1: itself, 2, 0.
        assert_eq!(counted(0, 1), [(1, 1), (2, 1), (2, 1), (1, 0), (1, 1)]);
        assert_eq!(counted(1, 0), [(1, 1), (1, 2), (1, 1)]);
        assert_eq!(counted(0, 2), [(1, 0), (2, 0), (2, 0), (1, 0), (1, 0)]);
        assert_eq!(counted(0, 0), [(1, 1), (2, 2), (2, 2), (1, 1), (1, 1)]);
    }
}
