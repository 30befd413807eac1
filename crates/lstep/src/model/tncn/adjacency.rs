//! Who is a neighbour of whom: two nodes are if either has the other on its list.

use crate::model::newest::NewestLists;
use std::collections::BTreeMap;

/// The neighbours of every row, each with the number of entries that make it one. Order is that of
/// rows, so no order of nodes' numbers reaches a sum.
#[derive(Debug, Clone, Default)]
pub struct Adjacency(Vec<BTreeMap<u32, u32>>);

impl Adjacency {
    /// That of lists as they are.
    pub fn of(lists: &NewestLists) -> Adjacency {
        let mut adjacency = Adjacency::default();
        for row in 0..lists.nodes().len() as u32 {
            lists.of(row).iter().for_each(|meeting| adjacency.add(row, meeting.other));
        }
        adjacency
    }

    /// An entry of one's list now names the other.
    pub fn add(&mut self, one: u32, other: u32) {
        let rows = self.0.len().max(one.max(other) as usize + 1);
        self.0.resize_with(rows, BTreeMap::new);
        *self.0[one as usize].entry(other).or_default() += 1;
        *self.0[other as usize].entry(one).or_default() += 1;
    }

    /// An entry of one's list no longer names the other.
    pub fn remove(&mut self, one: u32, other: u32) {
        for (row, neighbour) in [(one, other), (other, one)] {
            let neighbours = &mut self.0[row as usize];
            let count = neighbours.get_mut(&neighbour).expect("the entry was added");
            *count -= 1;
            if *count == 0 {
                neighbours.remove(&neighbour);
            }
        }
    }

    /// Whether two rows are neighbours.
    pub fn has(&self, one: u32, other: u32) -> bool {
        self.0[one as usize].contains_key(&other)
    }

    /// The common neighbours of two rows, ascending. O(fewer log more).
    pub fn common(&self, one: u32, other: u32) -> impl Iterator<Item = u32> {
        let [one, other] = [one, other].map(|row| &self.0[row as usize]);
        let (fewer, more) = if one.len() <= other.len() { (one, other) } else { (other, one) };
        fewer.keys().copied().filter(|row| more.contains_key(row))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_last_as_long_as_either_names_the_other() {
        let mut adjacency = Adjacency::default();
        for (one, other) in [(0, 1), (1, 0), (2, 1), (2, 2)] {
            adjacency.add(one, other);
        }
        assert_eq!(adjacency.common(0, 2).collect::<Vec<_>>(), [1]);
        assert_eq!(adjacency.common(2, 2).collect::<Vec<_>>(), [1, 2]);
        adjacency.remove(0, 1);
        assert!(adjacency.has(0, 1) && adjacency.has(1, 0), "1 still names 0");
        adjacency.remove(1, 0);
        assert!(!adjacency.has(0, 1) && !adjacency.has(1, 0));
        adjacency.remove(2, 2);
        assert_eq!(adjacency.common(2, 2).collect::<Vec<_>>(), [1]);
    }
}
