//! DyGLib's negatives: random, historical and inductive, one for each event of a batch.
//!
//! Every part has its own seed and its own pool of events, and the stream of draws depends on the
//! batches: give the events of a part in order, in batches of the size to be compared with (200 in
//! DyGLib). The history of a batch grows with the stream; only the fall-back, when there is less
//! history than events, needs all pairs of the pool in memory.

use super::pyset::{Key, PySet};
use super::split::{EdgeColumns, EmulatedSplit, empty};
use crate::error::{Error, Result};
use crate::numpy::RandomState;
use std::ops::Range;

/// Where negatives come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EmulatedStrategy {
    /// The event's own source with any destination of the pool; may be a true event.
    Random,
    /// Pairs that occurred before the batch and not in it. The source is replaced, too.
    Historical,
    /// As historical, without the pairs that occurred before the evaluated part of the stream.
    Inductive,
}

/// The evaluated part of the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EmulatedPart {
    /// Validation, all events.
    Val,
    /// Validation, events with a new node.
    NewVal,
    /// Test, all events.
    Test,
    /// Test, events with a new node.
    NewTest,
}

impl EmulatedPart {
    /// The seed DyGLib gives this part's sampler.
    pub fn seed(self) -> u32 {
        match self {
            EmulatedPart::Val => 0,
            EmulatedPart::NewVal => 1,
            EmulatedPart::Test => 2,
            EmulatedPart::NewTest => 3,
        }
    }

    /// The events asked about.
    pub fn events(self, split: &EmulatedSplit) -> &[usize] {
        match self {
            EmulatedPart::Val => &split.val,
            EmulatedPart::NewVal => &split.new_val,
            EmulatedPart::Test => &split.test,
            EmulatedPart::NewTest => &split.new_test,
        }
    }
}

type Pair = (u32, u32);

/// Makes the negatives of one part under one strategy, batch by batch.
#[derive(Clone)]
pub struct Sampler<'a> {
    columns: EdgeColumns<'a>,
    strategy: EmulatedStrategy,
    seed: u32,
    state: RandomState,
    pool: Pool,
    /// The distinct pairs of the pool's first `history_rows` events.
    history: PySet<Pair>,
    history_rows: usize,
    observed: PySet<Pair>,
    grid: Option<Grid>,
}

