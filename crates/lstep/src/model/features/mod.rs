//! Features of a pair: numbers about two nodes together, for a head that reads them.
//!
//! An encoder sees each node alone, so a predictor has to guess from two vectors whether the nodes
//! have met. These features say so, from eight places, each a switch: the overlap of the two recent
//! histories (`history.rs`, read from the past, exact up to the query's time), counts and recency
//! of the pair and of both nodes (`counts.rs`, part of the state), the same counts brought up to the
//! query's time (`fresh.rs`), the popularity of the source's recent neighbours (from the counts),
//! which destinations follow which (`transitions.rs`, part of the state), counts that decay by the
//! clock (`clocks.rs`, the state and the past), common partners (`common.rs`, part of the state),
//! and sums of random node codes along recent walks (`walks.rs`, part of the state). A ninth is
//! learned: filters over such sums at several rates (`filters.rs`), whose weights are the head's.
//! They stand behind any encoder, or alone, in [`Mlp`](super::Mlp). Nothing here looks at labels or
//! at other rows.

mod clocks;
mod codes;
mod common;
mod counts;
mod filters;
mod fresh;
mod history;
mod transitions;
mod walks;

use super::batch::PairBatch;
use crate::checkpoint::Checkpoint;
use crate::error::{Error, Result};
use crate::event::{Event, Time};
use crate::graph::{Past, Seed};
use crate::model::StreamInfo;
use crate::model::checks::within;
use clocks::Clocks;
use common::Common;
use counts::Counts;
use filters::Bank;
use fresh::Habits;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::sync::LazyLock;
use transitions::Transitions;
use walks::Walks;

pub(crate) use filters::{CODE, INPUTS};

/// How many of a source's newest neighbours are looked at.
const NEIGHBOURS: usize = 20;

/// How many of a source's newest events tell its pace in [`PairState::activity`].
const LATELY: usize = 8;

/// Which features of a pair the predictor reads, as named switches.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PairConfig {
    /// How many of each node's newest events are compared; 0 for none.
    pub history: usize,
    /// Counts and recency of the pair, of the source and of the destination.
    #[serde(alias = "traces")]
    pub counts: bool,
    /// Mean popularity and recency, as destinations, of the source's last 20 neighbours. Settings
    /// stored before this switch existed do not name it, and mean off.
    #[serde(default, alias = "company")]
    pub neighbour_popularity: bool,
    /// The same counts brought up to the query's time, and habits: how many partners a node has
    /// had, since when it is there, how often it turns to somebody new. Needs `counts`. Settings
    /// stored before this switch existed do not name it, and mean off.
    #[serde(default)]
    pub fresh: bool,
    /// Which destinations follow which, for all sources: how likely the candidate is after the
    /// source's latest destinations. Settings stored before this switch existed mean off.
    #[serde(default)]
    pub transitions: bool,
    /// Counts of the pair and of both nodes that decay by the clock, at six rates. Settings stored
    /// before this switch existed mean off.
    #[serde(default)]
    pub clocks: bool,
    /// Whom both nodes have ever met, exactly, up to 256 partners each. Settings stored before this
    /// switch existed mean off.
    #[serde(default)]
    pub common: bool,
    /// The width of the node codes that are summed along walks, a multiple of 64; 0 for none.
    pub walks: usize,
    /// How many filters over decayed walks are learned; 0 for none. Settings stored before this
    /// one existed mean none.
    #[serde(default)]
    pub filters: usize,
    /// Whether node codes are drawn anew in every epoch, so that no layer learns single codes.
    /// Settings stored before this switch existed mean off.
    #[serde(default)]
    pub redraw: bool,
    /// How much is added to a score, when a trained model is asked, for the logarithm of the rate at
    /// which the source has acted lately. Cancels among the candidates of one source; 0.05 to 0.1
    /// helps a model that is trained on random negatives to tell sources that sleep. Settings stored
    /// before this one existed mean 0.
    #[serde(default)]
    pub activity: f64,
    /// Whether the two positions are compared.
    pub positions: bool,
    /// The width of the layer that reads these numbers, at least 1.
    pub hidden: usize,
    /// The share of that layer's outputs that is left out in training, in [0, 1).
    pub dropout: f64,
}

