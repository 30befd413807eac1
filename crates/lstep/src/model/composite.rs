//! An encoder and a head as one model that scores, learns, saves and resumes.
//!
//! Everything that learned models share is here, once: numbering the seeds of a call so that each
//! is encoded once, cutting calls into chunks that stay in cache, lanes of gradients, the loss, and
//! working memory that calls leave for later ones.

use super::batch::{BatchOrder, PairBatch};
use super::encoder::{ForwardContext, LossBatch, Mode, NodeEncoder, ObserveScratch, PairHead};
use super::objective::Loss;
use super::scratch::ScratchPool;
use super::trainer::{LaneGradients, Learner, TrainBatch, TrainContext};
use super::{Diagnostic, Model, StreamInfo};
use crate::checkpoint::{Checkpoint, impossible};
use crate::error::Result;
use crate::event::{Event, NodeId};
use crate::graph::{Past, Revealed, Seed};
use crate::query::{Queries, Scores};
use lstep_tensor::{DropoutKey, Gradients, Matmul, Parameters, Workspace};
use rayon::prelude::*;
use std::cell::Cell;
use std::ops::Range;
use std::sync::{Arc, Mutex};

/// A node encoder and a pair head.
pub struct Composite<E: NodeEncoder, H: PairHead<E>> {
    encoder: E,
    head: H,
    parameters: Parameters,
    scratch: ScratchPool<Scratch<E, H>>,
    observing: ScratchPool<ObserveScratch<E::Scratch>>,
    head_observing: ScratchPool<ObserveScratch<H::Scratch>>,
    prepared: PreparedCache<H::Prepared>,
}

/// What passing events leave behind, for the encoder and for the head.
pub struct CompositeState<E: NodeEncoder, H: PairHead<E>> {
    pub(super) encoder: E::State,
    pub(super) head: H::State,
}

impl<E: NodeEncoder, H: PairHead<E>> CompositeState<E, H> {
    /// The encoder's part.
    pub fn encoder(&self) -> &E::State {
        &self.encoder
    }

    /// The head's part.
    pub fn head(&self) -> &H::State {
        &self.head
    }
}

impl<E: NodeEncoder, H: PairHead<E>> Clone for CompositeState<E, H> {
    fn clone(&self) -> Self {
        CompositeState { encoder: self.encoder.clone(), head: self.head.clone() }
    }
}

/// Working memory of a lane.
struct Scratch<E: NodeEncoder, H: PairHead<E>> {
    workspace: Workspace,
    encoder: E::Scratch,
    head: H::Scratch,
    pairs: PairBatch,
}

impl<E: NodeEncoder, H: PairHead<E>> Default for Scratch<E, H> {
    fn default() -> Self {
        Scratch {
            workspace: Workspace::new(),
            encoder: Default::default(),
            head: Default::default(),
            pairs: PairBatch::default(),
        }
    }
}

/// What every piece of a training batch is computed with.
#[derive(Clone, Copy)]
struct Forward<'a, E: NodeEncoder, H: PairHead<E>> {
    past: Past<'a>,
    state: &'a CompositeState<E, H>,
    batch: TrainBatch<'a>,
    dropout_key: DropoutKey,
    matmul: Matmul,
    loss: Loss,
}

thread_local! {
    static MOST_WEIGHTS: Cell<Option<usize>> = const { Cell::new(None) };
}

/// Builds a model whose weights are to come from a file that has this many. Settings that describe
/// a larger one are refused before it takes memory: they may be anybody's.
pub(crate) fn with_most_weights<T>(most: usize, build: impl FnOnce() -> T) -> T {
    let before = MOST_WEIGHTS.replace(Some(most));
    let built = build();
    MOST_WEIGHTS.set(before);
    built
}

impl<E: NodeEncoder, H: PairHead<E>> Composite<E, H> {
    /// A model with weights drawn from a seed: `parts` adds them to the parameters.
    pub fn build(
        seed: u64,
        parts: impl FnOnce(&mut Parameters) -> Result<(E, H)>,
    ) -> Result<Composite<E, H>> {
        let mut parameters = match MOST_WEIGHTS.get() {
            Some(most) => Parameters::with_limit(seed, most),
            None => Parameters::new(seed),
        };
        let (encoder, head) = parts(&mut parameters)?;
        if let (Some(count), Some(most)) = (parameters.beyond(), MOST_WEIGHTS.get()) {
            return Err(impossible(format!(
                "has {most} weights, and its settings describe a model of {count}"
            )));
        }
        Ok(Composite::of(encoder, head, parameters))
    }

