//! Candidates that did not happen: what they are, and how the stream protocol draws them.
//!
//! A step covers the times [a, b] of its events. A negative is no pair that meets in that interval,
//! save where nothing else is left: a source that meets every destination in every step. Such
//! negatives are counted, and the numbers made with them say little.
//! - `random`: the true source with another destination of the stream.
//! - `historical`: a pair that met before the step. It has its own source and is asked at the true
//!   event's time.
//! - `inductive`: a pair that met before the step, but not before the part (validation or test)
//!   began.
//!
//! Where history has too few pairs, random pairs fill up, and the count is kept. Nothing here lists
//! all pairs of nodes: distinct pairs are met once in the order of the stream, so "before the step"
//! is a prefix of a list, "before the part" a shorter one, and "meets in [a, b]" is one comparison
//! with the pair's newest time. The cost of a step grows with the step.

use super::eval_pass::{Part, Setting};
use super::split::Split;
use crate::error::{Error, Remedy, Result};
use crate::event::{Event, Events, NodeId, RowEnds, Time, pair_key};
use crate::rng::KeyedRng;
use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::Range;

/// How negatives are chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Strategy {
    /// The true source with a destination drawn at random.
    Random,
    /// Pairs of the past.
    Historical,
    /// Pairs of the past that training and selection have not seen.
    Inductive,
    /// The benchmark's own list for each event: half from the source's past, half at random.
    Tgb,
}

impl std::fmt::Display for Strategy {
    /// As files and the command line write it.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Strategy::Random => "random",
            Strategy::Historical => "historical",
            Strategy::Inductive => "inductive",
            Strategy::Tgb => "tgb",
        })
    }
}

/// For each event asked, the candidates that did not happen.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Negatives {
    rows: RowEnds,
    /// Absent where every negative has the true event's source.
    sources: Option<Vec<NodeId>>,
    destinations: Vec<NodeId>,
    /// Whether they were drawn by TGB's rule because there was no file of them.
    pub generated: bool,
    /// How many were drawn at random because history had too few pairs.
    pub filled: usize,
    /// How many meet in their own step after all, because nothing else was left.
    pub meeting: usize,
}

impl Negatives {
    /// Negatives that all have the true event's source.
    pub fn of_destinations() -> Negatives {
        Negatives::default()
    }

    /// Negatives with sources of their own.
    pub fn of_pairs() -> Negatives {
        Negatives { sources: Some(Vec::new()), ..Negatives::default() }
    }

    /// Adds the row of the next event, all with the true event's source.
    ///
    /// # Panics
    /// If these negatives have sources of their own.
    pub fn push_destinations(&mut self, destinations: impl IntoIterator<Item = NodeId>) {
        assert!(self.sources.is_none(), "these negatives have sources of their own");
        self.destinations.extend(destinations);
        self.rows.push(self.destinations.len());
    }

    /// Adds the row of the next event, with sources of their own.
    ///
    /// # Panics
    /// If these negatives have the true event's source.
    pub fn push_pairs(&mut self, pairs: impl IntoIterator<Item = (NodeId, NodeId)>) {
        let sources = self.sources.as_mut().expect("these negatives have the true event's source");
        for (source, destination) in pairs {
            sources.push(source);
            self.destinations.push(destination);
        }
        self.rows.push(self.destinations.len());
    }

    /// How many rows, one for each event asked.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.len() == 0
    }

    /// How many negatives in all rows together.
    pub fn pairs(&self) -> usize {
        self.destinations.len()
    }

    /// Whether every row has just one negative, so that ranks say nothing.
    pub fn one_each(&self) -> bool {
        self.rows.one_each()
    }

    /// A row: the sources, unless they are the true event's, and the destinations.
    pub fn row(&self, row: usize) -> (Option<&[NodeId]>, &[NodeId]) {
        let span = self.rows.span(row);
        (self.sources.as_ref().map(|sources| &sources[span.clone()]), &self.destinations[span])
    }
}