impl Default for PairConfig {
    fn default() -> PairConfig {
        PairConfig {
            history: 64,
            counts: true,
            neighbour_popularity: true,
            fresh: true,
            transitions: true,
            clocks: false,
            common: true,
            walks: 64,
            filters: 0,
            redraw: false,
            activity: 0.0,
            positions: true,
            hidden: 64,
            dropout: 0.0,
        }
    }
}

impl PairConfig {
    /// Refuses values that the model cannot have.
    pub fn check(&self) -> Result<()> {
        within(&[("model.pair.hidden", self.hidden, 1), ("model.pair.walks", self.walks, 0)])?;
        if self.fresh && !self.counts {
            let remedy = "they are counts: model.pair.counts has to be on, too";
            return Err(Error::setting("model.pair.fresh", true, remedy));
        }
        if !self.walks.is_multiple_of(64) {
            return Err(Error::setting(
                "model.pair.walks",
                self.walks,
                "it has to be a multiple of 64, or 0",
            ));
        }
        if !self.activity.is_finite() {
            return Err(Error::setting("model.pair.activity", self.activity, "give a number"));
        }
        if !(0.0..1.0).contains(&self.dropout) {
            return Err(Error::setting(
                "model.pair.dropout",
                self.dropout,
                "it has to be at least 0 and below 1",
            ));
        }
        Ok(())
    }

    /// How many numbers a pair has.
    pub fn width(&self) -> usize {
        let history = if self.history > 0 { history::WIDTH } else { 0 };
        let counts = if self.counts { counts::WIDTH } else { 0 };
        let walks = if self.walks > 0 { walks::WIDTH } else { 0 };
        let neighbours = if self.neighbour_popularity { counts::NEIGHBOUR_WIDTH } else { 0 };
        let fresh = if self.fresh { fresh::WIDTH } else { 0 };
        let transitions = if self.transitions { transitions::WIDTH } else { 0 };
        let clocks = if self.clocks { clocks::WIDTH } else { 0 };
        let common = if self.common { common::WIDTH } else { 0 };
        history + counts + fresh + transitions + clocks + common + walks + neighbours
    }
}

/// What passing events leave behind for pairs.
#[derive(Debug, Clone)]
pub struct PairState {
    config: PairConfig,
    /// The time from the first training event to the last, the unit of all recencies.
    span: f64,
    counts: Counts,
    habits: Habits,
    transitions: Transitions,
    clocks: Clocks,
    common: Common,
    walks: Walks,
    filters: Bank,
}

impl PairState {
    /// Before the first event, in an epoch of training; codes may differ from epoch to epoch.
    pub fn new(config: &PairConfig, info: &StreamInfo, epoch: u32) -> PairState {
        let span = info.training.1.since(info.training.0);
        let span = if span > 0.0 { span } else { 1.0 };
        let salt = config.redraw.then(|| u64::from(epoch));
        PairState {
            config: config.clone(),
            span,
            counts: Counts::new(info.nodes),
            habits: Habits::default(),
            transitions: Transitions::new(info.nodes),
            clocks: Clocks::new(span),
            common: Common::new(info.nodes),
            walks: Walks::new(config.walks, info.nodes, salt),
            filters: Bank::new(span, salt),
        }
    }

    /// Takes in the events of a step, in order.
    pub fn observe(&mut self, step: &[Event]) {
        for event in step {
            if self.config.walks > 0 {
                self.walks.observe(event);
            }
            if self.config.filters > 0 {
                self.filters.observe(event);
            }
            if self.config.transitions {
                self.transitions.observe(event);
            }
            if self.config.clocks {
                self.clocks.observe(event);
            }
            if self.config.common {
                self.common.observe(event);
            }
            if self.config.counts || self.config.neighbour_popularity {
                let is_new = self.counts.observe(event);
                if self.config.fresh {
                    self.habits.observe(event, is_new);
                }
            }
        }
    }