    fn of(encoder: E, head: H, parameters: Parameters) -> Composite<E, H> {
        Composite {
            encoder,
            head,
            parameters,
            scratch: ScratchPool::default(),
            observing: ScratchPool::default(),
            head_observing: ScratchPool::default(),
            prepared: PreparedCache::default(),
        }
    }

    /// The encoder.
    pub fn encoder(&self) -> &E {
        &self.encoder
    }

    /// The head.
    pub fn head(&self) -> &H {
        &self.head
    }

    fn fits(&self, past: Past<'_>) -> Result<()> {
        self.head.feature_widths(&self.encoder).check(past)
    }

    /// The logits of some pairs, chunk by chunk.
    fn score_lane(
        &self,
        past: Past<'_>,
        state: &CompositeState<E, H>,
        prepared: &H::Prepared,
        mut rest: &[(Seed, NodeId)],
        Scratch { workspace, encoder, head, pairs }: &mut Scratch<E, H>,
        mut values: &mut [f64],
    ) {
        let chunk = self.head.chunk(&self.encoder, Mode::Score);
        while !rest.is_empty() {
            pairs.clear();
            while pairs.seeds().len() < chunk.seeds && pairs.len() < chunk.pairs {
                let Some(&(source, candidate)) = rest.split_off_first() else { break };
                pairs.push(source, candidate);
            }
            let mut tape = workspace.infer(&self.parameters);
            let mut context = ForwardContext {
                tape: &mut tape,
                past,
                parameters: &self.parameters,
                key: 0,
                first_layer: self.head.first_layer(prepared),
            };
            let encoded = self.encoder.encode(&mut context, &state.encoder, pairs.seeds(), encoder);
            let logits =
                self.head.logits(&mut context, &state.head, &encoded, pairs, Some(prepared), head);
            let logits = tape.value(logits);
            let done = values.split_off_mut(..logits.rows()).expect("a value for each pair");
            done.iter_mut()
                .enumerate()
                .for_each(|(pair, value)| *value = f64::from(logits.row(pair)[0]));
        }
    }

    /// The loss of a lane's events and its gradients, piece by piece. `beside` runs beside the last
    /// backward pass.
    fn train_lane<T: Send>(
        &self,
        forward: Forward<'_, E, H>,
        events: Range<usize>,
        scratch: &mut Scratch<E, H>,
        gradients: &mut Gradients,
        beside: impl FnOnce() -> T + Send,
    ) -> (f64, T) {
        let (mut next, mut sum, mut piece) = (events.start, 0.0, 0);
        let mut beside = Some(beside);
        let mut result = None;
        while next < events.end {
            let first = next;
            self.fill(&mut scratch.pairs, forward.batch, &mut next, events.end);
            let beside = if next == events.end { beside.take() } else { None };
            let dropout_key = DropoutKey {
                seed: forward.dropout_key.seed ^ (piece << 32),
                ..forward.dropout_key
            };
            let (loss, done) = self.train_piece(
                Forward { dropout_key, ..forward },
                next - first,
                scratch,
                gradients,
                beside,
            );
            sum += loss;
            result = done.or(result);
            piece += 1;
        }
        (sum, result.unwrap_or_else(|| (beside.take().expect("no piece took it"))()))
    }

    /// Fills a piece with the pairs of events from `next` on, and moves it on.
    fn fill(&self, pairs: &mut PairBatch, batch: TrainBatch<'_>, next: &mut usize, end: usize) {
        pairs.clear();
        let order = self.encoder.order();
        if order == BatchOrder::PositivesFirst {
            pairs.push_events(batch, *next..end, order);
            *next = end;
            return;
        }
        let chunk = self.head.chunk(&self.encoder, Mode::Train);
        // An event and its negatives stay together, since they mostly share the source.
        while *next < end && pairs.seeds().len() < chunk.seeds && pairs.len() < chunk.pairs {
            pairs.push_events(batch, *next..*next + 1, order);
            *next += 1;
        }
    }

