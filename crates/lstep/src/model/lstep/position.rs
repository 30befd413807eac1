//! What each node's position was at the last L steps, as change points and not as L copies.
//!
//! A position changes only when it is updated, so a node's last L positions are a few runs of equal
//! vectors. Each vector is a row of one table; a row knows since which snapshot it holds and which
//! row it superseded. A superseded row is given back as soon as no window can see it any more, so
//! memory follows the number of changes within L steps, plus one row for each node that ever had a
//! position.

use crate::checkpoint::Checkpoint;
use crate::error::{Error, Result};
use crate::event::NodeId;
use std::collections::VecDeque;

const NONE: u32 = u32::MAX;

/// The positions of all nodes over the last L snapshots.
#[derive(Debug, Clone)]
pub struct Positions {
    width: usize,
    window: usize,
    /// Whether a position holds until the next one, or in its own snapshot alone.
    lasting: bool,
    /// How many snapshots there have been; the next one has this number.
    snapshots: u32,
    /// The newest row of each node.
    newest: Vec<u32>,
    rows: Vec<ChangePoint>,
    vectors: Vec<f32>,
    free: Vec<u32>,
    /// Rows that no window sees from a snapshot on, in the order of that snapshot.
    expiring: VecDeque<Expiry>,
}

/// Since when a vector holds, and what held before.
#[derive(Debug, Clone, Copy, PartialEq)]
struct ChangePoint {
    since: u32,
    before: u32,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Expiry {
    /// Once there are this many snapshots, the window begins after the row.
    at: u32,
    row: u32,
    successor: u32,
}

/// A position that held for some slots of the window: the vector's row in [`Positions::vectors`],
/// the first slot of L, oldest first, and one past the last slot.
pub type Run = [u32; 3];

impl Positions {
    /// No snapshots yet, for vectors of `width` numbers and a window of `window` snapshots.
    pub fn new(width: usize, window: usize) -> Positions {
        Positions {
            width,
            window,
            lasting: true,
            snapshots: 0,
            newest: Vec::new(),
            rows: Vec::new(),
            vectors: Vec::new(),
            free: Vec::new(),
            expiring: VecDeque::new(),
        }
    }

    /// Whether a position holds until the next one; otherwise in its own snapshot alone, and the
    /// following ones have zeros.
    #[must_use]
    pub fn lasting(self, lasting: bool) -> Positions {
        Positions { lasting, ..self }
    }

    /// How many snapshots there have been.
    pub fn snapshots(&self) -> u32 {
        self.snapshots
    }

    /// All vectors, those no longer in use included; rows of [`Run`]s.
    pub fn vectors(&self) -> &[f32] {
        &self.vectors
    }

    /// How many vectors are in use.
    pub fn held(&self) -> usize {
        self.rows.len() - self.free.len()
    }

    /// The node's newest position; nothing if it never had one.
    pub fn latest(&self, node: NodeId) -> Option<&[f32]> {
        let row = self.newest.get(node.index()).copied().filter(|row| *row != NONE)? as usize;
        Some(&self.vectors[row * self.width..(row + 1) * self.width])
    }

    /// Appends the node's runs in the window of the L newest snapshots, newest first. Slots before
    /// its first position have none: they are zero vectors, and so are slots before the first
    /// snapshot.
    pub fn runs(&self, node: NodeId, runs: &mut Vec<Run>) {
        let Some(&newest) = self.newest.get(node.index()) else { return };
        // Slot of a snapshot: the newest one has slot L - 1.
        let slot =
            |snapshot: u32| i64::from(snapshot) + self.window as i64 - i64::from(self.snapshots);
        let (mut row, mut end) = (newest, self.window as u32);
        while row != NONE && end > 0 {
            let ChangePoint { since, before } = self.rows[row as usize];
            let start = slot(since).max(0) as u32;
            let last = if self.lasting { end } else { (slot(since) + 1).max(0) as u32 };
            if start < last {
                runs.push([row, start, last]);
            }
            (row, end) = (before, start);
        }
    }