    /// Writes the features of each pair into a row of `out`.
    pub fn fill(&self, past: Past<'_>, pairs: &PairBatch, out: &mut [f32]) {
        const AT_ONCE: usize = 128;
        let width = self.config.width();
        // Enough pairs to be worth a thread; the rows do not depend on how they are divided.
        out.par_chunks_mut(AT_ONCE * width).enumerate().for_each(|(chunk, rows)| {
            let mut side: Option<SourceSide<'_>> = None;
            let first = chunk * AT_ONCE;
            for (pair, row) in (first..).zip(rows.chunks_mut(width)) {
                let (source, candidate) = pairs.pair(pair);
                let mut row = Numbers { row };
                if self.config.walks > 0 && pair + 1 < pairs.len().min(first + AT_ONCE) {
                    self.walks.bring_near(pairs.pair(pair + 1).1);
                }
                if side.as_ref().is_none_or(|side| side.seed != source) {
                    side = Some(self.side(past, source));
                }
                let side = side.as_ref().expect("just made");
                if let Some(history) = &side.history {
                    history.compare(past, source.with_node(candidate), &mut row);
                }
                if let Some(counts) = &side.counts {
                    self.counts.write_features(counts, candidate, &mut row);
                }
                if let Some(fresh) = &side.fresh {
                    self.habits.write_features(&self.counts, past, fresh, candidate, &mut row);
                }
                if let Some(transitions) = &side.transitions {
                    self.transitions.write_features(transitions, candidate, &mut row);
                }
                if let Some(clocks) = &side.clocks {
                    self.clocks.write_features(past, clocks, candidate, &mut row);
                }
                if let Some(common) = &side.common {
                    self.common.write_features(common, candidate, &mut row);
                }
                if let Some(walks) = &side.walks {
                    self.walks.write_features(walks, &self.walks.side(candidate), &mut row);
                }
                side.neighbours.iter().flatten().for_each(|&number| row.put(number));
                assert!(row.row.is_empty(), "a place for every number");
            }
        });
    }

    /// The logarithm of the rate at which a node has acted as a source lately: events in a training
    /// span, at the pace of its last eight. A node that never did counts as half an event.
    pub fn activity(&self, past: Past<'_>, seed: Seed) -> f64 {
        let acted = past.recent(seed, NEIGHBOURS);
        let acted = acted.iter().rev().filter(|met| past.starts_at(seed.node(), met));
        let (mut count, mut first) = (0, None);
        for met in acted.take(LATELY) {
            (count, first) = (count + 1, Some(met.time()));
        }
        let Some(first) = first else { return 0.5f64.ln() };
        // A millionth of the span is as short as a pause can be.
        let since = (seed.time().since(first) / self.span).max(0.0) + 1e-6;
        (f64::from(count) / since).ln()
    }

    /// What filters read of some seeds, [seeds CODE, INPUTS].
    pub fn fill_filters(&self, past: Past<'_>, seeds: &[Seed], out: &mut [f32]) {
        let rows = out.par_chunks_mut(CODE * INPUTS);
        seeds.par_iter().zip(rows).for_each(|(&seed, row)| self.filters.fill(past, seed, row));
    }

    fn side<'a>(&'a self, past: Past<'a>, seed: Seed) -> SourceSide<'a> {
        SourceSide {
            seed,
            history: (self.config.history > 0)
                .then(|| history::Side::new(past, seed, self.config.history, self.span)),
            counts: self.config.counts.then(|| self.counts.side(seed, self.span)),
            fresh: self.config.fresh.then(|| self.habits.side(&self.counts, past, seed, self.span)),
            transitions: self.config.transitions.then(|| self.transitions.side(past, seed)),
            clocks: self.config.clocks.then(|| self.clocks.side(past, seed)),
            common: self.config.common.then(|| self.common.side(seed.node())),
            walks: (self.config.walks > 0).then(|| self.walks.side(seed.node())),
            neighbours: self.config.neighbour_popularity.then(|| {
                let partners =
                    past.recent(seed, NEIGHBOURS).iter().map(|neighbour| neighbour.node());
                self.counts.neighbours(partners, seed.time(), self.span)
            }),
        }
    }

