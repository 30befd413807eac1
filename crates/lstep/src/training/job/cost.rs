//! What a step of training costs on this machine, measured on a few steps of the stream itself.
//!
//! One thread is used, so that the figures are those of a core. Some steps are observed first, so
//! that histories are not empty; then steps are learned from, by turns in all their lanes and in
//! one.

use super::TrainingRun;
use crate::error::Result;
use crate::model::{Local, Reduce, TrainBatch};
use serde::Serialize;
use std::time::{Duration, Instant};

/// Seconds of the parts of a step, on one core; medians.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct StepCost {
    /// Events in a step.
    pub events: usize,
    /// Steps of an epoch.
    pub steps: usize,
    /// Into how many lanes a step is cut.
    pub lanes: usize,
    /// Numbers that are learned.
    pub weights: usize,
    /// Gradients of all lanes.
    pub gradients: f64,
    /// Gradients of the same steps in one lane.
    pub in_one_lane: f64,
    /// Letting the state follow, which every rank does.
    pub observe: f64,
    /// Adding all lanes.
    pub add: f64,
    /// Adam, which every rank does.
    pub update: f64,
    /// Steps that were learned from.
    pub measured: usize,
}

impl TrainingRun {
    /// Measures what a step costs, for about so long. The run has learned afterwards and is good
    /// for nothing else, so it is one in memory.
    pub fn measure(mut self, about: Duration) -> Result<StepCost> {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build();
        let pool = pool.expect("one thread can be had");
        lstep_tensor::awake_in(&pool, || self.measure_here(about))
    }

    fn measure_here(&mut self, about: Duration) -> Result<StepCost> {
        let (training, trainer) = (&self.training, self.trainer.as_mut());
        let steps = training.steps();
        let started = Instant::now();
        trainer.start_epoch(1);
        let mut parts = Parts::default();
        let mut next = 0;
        while next < steps / 2 && (next < 2 || started.elapsed() < about / 3) {
            let (events, negatives) = training.batch(1, next);
            let batch = TrainBatch { events: &events, negatives: &negatives };
            let step = training.step(1, next, batch);
            let begun = Instant::now();
            trainer.observe(step.known, &events)?;
            parts.observe.push(begun.elapsed());
            next += 1;
        }
        // What histories hold at the end counts more than what they held at first.
        parts.observe.drain(..parts.observe.len() / 2);
        let mut lanes = 1;
        let mut local = Local::default();
        for number in next..steps {
            let turn = number - next;
            if turn >= 4 && started.elapsed() > about {
                break;
            }
            let (events, negatives) = training.batch(1, number);
            let batch = TrainBatch { events: &events, negatives: &negatives };
            let step = training.step(1, number, batch);
            let wanted = trainer.lanes(batch);
            lanes = lanes.max(wanted);
            let of = if turn % 2 == 0 { wanted } else { 1 };
            let begun = Instant::now();
            let Some(losses) = trainer.gradients(step, 0..of, of)? else { continue };
            let taken = if of == 1 { &mut parts.one } else { &mut parts.all };
            taken.push(begun.elapsed());
            let begun = Instant::now();
            let loss = local.sum(trainer.lane_gradients(), &losses, of)?;
            let added = begun.elapsed();
            trainer.apply(loss);
            parts.update.push(begun.elapsed() - added);
            if turn % 2 == 0 {
                parts.add.push(added);
            }
        }
        let measured = parts.one.len() + parts.all.len();
        let observe = median(&mut parts.observe);
        let one = (median(&mut parts.one) - observe).max(0.0);
        let all = match parts.all.is_empty() {
            true => one,
            false => (median(&mut parts.all) - observe).max(0.0),
        };
        Ok(StepCost {
            events: training.step_events(0),
            steps,
            lanes,
            weights: trainer.weights(),
            gradients: all,
            in_one_lane: one,
            observe,
            add: median(&mut parts.add),
            update: median(&mut parts.update),
            measured,
        })
    }
}

/// Times of parts of steps.
#[derive(Default)]
struct Parts {
    observe: Vec<Duration>,
    all: Vec<Duration>,
    one: Vec<Duration>,
    add: Vec<Duration>,
    update: Vec<Duration>,
}

fn median(times: &mut [Duration]) -> f64 {
    times.sort();
    times.get(times.len() / 2).map_or(0.0, Duration::as_secs_f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::synthetic::{SyntheticConfig, generate};
    use crate::settings::{DataConfig, RunConfig};
    use crate::stream::Stream;

    #[test]
    fn every_part_of_a_step_is_measured() {
        let config = SyntheticConfig { nodes: 40, events: 600, ..SyntheticConfig::default() };
        let stream = Stream::from(generate(&config).expect("a stream"));
        let keys = ["protocol.step=20", "train.lanes=4"].iter();
        let keys: Vec<String> =
            keys.chain(lstep_testkit::small::GRAPHMIXER).map(|key| key.to_string()).collect();
        let config = RunConfig::builder(DataConfig::default()).model("graphmixer").set(&keys);
        let config = config.build().expect("settings");
        let run = TrainingRun::begin_in_memory(config, stream).expect("begun");
        let cost = run.measure(Duration::from_millis(50)).expect("measured");
        assert_eq!((cost.events, cost.lanes), (20, 4));
        assert!(cost.measured >= 4 && cost.weights > 0, "{cost:?}");
        assert!(cost.gradients > 0.0 && cost.in_one_lane > 0.0 && cost.update > 0.0, "{cost:?}");
    }
}
