//! The walks of a call's pairs as integers, before any tensor: which events were drawn, how often,
//! and how often their nodes are in the walks of both sides.

use super::config::{CawnConfig, WalkLaw};
use crate::event::NodeId;
use crate::graph::{Neighbour, Past, Seed, sample_by_acceptance, sample_by_recency};
use crate::model::PairBatch;
use crate::model::feature_rows::{event_features, node_features};
use crate::model::occurrence::Occurrences;
use lstep_tensor::{Tape, Var};
use rustc_hash::FxHashMap;
use std::ops::Range;

/// A token that a walk begins with.
#[derive(Debug, Clone, Copy)]
pub struct Begin {
    /// The entry of the seed's own node.
    pub entry: u32,
    /// Its position: two rows of the table of codes.
    pub codes: [u32; 2],
}

/// A walk, or several equal ones.
#[derive(Debug, Clone, Copy)]
pub struct Walk {
    /// What it begins with.
    pub begin: u32,
    /// The entry of its last token, which is that of the seed's own node where nothing was drawn.
    pub entry: u32,
    /// The position of that token.
    pub codes: [u32; 2],
    /// Whether it goes on after its beginning.
    pub goes_on: bool,
}

/// The walks of a call.
#[derive(Debug, Default)]
pub struct Walks {
    sample: Vec<Neighbour>,
    /// Of all seeds one after the other: the seed's own node, then each distinct event drawn.
    nodes: Vec<NodeId>,
    events: Vec<Option<Neighbour>>,
    pub ages: Vec<f64>,
    /// How often each event was drawn.
    drawn: Vec<u32>,
    /// The entries of each seed.
    spans: Vec<Range<usize>>,
    /// All nodes drawn, with repetitions, and how often each is among those of its seed.
    all: Vec<NodeId>,
    counts: Vec<u32>,
    spans_of_all: Vec<Range<usize>>,
    occurrences: Occurrences,
    begin_places: FxHashMap<(u32, [u32; 2]), u32>,
    pub begins: Vec<Begin>,
    /// The walks of each pair's source, then those of each pair's candidate.
    pub walks: Vec<Walk>,
    /// How often each counts.
    pub repeats: Vec<u32>,
    /// Where the walks of each side begin, and where the last one's end.
    pub offsets: Vec<u32>,
}

impl Walks {
    /// Draws the walks of a call's pairs, in place of those before.
    pub fn gather(&mut self, past: Past<'_>, pairs: &PairBatch, config: &CawnConfig) {
        for list in [&mut self.nodes, &mut self.all] {
            list.clear();
        }
        for list in [&mut self.drawn, &mut self.counts, &mut self.repeats, &mut self.offsets] {
            list.clear();
        }
        self.events.clear();
        self.ages.clear();
        self.spans.clear();
        self.spans_of_all.clear();
        self.begin_places.clear();
        self.begins.clear();
        self.walks.clear();
        for &seed in pairs.seeds() {
            self.draw(past, seed, config);
        }
        self.offsets.push(0);
        let sides = [(pairs.sources(), pairs.candidates()), (pairs.candidates(), pairs.sources())];
        for (side, others) in sides {
            for (&seed, &other) in side.iter().zip(others) {
                let nodes = [seed, other].map(|seed| pairs.seeds()[seed as usize].node());
                self.walk([seed as usize, other as usize], nodes, config.walks as u32);
            }
        }
    }

    /// The entries of a seed.
    fn draw(&mut self, past: Past<'_>, seed: Seed, config: &CawnConfig) {
        let (count, rate) = (config.walks, config.rate);
        match config.law {
            WalkLaw::Softmax => {
                sample_by_acceptance(past, seed, count, rate, 0, &mut self.sample);
            }
            WalkLaw::Recency => sample_by_recency(past, seed, count, rate, 0, &mut self.sample),
        }
        let (first, first_of_all) = (self.nodes.len(), self.all.len());
        self.nodes.push(seed.node());
        self.events.push(None);
        self.ages.push(0.0);
        self.drawn.push(0);
        // Draws are sorted, so equal ones are side by side.
        for same in self.sample.chunk_by(|a, b| a.event() == b.event()) {
            self.nodes.push(same[0].node());
            self.events.push(Some(same[0]));
            self.ages.push(seed.time().since(same[0].time()));
            self.drawn.push(same.len() as u32);
        }
        self.all.extend(self.sample.iter().map(|neighbour| neighbour.node()));
        self.spans.push(first..self.nodes.len());
        self.spans_of_all.push(first_of_all..self.all.len());
        self.occurrences.count_own(&self.all[first_of_all..], &mut self.counts);
    }

    /// The walks of a seed beside another seed.
    fn walk(&mut self, seeds: [usize; 2], asked: [NodeId; 2], most: u32) {
        let span = self.spans[seeds[0]].clone();
        let nodes = &self.nodes[span.clone()];
        // Row n of the table is the code of a node that was drawn n times, row most + 1 + n that of
        // one which is also where the walks begin.
        let codes = [0, 1].map(|side| {
            let all = self.spans_of_all[seeds[side]].clone();
            let mut codes = Vec::with_capacity(nodes.len());
            let others = (&self.all[all.clone()], &self.counts[all]);
            self.occurrences.count_in(nodes, others, |place, count| {
                let is_begin = u32::from(nodes[place] == asked[side]);
                codes.push(is_begin * (most + 1) + count);
            });
            codes
        });
        let code = |place: usize| [codes[0][place], codes[1][place]];
        let next = self.begins.len() as u32;
        let begin = *self.begin_places.entry((seeds[0] as u32, code(0))).or_insert(next);
        if begin == next {
            self.begins.push(Begin { entry: span.start as u32, codes: code(0) });
        }
        if span.len() == 1 {
            let entry = span.start as u32;
            self.walks.push(Walk { begin, entry, codes: code(0), goes_on: false });
            self.repeats.push(most);
        }
        for (place, entry) in span.enumerate().skip(1) {
            let (entry, drawn) = (entry as u32, self.drawn[entry]);
            self.walks.push(Walk { begin, entry, codes: code(place), goes_on: true });
            self.repeats.push(drawn);
        }
        self.offsets.push(self.walks.len() as u32);
    }

    /// The nodes' features, [entries, width].
    pub fn node_features(&self, tape: &mut Tape<'_>, past: Past<'_>, width: usize) -> Var {
        node_features(tape, past, width, self.nodes.iter().copied().map(Some))
    }

    /// The events' features, zeros for the seeds' own nodes: [entries, width].
    pub fn event_features(&self, tape: &mut Tape<'_>, past: Past<'_>, width: usize) -> Var {
        event_features(tape, past, width, self.events.iter().map(Option::as_ref))
    }
}