/// Draws the stream protocol's negatives for one part and setting.
pub struct StreamSampler<'a> {
    /// The whole stream.
    pub events: &'a Events,
    /// Its split.
    pub split: &'a Split,
    /// The part asked about.
    pub part: Part,
    /// Which of its events are asked. In the inductive setting historical pairs, too, have a node
    /// that is new.
    pub setting: Setting,
    /// The seed of all draws.
    pub seed: u64,
    /// Negatives for each event; more than there are destinations means all of them.
    pub per_event: usize,
    /// At most how many events are asked, spread evenly over the part.
    pub questions: Option<usize>,
}

impl StreamSampler<'_> {
    /// The events asked in each step, and for each strategy their negatives. One pass over the
    /// stream serves all strategies.
    pub fn sample(
        &self,
        strategies: &[Strategy],
        steps: &[Range<u32>],
    ) -> Result<(Vec<Vec<u32>>, Vec<Negatives>)> {
        let pool = |column: &[NodeId]| self.events.by_appearance(column.iter().copied());
        let (sources, destinations) =
            (pool(self.events.sources()), pool(self.events.destinations()));
        if destinations.len() < 2 {
            return Err(Error::TooFew {
                what: "destinations",
                found: destinations.len().to_string(),
                remedy: Remedy::text(
                    "with fewer than two there is nothing to choose between: give a stream with \
                     more destinations",
                ),
            });
        }
        let empty = |strategy: &Strategy| match strategy {
            Strategy::Random => Ok(Negatives::of_destinations()),
            Strategy::Historical | Strategy::Inductive => Ok(Negatives::of_pairs()),
            Strategy::Tgb => Err(Error::setting("negatives", "tgb", Remedy::UseProtocol("tgb"))),
        };
        let mut drawn = strategies.iter().map(empty).collect::<Result<Vec<Negatives>>>()?;
        let per_event = self.per_event.min(destinations.len());
        let mut meetings = PairMeetings::default();
        let mut asked = Vec::with_capacity(steps.len());
        let events_of = |step: &Range<u32>| step.clone().map(|n| self.events.at(n as usize));
        let mut chosen = {
            let eligible =
                steps.iter().flat_map(events_of).filter(|event| self.asks(*event)).count();
            evenly(self.questions.unwrap_or(eligible), eligible)
        };
        for step in steps {
            let rows: Vec<Event> =
                events_of(step).filter(|event| self.asks(*event) && chosen()).collect();
            asked.push(rows.iter().map(|event| event.number).collect());
            if rows.is_empty() {
                continue;
            }
            let (from, until) = (
                self.events.times()[step.start as usize],
                self.events.times()[step.end as usize - 1],
            );
            meetings.advance(self, until);
            let free = |source, destination| {
                meetings.newest(source, destination).is_none_or(|time| time < from)
            };
            for (&strategy, negatives) in strategies.iter().zip(&mut drawn) {
                if strategy == Strategy::Random {
                    for event in &rows {
                        let others =
                            self.other_destinations(event, per_event, &destinations, &free);
                        negatives.meeting +=
                            others.iter().filter(|node| !free(event.source, **node)).count();
                        negatives.push_destinations(others);
                    }
                    continue;
                }
                let since = if strategy == Strategy::Inductive {
                    self.split.range(self.part).start
                } else {
                    0
                };
                let mut draw =
                    KeyedRng::new(&[self.seed, 0x41 + strategy as u64, u64::from(step.start)]);
                let wanted = rows.len() * per_event;
                let mut pairs = meetings.draw_before(step.start, since, from, wanted, &mut draw);
                negatives.filled += wanted - pairs.len();
                while pairs.len() < wanted {
                    let pair = random_pair(&sources, &destinations, &free, &mut draw);
                    negatives.meeting += usize::from(!free(pair.0, pair.1));
                    pairs.push(pair);
                }
                for row in pairs.chunks(per_event) {
                    negatives.push_pairs(row.iter().copied());
                }
            }
        }
        Ok((asked, drawn))
    }

    fn asks(&self, event: Event) -> bool {
        self.setting == Setting::Transductive || self.split.has_new_node(event)
    }

    /// Distinct destinations that the event's source does not meet in the step; its own draw,
    /// whatever the step.
    fn other_destinations(
        &self,
        event: &Event,
        count: usize,
        pool: &[NodeId],
        free: &impl Fn(NodeId, NodeId) -> bool,
    ) -> Vec<NodeId> {
        let mut draw = KeyedRng::new(&[self.seed, 0x40, u64::from(event.number)]);
        let eligible = |node: NodeId| node != event.destination && free(event.source, node);
        if count * 2 < pool.len() {
            let mut chosen = Vec::with_capacity(count);
            let mut taken = FxHashSet::default();
            for _ in 0..count * 8 + 64 {
                let node = pool[draw.below(pool.len() as u64) as usize];
                if eligible(node) && taken.insert(node) {
                    chosen.push(node);
                    if chosen.len() == count {
                        return chosen;
                    }
                }
            }
        }
        // A source that meets nearly everybody, or a question against everybody: look at each
        // destination once.
        let mut all: Vec<NodeId> = pool.iter().copied().filter(|node| eligible(*node)).collect();
        if all.is_empty() {
            all = pool.iter().copied().filter(|node| *node != event.destination).collect();
        }
        shuffle_front(&mut all, count, &mut draw);
        all.truncate(count);
        all
    }
}

