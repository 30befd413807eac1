//! The ids of a part of a file: integers are kept as they are, text is numbered within the part.
//!
//! Parts are read side by side and joined one after the other. Joining integers is a look into a
//! table for each; for text, which would need its hash again, each part has numbered its own ids
//! and joining costs only one look for each distinct id.

use super::Result;
use super::number::Refusal;
use crate::event::{Names, NodeId, Side, canonical_integer};

pub(super) const EMPTY_ID: Refusal =
    Refusal::new("is empty, but every event needs two nodes", "fill it or drop the row");
const ONE_TOO_MANY: Refusal =
    Refusal::new("is one node too many", "a stream has at most 2^32 nodes: split it");

/// Sources and destinations of a part.
pub(super) struct Nodes {
    separated: bool,
    ids: Ids,
}

enum Ids {
    Integer([Vec<i64>; 2]),
    Named(Names, [Vec<NodeId>; 2]),
}

impl Nodes {
    pub(super) fn new(separated: bool) -> Nodes {
        Nodes { separated, ids: Ids::Integer([Vec::new(), Vec::new()]) }
    }

    /// Appends an id as it is written. The source of an event comes before its destination.
    #[inline]
    pub(super) fn push(&mut self, id: &str, side: Side) -> Result<(), Refusal> {
        if let Ids::Integer(columns) = &mut self.ids {
            if let Some(number) = canonical_integer(id) {
                columns[side as usize].push(number);
                return Ok(());
            }
            self.become_named()?;
        }
        self.push_named(|names| names.intern(id, side), side)
    }

    /// Appends an id that is an integer.
    pub(super) fn push_integer(&mut self, id: i64, side: Side) -> Result<(), Refusal> {
        match &mut self.ids {
            Ids::Integer(columns) => {
                columns[side as usize].push(id);
                Ok(())
            }
            Ids::Named(..) => self.push_named(|names| names.intern_integer(id, side), side),
        }
    }

    /// Gives all ids their nodes in the stream; the id for which there is no room, if there is one.
    pub(super) fn join(
        mut self,
        names: &mut Names,
        small: &mut SmallIds,
        [sources, destinations]: [&mut Vec<NodeId>; 2],
    ) -> Result<(), String> {
        if !names.are_integers() {
            self.become_named().map_err(|refusal| refusal.problem.to_string())?;
        }
        match self.ids {
            Ids::Integer([from, to]) => {
                for (&source, &destination) in from.iter().zip(&to) {
                    sources.push(small.node(source, Side::Source, names)?);
                    destinations.push(small.node(destination, Side::Destination, names)?);
                }
            }
            Ids::Named(part, [from, to]) => {
                let nodes = names.absorb(&part).map_err(|name| name.to_string())?;
                sources.extend(from.iter().map(|node| nodes[node.index()]));
                destinations.extend(to.iter().map(|node| nodes[node.index()]));
            }
        }
        Ok(())
    }

    fn push_named(
        &mut self,
        intern: impl FnOnce(&mut Names) -> crate::error::Result<NodeId>,
        side: Side,
    ) -> Result<(), Refusal> {
        let Ids::Named(names, columns) = &mut self.ids else { return Ok(()) };
        columns[side as usize].push(intern(names).map_err(|_| ONE_TOO_MANY)?);
        Ok(())
    }

    /// Numbers the ids so far within the part, in order of appearance.
    #[cold]
    fn become_named(&mut self) -> Result<(), Refusal> {
        let Ids::Integer([from, to]) = &self.ids else { return Ok(()) };
        let mut names = Names::new(self.separated);
        let mut columns = [Vec::with_capacity(from.len()), Vec::with_capacity(to.len())];
        for event in 0..from.len() {
            for (side, column) in [(Side::Source, from), (Side::Destination, to)] {
                // The last event may have its source only.
                if let Some(&id) = column.get(event) {
                    columns[side as usize]
                        .push(names.intern_integer(id, side).map_err(|_| ONE_TOO_MANY)?);
                }
            }
        }
        self.ids = Ids::Named(names, columns);
        Ok(())
    }
}

/// The nodes of small integer ids in a table, so that they need no hash.
#[derive(Default)]
pub(super) struct SmallIds {
    sides: [Vec<u32>; 2],
}

/// An id whose node is not in the table.
const UNKNOWN: u32 = u32::MAX;

impl SmallIds {
    #[inline]
    fn node(&mut self, id: i64, side: Side, names: &mut Names) -> Result<NodeId, String> {
        // Where the sides are one, so are their tables.
        let table = &mut self.sides[if names.separated() { side as usize } else { 0 }];
        if let Some(&node) = table.get(id as u64 as usize)
            && node != UNKNOWN
        {
            return Ok(NodeId(node));
        }
        let node = names.intern_integer(id, side).map_err(|_| id.to_string())?;
        // The table may be some times as long as there are nodes, but ids from a large space stay
        // out of it.
        if (0..64 * (names.len() as i64 + 1024)).contains(&id) {
            let place = id as usize;
            if place >= table.len() {
                table.resize((place + 1).next_power_of_two(), UNKNOWN);
            }
            table[place] = node.0;
        }
        Ok(node)
    }
}
