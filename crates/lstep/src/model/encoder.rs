//! From an encoder to a model that scores and learns.
//!
//! An [`Encoder`] turns distinct seeds and pairs of them into logits on a tape. Everything else is
//! the same for all of them and is here, once: numbering the seeds of a call so that each is
//! encoded once however often it is batch, cutting calls into pieces that stay in cache, binary
//! cross-entropy over true events and negatives, and working memory that calls leave for later
//! ones.
//!
//! Encoders of nodes and encoders of pairs are one trait: the first encode seeds and then join them
//! in a [`Predictor`](crate::nn::Predictor), the second look at both sides together. Two traits
//! would repeat this file.

pub use super::scratch::FeatureWidths;
use super::scratch::ScratchPool;
use super::trainer::{Learner, TrainBatch, TrainContext};
use super::{Model, StreamInfo};
use crate::checkpoint::Checkpoint;
use crate::error::Result;
use crate::event::{Event, NodeId};
use crate::graph::{Past, Revealed, Seed};
use crate::query::{Queries, Scores};
use lstep_tensor::{DropoutKey, Gradients, Matmul, Parameters, Tape, Var, Workspace};
use rayon::prelude::*;
use rustc_hash::FxHashMap;
use std::sync::Mutex;

/// What turns questions into logits.
pub trait Encoder: Clone + Send + Sync {
    /// The settings.
    type Config;

    /// What passing events leave behind.
    type State: Clone + Send + Sync;

    /// Lists that are filled anew by each call; only their memory is kept.
    type Lists: Default + Send;

    /// Distinct seeds of one piece of a call or of a batch: enough to fill the cores, few enough to
    /// stay in cache.
    const SEEDS_AT_ONCE: usize;

    /// Pairs of one piece of a call or of a batch.
    const PAIRS_AT_ONCE: usize;

    /// An encoder whose weights are added to the parameters.
    fn new(config: Self::Config, parameters: &mut Parameters) -> Result<Self>;

    /// Widths of node and event features that the weights have room for.
    fn feature_widths(&self) -> FeatureWidths;

    /// The state before the first event.
    fn begin(&self, info: &StreamInfo) -> Self::State;

    /// A logit for each pair, [pairs, 1]. It may depend on the pair's two seeds alone.
    fn logits<'t>(
        &self,
        tape: &mut Tape<'t>,
        past: Past<'t>,
        state: &'t Self::State,
        batch: &PairBatch,
        lists: &mut Self::Lists,
    ) -> Var;

    /// Lets true events change the state.
    fn observe(
        &self,
        parameters: &Parameters,
        room: &mut Scratch<Self::Lists>,
        known: Revealed<'_>,
        state: &mut Self::State,
        step: &[Event],
    );

    /// Writes the state into a checkpoint.
    fn save_state<'a>(&self, state: &'a Self::State, checkpoint: &mut Checkpoint<'a>);

    /// Reads the state that [`Encoder::save_state`] wrote.
    fn load_state(&self, info: &StreamInfo, checkpoint: &mut Checkpoint<'_>)
    -> Result<Self::State>;
}

/// What a call asks: distinct seeds, and pairs of them.
#[derive(Debug, Default)]
pub struct PairBatch {
    /// The distinct seeds.
    pub seeds: Vec<Seed>,
    /// The number of each pair's source among the seeds.
    pub sources: Vec<u32>,
    /// The number of each pair's candidate among the seeds.
    pub candidates: Vec<u32>,
    numbers: FxHashMap<(u32, u64), u32>,
}

impl PairBatch {
    fn clear(&mut self) {
        self.seeds.clear();
        self.sources.clear();
        self.candidates.clear();
        self.numbers.clear();
    }

    /// The seed's number; it is new or was batch before.
    fn number(&mut self, seed: Seed) -> u32 {
        let next = self.seeds.len() as u32;
        let number =
            *self.numbers.entry((seed.node.0, seed.time.value().to_bits())).or_insert(next);
        if number == next {
            self.seeds.push(seed);
        }
        number
    }

    fn pair(&mut self, source: Seed, candidate: NodeId) {
        let source_number = self.number(source);
        let candidate_number = self.number(Seed { node: candidate, time: source.time });
        self.sources.push(source_number);
        self.candidates.push(candidate_number);
    }
}

