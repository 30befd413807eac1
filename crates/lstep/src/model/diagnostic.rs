//! What a model shows of itself, for people to look at: curves and places, never a way to score.
//!
//! Whoever draws diagnostics need not know which model they are from, and a model that has nothing
//! to show shows nothing.

use crate::event::NodeId;

/// Something that a model has learned, in numbers.
#[derive(Debug, Clone, PartialEq)]
pub enum Diagnostic {
    /// Many curves over one axis, such as one for each dimension.
    Curves {
        /// What they are.
        title: String,
        /// How to read them.
        about: String,
        /// What runs along the axis, with its unit.
        along: String,
        /// What the curves' heights are, with their unit.
        height: String,
        /// Where on the axis.
        at: Vec<f64>,
        /// A height for each place on the axis, for each curve.
        curves: Vec<Vec<f64>>,
    },
    /// A vector for each of some nodes, at one moment.
    Places {
        /// What they are.
        title: String,
        /// How to read them.
        about: String,
        /// The nodes, ascending.
        nodes: Vec<NodeId>,
        /// Numbers in a vector.
        width: usize,
        /// The nodes' vectors, one after the other.
        vectors: Vec<f32>,
    },
}
