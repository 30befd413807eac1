//! What a batch costs: Eqs. loss_func_lp, loss_func_pe and loss_func.

use super::config::Variant;
use super::encode::Encoded;
use super::gather::Gathered;
use super::pairs::Pairs;
use super::position::Run;
use super::{Lstep, LstepState, Scratch};
use crate::error::Result;
use crate::event::{Event, NodeId};
use crate::graph::{Past, Seed};
use crate::model::trainer::{TrainBatch, TrainContext};
use lstep_tensor::{Tape, Var};

/// Numbers of the seeds that a batch is about.
#[derive(Default)]
pub(super) struct LossSeeds {
    pub sources: Vec<u32>,
    pub destinations: Vec<u32>,
    pub negatives: Vec<u32>,
    pub negative_sources: Vec<u32>,
    /// The pairs of all events, then of all negatives.
    pub told: Vec<(Seed, NodeId)>,
}

/// The three losses on the tape, and what they were made from.
#[cfg_attr(
    not(test),
    expect(dead_code, reason = "training needs the total only; the oracle compares all")
)]
pub(super) struct Losses<'a> {
    pub prediction: Var,
    pub position: Option<Var>,
    pub total: Var,
    pub encoded: Encoded<'a>,
    pub logits: Var,
}

impl Lstep {
    /// The seeds of a batch, and nothing else, gathered.
    pub(super) fn gather_batch(
        &self,
        gathered: &mut Gathered,
        past: Past<'_>,
        batch: TrainBatch<'_>,
    ) -> LossSeeds {
        gathered.clear();
        let mut asked = LossSeeds::default();
        for (event, &negative) in batch.events.iter().zip(batch.negatives) {
            let mut number = |node| self.gather(gathered, past, Seed { node, time: event.time });
            let source = number(event.source);
            asked.sources.push(source);
            asked.destinations.push(number(event.destination));
            asked.negatives.push(number(negative.destination));
            asked.negative_sources.push(if negative.source == event.source {
                source
            } else {
                number(negative.source)
            });
        }
        let seed = |node, event: &Event| Seed { node, time: event.time };
        asked.told.extend(
            batch.events.iter().map(|event| (seed(event.source, event), event.destination)),
        );
        let negatives = batch.events.iter().zip(batch.negatives);
        asked.told.extend(
            negatives.map(|(event, negative)| (seed(negative.source, event), negative.destination)),
        );
        asked
    }

    /// Eq. loss_func: (1 - alpha_pe) L_lp + alpha_pe L_pe; without positions L_lp alone. The first
    /// step only gives the initial positions. While gradients are made, `beside` runs.
    pub(super) fn loss_beside<T: Send>(
        &self,
        past: Past<'_>,
        state: &LstepState,
        batch: TrainBatch<'_>,
        TrainContext { dropout_key, matmul, workspace, gradients }: TrainContext<'_>,
        beside: impl FnOnce() -> T + Send,
    ) -> Result<(Option<f64>, T)> {
        self.fits(past)?;
        let first_step =
            self.config.variant != Variant::NoPosition && state.positions.snapshots() == 0;
        if batch.events.is_empty() || first_step {
            return Ok((None, beside()));
        }
        Ok(self.scratch.with(|room| {
            let Scratch { gathered, runs, .. } = room;
            let asked = self.gather_batch(gathered, past, batch);
            let mut tape = workspace.train(&self.parameters, dropout_key).with_matmul(matmul);
            let losses = self.losses(&mut tape, past, gathered, state, runs, &asked);
            let loss = f64::from(tape.scalar(losses.total));
            let ((), beside) = rayon::join(|| tape.backward(losses.total, gradients), beside);
            (Some(loss), beside)
        }))
    }

    /// Eqs. loss_func_lp (binary cross-entropy over true events and negatives), loss_func_pe
    /// (2-norms) and loss_func.
    pub(super) fn losses<'t>(
        &'t self,
        tape: &mut Tape<'t>,
        past: Past<'t>,
        gathered: &Gathered,
        state: &'t LstepState,
        runs: &mut Vec<Run>,
        asked: &LossSeeds,
    ) -> Losses<'t> {
        let encoded = self.encoder().encode(tape, past, gathered, state, runs);
        self.losses_of(tape, (past, gathered, state), asked, encoded)
    }

    /// The same for seeds that are encoded already.
    pub(super) fn losses_of<'t>(
        &'t self,
        tape: &mut Tape<'t>,
        (past, gathered, state): (Past<'_>, &Gathered, &LstepState),
        asked: &LossSeeds,
        encoded: Encoded<'t>,
    ) -> Losses<'t> {
        let events = asked.sources.len();
        let mut pairs = Pairs::default();
        let sources = asked.sources.iter().chain(&asked.negative_sources);
        let candidates = asked.destinations.iter().chain(&asked.negatives);
        for ((&source, &candidate), &told) in sources.zip(candidates).zip(&asked.told) {
            pairs.push(source, candidate, told);
        }
        let logits = self.encoder().predict(tape, (past, gathered, state), &encoded, &pairs);
        let labels = tape.input(2 * events, 1, |labels| labels[..events].fill(1.0));
        let prediction = tape.cross_entropy(logits, labels);
        let Some(approximate) = encoded.approximate else {
            return Losses { prediction, position: None, total: prediction, encoded, logits };
        };
        let mut side = |seeds: &[u32]| {
            let rows = tape.indices(seeds.iter().map(|&seed| gathered.own[seed as usize]));
            tape.gather(approximate, rows)
        };
        let (u, v, n) = (side(&asked.sources), side(&asked.destinations), side(&asked.negatives));
        let m =
            if asked.sources == asked.negative_sources { u } else { side(&asked.negative_sources) };
        let (met, not_met) = (tape.row_distance(u, v), tape.row_distance(m, n));
        let (met, not_met) = (tape.mean(met), tape.mean(not_met));
        let not_met = tape.scale(not_met, self.config.alpha_neg as f32);
        let position = tape.sub(met, not_met);
        let alpha = self.config.alpha_pe as f32;
        let (a, b) = (tape.scale(prediction, 1.0 - alpha), tape.scale(position, alpha));
        let total = tape.add(a, b);
        Losses { prediction, position: Some(position), total, encoded, logits }
    }
}