impl<'a> Sampler<'a> {
    /// A sampler in its first state. The pool is the whole stream, for new nodes only the part's
    /// own events.
    ///
    /// Refuses a part without events, and the inductive strategy without a train or validation
    /// event before the part.
    pub fn new(
        columns: EdgeColumns<'a>,
        split: &EmulatedSplit,
        part: EmulatedPart,
        strategy: EmulatedStrategy,
    ) -> Result<Sampler<'a>> {
        let rows = part.events(split);
        if rows.is_empty() {
            return Err(empty(
                "evaluated",
                "the split left none there",
                "choose another part or a longer stream",
            ));
        }
        let pool = match part {
            EmulatedPart::Val | EmulatedPart::Test => Pool::new(columns, 0..columns.len()),
            EmulatedPart::NewVal | EmulatedPart::NewTest => {
                Pool::new(columns, rows.iter().copied())
            }
        };
        let mut observed = PySet::new();
        if strategy == EmulatedStrategy::Inductive {
            let before = match part {
                EmulatedPart::Val | EmulatedPart::NewVal => split.train.last(),
                EmulatedPart::Test | EmulatedPart::NewTest => split.val.last(),
            };
            let Some(&last) = before else {
                return Err(empty(
                    "train or val",
                    "nothing precedes the part",
                    "use another strategy",
                ));
            };
            observed.extend(pool.pairs[pool.until(columns.times[last])].iter().copied());
        }
        let (seed, history) = (part.seed(), PySet::new());
        let state = RandomState::new(seed);
        Ok(Sampler {
            columns,
            strategy,
            seed,
            state,
            pool,
            history,
            history_rows: 0,
            observed,
            grid: None,
        })
    }

    /// Begins again with the seed, as DyGLib does before every evaluation.
    pub fn reset(&mut self) {
        self.state = RandomState::new(self.seed);
    }

    /// The negatives of the next batch, as (source, destination), one for each of the events given
    /// by row.
    ///
    /// # Panics
    /// If a row is not one of the columns.
    pub fn negatives(&mut self, batch: &[usize]) -> Result<Vec<(i64, i64)>> {
        let (Some(&first), Some(&last)) = (batch.first(), batch.last()) else {
            return Ok(Vec::new());
        };
        if self.strategy == EmulatedStrategy::Random {
            // Sources are drawn and thrown away: the stream of draws has to move on.
            self.state.choice(self.pool.sources.len(), batch.len(), true);
            let drawn = self.state.choice(self.pool.destinations.len(), batch.len(), true);
            let pairs = batch.iter().zip(drawn);
            return Ok(pairs
                .map(|(&row, place)| {
                    (self.columns.sources[row], i64::from(self.pool.destinations[place]))
                })
                .collect());
        }
        let (start, end) = (self.columns.times[first], self.columns.times[last]);
        self.remember(start);
        let during: PySet<Pair> =
            self.pool.pairs[self.pool.between(start, end)].iter().copied().collect();
        let left: Vec<Pair> = match self.strategy {
            EmulatedStrategy::Inductive => {
                self.history.difference(&self.observed).difference(&during).iter().collect()
            }
            _ => self.history.difference(&during).iter().collect(),
        };
        let pairs = if batch.len() <= left.len() {
            self.state
                .choice(left.len(), batch.len(), false)
                .into_iter()
                .map(|place| left[place])
                .collect()
        } else {
            let mut pairs = self.fall_back(batch, batch.len() - left.len())?;
            pairs.extend(left);
            pairs
        };
        Ok(pairs
            .into_iter()
            .map(|(source, destination)| (i64::from(source), i64::from(destination)))
            .collect())
    }

    /// Lets the history hold the pool's events up to a time, inclusively.
    ///
    /// DyGLib makes this set anew for every batch, from the pool's rows in order. Those rows are a
    /// prefix of the pool, and a set's slots depend only on the sequence of its operations: adding
    /// a longer prefix is adding the shorter one and then going on, so the set that grows has the
    /// same slots.
    fn remember(&mut self, time: f64) {
        let rows = self.pool.until(time).end;
        if rows < self.history_rows {
            (self.history, self.history_rows) = (PySet::new(), 0);
        }
        self.history.extend(self.pool.pairs[self.history_rows..rows].iter().copied());
        self.history_rows = rows;
    }

    /// Random pairs of the pool's sources and destinations that are not in the batch.
    fn fall_back(&mut self, batch: &[usize], size: usize) -> Result<Vec<Pair>> {
        let grid = match self.grid.take() {
            Some(grid) => grid,
            None => Grid::new(&self.pool)?,
        };
        let others =
            grid.without(&batch.iter().map(|&row| pair(self.columns, row)).collect(), &self.pool);
        if others.len() == 0 {
            return Err(empty(
                "negative",
                "the batch holds every possible pair",
                "use smaller batches",
            ));
        }
        let places = self.state.choice(others.len(), size, others.len() < size);
        let pairs = places.into_iter().map(|place| others.at(place)).collect();
        self.grid = Some(grid);
        Ok(pairs)
    }
}

/// The events a sampler knows.
#[derive(Clone)]
struct Pool {
    pairs: Vec<Pair>,
    times: Vec<f64>,
    /// Distinct, ascending.
    sources: Vec<u32>,
    /// Distinct, ascending.
    destinations: Vec<u32>,
}

impl Pool {
    fn new(columns: EdgeColumns<'_>, rows: impl Iterator<Item = usize> + Clone) -> Pool {
        let pairs: Vec<Pair> = rows.clone().map(|row| pair(columns, row)).collect();
        let distinct = |side: fn(&Pair) -> u32| {
            let mut ids: Vec<u32> = pairs.iter().map(side).collect();
            ids.sort_unstable();
            ids.dedup();
            ids
        };
        let (sources, destinations) = (distinct(|pair| pair.0), distinct(|pair| pair.1));
        Pool { times: rows.map(|row| columns.times[row]).collect(), pairs, sources, destinations }
    }

