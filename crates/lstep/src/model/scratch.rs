//! What learned models share around a call: working memory, and the check that weights are wide
//! enough for the features.

use crate::error::{Error, Result};
use crate::graph::Past;
use std::sync::Mutex;

/// Memory that calls leave for later calls; one piece for each call at work.
pub struct ScratchPool<R>(Mutex<Left<R>>);

struct Left<R> {
    free: Vec<R>,
    /// How many threads calls have had, at most: a call in fewer throws nothing away.
    threads: usize,
}

impl<R> Default for ScratchPool<R> {
    fn default() -> ScratchPool<R> {
        ScratchPool(Mutex::new(Left { free: Vec::new(), threads: 0 }))
    }
}

impl<R: Default + Send> ScratchPool<R> {
    /// Works with scratch memory, on a thread of the pool: an operation that begins outside of it
    /// would pass to the pool and back.
    pub fn with<T: Send>(&self, work: impl FnOnce(&mut R) -> T + Send) -> T {
        let lock = || self.0.lock().expect("no call panics while it holds the list");
        let mut scratch = lock().free.pop().unwrap_or_default();
        let result = lstep_tensor::awake(|| work(&mut scratch));
        let mut left = lock();
        left.threads = left.threads.max(rayon::current_num_threads());
        // No more than can be at work at once: a call that waits may have begun another one on the
        // same thread.
        if left.free.len() < left.threads {
            left.free.push(scratch);
        }
        result
    }
}

/// Widths of node and event features: those a stream has, or those that weights have room for.
#[derive(Debug, Clone, Copy)]
pub struct FeatureWidths {
    /// Of a node.
    pub node: usize,
    /// Of an event.
    pub edge: usize,
}

impl FeatureWidths {
    /// Makes a model's widths at least as large as these.
    pub fn widen(self, node: &mut usize, edge: &mut usize) {
        (*node, *edge) = ((*node).max(self.node), (*edge).max(self.edge));
    }
}

impl FeatureWidths {
    /// Refuses a stream whose features are wider.
    pub fn check(self, past: Past<'_>) -> Result<()> {
        for (setting, width, most) in [
            ("edge_width", past.event_feature_width(), self.edge),
            ("node_width", past.node_feature_width(), self.node),
        ] {
            if width > most {
                let remedy = format!("the stream's features are {width} wide: set it to that");
                return Err(Error::setting(setting, most, remedy));
            }
        }
        Ok(())
    }
}
