//! A set of nodes with constant-time lookup.

use super::NodeId;

/// A set of nodes, looked up in O(1).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeSet {
    member: Vec<bool>,
    count: usize,
}

impl NodeSet {
    /// Adds a node; says whether it is new in the set.
    pub fn insert(&mut self, node: NodeId) -> bool {
        if node.index() >= self.member.len() {
            self.member.resize(node.index() + 1, false);
        }
        let fresh = !std::mem::replace(&mut self.member[node.index()], true);
        self.count += usize::from(fresh);
        fresh
    }

    /// Whether the node is in the set.
    #[inline]
    pub fn contains(&self, node: NodeId) -> bool {
        self.member.get(node.index()).copied().unwrap_or(false)
    }

    /// How many nodes.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The nodes in increasing order.
    pub fn iter(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.member
            .iter()
            .enumerate()
            .filter(|(_, member)| **member)
            .map(|(node, _)| NodeId(node as u32))
    }
}

impl FromIterator<NodeId> for NodeSet {
    fn from_iter<I: IntoIterator<Item = NodeId>>(nodes: I) -> NodeSet {
        let mut set = NodeSet::default();
        for node in nodes {
            set.insert(node);
        }
        set
    }
}
