//! The training loop: epochs of batches, selection on validation, early stopping, and everything
//! that is needed to go on.
//!
//! Every epoch starts from the same initial state and goes through the training events in order;
//! the state then streams on into validation. Training has a log of its own that holds only what
//! may train, so held-out nodes cannot be met in anybody's history. All draws are keyed by seed,
//! epoch and step: an epoch that is done again is the same epoch.

use crate::error::{Error, Result};
use crate::event::{Event, Events, NodeId, pair_key};
use crate::graph::{EventLog, Seed};
use crate::model::{Local, Negative, Reduce, TrainBatch, TrainStep, Trainer};
use crate::protocol::{Split, StepRule, Visibility, cut};
use crate::rng::KeyedRng;
use crate::settings::TrainConfig;
use rustc_hash::FxHashSet;
use serde::{Deserialize, Serialize};
use std::ops::{ControlFlow, Range};

/// Among how many of a source's newest events an earlier partner is drawn.
const PARTNERS: usize = 100;

/// The events that may train, in a log of their own, cut into steps.
pub struct TrainingStream {
    log: EventLog,
    steps: Vec<Range<u32>>,
    destinations: Vec<NodeId>,
    /// All pairs in the order in which they first met, and how many of them each step may draw
    /// from.
    pairs: Vec<Negative>,
    known: Vec<u32>,
    visibility: Visibility,
    seed: u64,
    half_life: Option<f64>,
    historical: f64,
    novel: f64,
    source_historical: f64,
    each: usize,
}

impl TrainingStream {
    /// The training of a split.
    pub fn new(
        log: &EventLog,
        split: &Split,
        rule: StepRule,
        visibility: Visibility,
        train: &TrainConfig,
    ) -> Result<TrainingStream> {
        let all = log.events();
        let mut events = Events::empty(all.features().width());
        for event in all.iter().take(split.train.end as usize).filter(|event| split.trains(*event))
        {
            let features = all.features().row(event.number as usize);
            events.push(event.source, event.destination, event.time, features)?;
        }
        let destinations = all.by_appearance(events.destinations().iter().copied());
        let steps = cut(&events, 0..events.len() as u32, rule, visibility);
        let (pairs, known) = if train.historical + train.novel > 0.0 {
            first_pairs(&events, &steps)
        } else {
            Default::default()
        };
        let log = EventLog::new(events).with_node_features(log.node_features().clone());
        Ok(TrainingStream {
            log,
            steps,
            destinations,
            pairs,
            known,
            visibility,
            seed: train.seed,
            half_life: train.half_life,
            historical: train.historical,
            novel: train.novel,
            source_historical: train.source_historical,
            each: train.negatives,
        })
    }

    /// How many events it has.
    pub fn events(&self) -> usize {
        self.log.len()
    }

    /// How many steps it has.
    pub fn steps(&self) -> usize {
        self.steps.len()
    }

    /// How many events a step has.
    pub fn step_events(&self, step: usize) -> usize {
        self.steps[step].len()
    }

    /// The events that may train.
    pub fn log(&self) -> &EventLog {
        &self.log
    }

    /// What a step of an epoch teaches: its events, numbered as in [`TrainingStream::log`], and a
    /// negative for each.
    pub fn batch(&self, epoch: u32, step: usize) -> (Vec<Event>, Vec<Negative>) {
        let numbers = self.steps[step].clone();
        let events: Vec<Event> =
            numbers.map(|number| self.log.events().at(number as usize)).collect();
        let mut draw = KeyedRng::new(&[self.seed, 0x7ea, u64::from(epoch), step as u64]);
        let negatives = self.negatives(&events, step, &mut draw);
        (events, negatives)
    }

    /// Trains on one step of an epoch. Returns its loss, if there was one.
    pub fn train_step(
        &self,
        trainer: &mut dyn Trainer,
        epoch: u32,
        step: usize,
    ) -> Result<Option<f64>> {
        self.train_step_with(trainer, &mut Local::default(), epoch, step)
    }

    /// The same with lanes that are added by `reduce`.
    fn train_step_with(
        &self,
        trainer: &mut dyn Trainer,
        reduce: &mut dyn Reduce,
        epoch: u32,
        step: usize,
    ) -> Result<Option<f64>> {
        let (events, negatives) = self.batch(epoch, step);
        let batch = TrainBatch { events: &events, negatives: &negatives };
        if let Some(half_life) = self.half_life {
            let before = u64::from(epoch - 1) * self.steps.len() as u64 + step as u64;
            trainer.set_lr_scale(0.5f64.powf(before as f64 / half_life));
        }
        trainer.learn(self.step(epoch, step, batch), reduce)
    }

