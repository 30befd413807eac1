//! What the graph says about the seeds of a call: integers and ages, before any tensor.
//!
//! Seeds are distinct, and every node whose position is needed has one place.

use crate::event::NodeId;
use crate::graph::{Neighbour, Seed};

/// The distinct seeds of a call, their recent neighbours, and the nodes whose positions these need.
#[derive(Debug, Default)]
pub struct Gathered {
    /// Nodes whose approximate position is needed.
    pub nodes: Vec<NodeId>,
    /// The place of each seed's own node in `nodes`.
    pub own: Vec<u32>,
    /// Where each seed's neighbours begin, and where the last one's end.
    pub offsets: Vec<u32>,
    /// How long ago each neighbour was.
    pub ages: Vec<f64>,
    /// Which of the K rows each neighbour fills: they are right-aligned, the newest fills the last.
    pub slots: Vec<u32>,
    /// The place of each neighbour's other node in `nodes`.
    pub partners: Vec<u32>,
    /// The neighbours themselves.
    pub recent: Vec<Neighbour>,
    /// Where each seed's neighbours within the window begin, and where the last one's end.
    pub window_offsets: Vec<u32>,
    /// The neighbours within the window, with repetition.
    pub window: Vec<u32>,
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
        self.recent.clear();
        self.window.clear();
        self.offsets.clear();
        self.offsets.push(0);
        self.window_offsets.clear();
        self.window_offsets.push(0);
    }

    /// How many distinct seeds.
    pub fn seeds(&self) -> usize {
        self.own.len()
    }

    /// Adds a seed; its recent neighbours and its window have to follow.
    pub fn seed(&mut self, seed: Seed) {
        let place = self.place(seed.node());
        self.own.push(place);
    }

    /// The recent neighbours of the seed that was just added: at most `rows` of them, oldest first,
    /// and how long ago each was.
    pub fn recent(&mut self, recent: &[Neighbour], rows: usize, age: impl Fn(&Neighbour) -> f64) {
        let first = (rows - recent.len()) as u32;
        for (slot, neighbour) in recent.iter().enumerate() {
            let partner = self.place(neighbour.node());
            self.ages.push(age(neighbour));
            self.slots.push(first + slot as u32);
            self.partners.push(partner);
        }
        self.recent.extend_from_slice(recent);
        self.offsets.push(self.ages.len() as u32);
    }

    /// The neighbours within the window of the seed that was just added.
    pub fn window(&mut self, neighbours: &[Neighbour]) {
        self.window.extend(neighbours.iter().map(|neighbour| neighbour.node().0));
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
    fn a_node_has_one_place_and_rows_are_right_aligned() {
        let time = |value| Time::new(value).expect("finite");
        let mut gathered = Gathered::default();
        for _ in 0..2 {
            gathered.clear();
            gathered.seed(Seed::new(NodeId(4), time(9.0)));
            let recent =
                [(7, 1.0), (4, 3.0)].map(|(node, at)| Neighbour::new(time(at), node, NodeId(node)));
            gathered.recent(&recent, 5, |neighbour| 9.0 - neighbour.time().value());
            assert_eq!(gathered.slots, [3, 4]);
            assert_eq!(gathered.ages, [8.0, 6.0]);
            assert_eq!(gathered.nodes, [NodeId(4), NodeId(7)]);
            assert_eq!(gathered.partners, [1, 0]);
        }
    }
}
