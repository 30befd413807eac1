//! Features of nodes and events as a matrix.

use crate::event::NodeId;
use crate::graph::{Neighbour, Past};
use lstep_tensor::{Tape, Var};

/// Rows of features, [rows, width]. What a row lacks to the width is zero.
pub fn feature_rows<'f>(
    tape: &mut Tape<'_>,
    width: usize,
    rows: impl ExactSizeIterator<Item = &'f [f32]>,
) -> Var {
    tape.input(rows.len(), width, |values| {
        for (row, features) in values.chunks_exact_mut(width).zip(rows) {
            row[..features.len()].copy_from_slice(features);
        }
    })
}

/// Features of nodes, [nodes, width]; zeros where there is no node.
pub fn node_features(
    tape: &mut Tape<'_>,
    past: Past<'_>,
    width: usize,
    nodes: impl ExactSizeIterator<Item = Option<NodeId>>,
) -> Var {
    feature_rows(
        tape,
        width,
        nodes.map(|node| node.map_or(&[][..], |node| past.node_features(node))),
    )
}

/// Features of the events with neighbours, [neighbours, width]; zeros where there is none.
pub fn event_features<'n>(
    tape: &mut Tape<'_>,
    past: Past<'n>,
    width: usize,
    neighbours: impl ExactSizeIterator<Item = Option<&'n Neighbour>>,
) -> Var {
    let features = |neighbour| past.event_features(neighbour);
    feature_rows(tape, width, neighbours.map(|neighbour| neighbour.map_or(&[][..], features)))
}
