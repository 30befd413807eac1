//! What the counting models share: a table of pairs, scoring candidate by candidate, and how a run
//! keeps them.
//!
//! A run of a counting model has a state and no weights. Its training pass observes the events and
//! learns nothing, so it is evaluated, exported, asked and updated like any other run.

use super::trainer::{TrainBatch, TrainStep, Trainer};
use super::{Diagnostic, Joined, Model, Pace, Session, StreamInfo};
use crate::checkpoint::{Checkpoint, impossible};
use crate::error::Result;
use crate::event::{Event, NodeId, pair_key};
use crate::graph::{Past, Revealed};
use crate::query::{Queries, Row, Scores};
use lstep_tensor::Gradients;
use rayon::prelude::*;
use rustc_hash::FxHashMap;
use std::ops::Range;
use std::sync::Arc;

/// Something remembered of each pair that has met.
pub(super) type PairTable<T> = FxHashMap<u64, T>;

/// Rows with fewer candidates than this in all are not worth waking threads for.
const PARALLEL_FROM: usize = 8_192;

/// Scores each candidate by itself. Parallel over candidates when there are many; the result is the
/// same either way.
pub(super) fn score_each(
    ask: &Queries,
    score: impl Fn(Row<'_>, NodeId) -> f64 + Sync,
) -> Result<Scores> {
    let mut values = vec![0.0; ask.pairs()];
    let fill = |row: Row<'_>, slots: &mut [f64]| {
        for (slot, &candidate) in slots.iter_mut().zip(row.candidates) {
            *slot = score(row, candidate);
        }
    };
    if ask.pairs() < PARALLEL_FROM {
        let mut rest = values.as_mut_slice();
        for row in ask.rows() {
            let (slots, later) = rest.split_at_mut(row.candidates.len());
            fill(row, slots);
            rest = later;
        }
    } else {
        let mut rest = values.as_mut_slice();
        let mut slots_of_rows = Vec::with_capacity(ask.len());
        for row in ask.rows() {
            let (slots, later) = rest.split_at_mut(row.candidates.len());
            slots_of_rows.push((row, slots));
            rest = later;
        }
        slots_of_rows.into_par_iter().with_min_len(4).for_each(|(row, slots)| fill(row, slots));
    }
    Scores::new(ask, values)
}

/// A model that only counts, and whose counts can be kept.
pub trait Counting: Model + Clone {
    /// Writes the state into a checkpoint.
    fn save_state<'a>(&self, state: &'a Self::State, checkpoint: &mut Checkpoint<'a>);

    /// Reads the state that [`Counting::save_state`] wrote.
    fn load_state(&self, info: &StreamInfo, checkpoint: &Checkpoint<'_>) -> Result<Self::State>;
}

/// Joins a counting model with the state before the first event, as a trainer that learns nothing.
pub fn counting_trainer<M: Counting + 'static>(model: M, info: &StreamInfo) -> Box<dyn Trainer> {
    let state = model.begin(info);
    let joined = Joined { model: Arc::new(model), state };
    Box::new(CountingTrainer { joined, info: info.clone() })
}

struct CountingTrainer<M: Counting> {
    joined: Joined<M>,
    info: StreamInfo,
}

impl<M: Counting + 'static> Session for CountingTrainer<M> {
    fn pace(&self) -> Pace {
        self.joined.pace()
    }

    fn score(&self, past: Past<'_>, ask: &Queries) -> Result<Scores> {
        self.joined.score(past, ask)
    }

    fn observe(&mut self, known: Revealed<'_>, step: &[Event]) -> Result<()> {
        self.joined.observe(known, step)
    }

    fn describe(&self) -> Vec<Diagnostic> {
        self.joined.describe()
    }

    fn fork(&self) -> Box<dyn Session> {
        self.joined.fork()
    }
}

impl<M: Counting + 'static> Trainer for CountingTrainer<M> {
    fn lanes(&self, _: TrainBatch<'_>) -> usize {
        1
    }

    fn gradients(
        &mut self,
        step: TrainStep<'_>,
        _: Range<usize>,
        _: usize,
    ) -> Result<Option<Vec<f64>>> {
        self.joined.observe(step.known, step.batch.events)?;
        Ok(None)
    }

    fn lane_gradients(&mut self) -> &mut [Gradients] {
        &mut []
    }

    fn apply(&mut self, _: f64) {}

    fn swap_ema(&mut self) {}

    fn set_lr_scale(&mut self, _: f64) {}

    fn reset_state(&mut self) {
        self.joined.state = self.joined.model.begin(&self.info);
    }

    fn start_epoch(&mut self, epoch: u32) {
        self.joined.state = self.joined.model.begin_epoch(&self.info, epoch);
    }

    fn weights(&self) -> usize {
        0
    }

    fn save<'a>(&'a self, checkpoint: &mut Checkpoint<'a>) {
        self.joined.model.save_state(&self.joined.state, checkpoint);
    }

    fn load(&mut self, checkpoint: Checkpoint<'_>) -> Result<()> {
        self.joined.state = self.joined.model.load_state(&self.info, &checkpoint)?;
        Ok(())
    }
}

/// The pairs of a table in order: hash order never reaches a file.
pub(super) fn sorted<T: Copy>(pairs: &PairTable<T>) -> Vec<(u64, T)> {
    let mut all: Vec<(u64, T)> = pairs.iter().map(|(&pair, &value)| (pair, value)).collect();
    all.sort_unstable_by_key(|(pair, _)| *pair);
    all
}

/// Keeps who the pairs of a table are.
pub(super) fn save_pairs<T: Copy>(pairs: &[(u64, T)], checkpoint: &mut Checkpoint<'_>) {
    let side = |shift: u32| pairs.iter().map(|(pair, _)| (pair >> shift) as u32).collect();
    let (sources, destinations): (Vec<u32>, Vec<u32>) = (side(32), side(0));
    checkpoint.push_u32("pairs.sources", sources);
    checkpoint.push_u32("pairs.destinations", destinations);
}

/// The pairs that [`save_pairs`] wrote, with what `value` gives for each place.
pub(super) fn load_pairs<T>(
    checkpoint: &Checkpoint<'_>,
    value: impl Fn(usize) -> T,
) -> Result<PairTable<T>> {
    let sources = checkpoint.nodes("pairs.sources")?;
    let destinations = checkpoint.nodes("pairs.destinations")?;
    same_length("pairs.destinations", destinations.len(), sources.len())?;
    let keys = sources.iter().zip(&destinations).map(|(&a, &b)| pair_key(a, b));
    if !keys.clone().is_sorted_by(|a, b| a < b) {
        return Err(impossible("has pairs that are not each there once and in order"));
    }
    Ok(keys.enumerate().map(|(place, key)| (key, value(place))).collect())
}

/// Refuses columns of different lengths.
pub(super) fn same_length(name: &str, found: usize, wanted: usize) -> Result<()> {
    if found == wanted {
        return Ok(());
    }
    Err(impossible(format!("has {found} numbers as {name:?}, and {wanted} are needed")))
}

/// Refuses a count of nodes that the stream does not have.
pub(super) fn within_the_stream(
    name: &str,
    found: usize,
    info: &StreamInfo,
    checkpoint: &Checkpoint<'_>,
) -> Result<()> {
    let most = checkpoint.extent().map_or(usize::MAX, |extent| extent.nodes.max(info.nodes));
    if found <= most {
        return Ok(());
    }
    Err(impossible(format!("has {name:?} of {found} nodes, and there are {most}")))
}
