//! The tokens of a call's pairs as integers, before any tensor: which nodes are compared with
//! which, and what each token is made of.

use super::config::{MissingSlots, TpnetConfig};
use super::projection::{Born, NOBODY, Projections, Sums};
use crate::graph::{Neighbour, Past, Seed};
use crate::model::feature_rows::{event_features, node_features};
use crate::model::{NeighbourBatch, PairBatch};
use lstep_tensor::{Tape, Var};
use rustc_hash::FxHashMap;
use std::ops::Range;

/// Distinct nodes of a call, by what identifies them.
#[derive(Debug, Default)]
pub struct Nodes {
    places: FxHashMap<Born, u32>,
    /// Where the sums of each are.
    sums: Vec<Place>,
    /// H^0 of those that have not interacted.
    drawn: Vec<f32>,
    room: usize,
}

#[derive(Debug, Clone, Copy)]
enum Place {
    Row(usize),
    Drawn(usize),
}

impl Nodes {
    fn clear(&mut self, room: usize) {
        self.places.clear();
        self.sums.clear();
        self.drawn.clear();
        self.room = room;
    }

    fn place(&mut self, state: &Projections, (born, row): (Born, Option<usize>)) -> u32 {
        let next = self.sums.len() as u32;
        let place = *self.places.entry(born).or_insert(next);
        if place == next {
            self.sums.push(match row {
                Some(row) => Place::Row(row),
                None => {
                    let from = self.drawn.len();
                    state.draw_into(born, &mut self.drawn);
                    Place::Drawn(from)
                }
            });
        }
        place
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.sums.len()
    }

    /// The sums of one.
    pub fn sums<'a>(&'a self, state: &'a Projections, place: usize) -> Sums<'a> {
        match self.sums[place] {
            Place::Row(row) => state.of(row),
            Place::Drawn(from) => state.of_new(&self.drawn[from..from + self.room]),
        }
    }
}

/// Distinct pairs of nodes.
#[derive(Debug, Default)]
struct NodePairs {
    places: FxHashMap<(u32, u32), u32>,
    first: Vec<u32>,
    second: Vec<u32>,
}

impl NodePairs {
    fn clear(&mut self) {
        self.places.clear();
        self.first.clear();
        self.second.clear();
    }

    fn place(&mut self, first: u32, second: u32) -> u32 {
        let next = self.first.len() as u32;
        let place = *self.places.entry((first, second)).or_insert(next);
        if place == next {
            self.first.push(first);
            self.second.push(second);
        }
        place
    }
}

/// What the tokens of one side of the pairs are made of.
#[derive(Debug, Default)]
pub struct Side {
    /// For each entry of each distinct seed on this side, as the node it is taken for, the entry and
    /// its place among the pairs of met nodes with nodes of this side.
    pub own_entries: Vec<u32>,
    pub own_near: Vec<u32>,
    /// For each token its place among those, and its place among the pairs of met nodes with nodes
    /// of the other side.
    pub own: Vec<u32>,
    pub other: Vec<u32>,
    /// Where the entries of each begin in `own_entries`. A node without events is taken for a new
    /// source or a new candidate, so a seed alone does not tell.
    begins: FxHashMap<(u32, u32), u32>,
}

/// The tokens of a call.
#[derive(Debug, Default)]
pub struct Tokens {
    neighbours: NeighbourBatch,
    /// Nodes of which it is asked how near they are, and nodes to which.
    pub firsts: Nodes,
    pub seconds: Nodes,
    /// Met nodes with sources, met nodes with candidates.
    near: [NodePairs; 2],
    /// The two nodes of each pair.
    between: [Vec<u32>; 2],
    /// The entries of all seeds: their events, then one for slots without any.
    pub log_ages: Vec<f64>,
    entries: Vec<Option<Neighbour>>,
    /// The first entry of each seed, and the end of the last.
    begins: Vec<u32>,
    /// Each entry's place in `firsts`.
    met: Vec<u32>,
    pub sides: [Side; 2],
    /// For each slot of each history of sources, then of candidates, its token; 0 is zeros.
    pub slots: Vec<u32>,
}

impl Tokens {
    /// Makes the tokens of a call's pairs, in place of those before.
    pub fn gather(
        &mut self,
        past: Past<'_>,
        state: &Projections,
        pairs: &PairBatch,
        config: &TpnetConfig,
    ) {
        self.neighbours.gather(past, pairs.seeds(), config.recent, config.sampling);
        self.firsts.clear(state.room());
        self.seconds.clear(state.room());
        self.near.iter_mut().for_each(NodePairs::clear);
        self.gather_entries(past, state, pairs.seeds(), config);
        self.slots.clear();
        let asked: Vec<[u32; 2]> =
            (0..pairs.len()).map(|pair| self.asked(past, state, pairs, pair)).collect();
        let mut first_token = 1;
        for (side, seeds) in [pairs.sources(), pairs.candidates()].into_iter().enumerate() {
            self.gather_side(side, seeds, &asked, first_token, config);
            first_token += self.sides[side].own.len() as u32;
        }
    }