/// Says of each of `all` in turn whether it is one of `some` that are spread evenly over them.
pub(crate) fn evenly(some: usize, all: usize) -> impl FnMut() -> bool {
    let some = some.min(all);
    let mut taken = 0;
    move || {
        taken += some;
        let take = taken >= all;
        if take {
            taken -= all;
        }
        take
    }
}

/// Distinct pairs in the order of their first meeting, with their newest time, as far as the stream
/// has been followed.
#[derive(Default)]
struct PairMeetings {
    followed: usize,
    newest: FxHashMap<u64, Time>,
    /// The pairs that the setting may draw, and the number of the event at which each met first.
    drawable: Vec<(NodeId, NodeId)>,
    drawable_first: Vec<u32>,
}

impl PairMeetings {
    /// Follows the stream up to and including a time. O(1) for each event, once.
    fn advance(&mut self, sampler: &StreamSampler<'_>, until: Time) {
        let events = sampler.events;
        while self.followed < events.len() && events.times()[self.followed] <= until {
            let event = events.at(self.followed);
            self.followed += 1;
            let first =
                self.newest.insert(pair_key(event.source, event.destination), event.time).is_none();
            if first && sampler.asks(event) {
                self.drawable.push((event.source, event.destination));
                self.drawable_first.push(event.number);
            }
        }
    }

    fn newest(&self, source: NodeId, destination: NodeId) -> Option<Time> {
        self.newest.get(&pair_key(source, destination)).copied()
    }

    /// Up to `wanted` distinct pairs that met first in events [since, before), and do not meet at
    /// `from` or later.
    fn draw_before(
        &self,
        before: u32,
        since: u32,
        from: Time,
        wanted: usize,
        draw: &mut KeyedRng,
    ) -> Vec<(NodeId, NodeId)> {
        let place = |event: u32| self.drawable_first.partition_point(|&first| first < event);
        let pool = &self.drawable[place(since)..place(before)];
        let free =
            |pair: &(NodeId, NodeId)| self.newest(pair.0, pair.1).is_some_and(|time| time < from);
        if pool.len() > 4 * wanted {
            let mut chosen = Vec::with_capacity(wanted);
            let mut taken = FxHashSet::default();
            for _ in 0..8 * wanted + 64 {
                let place = draw.below(pool.len() as u64) as usize;
                if free(&pool[place]) && taken.insert(place) {
                    chosen.push(pool[place]);
                    if chosen.len() == wanted {
                        return chosen;
                    }
                }
            }
        }
        // A small pool, or one that meets in this very interval for the most part: then it is no
        // larger than a few such intervals.
        let mut all: Vec<(NodeId, NodeId)> = pool.iter().copied().filter(free).collect();
        shuffle_front(&mut all, wanted, draw);
        all.truncate(wanted);
        all
    }
}

