//! Values computed for nodes, kept until the state or the weights change.
//!
//! Between two steps many queries look at the same nodes. What a forward pass computed for a node
//! serves the next one. A cache is no part of the state: results are the same bits without it, and
//! a copy of a state starts with an empty one.

use rustc_hash::FxHashMap;
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard};

/// What cached values were computed with: the version of the weights, and the log.
pub type Stamp = (u64, u64);

/// Values by node, or by node and newest event. Thread-safe; full caches are emptied.
#[derive(Debug)]
pub struct NodeCache<K, V> {
    kept: Mutex<Kept<K, V>>,
    /// Values of this size in all are kept at most.
    most: usize,
}

#[derive(Debug)]
struct Kept<K, V> {
    stamp: Stamp,
    values: FxHashMap<K, V>,
    size: usize,
}

impl<K, V> Kept<K, V> {
    fn clear(&mut self) {
        self.values.clear();
        self.size = 0;
    }
}

impl<K, V> NodeCache<K, V> {
    /// An empty cache for values of this size in all.
    pub fn new(most: usize) -> NodeCache<K, V> {
        let kept = Kept { stamp: (0, 0), values: FxHashMap::default(), size: 0 };
        NodeCache { kept: Mutex::new(kept), most }
    }

    /// Empties the cache. To be called by `observe`.
    pub fn clear(&mut self) {
        self.kept.get_mut().expect("nothing panics while it holds the cache").clear();
    }

    fn lock(&self) -> MutexGuard<'_, Kept<K, V>> {
        self.kept.lock().expect("nothing panics while it holds the cache")
    }
}

impl<K: Eq + Hash, V: Clone> NodeCache<K, V> {
    /// The values that are known with this stamp, in the order of the keys. Values of another stamp
    /// are dropped.
    pub fn get(&self, stamp: Stamp, keys: impl Iterator<Item = K>) -> Vec<Option<V>> {
        let mut kept = self.lock();
        if kept.stamp != stamp {
            kept.clear();
            kept.stamp = stamp;
        }
        keys.map(|key| kept.values.get(&key).cloned()).collect()
    }

    /// The values of keys. `make` is given those whose value is not known, and tells each value with
    /// its size.
    pub fn get_or_make(
        &self,
        stamp: Stamp,
        keys: &[K],
        make: impl FnOnce(&[K]) -> Vec<(V, usize)>,
    ) -> Vec<V>
    where
        K: Copy,
    {
        let known = self.get(stamp, keys.iter().copied());
        let missing = keys.iter().zip(&known).filter(|(_, value)| value.is_none());
        let missing: Vec<K> = missing.map(|(&key, _)| key).collect();
        let made = if missing.is_empty() { Vec::new() } else { make(&missing) };
        let sized = missing.iter().zip(&made);
        self.insert(stamp, sized.map(|(&key, (value, size))| (key, value.clone(), *size)));
        let mut made = made.into_iter();
        let value = |known: Option<V>| known.or_else(|| made.next().map(|(value, _)| value));
        known.into_iter().map(value).map(|value| value.expect("known or made")).collect()
    }

    /// Keeps values, each with its size, unless the cache has moved on to newer weights.
    pub fn insert(&self, stamp: Stamp, values: impl Iterator<Item = (K, V, usize)>) {
        let mut kept = self.lock();
        if kept.stamp != stamp {
            // Versions of weights only grow: what comes late was computed with older ones.
            if stamp.0 < kept.stamp.0 {
                return;
            }
            kept.clear();
            kept.stamp = stamp;
        }
        for (key, value, size) in values {
            if kept.size + size > self.most {
                kept.clear();
            }
            // Two calls at once may both have computed it.
            if kept.values.insert(key, value).is_none() {
                kept.size += size;
            }
        }
    }
}

impl<K, V> Clone for NodeCache<K, V> {
    /// A copy starts empty.
    fn clone(&self) -> NodeCache<K, V> {
        NodeCache::new(self.most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_known_until_the_stamp_changes_or_the_cache_is_cleared() {
        let mut cache: NodeCache<u32, char> = NodeCache::new(10);
        let keys = [5, 3];
        assert_eq!(cache.get((1, 0), keys.into_iter()), [None, None]);
        cache.insert((1, 0), [(3, 'a', 1)].into_iter());
        assert_eq!(cache.get((1, 0), keys.into_iter()), [None, Some('a')]);
        cache.insert((0, 0), [(3, 'b', 1)].into_iter());
        assert_eq!(cache.get((1, 0), keys.into_iter()), [None, Some('a')], "older weights");
        cache.insert((2, 0), [(5, 'c', 1)].into_iter());
        assert_eq!(cache.get((2, 0), keys.into_iter()), [Some('c'), None]);
        cache.insert((2, 0), [(3, 'b', 1)].into_iter());
        cache.clear();
        assert_eq!(cache.get((2, 0), keys.into_iter()), [None, None]);
    }

    #[test]
    fn what_is_not_known_is_made_once() {
        let cache: NodeCache<u32, u32> = NodeCache::new(10);
        let ask = |keys: &[u32]| {
            let mut made = Vec::new();
            let values = cache.get_or_make((1, 0), keys, |missing| {
                made.extend_from_slice(missing);
                missing.iter().map(|key| (key * 10, 1)).collect()
            });
            (values, made)
        };
        assert_eq!(ask(&[5, 3]), (vec![50, 30], vec![5, 3]));
        assert_eq!(ask(&[4, 3, 6]), (vec![40, 30, 60], vec![4, 6]));
        assert_eq!(ask(&[4, 5]), (vec![40, 50], vec![]));
    }

    #[test]
    fn a_full_cache_is_emptied_before_more_is_kept() {
        let cache: NodeCache<u32, u32> = NodeCache::new(3);
        cache.get((1, 1), [].into_iter());
        cache.insert((1, 1), (0..5).map(|key| (key, key, 1)));
        assert_eq!(cache.get((1, 1), 0..5), [None, None, None, Some(3), Some(4)]);
    }
}