    /// Rows up to a time, inclusively.
    fn until(&self, time: f64) -> Range<usize> {
        0..self.times.partition_point(|&other| other <= time)
    }

    /// Rows between two times, both inclusively.
    fn between(&self, start: f64, end: f64) -> Range<usize> {
        self.times.partition_point(|&time| time < start)..self.until(end).end
    }
}

/// All pairs of a pool's sources and destinations, in the order from which differences are listed:
/// that of a copy of their set.
#[derive(Clone)]
enum Grid {
    /// Ids below 65,535.
    Narrow(Vec<(u16, u16)>),
    Wide(Vec<Pair>),
}

impl Grid {
    /// Most pairs this holds, about 5 GiB while it is made. The largest of DyGLib's own graphs,
    /// Flights, has 1.7e8.
    const MOST: usize = 1 << 28;

    fn new(pool: &Pool) -> Result<Grid> {
        let count = pool.sources.len().saturating_mul(pool.destinations.len());
        if count > Grid::MOST {
            let remedy =
                format!("this protocol needs all of them in memory, at most {}", Grid::MOST);
            return Err(Error::setting("number of possible pairs", count, remedy));
        }
        let narrow = |&id: &u32| u16::try_from(id).ok().filter(|&id| id != u16::MAX);
        let sides = [&pool.sources, &pool.destinations]
            .map(|ids| ids.iter().map(narrow).collect::<Option<Vec<u16>>>());
        Ok(match sides {
            [Some(sources), Some(destinations)] => {
                Grid::Narrow(copied_order(&sources, &destinations))
            }
            _ => Grid::Wide(copied_order(&pool.sources, &pool.destinations)),
        })
    }

    fn len(&self) -> usize {
        match self {
            Grid::Narrow(pairs) => pairs.len(),
            Grid::Wide(pairs) => pairs.len(),
        }
    }

    fn at(&self, place: usize) -> Pair {
        match self {
            Grid::Narrow(pairs) => (u32::from(pairs[place].0), u32::from(pairs[place].1)),
            Grid::Wide(pairs) => pairs[place],
        }
    }

    /// `list(all pairs - batch)` of a batch of these pairs, see [`PySet::difference`].
    fn without(&self, batch: &PySet<Pair>, pool: &Pool) -> Others<'_> {
        if self.len() >> 2 > batch.len() {
            let gaps = (0..self.len()).filter(|&place| batch.contains(self.at(place)));
            let gaps = gaps.enumerate().map(|(number, gap)| (gap, number)).collect();
            return Others::Gaps { grid: self, gaps };
        }
        // A grid that small is made again, in the order of the set itself.
        let all = all_pairs(&pool.sources, &pool.destinations).collect::<PySet<Pair>>();
        Others::List(all.difference(batch).iter().collect())
    }
}

/// What is left of a grid.
enum Others<'a> {
    /// The grid without some places, ascending and numbered.
    Gaps {
        grid: &'a Grid,
        gaps: Vec<(usize, usize)>,
    },
    List(Vec<Pair>),
}

impl Others<'_> {
    fn len(&self) -> usize {
        match self {
            Others::Gaps { grid, gaps } => grid.len() - gaps.len(),
            Others::List(pairs) => pairs.len(),
        }
    }

    fn at(&self, place: usize) -> Pair {
        match self {
            Others::Gaps { grid, gaps } => {
                // Before each gap lie as many places as it has, less the gaps before it.
                grid.at(place + gaps.partition_point(|&(gap, number)| gap - number <= place))
            }
            Others::List(pairs) => pairs[place],
        }
    }
}

fn all_pairs<I: Copy>(sources: &[I], destinations: &[I]) -> impl Iterator<Item = (I, I)> {
    sources.iter().flat_map(|&source| destinations.iter().map(move |&other| (source, other)))
}

fn copied_order<I: Copy>(sources: &[I], destinations: &[I]) -> Vec<(I, I)>
where
    (I, I): Key,
{
    all_pairs(sources, destinations).collect::<PySet<(I, I)>>().into_copy().iter().collect()
}