    /// The events of all seeds, and an entry for the slots that are left.
    fn gather_entries(
        &mut self,
        past: Past<'_>,
        state: &Projections,
        seeds: &[Seed],
        config: &TpnetConfig,
    ) {
        let Tokens { neighbours, firsts, log_ages, entries, begins, met, .. } = self;
        log_ages.clear();
        entries.clear();
        begins.clear();
        met.clear();
        for (seed, span) in seeds.iter().zip(neighbours.spans()) {
            begins.push(entries.len() as u32);
            let span = span.start as usize..span.end as usize;
            for neighbour in &neighbours.neighbours()[span.clone()] {
                let node = Seed::new(neighbour.node(), seed.time());
                met.push(firsts.place(state, state.identify(past, node, false)));
                entries.push(Some(*neighbour));
            }
            log_ages.extend(neighbours.ages()[span.clone()].iter().copied());
            if config.padding == MissingSlots::Released && span.len() < config.recent {
                met.push(firsts.place(state, (NOBODY, None)));
                entries.push(None);
                log_ages.push((seed.time().value() - state.start()).max(0.0));
            }
        }
        begins.push(entries.len() as u32);
        log_ages.iter_mut().for_each(|age| *age = (*age * config.time_unit).ln_1p());
    }

    /// The two nodes of a pair among those to which others are near.
    fn asked(
        &mut self,
        past: Past<'_>,
        state: &Projections,
        pairs: &PairBatch,
        pair: usize,
    ) -> [u32; 2] {
        let (source, candidate) = pairs.pair(pair);
        let known = state.identify(past, source, true);
        let other = if candidate == source.node() {
            known
        } else {
            state.identify(past, source.with_node(candidate), false)
        };
        if pair == 0 {
            self.between.iter_mut().for_each(Vec::clear);
        }
        let second = self.seconds.place(state, other);
        self.between[0].push(self.firsts.place(state, known));
        self.between[1].push(second);
        [self.seconds.place(state, known), second]
    }

    fn gather_side(
        &mut self,
        side: usize,
        seeds: &[u32],
        asked: &[[u32; 2]],
        first_token: u32,
        config: &TpnetConfig,
    ) {
        let Side { own_entries, own_near, own, other, begins } = &mut self.sides[side];
        for list in [&mut *own_entries, own_near, own, other] {
            list.clear();
        }
        begins.clear();
        for (&seed, asked) in seeds.iter().zip(asked) {
            let entries = self.begins[seed as usize]..self.begins[seed as usize + 1];
            let next = own_entries.len() as u32;
            let begin = *begins.entry((seed, asked[side])).or_insert_with(|| {
                for entry in entries.clone() {
                    own_entries.push(entry);
                    let met = self.met[entry as usize];
                    own_near.push(self.near[side].place(met, asked[side]));
                }
                next
            });
            let token = first_token + own.len() as u32;
            let (mut events, mut empty) = (entries.len(), 0);
            for (place, entry) in entries.enumerate() {
                own.push(begin + place as u32);
                let met = self.met[entry as usize];
                other.push(self.near[1 - side].place(met, asked[1 - side]));
                if self.entries[entry as usize].is_none() {
                    events -= 1;
                    empty = token + place as u32;
                }
            }
            self.slots.extend(std::iter::repeat_n(empty, config.recent - events));
            self.slots.extend(token..token + events as u32);
        }
    }

    /// All pairs of nodes that are compared: met nodes with sources, met nodes with candidates,
    /// then the two nodes of each pair.
    pub fn pairs_of_nodes(&self) -> (Vec<u32>, Vec<u32>) {
        let [sources, candidates] = &self.near;
        let first = [&sources.first[..], &candidates.first, &self.between[0]].concat();
        let second = [&sources.second[..], &candidates.second, &self.between[1]].concat();
        (first, second)
    }

    /// Met nodes with sources, and met nodes with candidates, among the pairs of nodes.
    pub fn to_sides(&self) -> [Range<usize>; 2] {
        let [sources, candidates] = self.near.each_ref().map(|near| near.first.len());
        [0..sources, sources..sources + candidates]
    }

    /// The two nodes of each pair among the pairs of nodes.
    pub fn between(&self) -> Range<usize> {
        let from = self.to_sides()[1].end;
        from..from + self.between[0].len()
    }

    /// Features of the nodes met, [entries, width].
    pub fn node_features(&self, tape: &mut Tape<'_>, past: Past<'_>) -> Var {
        let met = self.entries.iter().map(|entry| entry.as_ref().map(Neighbour::node));
        node_features(tape, past, past.node_feature_width(), met)
    }

    /// Features of the events, [entries, width].
    pub fn event_features(&self, tape: &mut Tape<'_>, past: Past<'_>) -> Var {
        event_features(
            tape,
            past,
            past.event_feature_width(),
            self.entries.iter().map(Option::as_ref),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::projection::Shape;
    use super::*;
    use crate::event::{NodeId, Time};
    use crate::graph::EventLog;

    #[test]
    fn a_new_node_beside_itself_is_not_taken_for_the_same_node_beside_another() {
        let (log, mut pairs) = (EventLog::default(), PairBatch::default());
        let seed = |node| Seed::new(NodeId(node), Time::ZERO);
        pairs.push(seed(0), NodeId(0));
        pairs.push(seed(1), NodeId(0));
        let state = Projections::new(Shape { sums: 2, width: 4, rate: 0.0 }, 0, 0.0);
        let (mut tokens, config) = (Tokens::default(), TpnetConfig::default());
        tokens.gather(log.past(0), &state, &pairs, &config);
        let [_, candidates] = &tokens.sides;
        assert_eq!(candidates.own, [0, 1], "a new source, and a new candidate");
        assert_eq!(tokens.slots.len(), 4 * config.recent);
    }
}
