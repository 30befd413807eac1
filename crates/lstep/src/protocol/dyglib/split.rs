//! DyGLib's chronological split, and the nodes it hides from training.
//!
//! Boundaries are time quantiles, so equal times never straddle one. A tenth of all nodes, sampled
//! from those that occur after training, is removed from training with all its events; the "new"
//! nodes are then all that training never shows.

use super::pyset::PySet;
use crate::error::{Error, Result};
use crate::metric::quantile;
use crate::numpy::PyRandom;
use rustc_hash::FxHashSet;

/// Events as columns, with the ids and times of an `ml_NAME.csv`. Times never decrease.
#[derive(Debug, Clone, Copy)]
pub struct EdgeColumns<'a> {
    pub(super) sources: &'a [i64],
    pub(super) destinations: &'a [i64],
    pub(super) times: &'a [f64],
}

impl<'a> EdgeColumns<'a> {
    /// Joins three columns.
    ///
    /// Refuses columns of different lengths or without events, times that decrease or are not
    /// numbers, and ids outside `0..u32::MAX`.
    pub fn new(
        sources: &'a [i64],
        destinations: &'a [i64],
        times: &'a [f64],
    ) -> Result<EdgeColumns<'a>> {
        for (what, right) in
            [("sources and destinations", destinations.len()), ("sources and times", times.len())]
        {
            if sources.len() != right {
                return Err(Error::LengthMismatch { what, left: sources.len(), right });
            }
        }
        if let Some(place) = times.windows(2).position(|pair| pair[1] < pair[0]) {
            let (time, previous_time) = (times[place + 1], times[place]);
            return Err(Error::OutOfOrder { event: place as u64 + 1, time, previous_time });
        }
        if let Some(time) = times.iter().find(|time| !time.is_finite()) {
            return Err(Error::setting("time", time, "times have to be finite"));
        }
        if let Some(id) =
            sources.iter().chain(destinations).find(|id| !(0..i64::from(u32::MAX)).contains(*id))
        {
            return Err(Error::setting("node id", id, "number the nodes from 1, below 2^32 - 1"));
        }
        if sources.is_empty() {
            return Err(empty("whole", "there are none", "give at least one event"));
        }
        Ok(EdgeColumns { sources, destinations, times })
    }

    /// How many events.
    pub fn len(&self) -> usize {
        self.sources.len()
    }

    /// Never: columns without events are refused.
    pub fn is_empty(&self) -> bool {
        self.sources.is_empty()
    }
}

/// Which events are held out, and which nodes are new. Events are given by their row in the
/// columns, in order.
#[derive(Debug, Clone, PartialEq)]
pub struct EmulatedSplit {
    /// Training ends with this time, inclusively.
    pub val_time: f64,
    /// Validation ends with this time, inclusively.
    pub test_time: f64,
    /// Events up to `val_time` that touch no sampled node.
    pub train: Vec<usize>,
    /// Events after `val_time`, up to `test_time`.
    pub val: Vec<usize>,
    /// Events after `test_time`.
    pub test: Vec<usize>,
    /// The events of `val` that touch a new node.
    pub new_val: Vec<usize>,
    /// The events of `test` that touch a new node.
    pub new_test: Vec<usize>,
    /// The nodes hidden from training, in the order they were drawn.
    pub sampled: Vec<i64>,
    /// All nodes without an event in `train`, ascending: the sampled ones, and those that come
    /// later of themselves.
    pub new_nodes: Vec<i64>,
}

impl EmulatedSplit {
    /// Python's seed for the sampled nodes, fixed in DyGLib's loader.
    const SEED: u32 = 2020;

