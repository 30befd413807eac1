//! Learning: gradients of a batch, their reduction, and the update of the weights.
//!
//! A [`Learner`] is a model with parameters; a [`Trainer`] joins it with its state and its
//! optimizer, so that the training loop need not know which model it runs. Gradients are computed
//! in lanes and added up by a [`Reduce`], which is where several processes meet. Labels exist only
//! in batches, and batches only here.

use super::{Diagnostic, Joined, Loss, Model, Reduce, Session, StreamInfo};
use crate::checkpoint::{Checkpoint, impossible};
use crate::error::Result;
use crate::event::{Event, NodeId, Time};
use crate::graph::{Past, Revealed, Seed};
use crate::query::{Queries, Scores};
use lstep_tensor::{
    Adam, AdamConfig, AdamMoments, DropoutKey, Gradients, Matmul, Parameters, Threads,
};
use std::ops::Range;
use std::sync::{Arc, Mutex};

/// What a step teaches: events that happened, and for each some pairs that did not meet then.
#[derive(Debug, Clone, Copy)]
pub struct TrainBatch<'a> {
    /// What happened.
    pub events: &'a [Event],
    /// What did not, equally many for each event and at its time: those of the first event come
    /// first.
    pub negatives: &'a [Negative],
}

impl<'a> TrainBatch<'a> {
    /// Some of the events with their negatives.
    pub fn slice(self, range: Range<usize>) -> TrainBatch<'a> {
        let each = self.each();
        let negatives = range.start * each..range.end * each;
        TrainBatch { events: &self.events[range], negatives: &self.negatives[negatives] }
    }

    /// How many negatives each event has.
    pub fn each(self) -> usize {
        self.negatives.len() / self.events.len().max(1)
    }

    /// How many pairs there are, events and negatives together.
    pub fn len(self) -> usize {
        self.events.len() + self.negatives.len()
    }

    /// Whether there is nothing to learn from.
    pub fn is_empty(self) -> bool {
        self.events.is_empty()
    }

    /// Each event with its negatives.
    pub fn rows(self) -> impl Iterator<Item = (&'a Event, &'a [Negative])> {
        self.events.iter().zip(self.negatives.chunks(self.each().max(1)))
    }

    /// Every pair as a source at its time and a candidate, and whether it met: an event, then its
    /// negatives, then the next event.
    pub fn pairs(self) -> impl Iterator<Item = ((Seed, NodeId), bool)> {
        self.rows().flat_map(|(event, negatives)| {
            let met = (Seed::new(event.source, event.time), event.destination);
            let others = negatives.iter().map(|negative| (negative.at(event.time), false));
            std::iter::once((met, true)).chain(others)
        })
    }
}

/// Two nodes that did not meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Negative {
    /// Mostly the source of the event it stands beside.
    pub source: NodeId,
    /// With whom it did not meet.
    pub destination: NodeId,
}

impl Negative {
    /// The pair at a time, as a source and a candidate.
    pub fn at(self, time: Time) -> (Seed, NodeId) {
        (Seed::new(self.source, time), self.destination)
    }
}

/// What gradients are computed with.
pub struct TrainContext<'a> {
    /// What dropout is drawn from.
    pub dropout_key: DropoutKey,
    /// How layers multiply.
    pub matmul: Matmul,
    /// What is minimised.
    pub loss: Loss,
    /// Which lanes of the batch are computed here.
    pub lanes: Range<usize>,
    /// How many lanes the batch has in all.
    pub of: usize,
    /// What the gradients of each of these lanes are added to.
    pub gradients: &'a mut [Gradients],
}

/// What [`Learner::gradients`] gives beside the gradients.
pub struct LaneGradients<A> {
    /// Each lane's share of the loss; nothing where there is nothing to learn from yet.
    pub losses: Option<Vec<f64>>,
    /// What was computed ahead of the observation of the batch.
    pub ahead: A,
}

/// A model whose parameters can be learned.
pub trait Learner: Model + Clone {
    /// What can be computed before a step changes the state.
    type Ahead: Default + Send;

    /// The weights.
    fn parameters(&self) -> &Parameters;

    /// The weights, to be changed.
    fn parameters_mut(&mut self) -> &mut Parameters;

    /// Into how many lanes a batch is cut: as many as wanted, or as many as it is worth. Each lane
    /// has gradients of its own, which are added in a fixed order, so the number must not depend on
    /// the machine.
    fn lanes(&self, _: TrainBatch<'_>, _: Option<usize>) -> usize {
        1
    }

    /// The loss and the gradients of some lanes of a batch, and what its observation needs.
    fn gradients(
        &self,
        past: Past<'_>,
        known: Revealed<'_>,
        state: &Self::State,
        batch: TrainBatch<'_>,
        context: TrainContext<'_>,
    ) -> Result<LaneGradients<Self::Ahead>>;

