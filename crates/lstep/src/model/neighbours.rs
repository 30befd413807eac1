//! What the graph says about the seeds of a call: some meetings of each, before any tensor.

use crate::event::NodeId;
use crate::graph::{Meeting, Past, Seed, sample_uniformly};
use serde::{Deserialize, Serialize};

/// Which meetings of a seed are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sampling {
    /// The newest.
    Recent,
    /// Any, drawn uniformly and with replacement; the draw depends on the seed alone.
    Uniform,
}

/// Meetings of seeds, one seed after the other, oldest first.
#[derive(Debug, Default)]
pub struct Meetings {
    /// Where each seed's meetings begin, and where the last one's end.
    pub offsets: Vec<u32>,
    /// How long ago each was.
    pub ages: Vec<f64>,
    /// The other node of each.
    pub neighbours: Vec<NodeId>,
    /// The number of the event of each.
    pub events: Vec<u32>,
    sample: Vec<Meeting>,
}

impl Meetings {
    /// Looks up at most `most` meetings of each seed, in place of those looked up before.
    pub fn gather(&mut self, past: Past<'_>, seeds: &[Seed], most: usize, sampling: Sampling) {
        self.offsets.clear();
        self.offsets.push(0);
        self.ages.clear();
        self.neighbours.clear();
        self.events.clear();
        for &seed in seeds {
            let meetings = match sampling {
                Sampling::Recent => past.recent(seed, most),
                Sampling::Uniform => {
                    sample_uniformly(past, seed, most, 0, &mut self.sample);
                    &self.sample
                }
            };
            self.ages.extend(meetings.iter().map(|meeting| seed.time.since(meeting.time)));
            self.neighbours.extend(meetings.iter().map(|meeting| meeting.neighbour));
            self.events.extend(meetings.iter().map(|meeting| meeting.event));
            self.offsets.push(self.ages.len() as u32);
        }
    }

    /// How many meetings there are.
    pub fn len(&self) -> usize {
        self.ages.len()
    }

    /// The meetings of each seed.
    pub fn spans(&self) -> impl Iterator<Item = std::ops::Range<u32>> {
        self.offsets.windows(2).map(|ends| ends[0]..ends[1])
    }
}