    /// A step of an epoch with what it teaches, see [`TrainingStream::batch`].
    pub fn step<'a>(&'a self, epoch: u32, step: usize, batch: TrainBatch<'a>) -> TrainStep<'a> {
        let span = self.steps[step].clone();
        let horizon = if self.visibility == Visibility::Step { span.start } else { span.end };
        let dropout_key = lstep_tensor::DropoutKey {
            seed: self.seed,
            step: u64::from(epoch) << 32 | step as u64,
        };
        TrainStep {
            past: self.log.past(horizon),
            known: self.log.revealed(span.end),
            batch,
            dropout_key,
        }
    }

    /// The negatives of each event of a step.
    fn negatives(&self, events: &[Event], step: usize, draw: &mut KeyedRng) -> Vec<Negative> {
        let pool = &self.destinations;
        let random = |draw: &mut KeyedRng, event: &Event| Negative {
            source: event.source,
            destination: pool[draw.below(pool.len() as u64) as usize],
        };
        let rows = || events.iter().flat_map(|event| std::iter::repeat_n(event, self.each));
        let known = self.known.get(step).copied().unwrap_or(0);
        if known == 0 && self.source_historical == 0.0 {
            return rows().map(|event| random(draw, event)).collect();
        }
        let met: FxHashSet<u64> =
            events.iter().map(|event| pair_key(event.source, event.destination)).collect();
        let lately = known - known.div_ceil(8);
        let before = self.log.past(self.steps[step].start);
        let pairs = if known == 0 { 0.0 } else { self.historical + self.novel };
        let negative = |event: &Event| {
            let kind = draw.unit();
            let from = if kind < self.historical { 0 } else { lately };
            let partners = match kind - pairs {
                own if (0.0..self.source_historical).contains(&own) => {
                    before.recent(Seed::new(event.source, event.time), PARTNERS)
                }
                _ => &[],
            };
            if kind >= pairs && partners.is_empty() {
                return random(draw, event);
            }
            // A pair that meets in this very step is no negative; a few tries find another, if
            // there is one.
            for _ in 0..4 {
                let pair = if kind < pairs {
                    self.pairs[(from + draw.below(u64::from(known - from)) as u32) as usize]
                } else {
                    let partner = partners[draw.below(partners.len() as u64) as usize].node();
                    Negative { source: event.source, destination: partner }
                };
                if !met.contains(&pair_key(pair.source, pair.destination)) {
                    return pair;
                }
            }
            random(draw, event)
        };
        rows().map(negative).collect()
    }

    /// Runs the steps of an epoch that are left, from `progress` on, until `watch` breaks. It is
    /// called after each step with the events done. Returns whether the epoch is complete.
    pub fn run_epoch(
        &self,
        trainer: &mut dyn Trainer,
        progress: &mut Progress,
        watch: &mut (dyn FnMut(&Progress, u64) -> ControlFlow<()> + Send),
    ) -> Result<bool> {
        self.run_epoch_with(trainer, &mut Local::default(), progress, watch)
    }

    /// The same with lanes that are added by `reduce`, maybe with other processes, which stop where
    /// one of them does.
    pub fn run_epoch_with(
        &self,
        trainer: &mut dyn Trainer,
        reduce: &mut dyn Reduce,
        progress: &mut Progress,
        watch: &mut (dyn FnMut(&Progress, u64) -> ControlFlow<()> + Send),
    ) -> Result<bool> {
        if progress.step == 0 {
            trainer.start_epoch(progress.epoch);
        }
        lstep_tensor::awake(|| {
            while (progress.step as usize) < self.steps.len() {
                let (epoch, step) = (progress.epoch, progress.step as usize);
                if let Some(loss) = self.train_step_with(trainer, reduce, epoch, step)? {
                    if !loss.is_finite() {
                        return Err(Error::LossNotFinite { epoch: progress.epoch, loss });
                    }
                    progress.loss_sum += loss;
                    progress.batches += 1;
                }
                let done = u64::from(self.steps[progress.step as usize].end);
                progress.step += 1;
                let stop = reduce.agree_to_stop(watch(progress, done).is_break())?;
                if stop && (progress.step as usize) < self.steps.len() {
                    return Ok(false);
                }
            }
            Ok(true)
        })
    }
}

/// All pairs in the order in which they first met, and how many of them met before each step.
fn first_pairs(events: &Events, steps: &[Range<u32>]) -> (Vec<Negative>, Vec<u32>) {
    let (mut seen, mut pairs, mut known) =
        (FxHashSet::default(), Vec::new(), Vec::with_capacity(steps.len()));
    for step in steps {
        known.push(pairs.len() as u32);
        for event in step.clone().map(|number| events.at(number as usize)) {
            if seen.insert(pair_key(event.source, event.destination)) {
                pairs.push(Negative { source: event.source, destination: event.destination });
            }
        }
    }
    (pairs, known)
}