    /// [`Model::observe`], given what was computed ahead.
    fn observe_ahead(
        &self,
        known: Revealed<'_>,
        state: &mut Self::State,
        step: &[Event],
        ahead: Self::Ahead,
    ) -> Result<()>;

    /// Writes the state into a checkpoint.
    fn save_state<'a>(&self, state: &'a Self::State, checkpoint: &mut Checkpoint<'a>);

    /// Reads the state that [`Learner::save_state`] wrote.
    fn load_state(&self, info: &StreamInfo, checkpoint: &mut Checkpoint<'_>)
    -> Result<Self::State>;
}

/// How weights follow gradients.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct OptimizerConfig {
    /// Adam's settings.
    pub adam: AdamConfig,
    /// Largest norm of all gradients together, if they are clipped.
    pub clip: Option<f64>,
    /// What a running mean of the weights keeps of itself at every batch, in [0, 1); with 0 there
    /// is none.
    pub ema: f64,
    /// How layers multiply in batches.
    pub matmul: Matmul,
    /// What is minimised.
    pub loss: Loss,
    /// Into how many lanes a batch is cut; the model's own choice if absent.
    pub lanes: Option<usize>,
}

/// One step of training: what may be seen, what becomes known, and what is learned.
#[derive(Debug, Clone, Copy)]
pub struct TrainStep<'a> {
    /// What the batch's questions may see.
    pub past: Past<'a>,
    /// What is known once the step is over.
    pub known: Revealed<'a>,
    /// The events and their negatives.
    pub batch: TrainBatch<'a>,
    /// What dropout is drawn from.
    pub dropout_key: DropoutKey,
}

/// A learner with its state and its optimizer, whichever model it is.
///
/// A training step computes gradients, then lets the state follow, then updates the weights. So the
/// state follows with the weights that the step was predicted with, as it does when scoring.
pub trait Trainer: Session {
    /// Into how many lanes a batch is cut.
    fn lanes(&self, batch: TrainBatch<'_>) -> usize;

    /// Computes the gradients of some of `of` lanes, then lets the state follow the step. Gives
    /// each lane's share of the loss; nothing where there is nothing to learn from yet.
    fn gradients(
        &mut self,
        step: TrainStep<'_>,
        lanes: Range<usize>,
        of: usize,
    ) -> Result<Option<Vec<f64>>>;

    /// The gradients of the lanes that [`Trainer::gradients`] computed, to be added up in the
    /// first.
    fn lane_gradients(&mut self) -> &mut [Gradients];

    /// Updates the weights by the gradients in the first lane, unless the loss is no number.
    fn apply(&mut self, loss: f64);

    /// Gradients, their sum, and the update. Gives the step's loss, if there was one.
    fn learn(&mut self, step: TrainStep<'_>, reduce: &mut dyn Reduce) -> Result<Option<f64>> {
        let of = self.lanes(step.batch);
        let Some(losses) = self.gradients(step, reduce.lanes(of), of)? else { return Ok(None) };
        let loss = reduce.sum(self.lane_gradients(), &losses, of)?;
        self.apply(loss);
        Ok(Some(loss))
    }

    /// Swaps in the EMA weights; call again to swap back. Nothing happens where there are none.
    fn swap_ema(&mut self);

    /// Sets the learning rate to this share of the one that the optimizer began with.
    fn set_lr_scale(&mut self, share: f64);

    /// Resets the state, not the weights.
    fn reset_state(&mut self);

    /// Resets the state for a training epoch, see [`Model::begin_epoch`].
    fn start_epoch(&mut self, epoch: u32);

    /// How many numbers can be learned.
    fn weights(&self) -> usize;

    /// Weights, moments and state.
    fn save<'a>(&'a self, checkpoint: &mut Checkpoint<'a>);

    /// Takes over what [`Trainer::save`] wrote.
    fn load(&mut self, checkpoint: Checkpoint<'_>) -> Result<()>;
}

/// Joins a learner with the state before the first event and a fresh optimizer.
pub fn new_trainer<M: Learner + 'static>(
    model: M,
    info: &StreamInfo,
    optimizer: OptimizerConfig,
) -> Box<dyn Trainer> {
    let gradients = vec![Gradients::of(model.parameters())];
    let adam = Adam::new(model.parameters(), optimizer.adam);
    let ema = (optimizer.ema > 0.0).then(|| model.parameters().clone());
    let state = model.begin(info);
    let joined = Joined { model: Arc::new(model), state };
    let (learning, scoring) = (Threads::default(), Mutex::default());
    let info = info.clone();
    Box::new(ModelTrainer { joined, info, gradients, adam, ema, optimizer, learning, scoring })
}

struct ModelTrainer<M: Learner> {
    joined: Joined<M>,
    info: StreamInfo,
    gradients: Vec<Gradients>,
    adam: Adam,
    ema: Option<Parameters>,
    optimizer: OptimizerConfig,
    /// With how many threads it learns and scores.
    learning: Threads,
    scoring: Mutex<Threads>,
}

impl<M: Learner + 'static> Session for ModelTrainer<M> {
    fn pace(&self) -> super::Pace {
        self.joined.pace()
    }

