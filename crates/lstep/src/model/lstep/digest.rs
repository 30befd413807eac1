//! What a node's recent events come to before it is known when the question is asked.
//!
//! Only ages depend on the time asked, and all of a node's ages grow alike: sums of cosines and
//! sines of the ages at its newest event give the time encodings at any later time
//! (`lstep_tensor::wave_sums`). With the sums of its partners' approximate positions and of its
//! events' features they are all that scoring needs of the K events, so a node that is asked about
//! again and again between two steps is gone through once. Scoring always takes this way,
//! remembered or not: results are the same bits without the memory. Attention has a weight for each
//! event, which no sum replaces; it goes over the events.

use super::config::{LstepConfig, Variant};
use super::{LstepEncoder, LstepScratch, LstepState};
use crate::event::{NodeId, Time};
use crate::graph::{Neighbour, Past, Seed};
use crate::model::cache::NodeCache;
use crate::model::encoder::edge_features;
use lstep_tensor::{Parameters, Segments, Weighting, prefetch, wave_sums, waves_later};
use rayon::prelude::*;
use rustc_hash::FxHashMap;
use std::ops::Range;
use std::sync::Arc;

/// Numbers kept at most: 64 MB. When there is no room for more, all are forgotten, those of events
/// long past among them.
const MOST: usize = 16 << 20;

/// A node with its K newest events, as of the newest.
#[derive(Debug)]
pub struct Digest {
    /// When the newest event was, if there is one.
    newest: Option<Time>,
    numbers: Box<[f32]>,
}

/// Where the numbers of a digest are.
#[derive(Debug, Clone)]
struct Layout {
    /// Four rows of [`wave_sums`].
    waves: Range<usize>,
    /// The sum of the partners' p~, [d_P].
    partners: Range<usize>,
    /// The sum of the events' features weighted by W_link^sum.
    features: Range<usize>,
    /// The node's own p~, [d_P].
    own: Range<usize>,
}

impl Layout {
    fn new(config: &LstepConfig, feature_width: usize) -> Layout {
        let positions =
            if config.variant == Variant::NoPosition { 0 } else { config.position_width };
        let waves = 0..4 * config.time_width;
        let partners = waves.end..waves.end + positions;
        let features = partners.end..partners.end + feature_width;
        let own = features.end..features.end + positions;
        Layout { waves, partners, features, own }
    }
}

/// A row of what the layers take: [f_T | partners] of Eq. agg_neighbor_pe, [f_T | features] of Eq.
/// link_encoding_1, and p~.
#[derive(Debug, Clone)]
pub struct Columns {
    pub q: Range<usize>,
    pub s: Range<usize>,
    pub own: Range<usize>,
}

impl Columns {
    pub fn new(config: &LstepConfig, feature_width: usize) -> Columns {
        let Layout { partners, features, own, .. } = Layout::new(config, feature_width);
        let q = 0..config.time_width + partners.len();
        let s = q.end..q.end + config.time_width + features.len();
        let own = s.end..s.end + own.len();
        Columns { q, s, own }
    }

    pub fn width(&self) -> usize {
        self.own.end
    }
}

/// What a node is remembered by: who, and the number of its newest event.
pub type Key = (NodeId, u32);

/// In place of a number, where there is no event yet.
const NO_EVENT: u32 = u32::MAX;

/// Digests made since the last step that was observed.
pub type Digests = NodeCache<Key, Arc<Digest>>;

/// No digests yet.
pub fn empty() -> Digests {
    NodeCache::new(MOST)
}

/// The seeds of a call whose digests are wanted, each with its newest neighbours, oldest first.
pub type Wanted<'p> = [(Seed, &'p [Neighbour])];

/// Digests, each with the time that is asked about.
pub struct Digested {
    of: Vec<(Time, Arc<Digest>)>,
}

