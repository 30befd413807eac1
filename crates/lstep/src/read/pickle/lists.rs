//! Lists of negative destinations by event, as TGB stores them.

use rustc_hash::FxHashMap;
use std::sync::Arc;

/// An event: source, destination, time.
pub type Positive = (i64, i64, i64);

/// Lists of negative destinations by event, in the order the events were first given.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NegativeLists {
    events: Vec<Positive>,
    lists: FxHashMap<Positive, Arc<[i64]>>,
}

impl NegativeLists {
    /// How many distinct events have a list.
    pub fn len(&self) -> usize {
        self.events.len()
    }

    /// Whether no event has a list.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// The negative destinations of an event.
    pub fn of(&self, source: i64, destination: i64, time: i64) -> Option<&[i64]> {
        self.lists.get(&(source, destination, time)).map(|list| &**list)
    }

    /// Events with their negative destinations, in order.
    pub fn iter(&self) -> impl Iterator<Item = (Positive, &[i64])> {
        self.events.iter().map(|event| (*event, &*self.lists[event]))
    }

    /// Gives an event its list. As in a Python dictionary, a later list replaces an earlier one in
    /// its place.
    pub fn insert(&mut self, event: Positive, list: impl Into<Arc<[i64]>>) {
        if self.lists.insert(event, list.into()).is_none() {
            self.events.push(event);
        }
    }
}