    fn train_piece<T: Send>(
        &self,
        Forward { past, state, batch, dropout_key, matmul, loss }: Forward<'_, E, H>,
        positives: usize,
        Scratch { workspace, encoder, head, pairs }: &mut Scratch<E, H>,
        gradients: &mut Gradients,
        beside: Option<impl FnOnce() -> T + Send>,
    ) -> (f64, Option<T>) {
        let mut tape = workspace.train(&self.parameters, dropout_key).with_matmul(matmul);
        let mut context = ForwardContext {
            tape: &mut tape,
            past,
            parameters: &self.parameters,
            key: dropout_key.seed.wrapping_add(dropout_key.step.rotate_left(32)) | 1,
            first_layer: None,
        };
        let encoded = self.encoder.encode(&mut context, &state.encoder, pairs.seeds(), encoder);
        let logits = self.head.logits(&mut context, &state.head, &encoded, pairs, None, head);
        let losses = LossBatch { pairs, order: self.encoder.order(), positives };
        let prediction = loss.of(&mut tape, logits, losses);
        let loss = self.encoder.total_loss(&mut tape, prediction, &encoded, losses, encoder);
        // A piece weighs as much as it has pairs.
        let share_of_pair = 1.0 / batch.len() as f64;
        let loss = tape.scale(loss, (pairs.len() as f64 * share_of_pair) as f32);
        let value = f64::from(tape.scalar(loss));
        let backward = || tape.backward(loss, gradients);
        let done = match beside {
            Some(beside) => Some(rayon::join(backward, beside).1),
            None => {
                backward();
                None
            }
        };
        (value, done)
    }

    /// Encodes and scores pairs on a training tape without dropout, for tests against outside
    /// numbers.
    #[cfg(test)]
    pub(super) fn losses<T>(
        &self,
        past: Past<'_>,
        state: &CompositeState<E, H>,
        batch: TrainBatch<'_>,
        look: impl FnOnce(lstep_tensor::Tape<'_>, TestLosses<'_, E>) -> T,
    ) -> T {
        let mut scratch = Scratch::<E, H>::default();
        let mut next = 0;
        self.fill(&mut scratch.pairs, batch, &mut next, batch.events.len());
        let Scratch { workspace, encoder, head, pairs } = &mut scratch;
        let mut tape = workspace.train(&self.parameters, DropoutKey::default());
        let mut context = ForwardContext {
            tape: &mut tape,
            past,
            parameters: &self.parameters,
            key: 1,
            first_layer: None,
        };
        let encoded = self.encoder.encode(&mut context, &state.encoder, pairs.seeds(), encoder);
        let logits = self.head.logits(&mut context, &state.head, &encoded, pairs, None, head);
        let losses = LossBatch { pairs, order: self.encoder.order(), positives: next };
        let prediction = Loss::default().of(&mut tape, logits, losses);
        let total = self.encoder.total_loss(&mut tape, prediction, &encoded, losses, encoder);
        look(tape, TestLosses { encoded, logits, prediction, total, losses, scratch: encoder })
    }
}

/// What [`Composite::losses`] computed.
#[cfg(test)]
pub(super) struct TestLosses<'a, E: NodeEncoder> {
    pub encoded: super::encoder::Encoded,
    pub logits: lstep_tensor::Var,
    pub prediction: lstep_tensor::Var,
    pub total: lstep_tensor::Var,
    pub losses: LossBatch<'a>,
    pub scratch: &'a E::Scratch,
}

/// Checks that a model scores by what it keeps as it does by the vectors that training makes, and
/// alike when it is asked again and by a copy of its state. Its dropout is zero.
#[cfg(test)]
pub(super) fn scores_as_it_learns<E: NodeEncoder, H: PairHead<E>>(model: &Composite<E, H>) {
    use super::Negative;
    use crate::read::synthetic::{SyntheticConfig, generate};
    let stream =
        SyntheticConfig { nodes: 40, events: 600, features: 2, ..SyntheticConfig::default() };
    let log = crate::graph::EventLog::new(generate(&stream).expect("a stream").events);
    let events: Vec<Event> = log.events().iter().collect();
    let mut state = model.begin(&StreamInfo::of(events.iter().copied()).expect("events"));
    for step in events[..500].chunks(50) {
        model.observe(log.revealed(step[49].number + 1), &mut state, step).expect("observed");
    }
    let (past, step) = (log.past(500), &events[500..]);
    // Node 40 has never met anybody, and some are asked about themselves.
    let other = |event: &Event| match event.number % 9 {
        0 => event.source,
        _ => NodeId((event.number * 7) % 41),
    };
    let mut ask = Queries::new();
    for event in step {
        ask.push(event.source, event.time, [event.destination, other(event)]);
    }
    let scores = model.score(past, &state, &ask).expect("scored");
    assert_eq!(scores, model.score(past, &state, &ask).expect("scored from what is kept"));
    assert_eq!(scores, model.score(past, &state.clone(), &ask).expect("scored anew"));
    let negatives: Vec<Negative> = step
        .iter()
        .map(|event| Negative { source: event.source, destination: other(event) })
        .collect();
    let batch = TrainBatch { events: step, negatives: &negatives };
    let plain: Vec<f32> =
        model.losses(past, &state, batch, |tape, of| tape.value(of.logits).to_vec());
    let largest = plain.iter().fold(0.0f32, |largest, logit| largest.max(logit.abs()));
    assert_eq!(plain.len(), scores.values().len());
    for (kept, plain) in scores.values().iter().zip(&plain) {
        assert!((kept - f64::from(*plain)).abs() < 1e-5 * f64::from(largest), "{kept} {plain}");
    }
}

