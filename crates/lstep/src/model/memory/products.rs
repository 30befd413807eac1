//! What a head's first layer makes of memories, kept by node until the next observation.
//!
//! A memory with its pending message applied depends on the node alone, and so does its product
//! with weights. Every further query between two steps finds it made.

use super::MemoryView;
use crate::event::NodeId;
use crate::model::cache::NodeCache;
use crate::model::encoder::{FirstLayer, ForwardContext};
use lstep_tensor::Activation;
use std::sync::Arc;

/// Numbers kept at most: 64 MB.
const MOST: usize = 16 << 20;

/// Products by node. A layer takes one or more multiples of a memory, side by side; a node's
/// products are those of all of them for sources, then for candidates.
#[derive(Debug, Clone)]
pub struct ProductCache(NodeCache<NodeId, Arc<[f32]>>);

impl Default for ProductCache {
    fn default() -> ProductCache {
        ProductCache(NodeCache::new(MOST))
    }
}

impl ProductCache {
    /// Forgets everything. To be called once memories have changed.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// The products of distinct nodes; nothing for a node without a memory, whose products are
    /// zeros.
    pub fn products<'t>(
        &self,
        context: &mut ForwardContext<'_, 't>,
        layer: &'t FirstLayer,
        memories: MemoryView<'_, 't>,
        nodes: &[NodeId],
    ) -> Vec<Option<Arc<[f32]>>> {
        let stamp = (context.parameters.version(), context.past.log_identity());
        let mut products = self.0.get(stamp, nodes.iter().copied());
        let known = |node: NodeId| memories.memories().row(node).is_some();
        let missing: Vec<usize> = (0..nodes.len())
            .filter(|&place| products[place].is_none() && known(nodes[place]))
            .collect();
        if missing.is_empty() {
            return products;
        }
        let (tape, width) = (&mut *context.tape, memories.memories().width());
        let unknown: Vec<NodeId> = missing.iter().map(|&place| nodes[place]).collect();
        let vectors = memories.updated(tape, &unknown);
        let (multiples, outputs) = (layer.inputs / width, layer.bias.len());
        let made = tape.zeros(unknown.len() + 1, 2 * multiples * outputs);
        for (role, weight) in [&layer.source, &layer.candidate].into_iter().enumerate() {
            let weight = tape.borrow(weight, layer.inputs);
            for multiple in 0..multiples {
                let first = (role * multiples + multiple) * outputs;
                let weight = tape.columns(weight, multiple * width..(multiple + 1) * width);
                let out = tape.columns(made, first..first + outputs);
                tape.linear_into(out, vectors, weight, None, Activation::Identity);
            }
        }
        let made = tape.value(made);
        for (row, &place) in missing.iter().enumerate() {
            products[place] = Some(Arc::from(made.row(row)));
        }
        let kept = missing.iter().filter_map(|&place| {
            let product = products[place].as_ref()?;
            Some((nodes[place], Arc::clone(product), product.len()))
        });
        self.0.insert(stamp, kept);
        products
    }
}