fn pair(columns: EdgeColumns<'_>, row: usize) -> Pair {
    let id = |id: i64| u32::try_from(id).expect("columns refuse larger ids");
    (id(columns.sources[row]), id(columns.destinations[row]))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A small stream with repeats, few enough pairs that every branch is taken.
    fn stream(nodes: i64, events: i64) -> (Vec<i64>, Vec<i64>, Vec<f64>) {
        let mut state = RandomState::new(9);
        let mut column =
            || (0..events).map(|_| state.below(nodes as usize) as i64 + 1).collect::<Vec<i64>>();
        (column(), column(), (0..events).map(|row| (row / 3) as f64).collect())
    }

    #[test]
    fn a_history_that_grows_gives_the_negatives_of_one_made_anew() {
        let (sources, destinations, times) = stream(60, 3000);
        let columns = EdgeColumns::new(&sources, &destinations, &times).expect("sorted");
        let split = EmulatedSplit::new(columns).expect("late nodes");
        for strategy in [EmulatedStrategy::Historical, EmulatedStrategy::Inductive] {
            for part in
                [EmulatedPart::Val, EmulatedPart::NewVal, EmulatedPart::Test, EmulatedPart::NewTest]
            {
                let mut grows = Sampler::new(columns, &split, part, strategy).expect("events");
                let mut anew = grows.clone();
                for batch in part.events(&split).chunks(50) {
                    (anew.history, anew.history_rows) = (PySet::new(), 0);
                    assert_eq!(
                        grows.negatives(batch).expect("pairs"),
                        anew.negatives(batch).expect("pairs")
                    );
                }
            }
        }
    }

    #[test]
    fn all_pairs_without_a_batch_are_the_difference_of_sets() {
        for nodes in [3, 20, 40] {
            let (sources, destinations, times) = stream(nodes, 2000);
            let columns = EdgeColumns::new(&sources, &destinations, &times).expect("sorted");
            let pool = Pool::new(columns, 0..columns.len());
            let all: PySet<Pair> = pool
                .sources
                .iter()
                .flat_map(|&a| pool.destinations.iter().map(move |&b| (a, b)))
                .collect();
            for size in [1, 20, 200] {
                let batch: PySet<Pair> = pool.pairs[..size].iter().copied().collect();
                let plain: Vec<Pair> = all.difference(&batch).iter().collect();
                let wide = Grid::Wide(copied_order(&pool.sources, &pool.destinations));
                for grid in [Grid::new(&pool).expect("small"), wide] {
                    let others = grid.without(&batch, &pool);
                    assert_eq!(
                        (0..others.len()).map(|place| others.at(place)).collect::<Vec<_>>(),
                        plain
                    );
                }
            }
        }
    }

    #[test]
    fn a_reset_sampler_repeats_itself() {
        let (sources, destinations, times) = stream(60, 3000);
        let columns = EdgeColumns::new(&sources, &destinations, &times).expect("sorted");
        let split = EmulatedSplit::new(columns).expect("late nodes");
        for strategy in
            [EmulatedStrategy::Random, EmulatedStrategy::Historical, EmulatedStrategy::Inductive]
        {
            let mut sampler =
                Sampler::new(columns, &split, EmulatedPart::Test, strategy).expect("events");
            let mut pass = || {
                sampler.reset();
                split
                    .test
                    .chunks(70)
                    .flat_map(|batch| sampler.negatives(batch).expect("pairs"))
                    .collect::<Vec<_>>()
            };
            let first = pass();
            assert_eq!(first.len(), split.test.len());
            assert_eq!(first, pass());
        }
    }

    #[test]
    fn a_part_without_events_is_refused() {
        let (sources, destinations, _) = stream(60, 30);
        let times: Vec<f64> = (0..30).map(|row| f64::from(row >= 24)).collect();
        let columns = EdgeColumns::new(&sources, &destinations, &times).expect("sorted");
        let split = EmulatedSplit::new(columns).expect("late nodes");
        assert!(
            Sampler::new(columns, &split, EmulatedPart::Test, EmulatedStrategy::Random).is_err()
        );
    }
}