/// All pairs of some queries, in order.
pub(super) fn pairs_of(ask: &Queries) -> impl Iterator<Item = (Seed, NodeId)> {
    ask.rows().flat_map(|row| row.candidates.iter().map(move |&other| (row.seed(), other)))
}

/// How many lanes some pairs are worth: each is to have a chunk at least.
fn worth(pairs: usize, chunk: super::encoder::Chunk, most: usize) -> usize {
    (pairs / chunk.pairs).max(pairs / chunk.seeds).clamp(1, most)
}

/// Runs lanes, each alone on a thread unless there are more threads than lanes: threads that share
/// every operation would wait for one another after each.
fn share_lanes<L: Send, T: Send>(lanes: Vec<L>, run: impl Fn(L) -> T + Send + Sync) -> Vec<T> {
    let alone = lanes.len() >= rayon::current_num_threads();
    let run = |lane| if alone { lstep_tensor::alone(|| run(lane)) } else { run(lane) };
    lstep_tensor::awake(|| lanes.into_par_iter().with_max_len(1).map(run).collect())
}

impl<E: NodeEncoder, H: PairHead<E>> Clone for Composite<E, H> {
    fn clone(&self) -> Self {
        Composite::of(self.encoder.clone(), self.head.clone(), self.parameters.clone())
    }
}

impl<E: NodeEncoder, H: PairHead<E>> Model for Composite<E, H> {
    type State = CompositeState<E, H>;

    fn begin(&self, info: &StreamInfo) -> Self::State {
        CompositeState { encoder: self.encoder.init(info), head: self.head.init(info) }
    }

    fn begin_epoch(&self, info: &StreamInfo, epoch: u32) -> Self::State {
        CompositeState { encoder: self.encoder.init(info), head: self.head.init_epoch(info, epoch) }
    }

    /// Logits, whose order is that of the probabilities and which never saturate.
    fn score(&self, past: Past<'_>, state: &Self::State, ask: &Queries) -> Result<Scores> {
        self.fits(past)?;
        let key = (self.parameters.version(), past.node_feature_width());
        let prepared =
            self.prepared.get(key, || self.head.prepare(&self.encoder, &self.parameters, past));
        let pairs: Vec<(Seed, NodeId)> = pairs_of(ask).collect();
        let chunk = self.head.chunk(&self.encoder, Mode::Score);
        let lanes = pairs
            .len()
            .div_ceil(chunk.pairs)
            .max(worth(pairs.len(), chunk, usize::MAX))
            .min(2 * rayon::current_num_threads())
            .max(1);
        let each = pairs.len().div_ceil(lanes).max(1);
        let mut values = vec![0.0; pairs.len()];
        let work = pairs.chunks(each).zip(values.chunks_mut(each)).collect();
        share_lanes(work, |(pairs, values)| {
            self.scratch
                .with(|scratch| self.score_lane(past, state, &prepared, pairs, scratch, values));
        });
        Scores::new(ask, values)
    }

    fn observe(&self, known: Revealed<'_>, state: &mut Self::State, step: &[Event]) -> Result<()> {
        let ahead = self.observing.with(|scratch| {
            scratch.dropout = None;
            self.encoder.ahead(&self.parameters, known, &state.encoder, step, scratch)
        });
        self.observe_ahead(known, state, step, ahead)
    }

    fn describe(&self, state: &Self::State) -> Vec<Diagnostic> {
        self.encoder.describe(&self.parameters, &state.encoder)
    }
}

impl<E: NodeEncoder, H: PairHead<E>> Learner for Composite<E, H> {
    type Ahead = E::Ahead;

    fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    fn parameters_mut(&mut self) -> &mut Parameters {
        &mut self.parameters
    }

    fn lanes(&self, batch: TrainBatch<'_>, wanted: Option<usize>) -> usize {
        match wanted {
            Some(lanes) => lanes.min(batch.events.len()).max(1),
            None => {
                let chunk = self.head.chunk(&self.encoder, Mode::Train);
                worth(batch.len(), chunk, self.encoder.lanes())
            }
        }
    }

    fn gradients(
        &self,
        past: Past<'_>,
        known: Revealed<'_>,
        state: &Self::State,
        batch: TrainBatch<'_>,
        context: TrainContext<'_>,
    ) -> Result<LaneGradients<E::Ahead>> {
        self.fits(past)?;
        let ahead = || {
            self.observing.with(|scratch| {
                scratch.dropout = Some(context.dropout_key);
                self.encoder.ahead(&self.parameters, known, &state.encoder, batch.events, scratch)
            })
        };
        if batch.events.is_empty() || !self.encoder.is_ready(&state.encoder) {
            return Ok(LaneGradients { losses: None, ahead: ahead() });
        }
        let TrainContext { dropout_key, matmul, loss, lanes, of, gradients } = context;
        let each = batch.events.len().div_ceil(of);
        let lane_events = |lane: usize| {
            let end = batch.events.len();
            (lane * each).min(end)..((lane + 1) * each).min(end)
        };
        let forward = |lane: usize| Forward {
            past,
            state,
            batch,
            dropout_key: DropoutKey { seed: dropout_key.seed ^ (lane as u64) << 48, ..dropout_key },
            matmul,
            loss,
        };
        if of == 1 && lanes.len() == 1 {
            let (loss, ahead) = self.scratch.with(|scratch| {
                self.train_lane(forward(0), lane_events(0), scratch, &mut gradients[0], ahead)
            });
            return Ok(LaneGradients { losses: Some(vec![loss]), ahead });
        }
        let work: Vec<(usize, &mut Gradients)> = lanes.zip(gradients).collect();
        let losses = share_lanes(work, |(lane, gradients)| {
            let events = lane_events(lane);
            self.scratch
                .with(|scratch| self.train_lane(forward(lane), events, scratch, gradients, || ()).0)
        });
        Ok(LaneGradients { losses: Some(losses), ahead: ahead() })
    }

    fn observe_ahead(
        &self,
        known: Revealed<'_>,
        state: &mut Self::State,
        step: &[Event],
        ahead: E::Ahead,
    ) -> Result<()> {
        self.observing.with(|scratch| {
            let state = &mut state.encoder;
            self.encoder.observe(&self.parameters, known, state, step, ahead, scratch);
        });
        self.head_observing.with(|scratch| {
            self.head.observe(&self.parameters, known, &mut state.head, step, scratch);
        });
        Ok(())
    }

    fn save_state<'a>(&self, state: &'a Self::State, checkpoint: &mut Checkpoint<'a>) {
        self.encoder.save_state(&state.encoder, checkpoint);
        self.head.save_state(&state.head, checkpoint);
    }

    fn load_state(
        &self,
        info: &StreamInfo,
        checkpoint: &mut Checkpoint<'_>,
    ) -> Result<Self::State> {
        Ok(CompositeState {
            encoder: self.encoder.load_state(info, checkpoint)?,
            head: self.head.load_state(info, checkpoint)?,
        })
    }
}

/// What was computed from the weights as they are, kept until they change.
#[derive(Debug)]
struct PreparedCache<T>(Mutex<Option<(PreparedKey, Arc<T>)>>);

/// What it depends on: the version of the weights, and the width of node features.
type PreparedKey = (u64, usize);

impl<T> Default for PreparedCache<T> {
    fn default() -> Self {
        PreparedCache(Mutex::new(None))
    }
}

impl<T> PreparedCache<T> {
    fn get(&self, key: PreparedKey, make: impl FnOnce() -> T) -> Arc<T> {
        let kept = || self.0.lock().expect("nothing panics while it holds the lock");
        if let Some((known, prepared)) = &*kept()
            && *known == key
        {
            return Arc::clone(prepared);
        }
        // Not while the lock is held: it is computed by several threads, which may be asked for
        // scores meanwhile.
        let prepared = Arc::new(make());
        *kept() = Some((key, Arc::clone(&prepared)));
        prepared
    }
}