    fn score(&self, past: Past<'_>, ask: &Queries) -> Result<Scores> {
        Threads::run_shared(&self.scoring, ask.pairs(), || self.joined.score(past, ask))
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

impl<M: Learner + 'static> Trainer for ModelTrainer<M> {
    fn lanes(&self, batch: TrainBatch<'_>) -> usize {
        self.joined.model.lanes(batch, self.optimizer.lanes)
    }

    fn gradients(
        &mut self,
        TrainStep { past, known, batch, dropout_key }: TrainStep<'_>,
        lanes: Range<usize>,
        of: usize,
    ) -> Result<Option<Vec<f64>>> {
        let ModelTrainer { joined, gradients, optimizer, learning, .. } = self;
        learning.run(batch.len(), || {
            let Joined { model, state } = joined;
            gradients.resize_with(lanes.len().max(1), || Gradients::of(model.parameters()));
            gradients.iter_mut().for_each(Gradients::zero);
            let OptimizerConfig { matmul, loss, .. } = *optimizer;
            let context = TrainContext { dropout_key, matmul, loss, lanes, of, gradients };
            let LaneGradients { losses, ahead } =
                model.gradients(past, known, state, batch, context)?;
            model.observe_ahead(known, state, batch.events, ahead)?;
            Ok(losses)
        })
    }

    fn lane_gradients(&mut self) -> &mut [Gradients] {
        &mut self.gradients
    }

    fn apply(&mut self, loss: f64) {
        // Weights that a loss without a number has touched are lost; the caller sees the loss.
        if !loss.is_finite() {
            return;
        }
        let ModelTrainer { joined, gradients, adam, ema, optimizer, learning, .. } = self;
        learning.run_beside(|| {
            let gradients = &mut gradients[0];
            if let Some(largest) = optimizer.clip {
                gradients.clip_norm(largest);
            }
            // A fork that still evaluates keeps the weights it was given.
            let model = Arc::make_mut(&mut joined.model);
            adam.step(model.parameters_mut(), gradients);
            if let Some(ema) = ema {
                // The plain mean at first, so that the weights before learning are soon forgotten.
                let share = (1.0 - optimizer.ema).max(1.0 / adam.steps() as f64);
                ema.approach(model.parameters(), share as f32);
            }
        });
    }

    fn swap_ema(&mut self) {
        if let Some(ema) = &mut self.ema {
            std::mem::swap(Arc::make_mut(&mut self.joined.model).parameters_mut(), ema);
        }
    }

    fn set_lr_scale(&mut self, share: f64) {
        self.adam.set_learning_rate(share * self.optimizer.adam.learning_rate);
    }

    fn reset_state(&mut self) {
        self.joined.state = self.joined.model.begin(&self.info);
    }

    fn start_epoch(&mut self, epoch: u32) {
        self.joined.state = self.joined.model.begin_epoch(&self.info, epoch);
    }

    fn weights(&self) -> usize {
        self.joined.model.parameters().count()
    }

    fn save<'a>(&'a self, checkpoint: &mut Checkpoint<'a>) {
        let model = &self.joined.model;
        for parameter in model.parameters().iter() {
            checkpoint.push_f32(&format!("weight.{}", parameter.name), parameter.values);
        }
        for parameter in self.ema.iter().flat_map(Parameters::iter) {
            checkpoint.push_f32(&format!("average.{}", parameter.name), parameter.values);
        }
        for moments in self.adam.moments() {
            checkpoint.push_f32(&format!("first.{}", moments.name), moments.first);
            checkpoint.push_f32(&format!("second.{}", moments.name), moments.second);
        }
        checkpoint.push_u64("adam.steps", vec![self.adam.steps()]);
        model.save_state(&self.joined.state, checkpoint);
    }

    fn load(&mut self, mut checkpoint: Checkpoint<'_>) -> Result<()> {
        let model = Arc::make_mut(&mut self.joined.model);
        let names: Vec<String> =
            model.parameters().iter().map(|parameter| parameter.name.to_string()).collect();
        for name in &names {
            model.parameters_mut().load(name, checkpoint.f32(&format!("weight.{name}"))?)?;
            let first = checkpoint.f32(&format!("first.{name}"))?;
            let second = checkpoint.f32(&format!("second.{name}"))?;
            self.adam.load(AdamMoments { name, first, second })?;
            if let Some(ema) = &mut self.ema {
                ema.load(name, checkpoint.f32(&format!("average.{name}"))?)?;
            }
        }
        // Beyond that steps are no longer counted exactly, and no run has as many.
        let steps = checkpoint.one_u64("adam.steps")?;
        if steps > 1 << 53 {
            return Err(impossible(format!("has made {steps} steps, more than can be")));
        }
        self.adam.load_steps(steps);
        self.joined.state = model.load_state(&self.info, &mut checkpoint)?;
        Ok(())
    }
}