impl Digested {
    /// Fills rows of [`Columns`], one for each seed.
    pub fn fill(&self, config: &LstepConfig, feature_width: usize, rows: &mut [f32]) {
        let (layout, columns) =
            (Layout::new(config, feature_width), Columns::new(config, feature_width));
        let (width, d_t) = (columns.width(), config.time_width);
        let frequencies: Vec<f64> = config.frequencies().collect();
        // Enough seeds to be worth a thread; rows do not depend on how they are divided.
        rows.par_chunks_mut(64 * width).zip(self.of.par_chunks(64)).for_each(|(rows, some)| {
            for (place, (row, (time, digest))) in rows.chunks_exact_mut(width).zip(some).enumerate()
            {
                if let Some((_, next)) = some.get(place + 1) {
                    prefetch(&next.numbers);
                }
                let numbers = &digest.numbers;
                let (q, rest) = row.split_at_mut(columns.q.end);
                let (s, own) = rest.split_at_mut(columns.s.len());
                let (q_times, partners) = q.split_at_mut(d_t);
                let (s_times, features) = s.split_at_mut(d_t);
                let later = digest.newest.map_or(0.0, |newest| time.since(newest));
                waves_later(&numbers[layout.waves.clone()], later, &frequencies, q_times, s_times);
                partners.copy_from_slice(&numbers[layout.partners.clone()]);
                features.copy_from_slice(&numbers[layout.features.clone()]);
                own.copy_from_slice(&numbers[layout.own.clone()]);
            }
        });
    }
}

/// How many numbers of an event's features the model looks at.
pub fn feature_width(config: &LstepConfig, past: Past<'_>) -> usize {
    if config.variant == Variant::PositionOnly { 0 } else { past.event_feature_width() }
}

impl LstepEncoder {
    /// The digests of all seeds, remembered or made. The seeds and their windows are gathered.
    pub(super) fn digests(
        &self,
        parameters: &Parameters,
        past: Past<'_>,
        state: &LstepState,
        seeds: &[Seed],
        scratch: &mut LstepScratch,
    ) -> Digested {
        let gathered = &mut scratch.gathered;
        gathered.clear();
        let mut wanted = Vec::with_capacity(seeds.len());
        for &seed in seeds {
            gathered.seed(seed);
            wanted.push((seed, past.recent(seed, self.config.recent)));
            gathered.window(self.window(past, seed));
        }
        let stamp = (parameters.version(), past.log_identity());
        let key = |(seed, recent): &(Seed, &[Neighbour])| -> Key {
            (seed.node(), recent.last().map_or(NO_EVENT, Neighbour::event))
        };
        let mut digests = state.digests.get(stamp, wanted.iter().map(key));
        // A node asked about at several times has one digest, unless it met somebody in between.
        let mut places: FxHashMap<Key, usize> = FxHashMap::default();
        let mut unknown = Vec::new();
        for (wanted, _) in wanted.iter().zip(&digests).filter(|(_, digest)| digest.is_none()) {
            places.entry(key(wanted)).or_insert_with(|| {
                unknown.push(*wanted);
                unknown.len() - 1
            });
        }
        if !unknown.is_empty() {
            let made = self.digest(parameters, past, state, &unknown, scratch);
            let values = unknown.iter().map(key).zip(&made);
            state.digests.insert(
                stamp,
                values.map(|(key, digest)| (key, Arc::clone(digest), digest.numbers.len())),
            );
            for (digest, wanted) in digests.iter_mut().zip(&wanted) {
                digest.get_or_insert_with(|| Arc::clone(&made[places[&key(wanted)]]));
            }
        }
        let of = wanted
            .iter()
            .zip(digests)
            .map(|((seed, _), digest)| (seed.time(), digest.expect("remembered or made")));
        Digested { of: of.collect() }
    }

