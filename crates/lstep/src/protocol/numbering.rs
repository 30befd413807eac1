//! Which dense number a node has.
//!
//! Readers number nodes by first appearance, so the next newcomer is always the next number. A
//! model that looks at numbers could read the future in them. Numbers that follow a hash of the
//! name carry nothing, and negatives are drawn by order of appearance, so they stay the same.

use crate::event::{Name, Names, NodeId, Side};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// The order of dense node numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Numbering {
    /// That of first appearance in the stream. Runs of before there was a choice have it.
    Appearance,
    /// That of a hash of names: it tells nothing.
    #[default]
    Hashed,
}

impl Numbering {
    /// What settings mean that were stored before there was a choice: states of such runs are
    /// indexed by order of appearance.
    pub(crate) fn of_former_runs() -> Numbering {
        Numbering::Appearance
    }

    /// Whether it goes without saying in stored settings.
    pub(crate) fn is_of_former_runs(&self) -> bool {
        *self == Numbering::of_former_runs()
    }
}

/// The nodes in the order of a hash of their names. It depends on the names alone, whatever their
/// numbers are now.
pub fn hashed_order(names: &Names) -> Vec<NodeId> {
    let mut order: Vec<([u8; 32], NodeId)> = (0..names.len() as u32)
        .map(|node| {
            let node = NodeId(node);
            let mut hash = Sha256::new();
            hash.update([u8::from(names.side(node) == Some(Side::Destination))]);
            match names.name(node) {
                Name::Integer(number) => hash.update(number.to_string()),
                Name::Text(text) => hash.update(text),
            }
            (hash.finalize().into(), node)
        })
        .collect();
    order.sort_unstable();
    order.into_iter().map(|(_, node)| node).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_depends_on_names_and_on_nothing_else() {
        let mut names = Names::new(false);
        for id in 0..200 {
            names.intern_integer(id, Side::Source).expect("there is room");
        }
        let order = hashed_order(&names);
        let hashed = names.reordered(&order).expect("each name once");
        assert_ne!(hashed, names);
        let ascending: Vec<NodeId> = (0..200).map(NodeId).collect();
        assert_eq!(hashed_order(&hashed), ascending, "nothing is left to reorder");
        // A name that is no integer turns all into text, which changes no other name's hash.
        names.intern("x", Side::Source).expect("there is room");
        let longer: Vec<NodeId> =
            hashed_order(&names).into_iter().filter(|node| node.0 < 200).collect();
        assert_eq!(longer, order);
    }

    #[test]
    fn the_same_id_on_both_sides_has_two_places() {
        let mut names = Names::new(true);
        names.intern_integer(1, Side::Source).expect("there is room");
        names.intern_integer(1, Side::Destination).expect("there is room");
        assert_eq!(hashed_order(&names).len(), 2);
    }
}
