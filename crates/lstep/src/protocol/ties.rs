//! Events of one time have no order but that of their rows in a file.
//!
//! Where thousands of events share a time and are listed source by source, a state that follows in
//! steps reads that order, and nobody could have known it when the events happened.

use crate::event::{Events, Features};
use crate::rng::KeyedRng;
use serde::{Deserialize, Serialize};

/// The order of events that share a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ties {
    /// That of the rows in the file. What published tables use.
    #[default]
    File,
    /// A random one, the same in every run.
    Shuffled,
}

impl Ties {
    /// All orders.
    pub const ALL: [Ties; 2] = [Ties::File, Ties::Shuffled];

    /// Whether nothing changes.
    pub fn is_file(&self) -> bool {
        *self == Ties::File
    }
}

/// The same events, those of one time in a random order that a key determines.
pub fn shuffle_ties(events: &Events, key: u64) -> Events {
    let mut order: Vec<usize> = (0..events.len()).collect();
    let mut draw = KeyedRng::new(&[key, 0x71e5]);
    for tied in order.chunk_by_mut(|&a, &b| events.times()[a] == events.times()[b]) {
        draw.shuffle(tied);
    }
    let width = events.features().width();
    let values = order.iter().flat_map(|&number| events.features().row(number)).copied();
    let features = Features::new(width, values.collect()).expect("finite as before");
    let column = |nodes: &[crate::event::NodeId]| order.iter().map(|&at| nodes[at]).collect();
    Events::new(
        column(events.sources()),
        column(events.destinations()),
        events.times().to_vec(),
        features,
    )
    .expect("times are in order as before")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_events_of_one_time_change_places_and_each_keeps_its_features() {
        let rows = (0..400u32).map(|n| (n, 1_000 + n, f64::from(n / 100)));
        let events: Events = lstep_testkit::stream!(rows, 1, |source, _| [source as f32]);
        let shuffled = shuffle_ties(&events, 7);
        assert_eq!(shuffled.times(), events.times());
        assert_ne!(shuffled.sources(), events.sources());
        for event in shuffled.iter() {
            assert_eq!(event.source.0 / 100, event.number / 100, "it stays in its time");
            assert_eq!(event.destination.0, 1_000 + event.source.0);
            assert_eq!(shuffled.features().row(event.number as usize), [event.source.0 as f32]);
        }
        assert_eq!(shuffle_ties(&events, 7).sources(), shuffled.sources());
    }
}