fn random_pair(
    sources: &[NodeId],
    destinations: &[NodeId],
    free: &impl Fn(NodeId, NodeId) -> bool,
    draw: &mut KeyedRng,
) -> (NodeId, NodeId) {
    let mut pair = (sources[0], destinations[0]);
    for _ in 0..64 {
        pair.0 = sources[draw.below(sources.len() as u64) as usize];
        pair.1 = destinations[draw.below(destinations.len() as u64) as usize];
        if free(pair.0, pair.1) {
            break;
        }
    }
    pair
}

/// Brings a random sample of `count` elements, in random order, to the front.
fn shuffle_front<T>(all: &mut [T], count: usize, draw: &mut KeyedRng) {
    for place in 0..count.min(all.len()) {
        let other = place + draw.below((all.len() - place) as u64) as usize;
        all.swap(place, other);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::step::{StepRule, Visibility, cut};
    use proptest::prelude::{any, prop, prop_assert, prop_assert_eq, proptest};

    fn stream(rows: &[(u32, u32, u32)]) -> Events {
        lstep_testkit::stream!(rows.iter().map(|&(source, to, time)| (source, to + 50, time)))
    }

    /// Asks all test events, each against one negative.
    fn of_test<'a>(events: &'a Events, split: &'a Split) -> StreamSampler<'a> {
        let (part, setting) = (Part::Test, Setting::Transductive);
        StreamSampler { events, split, part, setting, seed: 5, per_event: 1, questions: None }
    }

    proptest! {
        #[test]
        fn negatives_are_what_their_names_say(
            rows in prop::collection::vec((0u32..9, 0u32..9, 0u32..60), 80..300),
            seed in 0u64..99, per_event in 1usize..4, inductive in any::<bool>(), validation in any::<bool>(),
        ) {
            let events = stream(&rows);
            let Ok(split) = Split::chronological(&events, 0.6, 0.8) else { return Ok(()) };
            let (part, range) = if validation {
                (Part::Validation, split.validation.clone())
            } else {
                (Part::Test, split.test.clone())
            };
            let setting = if inductive { Setting::Inductive } else { Setting::Transductive };
            let steps = cut(&events, range.clone(), StepRule::Events(11), Visibility::Event);
            let sampler = StreamSampler { events: &events, split: &split, part, setting, seed, per_event, questions: None };
            let strategies = [Strategy::Random, Strategy::Historical, Strategy::Inductive];
            let (asked, drawn) = sampler.sample(&strategies, &steps).expect("enough destinations");
            for (strategy, negatives) in strategies.into_iter().zip(drawn) {
                prop_assert_eq!(&sampler.sample(&[strategy], &steps).expect("again").1[0], &negatives);
                let (mut row, mut not_of_history, mut meeting) = (0, 0, 0);
                for (step, asked) in steps.iter().zip(&asked) {
                    let (from, until) = (events.at(step.start as usize).time, events.at(step.end as usize - 1).time);
                    let met = |pair, numbers: Range<u32>| numbers.into_iter().any(|n| {
                        let event = events.at(n as usize);
                        (event.source, event.destination) == pair
                    });
                    let in_interval = |pair| events.iter().any(|event| {
                        (event.source, event.destination) == pair && from <= event.time && event.time <= until
                    });
                    let mut drawn = FxHashSet::default();
                    for &number in asked {
                        let event = events.at(number as usize);
                        prop_assert!(setting == Setting::Transductive || split.has_new_node(event));
                        let (sources, destinations) = negatives.row(row);
                        row += 1;
                        if strategy == Strategy::Random {
                            prop_assert!(sources.is_none());
                            let distinct: FxHashSet<_> = destinations.iter().collect();
                            prop_assert_eq!(distinct.len(), destinations.len());
                            for &destination in destinations {
                                prop_assert!(destination != event.destination);
                                meeting += usize::from(in_interval((event.source, destination)));
                            }
                            continue;
                        }
                        prop_assert_eq!(destinations.len(), per_event);
                        for (&source, &destination) in sources.expect("pairs").iter().zip(destinations) {
                            let pair = (source, destination);
                            let before_part = met(pair, 0..range.start);
                            let historical = met(pair, 0..step.start) && !in_interval(pair)
                                && (strategy == Strategy::Historical || !before_part)
                                && drawn.insert(pair);
                            not_of_history += usize::from(!historical);
                            meeting += usize::from(in_interval(pair));
                        }
                    }
                }
                prop_assert_eq!(row, negatives.len());
                prop_assert_eq!(meeting, negatives.meeting);
                prop_assert!(not_of_history <= negatives.filled, "{not_of_history} > {}", negatives.filled);
            }
        }
    }

    #[test]
    fn asking_for_more_than_there_are_gives_every_other_destination() {
        let rows: Vec<(u32, u32, u32)> = (0..40).map(|n| (0, n % 8, n)).collect();
        let events = stream(&rows);
        let split = Split::chronological(&events, 0.7, 0.85).expect("parts");
        let sampler = StreamSampler { per_event: usize::MAX, ..of_test(&events, &split) };
        let steps = cut(&events, split.test.clone(), StepRule::Events(1), Visibility::Event);
        let (_, negatives) =
            sampler.sample(&[Strategy::Random], &steps).expect("eight destinations");
        assert!((0..negatives[0].len()).all(|row| negatives[0].row(row).1.len() == 7));
    }

    #[test]
    fn a_random_negative_does_not_depend_on_the_step_size() {
        let rows: Vec<(u32, u32, u32)> = (0..300).map(|n| (n % 7, n % 50, n)).collect();
        let events = stream(&rows);
        let split = Split::chronological(&events, 0.7, 0.85).expect("parts");
        let sample = |size| {
            let sampler = of_test(&events, &split);
            let steps = cut(&events, split.test.clone(), StepRule::Events(size), Visibility::Event);
            sampler.sample(&[Strategy::Random], &steps).expect("destinations").1.remove(0)
        };
        let (one, five) = (sample(1), sample(5));
        let same = (0..one.len()).filter(|&row| one.row(row) == five.row(row)).count();
        assert!(
            same * 10 > one.len() * 7,
            "{same} of {}: only what meets in the interval may differ",
            one.len()
        );
    }

    #[test]
    fn some_questions_are_spread_evenly_and_are_those_of_the_whole() {
        let rows: Vec<(u32, u32, u32)> = (0..400).map(|n| (n % 7, n % 50, n)).collect();
        let events = stream(&rows);
        let split = Split::chronological(&events, 0.5, 0.75).expect("parts");
        let steps = cut(&events, split.test.clone(), StepRule::Events(20), Visibility::Event);
        let sample = |questions| {
            let sampler = StreamSampler { per_event: 3, questions, ..of_test(&events, &split) };
            let (asked, mut drawn) =
                sampler.sample(&[Strategy::Random], &steps).expect("destinations");
            (asked.concat(), drawn.remove(0))
        };
        let ((all, of_all), (some, of_some)) = (sample(None), sample(Some(10)));
        assert_eq!((all.len(), some.len()), (100, 10));
        assert!(some.windows(2).all(|pair| pair[1] - pair[0] == 10), "{some:?}");
        for (row, number) in some.iter().enumerate() {
            let place = all.iter().position(|other| other == number).expect("one of all");
            assert_eq!(of_some.row(row), of_all.row(place));
        }
        assert_eq!(sample(Some(1_000)).0, all, "no more than there are");
    }
}
