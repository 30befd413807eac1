//! A stream with the integers that the field's own code gives its nodes, and the way back.

use super::config::Subject;
use crate::event::{Names, NodeId};
use rustc_hash::FxHashMap;

/// The two columns of ids, and the node of each id.
#[derive(Debug, Clone)]
pub(super) struct Numbered {
    pub sources: Vec<i64>,
    pub destinations: Vec<i64>,
    pub nodes: FxHashMap<i64, NodeId>,
}

impl Numbered {
    /// Numbers the nodes by a rule, such as [`Names::number`].
    pub fn new(subject: Subject<'_>, number: impl Fn(&Names, NodeId) -> i64) -> Numbered {
        let numbers: Vec<i64> = (0..subject.names.len())
            .map(|node| number(subject.names, NodeId(node as u32)))
            .collect();
        let column = |nodes: &[NodeId]| nodes.iter().map(|node| numbers[node.index()]).collect();
        Numbered {
            sources: column(subject.events.sources()),
            destinations: column(subject.events.destinations()),
            nodes: numbers
                .iter()
                .enumerate()
                .map(|(node, &number)| (number, NodeId(node as u32)))
                .collect(),
        }
    }

    /// The same order of numbers without gaps, from 0.
    pub fn closed_up(subject: Subject<'_>, number: impl Fn(&Names, NodeId) -> i64) -> Numbered {
        let mut known: Vec<i64> = (0..subject.names.len())
            .map(|node| number(subject.names, NodeId(node as u32)))
            .collect();
        known.sort_unstable();
        Numbered::new(subject, |names, node| {
            known.partition_point(|&other| other < number(names, node)) as i64
        })
    }
}