    /// Makes digests, each of another node or of another newest event.
    fn digest(
        &self,
        parameters: &Parameters,
        past: Past<'_>,
        state: &LstepState,
        wanted: &Wanted<'_>,
        LstepScratch { workspace, digesting: gathered, runs, .. }: &mut LstepScratch,
    ) -> Vec<Arc<Digest>> {
        let newest = |recent: &[Neighbour]| recent.last().map(Neighbour::time);
        gathered.clear();
        for (seed, recent) in wanted {
            gathered.seed(*seed);
            let last = newest(recent).unwrap_or(seed.time());
            gathered.recent(recent, self.config.recent, |neighbour| last.since(neighbour.time()));
            gathered.window(&[]);
        }
        let (mut tape, equations) =
            (workspace.infer(parameters), self.equations(parameters, false));
        let offsets = tape.indices(gathered.offsets.iter().copied());
        let positions = (self.config.variant != Variant::NoPosition).then(|| {
            let approximate = equations.approximate(&mut tape, gathered, state, runs);
            let rows = Some(tape.indices(gathered.partners.iter().copied()));
            let own = tape.indices(gathered.own.iter().copied());
            (
                tape.segment_sum(approximate, Segments { rows, offsets }, Weighting::Sum),
                tape.gather(approximate, own),
            )
        });
        let feature_width = feature_width(&self.config, past);
        let link_sum = tape.parameter(self.weights.link_sum);
        let features = (feature_width > 0).then(|| {
            let (table, rows) =
                edge_features(&mut tape, past, &gathered.recent).expect("the stream has features");
            let rows = Some(rows);
            let slots = Some(tape.indices(gathered.slots.iter().copied()));
            tape.segment_sum(
                table,
                Segments { rows, offsets },
                Weighting::By { weights: link_sum, slots },
            )
        });
        let layout = Layout::new(&self.config, feature_width);
        let frequencies: Vec<f64> = self.config.frequencies().collect();
        let link_sum = tape.value(link_sum).to_vec();
        let weights: Vec<f32> =
            gathered.slots.iter().map(|&slot| link_sum[slot as usize]).collect();
        let positions = positions.map(|(partners, own)| (tape.value(partners), tape.value(own)));
        let features = features.map(|features| tape.value(features));
        wanted
            .par_iter()
            .enumerate()
            .with_min_len(16)
            .map(|(number, (_, recent))| {
                let mut numbers = vec![0.0; layout.own.end].into_boxed_slice();
                let events =
                    gathered.offsets[number] as usize..gathered.offsets[number + 1] as usize;
                let (ages, weights) = (&gathered.ages[events.clone()], &weights[events]);
                wave_sums(ages, weights, &frequencies, &mut numbers[layout.waves.clone()]);
                if let Some((partners, own)) = positions {
                    numbers[layout.partners.clone()].copy_from_slice(partners.row(number));
                    numbers[layout.own.clone()].copy_from_slice(own.row(number));
                }
                if let Some(features) = features {
                    numbers[layout.features.clone()].copy_from_slice(features.row(number));
                }
                Arc::new(Digest { newest: newest(recent), numbers })
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::Lstep;
    use super::super::tests::{Way, scores_by};
    use super::*;
    use crate::event::{Event, Events, Features};
    use crate::graph::EventLog;
    use crate::model::{CompositeState, Mlp, Model, StreamInfo};

    type State = CompositeState<LstepEncoder, Mlp>;
    use crate::query::{Queries, Scores};
    use crate::read::synthetic::{SyntheticConfig, generate};

    const SEEN: u32 = 300;

    fn log(features: u32) -> EventLog {
        let stream =
            SyntheticConfig { nodes: 40, events: 400, features, ..SyntheticConfig::default() };
        EventLog::new(generate(&stream).expect("a stream").events)
    }

    fn model(variant: Variant) -> Lstep {
        let mut config = LstepConfig { variant, ..LstepConfig::pair() };
        config.pair.as_mut().expect("it sees the pair").positions = variant != Variant::NoPosition;
        Lstep::new(config, 7).expect("settings are right")
    }

    fn observed(model: &Lstep, log: &EventLog) -> State {
        let times = log.events().times();
        let mut state = model.begin(&StreamInfo::new(40, (times[0], times[SEEN as usize])));
        for step in log.events().iter().take(SEEN as usize).collect::<Vec<Event>>().chunks(50) {
            model.observe(log.revealed(step[49].number + 1), &mut state, step).expect("observed");
        }
        state
    }

    /// Sources of later events, each against some nodes, one of which nobody has met.
    fn questions(log: &EventLog) -> Queries {
        let mut ask = Queries::new();
        for event in log.events().iter().skip(SEEN as usize) {
            ask.push(
                event.source,
                event.time,
                (0..6).map(|k| NodeId((event.number * 7 + k * 11) % 41)),
            );
        }
        ask
    }

    fn score(model: &Lstep, log: &EventLog, state: &State, ask: &Queries) -> Scores {
        model.score(log.past(SEEN), state, ask).expect("scored")
    }

    #[test]
    fn digests_score_as_the_events_they_stand_for() {
        for features in [0, 3] {
            for variant in [Variant::Full, Variant::PositionOnly, Variant::NoPosition] {
                let (log, model) = (log(features), model(variant));
                let state = observed(&model, &log);
                let ask = questions(&log);
                let (digested, plain) = (
                    score(&model, &log, &state, &ask),
                    scores_by(&model, log.past(SEEN), &state, &ask, Way::Events),
                );
                let largest = plain.iter().fold(0.0f64, |largest, logit| largest.max(logit.abs()));
                for (digested, plain) in digested.values().iter().zip(&plain) {
                    assert!(
                        (digested - plain).abs() < 1e-5 * largest,
                        "{variant:?}: {digested} and {plain}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_step_that_comes_between_changes_what_is_remembered() {
        for variant in [Variant::Full, Variant::NoPosition] {
            let (log, model) = (log(2), model(variant));
            let mut state = observed(&model, &log);
            let before = score(&model, &log, &state, &questions(&log));
            let step: Vec<Event> = log.events().iter().skip(SEEN as usize).take(50).collect();
            model.observe(log.revealed(SEEN + 50), &mut state, &step).expect("observed");
            let ask = questions(&log);
            let now =
                |state: &State| model.score(log.past(SEEN + 50), state, &ask).expect("scored");
            let after = now(&state);
            assert_eq!(after, now(&state.clone()), "{variant:?}");
            assert_ne!(after, before, "{variant:?}: the step counts");
        }
    }

    #[test]
    fn a_node_asked_before_and_after_a_meeting_has_a_digest_for_each() {
        let (log, model) = (log(2), model(Variant::Full));
        let state = observed(&model, &log);
        let event = log.events().at(SEEN as usize - 1);
        let after = Time::new(event.time.value() + 1.0).expect("finite");
        let ask = |times: &[Time]| {
            let mut ask = Queries::new();
            times.iter().for_each(|&time| ask.push(event.source, time, [event.destination]));
            score(&model, &log, &state.clone(), &ask).values().to_vec()
        };
        let together = ask(&[event.time, after]);
        assert_eq!(together, [ask(&[event.time]), ask(&[after])].concat());
        assert_ne!(together[0], together[1], "the meeting counts");
    }

    #[test]
    fn what_is_remembered_changes_no_bit_and_holds_for_its_log_only() {
        let (log, model) = (log(2), model(Variant::Full));
        let state = observed(&model, &log);
        let ask = questions(&log);
        let first = score(&model, &log, &state, &ask);
        assert_eq!(score(&model, &log, &state, &ask), first, "remembered");
        assert_eq!(score(&model, &log, &state.clone(), &ask), first, "made anew");
        // The same events by number and time, with other features.
        let events = log.events();
        let other = Features::new(2, events.features().values().iter().map(|x| 1.0 - x).collect())
            .expect("finite");
        let columns =
            (events.sources().to_vec(), events.destinations().to_vec(), events.times().to_vec());
        let other =
            EventLog::new(Events::new(columns.0, columns.1, columns.2, other).expect("in order"));
        let there = score(&model, &other, &state, &ask);
        assert_eq!(there, score(&model, &other, &state.clone(), &ask));
        assert_ne!(there, first, "features count");
    }
}