/// Working memory of a call.
#[derive(Default)]
pub struct Scratch<L> {
    /// The memory of tapes.
    pub workspace: Workspace,
    /// The encoder's lists.
    pub lists: L,
    batch: PairBatch,
}

/// An encoder and its weights as a model.
pub struct Learned<E: Encoder> {
    encoder: E,
    parameters: Parameters,
    scratch: ScratchPool<Scratch<E::Lists>>,
    /// Gradients of lanes, for the next batch.
    spare: Mutex<Vec<Gradients>>,
}

impl<E: Encoder> Learned<E> {
    /// The model with weights drawn from a seed.
    pub fn new(config: E::Config, seed: u64) -> Result<Learned<E>> {
        let mut parameters = Parameters::new(seed);
        let encoder = E::new(config, &mut parameters)?;
        Ok(Learned {
            encoder,
            parameters,
            scratch: ScratchPool::default(),
            spare: Mutex::default(),
        })
    }

    /// The logits of some pairs, piece by piece.
    fn score_lane(
        &self,
        past: Past<'_>,
        state: &E::State,
        mut pairs: &[(Seed, NodeId)],
        Scratch { workspace, lists, batch }: &mut Scratch<E::Lists>,
        mut values: &mut [f64],
    ) {
        while !pairs.is_empty() {
            batch.clear();
            while batch.seeds.len() < E::SEEDS_AT_ONCE && batch.sources.len() < E::PAIRS_AT_ONCE {
                let Some(&(source, candidate)) = pairs.split_off_first() else { break };
                batch.pair(source, candidate);
            }
            let mut tape = workspace.infer(&self.parameters);
            let logits = self.encoder.logits(&mut tape, past, state, batch, lists);
            let logits = tape.value(logits);
            let done = values.split_off_mut(..logits.rows()).expect("a value for each pair");
            done.iter_mut()
                .enumerate()
                .for_each(|(pair, value)| *value = f64::from(logits.row(pair)[0]));
        }
    }

    /// The share of a batch's loss that a part of it has, piece by piece.
    fn lane_loss(
        &self,
        past: Past<'_>,
        state: &E::State,
        part: TrainBatch<'_>,
        Scratch { workspace, lists, batch }: &mut Scratch<E::Lists>,
        share_of_pair: f64,
        (dropout_key, matmul, gradients): (DropoutKey, Matmul, &mut Gradients),
    ) -> f64 {
        let mut rows = part.pairs().peekable();
        let (mut sum, mut piece) = (0.0, 0);
        while rows.peek().is_some() {
            batch.clear();
            // An event and its negative stay together, since they mostly share the source.
            while batch.seeds.len() < E::SEEDS_AT_ONCE && batch.sources.len() < E::PAIRS_AT_ONCE {
                let Some(pairs) = rows.next() else { break };
                pairs.into_iter().for_each(|(source, candidate)| batch.pair(source, candidate));
            }
            let pairs = batch.sources.len();
            let dropout_key = DropoutKey { seed: dropout_key.seed ^ (piece << 32), ..dropout_key };
            let mut tape = workspace.train(&self.parameters, dropout_key).with_matmul(matmul);
            let logits = self.encoder.logits(&mut tape, past, state, batch, lists);
            let labels = tape.input(pairs, 1, |labels| {
                labels.iter_mut().step_by(2).for_each(|label| *label = 1.0)
            });
            let loss = tape.cross_entropy(logits, labels);
            let loss = tape.scale(loss, (pairs as f64 * share_of_pair) as f32);
            sum += f64::from(tape.scalar(loss));
            tape.backward(loss, gradients);
            piece += 1;
        }
        sum
    }
}

/// All pairs of some questions, in order.
pub fn pairs_of(ask: &Queries) -> impl Iterator<Item = (Seed, NodeId)> {
    ask.rows().flat_map(|row| row.candidates.iter().map(move |&other| (row.seed(), other)))
}

/// Most lanes of a batch. A lane goes through its pieces by itself, and threads share the lanes:
/// threads that share every operation wait for one another after each. Lanes have gradients of
/// their own, which are added up in the end, so their number must not depend on the machine.
const LANES: usize = 4;

/// How many lanes some pairs are worth: each is to have a piece at least.
fn lanes<E: Encoder>(pairs: usize, most: usize) -> usize {
    (pairs / E::PAIRS_AT_ONCE).max(pairs / E::SEEDS_AT_ONCE).clamp(1, most)
}