    /// Ends a snapshot in which `nodes` got new positions, the rows of `vectors`; all others keep
    /// theirs.
    ///
    /// # Panics
    /// If there are not as many vectors as nodes.
    pub fn push_snapshot(&mut self, nodes: &[NodeId], vectors: &[f32]) {
        assert_eq!(vectors.len(), nodes.len() * self.width, "a vector for each node");
        let snapshot = self.snapshots;
        for (place, &node) in nodes.iter().enumerate() {
            if node.index() >= self.newest.len() {
                self.newest.resize(node.index() + 1, NONE);
            }
            let before = self.newest[node.index()];
            let row = self.room();
            self.rows[row as usize] = ChangePoint { since: snapshot, before };
            let target = row as usize * self.width;
            let vector = &vectors[place * self.width..(place + 1) * self.width];
            self.vectors[target..target + self.width].copy_from_slice(vector);
            self.newest[node.index()] = row;
            if before != NONE {
                let at = snapshot + self.window as u32;
                self.expiring.push_back(Expiry { at, row: before, successor: row });
            }
        }
        self.snapshots += 1;
        while let Some(expiry) =
            self.expiring.front().copied().filter(|expiry| expiry.at <= self.snapshots)
        {
            self.expiring.pop_front();
            self.rows[expiry.successor as usize].before = NONE;
            self.free.push(expiry.row);
        }
    }

    /// Writes everything into a checkpoint.
    pub fn save<'a>(&'a self, checkpoint: &mut Checkpoint<'a>) {
        checkpoint.push_u32("positions.snapshots", vec![self.snapshots]);
        checkpoint.push_u32("positions.newest", &self.newest);
        let rows: Vec<u32> = self.rows.iter().flat_map(|row| [row.since, row.before]).collect();
        checkpoint.push_u32("positions.rows", rows);
        checkpoint.push_f32("positions.vectors", &self.vectors);
        checkpoint.push_u32("positions.free", &self.free);
        let expiring: Vec<u32> =
            self.expiring.iter().flat_map(|entry| [entry.at, entry.row, entry.successor]).collect();
        checkpoint.push_u32("positions.expiring", expiring);
    }

    /// Takes over what [`Positions::save`] wrote for the same width and window.
    pub fn load(&mut self, checkpoint: &mut Checkpoint<'_>) -> Result<()> {
        let vectors = checkpoint.take_f32("positions.vectors")?;
        let rows = checkpoint.u32("positions.rows")?;
        if rows.len() % 2 != 0 || rows.len() / 2 * self.width != vectors.len() {
            return Err(Error::LengthMismatch {
                what: "stored positions and their rows",
                left: vectors.len(),
                right: rows.len() / 2 * self.width,
            });
        }
        self.snapshots = checkpoint.one_u32("positions.snapshots")?;
        self.newest = checkpoint.u32("positions.newest")?.to_vec();
        self.rows =
            rows.chunks_exact(2).map(|row| ChangePoint { since: row[0], before: row[1] }).collect();
        self.vectors = vectors;
        self.free = checkpoint.u32("positions.free")?.to_vec();
        let (expiring, rest) = checkpoint.u32("positions.expiring")?.as_chunks::<3>();
        self.expiring =
            (expiring.iter()).map(|&[at, row, successor]| Expiry { at, row, successor }).collect();
        let most = checkpoint.extent().map_or(usize::MAX, |extent| extent.nodes);
        if rest.is_empty() && self.newest.len() <= most && self.holds_together() {
            Ok(())
        } else {
            let (what, value) = ("stored positions", "rows that do not belong together");
            Err(Error::setting(what, value, "use what a run of this model wrote"))
        }
    }