    /// Writes everything into a checkpoint.
    pub fn save<'a>(&'a self, checkpoint: &mut Checkpoint<'a>) {
        self.counts.save(checkpoint);
        if self.config.fresh {
            self.habits.save(checkpoint);
        }
        if self.config.transitions {
            self.transitions.save(checkpoint);
        }
        if self.config.clocks {
            self.clocks.save(checkpoint);
        }
        if self.config.common {
            self.common.save(checkpoint);
        }
        if self.config.filters > 0 {
            self.filters.save(checkpoint);
        }
        self.walks.save(checkpoint);
    }

    /// Takes over what [`PairState::save`] wrote for the same settings.
    pub fn load(&mut self, checkpoint: &mut Checkpoint<'_>) -> Result<()> {
        self.counts.load(checkpoint)?;
        if self.config.fresh {
            self.habits.load(checkpoint)?;
        }
        if self.config.transitions {
            self.transitions.load(checkpoint)?;
        }
        if self.config.clocks {
            self.clocks.load(checkpoint)?;
        }
        if self.config.common {
            self.common.load(checkpoint)?;
        }
        if self.config.filters > 0 {
            self.filters.load(checkpoint)?;
        }
        self.walks.load(checkpoint)
    }
}

/// What is made of a source once for all its candidates.
struct SourceSide<'a> {
    seed: Seed,
    history: Option<history::Side<'a>>,
    counts: Option<counts::Side>,
    fresh: Option<fresh::Side<'a>>,
    transitions: Option<transitions::Side>,
    clocks: Option<clocks::Side<'a>>,
    common: Option<common::Side>,
    walks: Option<walks::Side<'a>>,
    neighbours: Option<[f32; counts::NEIGHBOUR_WIDTH]>,
}

/// The rest of a row that is being filled.
struct Numbers<'a> {
    row: &'a mut [f32],
}

impl Numbers<'_> {
    fn put(&mut self, value: f32) {
        let row = std::mem::take(&mut self.row);
        let (first, rest) = row.split_first_mut().expect("a place for every number");
        *first = value;
        self.row = rest;
    }

    /// ln(1 + count) / 4.
    fn count(&mut self, count: u32) {
        self.put(log_count(count));
    }
}

static LOG_COUNTS: LazyLock<Vec<f32>> =
    LazyLock::new(|| (0..1024).map(|count| log(f64::from(count))).collect());

/// What logarithms are multiplied by: counts up to some thousands become numbers up to two.
const LOG_SCALE: f32 = 0.25;

/// ln(1 + x) / 4.
fn log(x: f64) -> f32 {
    ((1.0 + x).ln() * f64::from(LOG_SCALE)) as f32
}

fn log_count(count: u32) -> f32 {
    LOG_COUNTS.get(count as usize).copied().unwrap_or_else(|| log(f64::from(count)))
}

/// What an event leaves of a sum that is down to a half after `decay` events for each node, as a
/// logarithm.
fn decay_rate(decay: f64, nodes: usize) -> f32 {
    (-std::f64::consts::LN_2 / (decay * nodes.max(2) as f64)) as f32
}

/// How recent a time is: one now, about a half a thousandth of the training span ago, zero a whole
/// span ago.
fn recency(now: Time, then: Time, span: f64) -> f32 {
    const FINEST: f64 = 1e6;
    (1.0 - (1.0 + now.since(then) * (FINEST / span)).ln() / FINEST.ln()) as f32
}