/// Goes through lanes, each alone on a thread unless there are more threads than lanes.
fn share_lanes<L: Send, T: Send>(lanes: Vec<L>, run: impl Fn(L) -> T + Send + Sync) -> Vec<T> {
    let alone = lanes.len() >= rayon::current_num_threads();
    let run = |lane| if alone { lstep_tensor::alone(|| run(lane)) } else { run(lane) };
    lstep_tensor::awake(|| lanes.into_par_iter().with_max_len(1).map(run).collect())
}

impl<E: Encoder> Clone for Learned<E> {
    fn clone(&self) -> Learned<E> {
        Learned {
            encoder: self.encoder.clone(),
            parameters: self.parameters.clone(),
            scratch: ScratchPool::default(),
            spare: Mutex::default(),
        }
    }
}

impl<E: Encoder> Model for Learned<E> {
    type State = E::State;

    fn begin(&self, info: &StreamInfo) -> E::State {
        self.encoder.begin(info)
    }

    /// Logits, whose order is that of the probabilities and which never saturate.
    fn score(&self, past: Past<'_>, state: &E::State, ask: &Queries) -> Result<Scores> {
        self.encoder.feature_widths().check(past)?;
        let pairs: Vec<(Seed, NodeId)> = pairs_of(ask).collect();
        let each =
            pairs.len().div_ceil(lanes::<E>(pairs.len(), 2 * rayon::current_num_threads())).max(1);
        // A true destination and its negative stay together: they mostly share the source, and
        // `ReleasedPadding` counts on it.
        let each = each.next_multiple_of(2);
        let mut values = vec![0.0; pairs.len()];
        let work = pairs.chunks(each).zip(values.chunks_mut(each)).collect();
        share_lanes(work, |(pairs, values)| {
            self.scratch.with(|room| self.score_lane(past, state, pairs, room, values))
        });
        Scores::new(ask, values)
    }

    fn observe(&self, known: Revealed<'_>, state: &mut E::State, step: &[Event]) -> Result<()> {
        self.scratch.with(|room| self.encoder.observe(&self.parameters, room, known, state, step));
        Ok(())
    }
}

impl<E: Encoder> Learner for Learned<E> {
    fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    fn parameters_mut(&mut self) -> &mut Parameters {
        &mut self.parameters
    }

    /// Mean binary cross-entropy over the events and as many negatives.
    fn loss(
        &self,
        past: Past<'_>,
        state: &E::State,
        batch: TrainBatch<'_>,
        TrainContext { dropout_key, matmul, gradients, .. }: TrainContext<'_>,
    ) -> Result<Option<f64>> {
        self.encoder.feature_widths().check(past)?;
        if batch.events.is_empty() {
            return Ok(None);
        }
        let pairs = 2 * batch.events.len();
        let lanes = lanes::<E>(pairs, LANES);
        let each = batch.events.len().div_ceil(lanes);
        let parts: Vec<TrainBatch<'_>> = batch
            .events
            .chunks(each)
            .zip(batch.negatives.chunks(each))
            .map(|(events, negatives)| TrainBatch { events, negatives })
            .collect();
        let mut spare =
            std::mem::take(&mut *self.spare.lock().expect("nobody panics while holding it"));
        spare.resize_with(parts.len() - 1, || Gradients::of(&self.parameters));
        spare.iter_mut().for_each(Gradients::zero);
        let work = std::iter::once(&mut *gradients).chain(&mut spare).zip(parts).enumerate();
        let work: Vec<_> = work.collect();
        let losses = share_lanes(work, |(lane, (gradients, part))| {
            self.scratch.with(|room| {
                let dropout_key =
                    DropoutKey { seed: dropout_key.seed ^ (lane as u64) << 48, ..dropout_key };
                self.lane_loss(
                    past,
                    state,
                    part,
                    room,
                    1.0 / pairs as f64,
                    (dropout_key, matmul, gradients),
                )
            })
        });
        gradients.add(&spare);
        *self.spare.lock().expect("nobody panics while holding it") = spare;
        Ok(Some(losses.iter().sum()))
    }

    fn save_state<'a>(&self, state: &'a E::State, checkpoint: &mut Checkpoint<'a>) {
        self.encoder.save_state(state, checkpoint);
    }

    fn load_state(&self, info: &StreamInfo, checkpoint: &mut Checkpoint<'_>) -> Result<E::State> {
        self.encoder.load_state(info, checkpoint)
    }
}
