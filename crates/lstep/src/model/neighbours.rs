//! Sampled neighbours of the seeds of a call, before any tensor.

use crate::graph::{Neighbour, Past, Seed, sample_uniformly};
use lstep_tensor::{Tape, Var};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

/// Which neighbours of a seed are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sampling {
    /// The newest.
    Recent,
    /// Any, drawn uniformly and with replacement; the draw depends on the seed alone.
    Uniform,
}

/// Neighbours of seeds, one seed after the other, oldest first.
#[derive(Debug, Default)]
pub struct NeighbourBatch {
    offsets: Vec<u32>,
    ages: Vec<f64>,
    neighbours: Vec<Neighbour>,
    sample: Vec<Neighbour>,
}

impl NeighbourBatch {
    /// Looks up at most `most` neighbours of each seed, in place of those looked up before.
    pub fn gather(&mut self, past: Past<'_>, seeds: &[Seed], most: usize, sampling: Sampling) {
        self.offsets.clear();
        self.offsets.push(0);
        self.ages.clear();
        self.neighbours.clear();
        for &seed in seeds {
            let neighbours = match sampling {
                Sampling::Recent => past.recent(seed, most),
                Sampling::Uniform => {
                    sample_uniformly(past, seed, most, 0, &mut self.sample);
                    &self.sample
                }
            };
            let age = |neighbour: &Neighbour| seed.time().since(neighbour.time());
            self.ages.extend(neighbours.iter().map(age));
            self.neighbours.extend_from_slice(neighbours);
            self.offsets.push(self.ages.len() as u32);
        }
    }

    /// How many seeds there are.
    pub fn seeds(&self) -> usize {
        self.offsets.len() - 1
    }

    /// How long ago each neighbour's event was.
    pub fn ages(&self) -> &[f64] {
        &self.ages
    }

    /// All neighbours.
    pub fn neighbours(&self) -> &[Neighbour] {
        &self.neighbours
    }

    /// The neighbours of each seed, as places among all.
    pub fn spans(&self) -> impl Iterator<Item = std::ops::Range<u32>> {
        self.offsets.windows(2).map(|ends| ends[0]..ends[1])
    }

    /// The neighbours of all seeds in blocks of `rows`, each with how long ago its event was, then
    /// nobody.
    pub fn in_blocks(&self, rows: usize) -> impl Iterator<Item = (f64, Option<&Neighbour>)> {
        self.spans().flat_map(move |span| {
            let missing = rows - span.len();
            let there = span
                .map(|place| (self.ages[place as usize], Some(&self.neighbours[place as usize])));
            there.chain(std::iter::repeat_n((0.0, None), missing))
        })
    }

    /// Features of the events in blocks of `rows`, zeros where there is none; nothing where the
    /// stream has none.
    pub fn event_features_in_blocks(
        &self,
        tape: &mut Tape<'_>,
        past: Past<'_>,
        rows: usize,
    ) -> Option<Var> {
        let width = past.event_feature_width();
        (width > 0).then(|| {
            tape.input(self.seeds() * rows, width, |values| {
                let blocks = self.in_blocks(rows).zip(values.chunks_exact_mut(width));
                for ((_, neighbour), row) in blocks {
                    if let Some(neighbour) = neighbour {
                        row.copy_from_slice(past.event_features(neighbour));
                    }
                }
            })
        })
    }

    /// The seeds of the next hop: each neighbour just before its event, every distinct one once;
    /// and for each neighbour its place among them.
    pub fn frontier(&self) -> (Vec<Seed>, Vec<u32>) {
        let mut places: FxHashMap<(u32, u64), u32> = FxHashMap::default();
        let (mut seeds, mut rows) = (Vec::new(), Vec::with_capacity(self.neighbours.len()));
        for neighbour in &self.neighbours {
            let seed = neighbour.seed();
            let key = (seed.node().0, seed.time().value().to_bits());
            let place = *places.entry(key).or_insert_with(|| {
                seeds.push(seed);
                seeds.len() as u32 - 1
            });
            rows.push(place);
        }
        (seeds, rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{NodeId, Time};
    use crate::graph::EventLog;

    #[test]
    fn the_second_hop_sees_only_what_was_before_the_first() {
        let time = |value: u32| Time::new(f64::from(value)).expect("finite");
        let mut log = EventLog::default();
        for (at, (source, destination)) in [(1, 2), (0, 1), (1, 3)].into_iter().enumerate() {
            log.push(NodeId(source), NodeId(destination), time(at as u32), &[]).expect("in order");
        }
        let (mut first, mut second) = (NeighbourBatch::default(), NeighbourBatch::default());
        let seeds = [0, 3].map(|node| Seed::new(NodeId(node), time(9)));
        first.gather(log.past(3), &seeds, 5, Sampling::Recent);
        let (frontier, rows) = first.frontier();
        assert_eq!(frontier, [Seed::new(NodeId(1), time(1)), Seed::new(NodeId(1), time(2))]);
        assert_eq!(rows, [0, 1]);
        second.gather(log.past(3), &frontier, 5, Sampling::Recent);
        let nodes: Vec<u32> = second.neighbours().iter().map(|n| n.node().0).collect();
        assert_eq!(nodes, [2, 2, 0], "node 1 at time 1 has met 2, at time 2 also 0");
    }
}