    /// Whether the rows are what snapshots leave: a file that somebody made up may say anything.
    ///
    /// Every row is free or belongs to one node, whose rows lead from a snapshot that has been to
    /// earlier ones. Each superseded row expires once, when the window has left it behind.
    fn holds_together(&self) -> bool {
        // No run has two thousand million steps, and later snapshots must not overflow.
        const MOST: u32 = 1 << 31;
        if self.snapshots >= MOST || self.window >= MOST as usize {
            return false;
        }
        let mut taken = vec![false; self.rows.len()];
        let mut superseded = 0;
        for &newest in &self.newest {
            let (mut row, mut after) = (newest, self.snapshots);
            while row != NONE {
                let Some(point) = self.rows.get(row as usize).filter(|point| point.since < after)
                else {
                    return false;
                };
                if std::mem::replace(&mut taken[row as usize], true) {
                    return false;
                }
                superseded += usize::from(point.before != NONE);
                (row, after) = (point.before, point.since);
            }
        }
        let expires = |entry: &Expiry| {
            entry.row != NONE
                && self.rows.get(entry.successor as usize).is_some_and(|successor| {
                    successor.before == entry.row
                        && taken[entry.successor as usize]
                        && entry.at > self.snapshots
                        && u64::from(entry.at) == u64::from(successor.since) + self.window as u64
                })
        };
        let mut successors: Vec<u32> = self.expiring.iter().map(|entry| entry.successor).collect();
        successors.sort_unstable();
        successors.dedup();
        superseded == self.expiring.len()
            && successors.len() == self.expiring.len()
            && self.expiring.iter().all(expires)
            && self.expiring.iter().is_sorted_by_key(|entry| entry.at)
            && self.free.iter().all(|&row| {
                taken.get_mut(row as usize).is_some_and(|taken| !std::mem::replace(taken, true))
            })
            && taken.iter().all(|taken| *taken)
    }

    fn room(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.rows.push(ChangePoint { since: 0, before: NONE });
            self.vectors.resize(self.rows.len() * self.width, 0.0);
            self.rows.len() as u32 - 1
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{prop, prop_assert, prop_assert_eq, proptest};

    proptest! {
        #[test]
        fn runs_tell_what_copies_of_every_snapshot_would(
            changes in prop::collection::vec(prop::collection::btree_set(0u32..5, 0..4), 1..30),
            window in 1usize..7,
            lasting: bool,
        ) {
            let mut positions = Positions::new(1, window).lasting(lasting);
            let mut copies: Vec<[f32; 6]> = Vec::new();
            for (snapshot, changed) in changes.iter().enumerate() {
                let nodes: Vec<NodeId> = changed.iter().map(|&node| NodeId(node)).collect();
                let vectors: Vec<f32> = changed.iter().map(|&node| (snapshot * 10 + node as usize + 1) as f32).collect();
                positions.push_snapshot(&nodes, &vectors);
                let kept = copies.last().copied().filter(|_| lasting);
                let mut copy = kept.unwrap_or_default();
                nodes.iter().zip(&vectors).for_each(|(node, vector)| copy[node.index()] = *vector);
                copies.push(copy);
                for node in 0..6 {
                    let mut slots = vec![0.0; window];
                    let mut runs = Vec::new();
                    positions.runs(NodeId(node), &mut runs);
                    for [row, start, end] in runs {
                        prop_assert!(start < end);
                        slots[start as usize..end as usize].fill(positions.vectors()[row as usize]);
                    }
                    let plain: Vec<f32> = (0..window)
                        .map(|slot| (copies.len() + slot).checked_sub(window).map_or(0.0, |s| copies[s][node as usize]))
                        .collect();
                    prop_assert_eq!(slots, plain);
                }
                let in_window: usize = changes[..=snapshot].iter().rev().take(window).map(|set| set.len()).sum();
                prop_assert!(positions.held() <= in_window + 5, "{} rows for {in_window} changes", positions.held());
            }
        }
    }
}
