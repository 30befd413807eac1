//! How often nodes appear in lists of nodes. Everything here happens on integers, before any
//! tensor.

use crate::event::NodeId;

/// A counter for each node, zero between calls.
#[derive(Debug, Default)]
pub struct Occurrences {
    counters: Vec<u32>,
}

impl Occurrences {
    /// Appends to `counts`, for each node of a list, how often it appears in it. O(length).
    pub fn count_own(&mut self, nodes: &[NodeId], counts: &mut Vec<u32>) {
        let highest = nodes.iter().map(|node| node.index()).max().unwrap_or(0);
        if highest >= self.counters.len() {
            self.counters.resize(highest + 1, 0);
        }
        nodes.iter().for_each(|node| self.counters[node.index()] += 1);
        counts.extend(nodes.iter().map(|node| self.counters[node.index()]));
        nodes.iter().for_each(|node| self.counters[node.index()] = 0);
    }

    /// Calls `each(place, count)` for each node of a list, with how often it appears in another
    /// one, whose own counts are known. O(both lengths).
    pub fn count_in(
        &mut self,
        nodes: &[NodeId],
        (others, counts): (&[NodeId], &[u32]),
        mut each: impl FnMut(usize, u32),
    ) {
        for (node, &count) in others.iter().zip(counts) {
            self.counters[node.index()] = count;
        }
        for (place, node) in nodes.iter().enumerate() {
            each(place, self.counters.get(node.index()).copied().unwrap_or(0));
        }
        others.iter().for_each(|node| self.counters[node.index()] = 0);
    }
}