/// How far an epoch is.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// The epoch's number, from 1.
    pub epoch: u32,
    /// Its next step, from 0.
    pub step: u32,
    /// Sum of the losses so far.
    pub loss_sum: f64,
    /// Steps that had a loss.
    #[serde(alias = "lessons")]
    pub batches: u32,
}

impl Progress {
    /// Before an epoch's first step.
    pub fn start(epoch: u32) -> Progress {
        Progress { epoch, step: 0, loss_sum: 0.0, batches: 0 }
    }

    /// Mean loss so far.
    pub fn loss(&self) -> f64 {
        self.loss_sum / f64::from(self.batches.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkpoint::Checkpoint;
    use crate::model::{LstepConfig, ModelConfig, OptimizerConfig};
    use crate::read::synthetic::{SyntheticConfig, generate};
    use crate::stream::info;

    #[test]
    fn negatives_are_as_many_as_asked_and_earlier_partners_of_the_source() {
        let stream = SyntheticConfig { nodes: 400, events: 4_000, ..SyntheticConfig::default() };
        let log = EventLog::new(generate(&stream).expect("a stream").events);
        let split = Split::chronological(log.events(), 0.7, 0.85).expect("three parts");
        let train = TrainConfig { negatives: 3, source_historical: 1.0, ..TrainConfig::default() };
        let rule = StepRule::Events(20);
        let training = TrainingStream::new(&log, &split, rule, Visibility::Event, &train);
        let training = training.expect("events");
        let mut seen = 0;
        for (step, span) in training.steps.iter().enumerate() {
            let events: Vec<Event> =
                span.clone().map(|number| training.log.events().at(number as usize)).collect();
            let negatives = training.negatives(&events, step, &mut KeyedRng::new(&[step as u64]));
            assert_eq!(negatives.len(), 3 * events.len());
            let batch = TrainBatch { events: &events, negatives: &negatives };
            for (event, negatives) in batch.rows() {
                let before = training.log.past(span.start);
                let partners = before.recent(Seed::new(event.source, event.time), PARTNERS);
                // Only partners that meet in the step itself are passed over.
                let meets = |partner: &crate::graph::Neighbour| {
                    let pair = (event.source, partner.node());
                    events.iter().any(|other| {
                        pair == (other.source, other.destination)
                            || pair == (other.destination, other.source)
                    })
                };
                let free = !partners.is_empty() && !partners.iter().any(meets);
                for negative in negatives {
                    assert_eq!(negative.source, event.source);
                    let earlier = partners.iter().any(|it| it.node() == negative.destination);
                    assert!(earlier || !free, "{negative:?} of {event:?}");
                    seen += usize::from(free);
                }
            }
        }
        assert!(seen > 100, "{seen}");
    }

    #[test]
    fn the_step_size_halves_as_batches_pass() {
        let stream = SyntheticConfig { nodes: 40, events: 400, ..SyntheticConfig::default() };
        let log = EventLog::new(generate(&stream).expect("a stream").events);
        let split = Split::chronological(log.events(), 0.7, 0.85).expect("three parts");
        let model = ModelConfig::from(LstepConfig {
            position_width: 4,
            snapshots: 4,
            ..LstepConfig::default()
        });
        let weights = |trainer: &dyn Trainer| {
            let mut checkpoint = Checkpoint::default();
            trainer.save(&mut checkpoint);
            checkpoint.f32("weight.merge.weight").expect("a layer").to_vec()
        };
        // How far the second epoch moves a layer's weights.
        let moved = |half_life: Option<f64>| {
            let train = TrainConfig { half_life, ..TrainConfig::default() };
            let training =
                TrainingStream::new(&log, &split, StepRule::Events(50), Visibility::Event, &train)
                    .expect("events");
            let optimizer = OptimizerConfig::default();
            let mut trainer = model.trainer(&info(&log, &split), 0, optimizer).expect("a model");
            let mut epoch = |epoch| {
                training
                    .run_epoch(trainer.as_mut(), &mut Progress::start(epoch), &mut |_, _| {
                        ControlFlow::Continue(())
                    })
                    .expect("an epoch");
                weights(trainer.as_ref())
            };
            let (first, second) = (epoch(1), epoch(2));
            first.iter().zip(&second).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
        };
        // An epoch has six batches, so the second begins at a sixteenth and ends at a hundredth.
        let (whole, less) = (moved(None), moved(Some(1.5)));
        assert!(whole > 1e-4 && less > 0.002 * whole && less < 0.1 * whole, "{whole} {less}");
    }
}
