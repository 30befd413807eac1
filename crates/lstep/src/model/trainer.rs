//! Learning, for models that can. A counter need not pretend.
//!
//! A [`Learner`] tells the loss of a batch and its gradients; a [`Trainer`] is a learner joined
//! with its state and its optimizer, whichever model it is, for the training loop. Labels exist
//! only in batches, and batches only here.

use super::{Diagnostic, Joined, Model, Session, StreamInfo};
use crate::checkpoint::Checkpoint;
use crate::error::Result;
use crate::event::{Event, NodeId};
use crate::graph::{Past, Revealed, Seed};
use crate::query::{Queries, Scores};
use lstep_tensor::{
    Adam, AdamConfig, AdamMoments, DropoutKey, Gradients, Matmul, Parameters, Workspace,
};
use std::sync::Arc;

/// What a step teaches: events that happened, and for each a pair that did not meet then.
#[derive(Debug, Clone, Copy)]
pub struct TrainBatch<'a> {
    /// What happened.
    pub events: &'a [Event],
    /// What did not, one for each event and at its time.
    pub negatives: &'a [Negative],
}

impl<'a> TrainBatch<'a> {
    /// For each event the pair that met and the one that did not, as a source at the event's time
    /// and a candidate.
    pub fn pairs(self) -> impl Iterator<Item = [(Seed, NodeId); 2]> + 'a {
        self.events.iter().zip(self.negatives).map(|(event, negative)| {
            let seed = |node| Seed { node, time: event.time };
            [(seed(event.source), event.destination), (seed(negative.source), negative.destination)]
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

/// What a loss is worked out with.
pub struct TrainContext<'a> {
    /// What dropout is drawn from.
    pub dropout_key: DropoutKey,
    /// How layers multiply.
    pub matmul: Matmul,
    /// The memory of tapes.
    pub workspace: &'a mut Workspace,
    /// What the loss's gradients are added to.
    pub gradients: &'a mut Gradients,
}

/// A model whose parameters can be learned.
pub trait Learner: Model + Clone {
    /// The weights.
    fn parameters(&self) -> &Parameters;

    /// The weights, to be changed.
    fn parameters_mut(&mut self) -> &mut Parameters;

    /// The loss of a batch; its gradients are added to those of the context. Nothing where there is
    /// nothing to learn from yet.
    fn loss(
        &self,
        past: Past<'_>,
        state: &Self::State,
        batch: TrainBatch<'_>,
        context: TrainContext<'_>,
    ) -> Result<Option<f64>>;

    /// [`Learner::loss`] and then [`Model::observe`] of the batch's events, with the same weights.
    /// A model that can do both at once may.
    fn loss_and_observe(
        &self,
        past: Past<'_>,
        known: Revealed<'_>,
        state: &mut Self::State,
        batch: TrainBatch<'_>,
        context: TrainContext<'_>,
    ) -> Result<Option<f64>> {
        let loss = self.loss(past, state, batch, context)?;
        self.observe(known, state, batch.events)?;
        Ok(loss)
    }

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
}

/// A learner with its state and its optimizer, whichever model it is.
pub trait Trainer: Session {
    /// Learns from a step and observes it, in this order: gradients, state, weights. So the state
    /// follows with the weights that the step was predicted with, as it does when scoring, and what
    /// was computed for the one serves the other. Tells the step's loss, if there was one.
    fn learn(
        &mut self,
        past: Past<'_>,
        known: Revealed<'_>,
        batch: TrainBatch<'_>,
        dropout: DropoutKey,
    ) -> Result<Option<f64>>;

    /// Puts the running mean of the weights in the place of those that learn, and back. Nothing
    /// happens where there is none.
    fn swap_ema(&mut self);

    /// Goes on with this share of the step size that the optimizer began with.
    fn set_lr_scale(&mut self, share: f64);

    /// Forgets the state, not the weights.
    fn reset_state(&mut self);

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
    let gradients = Gradients::of(model.parameters());
    let adam = Adam::new(model.parameters(), optimizer.adam);
    let ema = (optimizer.ema > 0.0).then(|| model.parameters().clone());
    let state = model.begin(info);
    let joined = Joined { model: Arc::new(model), state };
    Box::new(ModelTrainer {
        joined,
        info: info.clone(),
        gradients,
        adam,
        ema,
        optimizer,
        workspace: Workspace::new(),
    })
}

struct ModelTrainer<M: Learner> {
    joined: Joined<M>,
    info: StreamInfo,
    gradients: Gradients,
    adam: Adam,
    ema: Option<Parameters>,
    optimizer: OptimizerConfig,
    workspace: Workspace,
}

impl<M: Learner + 'static> Session for ModelTrainer<M> {
    fn pace(&self) -> super::Pace {
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

impl<M: Learner + 'static> Trainer for ModelTrainer<M> {
    fn learn(
        &mut self,
        past: Past<'_>,
        known: Revealed<'_>,
        batch: TrainBatch<'_>,
        dropout: DropoutKey,
    ) -> Result<Option<f64>> {
        lstep_tensor::awake(|| {
            self.gradients.zero();
            let Joined { model, state } = &mut self.joined;
            let matmul = self.optimizer.matmul;
            let context = TrainContext {
                dropout_key: dropout,
                matmul,
                workspace: &mut self.workspace,
                gradients: &mut self.gradients,
            };
            let loss = model.loss_and_observe(past, known, state, batch, context)?;
            // Weights that a loss without a number has touched are lost; whoever asked learns of it
            // by the loss.
            if loss.is_some_and(f64::is_finite) {
                if let Some(largest) = self.optimizer.clip {
                    self.gradients.clip_norm(largest);
                }
                // A fork that still evaluates keeps the weights it was given.
                let model = Arc::make_mut(&mut self.joined.model);
                self.adam.step(model.parameters_mut(), &self.gradients);
                if let Some(ema) = &mut self.ema {
                    // The plain mean at first, so that the weights before learning are soon
                    // forgotten.
                    let share = (1.0 - self.optimizer.ema).max(1.0 / self.adam.steps() as f64);
                    ema.approach(model.parameters(), share as f32);
                }
            }
            Ok(loss)
        })
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
        self.adam.load_steps(checkpoint.u64("adam.steps")?.first().copied().unwrap_or(0));
        self.joined.state = model.load_state(&self.info, &mut checkpoint)?;
        Ok(())
    }
}