    /// Splits 70 / 15 / 15 by time and samples the nodes to hide.
    ///
    /// Refuses a stream in which fewer nodes occur after training than have to be sampled.
    pub fn new(columns: EdgeColumns<'_>) -> Result<EmulatedSplit> {
        let EdgeColumns { sources, destinations, times } = columns;
        let [val_time, test_time] = [0.7, 0.85].map(|share| quantile(times, share));

        let known = times.partition_point(|&time| time <= val_time);
        let late_sources: PySet<i64> = sources[known..].iter().copied().collect();
        let late_destinations: PySet<i64> = destinations[known..].iter().copied().collect();
        let late: Vec<i64> = late_sources.union(&late_destinations).iter().collect();
        let nodes: FxHashSet<i64> = sources.iter().chain(destinations).copied().collect();
        // The product is rounded before it is cut off, as in Python.
        let size = (0.1 * nodes.len() as f64) as usize;
        if late.len() < size {
            let reason = format!("{size} nodes to hide, {} nodes after {val_time}", late.len());
            return Err(empty(
                "evaluation",
                &reason,
                "this split needs events after 70 % of the stream",
            ));
        }
        let sampled: Vec<i64> = PyRandom::new(EmulatedSplit::SEED)
            .sample(late.len(), size)
            .into_iter()
            .map(|place| late[place])
            .collect();

        let hidden: FxHashSet<i64> = sampled.iter().copied().collect();
        let touches = |nodes: &FxHashSet<i64>, row: usize| {
            nodes.contains(&sources[row]) || nodes.contains(&destinations[row])
        };
        let train: Vec<usize> = (0..known).filter(|&row| !touches(&hidden, row)).collect();
        let mut unseen = nodes;
        for &row in &train {
            unseen.remove(&sources[row]);
            unseen.remove(&destinations[row]);
        }
        let end = times.partition_point(|&time| time <= test_time);
        let new_val = (known..end).filter(|&row| touches(&unseen, row)).collect();
        let new_test = (end..times.len()).filter(|&row| touches(&unseen, row)).collect();
        let mut new_nodes: Vec<i64> = unseen.into_iter().collect();
        new_nodes.sort_unstable();
        Ok(EmulatedSplit {
            val_time,
            test_time,
            train,
            val: (known..end).collect(),
            test: (end..times.len()).collect(),
            new_val,
            new_test,
            sampled,
            new_nodes,
        })
    }
}

pub(super) fn empty(part: &'static str, reason: &str, remedy: &str) -> Error {
    Error::EmptyPart { part, reason: reason.to_string(), remedy: remedy.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_times_never_straddle_a_boundary() {
        let nodes: Vec<i64> = (1..=20).collect();
        let times: Vec<f64> = (0..20).map(|row| f64::from(row / 4)).collect();
        let split = EmulatedSplit::new(EdgeColumns::new(&nodes, &nodes, &times).expect("sorted"))
            .expect("late nodes");
        assert_eq!((split.val_time, split.test_time), (3.0, 4.0));
        assert_eq!(split.val, [16, 17, 18, 19]);
        assert!(split.test.is_empty());
    }

    #[test]
    fn a_hidden_node_has_no_event_in_train_and_every_unseen_node_is_new() {
        let sources: Vec<i64> = (0..200).map(|row| row * 7 % 29 + 1).collect();
        let destinations: Vec<i64> = (0..200).map(|row| row * 5 % 31 + 1).collect();
        let times: Vec<f64> = (0..200).map(f64::from).collect();
        let split =
            EmulatedSplit::new(EdgeColumns::new(&sources, &destinations, &times).expect("sorted"))
                .expect("late nodes");
        assert_eq!(split.sampled.len(), 3);
        for &row in &split.train {
            for node in [sources[row], destinations[row]] {
                assert!(!split.sampled.contains(&node) && !split.new_nodes.contains(&node));
            }
        }
        assert!(split.sampled.iter().all(|node| split.new_nodes.contains(node)));
        assert!(split.new_test.iter().all(|row| split.test.contains(row)));
    }

    #[test]
    fn columns_that_cannot_be_split_are_refused() {
        assert!(EdgeColumns::new(&[1], &[1, 2], &[0.0]).is_err());
        assert!(EdgeColumns::new(&[1, 2], &[1, 2], &[1.0, 0.0]).is_err());
        assert!(EdgeColumns::new(&[1], &[-1], &[0.0]).is_err());
        assert!(EdgeColumns::new(&[1], &[1], &[f64::NAN]).is_err());
        assert!(EdgeColumns::new(&[], &[], &[]).is_err());
        let (nodes, times) = ((0..20).collect::<Vec<i64>>(), [0.0; 20]);
        let error = EmulatedSplit::new(EdgeColumns::new(&nodes, &nodes, &times).expect("sorted"))
            .expect_err("nothing is late");
        assert!(error.to_string().contains("2 nodes to hide"), "{error}");
    }
}
