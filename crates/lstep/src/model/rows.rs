//! Rows of nodes: each node that has interacted has one, in the order of first observation, so that
//! what follows rows does not depend on how nodes are numbered.

use crate::checkpoint::{Checkpoint, impossible};
use crate::error::Result;
use crate::event::NodeId;

/// In place of a row where there is none.
const NOWHERE: u32 = u32::MAX;

/// Nodes and their rows.
#[derive(Debug, Clone, Default)]
pub struct NodeRows {
    /// The row of each node, or nowhere.
    rows: Vec<u32>,
    nodes: Vec<NodeId>,
}

impl NodeRows {
    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// The node's row, if it has interacted.
    pub fn row(&self, node: NodeId) -> Option<u32> {
        self.rows.get(node.index()).copied().filter(|&row| row != NOWHERE)
    }

    /// The node of a row.
    pub fn node(&self, row: u32) -> NodeId {
        self.nodes[row as usize]
    }

    /// The node's row; a node without one gets the next.
    pub fn row_or_new(&mut self, node: NodeId) -> u32 {
        if let Some(row) = self.row(node) {
            return row;
        }
        if node.index() >= self.rows.len() {
            self.rows.resize(node.index() + 1, NOWHERE);
        }
        let row = self.nodes.len() as u32;
        self.rows[node.index()] = row;
        self.nodes.push(node);
        row
    }

    /// Writes the nodes in the order of their rows.
    pub fn save<'a>(&self, checkpoint: &mut Checkpoint<'a>) {
        checkpoint
            .push_u32("state.nodes", self.nodes.iter().map(|node| node.0).collect::<Vec<_>>());
    }

    /// Reads what [`NodeRows::save`] wrote.
    pub fn load(checkpoint: &Checkpoint<'_>) -> Result<NodeRows> {
        let mut rows = NodeRows::default();
        for node in checkpoint.nodes("state.nodes")? {
            if rows.row(node).is_some() {
                return Err(impossible(format!("has node {} twice", node.0)));
            }
            rows.row_or_new(node);
        }
        Ok(rows)
    }
}
