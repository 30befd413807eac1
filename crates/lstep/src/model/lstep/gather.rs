//! What the graph says about the seeds of a call: integers and ages, before any tensor.
//!
//! Every distinct seed is looked up once, however often it is asked, and every node whose position
//! is needed has one place.

use crate::event::NodeId;
use crate::graph::{Meeting, Seed};
use rustc_hash::FxHashMap;

/// The distinct seeds of a call, their recent meetings, and the nodes whose positions these need.
#[derive(Debug, Default)]
pub struct Gathered {
    /// Nodes whose approximate position is needed.
    pub nodes: Vec<NodeId>,
    /// The place of each seed's own node in `nodes`.
    pub own: Vec<u32>,
    /// Where each seed's meetings begin, and where the last one's end.
    pub offsets: Vec<u32>,
    /// How long ago each meeting was.
    pub ages: Vec<f64>,
    /// Which of the K rows each meeting fills: they are right-aligned, the newest fills the last.
    pub slots: Vec<u32>,
    /// The place of each meeting's other node in `nodes`.
    pub partners: Vec<u32>,
    /// The number of each meeting's event.
    pub events: Vec<u32>,
    /// Where each seed's neighbours within the window begin, and where the last one's end.
    pub window_offsets: Vec<u32>,
    /// The neighbours within the window, with repetition.
    pub window: Vec<u32>,
    seeds: FxHashMap<(u32, u64), u32>,
    places: Vec<u32>,
}

const NOWHERE: u32 = u32::MAX;

impl Gathered {
    /// Forgets everything and keeps the memory.
    pub fn clear(&mut self) {
        for node in self.nodes.drain(..) {
            self.places[node.index()] = NOWHERE;
        }
        self.own.clear();
        self.ages.clear();
        self.slots.clear();
        self.partners.clear();
        self.events.clear();
        self.window.clear();
        self.seeds.clear();
        self.offsets.clear();
        self.offsets.push(0);
        self.window_offsets.clear();
        self.window_offsets.push(0);
    }

    /// How many distinct seeds.
    pub fn seeds(&self) -> usize {
        self.own.len()
    }

    /// The seed's number, and whether it is new and its meetings have to follow.
    pub fn seed(&mut self, seed: Seed) -> (u32, bool) {
        let next = self.own.len() as u32;
        let number = *self.seeds.entry((seed.node.0, seed.time.value().to_bits())).or_insert(next);
        if number == next {
            let place = self.place(seed.node);
            self.own.push(place);
        }
        (number, number == next)
    }

    /// The meetings of the seed that was just added: at most `rows` of them, oldest first, and how
    /// long ago each was.
    pub fn meetings(&mut self, meetings: &[Meeting], rows: usize, age: impl Fn(&Meeting) -> f64) {
        let first = (rows - meetings.len()) as u32;
        for (slot, meeting) in meetings.iter().enumerate() {
            let partner = self.place(meeting.neighbour);
            self.ages.push(age(meeting));
            self.slots.push(first + slot as u32);
            self.partners.push(partner);
            self.events.push(meeting.event);
        }
        self.offsets.push(self.ages.len() as u32);
    }

    /// The neighbours within the window of the seed that was just added.
    pub fn neighbours(&mut self, meetings: &[Meeting]) {
        self.window.extend(meetings.iter().map(|meeting| meeting.neighbour.0));
        self.window_offsets.push(self.window.len() as u32);
    }

    fn place(&mut self, node: NodeId) -> u32 {
        if node.index() >= self.places.len() {
            self.places.resize(node.index() + 1, NOWHERE);
        }
        let place = &mut self.places[node.index()];
        if *place == NOWHERE {
            *place = self.nodes.len() as u32;
            self.nodes.push(node);
        }
        *place
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Time;

    #[test]
    fn a_seed_asked_twice_is_looked_up_once_and_rows_are_right_aligned() {
        let time = |value| Time::new(value).expect("finite");
        let mut gathered = Gathered::default();
        for _ in 0..2 {
            gathered.clear();
            assert_eq!(gathered.seed(Seed { node: NodeId(4), time: time(9.0) }), (0, true));
            let meetings = [(7, 1.0), (4, 3.0)].map(|(neighbour, at)| Meeting {
                time: time(at),
                event: neighbour,
                neighbour: NodeId(neighbour),
            });
            gathered.meetings(&meetings, 5, |meeting| 9.0 - meeting.time.value());
            assert_eq!(gathered.seed(Seed { node: NodeId(4), time: time(9.0) }), (0, false));
            assert_eq!(gathered.slots, [3, 4]);
            assert_eq!(gathered.ages, [8.0, 6.0]);
            assert_eq!(gathered.nodes, [NodeId(4), NodeId(7)]);
            assert_eq!(gathered.partners, [1, 0]);
        }
    }
}
