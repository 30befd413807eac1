//! What a label leak of released code is worth, measured: two small models that differ in nothing
//! else are trained on the same stream and asked the same questions.
//!
//! L-STEP's released code filters positions only of nodes of true events
//! (`model/lstep/released_leak.rs`); that of DyGFormer fills histories up to the longest of a call
//! (`model/dygformer/released_padding.rs`). This is the only place that makes such models; they are
//! trained, asked, checked against the laws and forgotten.

use crate::audit::laws::{Breach, Check, Opening, Submission, check_model};
use crate::error::Result;
use crate::evaluation::{evaluate, unwatched};
use crate::graph::EventLog;
use crate::model::{
    DyGFormerConfig, LstepConfig, ModelConfig, OptimizerConfig, Padding, ReleasedLeak,
    ReleasedPadding, StreamInfo, Trainer, new_trainer,
};
use crate::protocol::{
    EvalPass, EvalScope, Part, Setting, StepRule, Strategy, StreamProtocol, negatives_sha256,
};
use crate::results::Outcome;
use crate::settings::{SelectBy, TrainConfig};
use crate::stream::Stream;
use crate::stream::info;
use crate::training::RunFolder;
use crate::training::TrainedRun;
use crate::training::{Progress, Selection, TrainingStream};
use lstep_tensor::AdamConfig;
use serde::Serialize;
use std::ops::ControlFlow;

/// Events used at most: all of the paper's small streams, and a minute or two of two cores.
const MOST_EVENTS: usize = 60_000;
/// Epochs of both models; validation selects among them, as in any training.
const EPOCHS: u32 = 5;
/// Three times the paper's, for so few epochs; with ten times, validation AP of the leaking model
/// swings by five points on uci.
const LEARNING_RATE: f64 = 3e-4;
/// Events the laws are checked on, as many as an audit takes.
const CHECKED_EVENTS: usize = 10_000;

/// What a leaking model does that an honest one does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    /// It filters positions only of nodes of true events, as L-STEP's released code does.
    Filter,
    /// It fills histories up to the longest of the true events, or of the negatives, as DyGFormer's
    /// released code does.
    Padding,
}

/// Both models' numbers, and everything they depend on.
#[derive(Debug, Clone, Serialize)]
pub struct LeakReport {
    /// What the leaking model does.
    pub fault: Fault,
    /// The stream's name.
    pub dataset: String,
    /// How many of its first events were used.
    pub events: usize,
    /// How many of them trained.
    pub training_events: usize,
    /// Epochs of training.
    pub epochs: u32,
    /// Adam's step size.
    pub learning_rate: f64,
    /// Seed of weights and negatives.
    pub seed: u64,
    /// How the stream was split, stepped and asked about.
    pub protocol: StreamProtocol,
    /// The settings of both models.
    pub model: ModelConfig,
    /// Numbers on the test part, one entry for each kind of negatives.
    pub results: Vec<LeakCompared>,
    /// The epoch of the honest model that validation selected, whose numbers these are.
    pub honest_epoch: u32,
    /// The epoch of the leaking model that validation selected.
    pub leaking_epoch: u32,
    /// Laws that the honest model broke.
    pub honest_breaches: Vec<Breach>,
    /// Laws that the leaking model broke.
    pub leaking_breaches: Vec<Breach>,
}

/// The numbers of one kind of negatives.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LeakCompared {
    /// The kind of negatives.
    pub negatives: Strategy,
    /// SHA-256 of the negatives as a file; both models were asked against them.
    pub negatives_sha256: String,
    /// Of the model without the fault.
    pub honest: Quality,
    /// Of the model with it.
    pub leaking: Quality,
}

/// How well one model answered, as means over steps.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Quality {
    /// Average precision.
    pub ap: f64,
    /// ROC-AUC.
    pub auc: f64,
}

impl From<Outcome> for Quality {
    fn from(outcome: Outcome) -> Quality {
        Quality { ap: outcome.ap, auc: outcome.auc }
    }
}

/// Gets told how far training is: which of the two models, how far its epoch is, events done in it
/// and events it has.
pub type LeakWatch<'a> = dyn FnMut(&str, &Progress, u64, u64) + Send + 'a;

/// Trains both models on the first events of a run's stream, with the run's step and seed:
/// DyGFormers if the run's model is one, else L-STEPs with the run's `gap`.
pub fn show_released_leak(folder: &RunFolder, watch: &mut LeakWatch<'_>) -> Result<LeakReport> {
    let trained = TrainedRun::open(folder)?;
    let config = trained.config();
    let step = match config.protocol.step() {
        StepRule::DistinctTime => StreamProtocol::default().step,
        events => events,
    };
    let protocol = StreamProtocol { step, seed: config.train.seed, ..StreamProtocol::default() };
    compare(trained.stream(), protocol, &config.model, watch)
}

fn compare(
    stream: &Stream,
    protocol: StreamProtocol,
    like: &ModelConfig,
    watch: &mut LeakWatch<'_>,
) -> Result<LeakReport> {
    let all = &stream.log;
    let log = EventLog::new(all.events().first(MOST_EVENTS))
        .with_node_features(all.node_features().clone());
    let seed = protocol.seed;
    let split = protocol.split(log.events())?;
    let asked = EvalScope {
        parts: vec![Part::Test],
        settings: vec![Setting::Transductive],
        strategies: vec![Strategy::Random, Strategy::Historical],
    };
    let pass = protocol.pass(log.events(), &split, &asked)?;
    let selecting =
        EvalScope { parts: vec![Part::Validation], strategies: vec![Strategy::Random], ..asked };
    let validation = protocol.pass(log.events(), &split, &selecting)?;
    let training = TrainingStream::new(
        &log,
        &split,
        protocol.step,
        protocol.visibility,
        &TrainConfig { seed, ..TrainConfig::default() },
    )?;
    let subject = Subject::of(&log, like);
    let model = subject.honest();
    let info = info(&log, &split);
    let adam = AdamConfig { learning_rate: LEARNING_RATE, ..AdamConfig::default() };
    let optimizer = OptimizerConfig { adam, ..OptimizerConfig::default() };
    let step =
        if let StepRule::Events(events) = protocol.step { events } else { Check::default().step };
    let trial = LeakTrial {
        log: &log,
        training: &training,
        validation: &validation,
        pass: &pass,
        check: Check { step, ..Check::small() },
    };
    let leaking = subject.leaking(&info, seed, optimizer)?;
    let honest = model.trainer(&info, seed, optimizer)?;
    let honest =
        trial.run(honest, &mut |progress, done, of| watch("honest", progress, done, of))?;
    let leaking =
        trial.run(leaking, &mut |progress, done, of| watch("leaking", progress, done, of))?;
    let results = pass.query_sets.iter().zip(honest.outcomes).zip(leaking.outcomes);
    let results = results.map(|((query_set, honest), leaking)| LeakCompared {
        negatives: query_set.strategy,
        negatives_sha256: negatives_sha256(query_set, log.events(), &stream.names),
        honest: honest.into(),
        leaking: leaking.into(),
    });
    Ok(LeakReport {
        fault: subject.fault(),
        dataset: stream.name.clone(),
        events: log.len(),
        training_events: training.events(),
        epochs: EPOCHS,
        learning_rate: LEARNING_RATE,
        seed,
        results: results.collect(),
        protocol,
        model,
        honest_epoch: honest.epoch,
        leaking_epoch: leaking.epoch,
        honest_breaches: honest.breaches,
        leaking_breaches: leaking.breaches,
    })
}

/// The settings of a small model to show a fault by.
enum Subject {
    Lstep(LstepConfig),
    DyGFormer(DyGFormerConfig),
}

impl Subject {
    /// DyGFormer's for a run of DyGFormer, else L-STEP's.
    ///
    /// The small L-STEP's honest numbers are not worse for it: on uci its AP is that of the paper's
    /// widths. All frequencies of the time encoding stay, since with 32 of them it cannot tell days
    /// apart and loses ten points. DyGFormer keeps the lengths of its histories and patches, which
    /// decide what the fault tells.
    fn of(log: &EventLog, like: &ModelConfig) -> Subject {
        let node_width = log.node_features().width().max(64);
        let edge_width = log.events().features().width();
        if let Some(&DyGFormerConfig { longest, patch, .. }) = like.settings() {
            return Subject::DyGFormer(DyGFormerConfig {
                node_width,
                edge_width,
                channel_width: 16,
                longest,
                patch,
                padding: Padding::Full,
                ..DyGFormerConfig::default()
            });
        }
        let gap = like.settings().map_or(LstepConfig::default().gap, |run: &LstepConfig| run.gap);
        Subject::Lstep(LstepConfig {
            node_width,
            edge_width,
            position_width: 64,
            snapshots: 50,
            recent: 20,
            gap,
            ..LstepConfig::default()
        })
    }

    fn fault(&self) -> Fault {
        match self {
            Subject::Lstep(_) => Fault::Filter,
            Subject::DyGFormer(_) => Fault::Padding,
        }
    }

    fn honest(&self) -> ModelConfig {
        match self {
            Subject::Lstep(settings) => settings.clone().into(),
            Subject::DyGFormer(settings) => settings.clone().into(),
        }
    }

    fn leaking(
        &self,
        info: &StreamInfo,
        seed: u64,
        optimizer: OptimizerConfig,
    ) -> Result<Box<dyn Trainer>> {
        Ok(match self {
            Subject::Lstep(settings) => {
                new_trainer(ReleasedLeak::new(settings.clone(), seed)?, info, optimizer)
            }
            Subject::DyGFormer(settings) => {
                new_trainer(ReleasedPadding::new(settings.clone(), seed)?, info, optimizer)
            }
        })
    }
}

/// What both models go through.
struct LeakTrial<'a> {
    log: &'a EventLog,
    training: &'a TrainingStream,
    validation: &'a EvalPass,
    pass: &'a EvalPass,
    check: Check,
}

/// What became of one of them.
struct TrialOutcome {
    epoch: u32,
    outcomes: Vec<Outcome>,
    breaches: Vec<Breach>,
}

impl LeakTrial<'_> {
    fn run(
        &self,
        mut trainer: Box<dyn Trainer>,
        watch: &mut (dyn FnMut(&Progress, u64, u64) + Send),
    ) -> Result<TrialOutcome> {
        let of = self.training.events() as u64;
        let mut selection = Selection::default();
        let mut best = trainer.fork();
        for epoch in 1..=EPOCHS {
            self.training.run_epoch(
                trainer.as_mut(),
                &mut Progress::start(epoch),
                &mut |progress, done| {
                    watch(progress, done, of);
                    ControlFlow::Continue(())
                },
            )?;
            let outcome =
                evaluate(trainer.fork().as_mut(), self.log, self.validation, &mut unwatched)?
                    .swap_remove(0);
            // A fork keeps weights and state; no file is needed, and a leaking model has none.
            if selection.take(epoch, std::slice::from_ref(&outcome), SelectBy::Ap) {
                best = trainer.fork();
            }
        }
        let outcomes = evaluate(best.as_mut(), self.log, self.pass, &mut unwatched)?;
        trainer.reset_state();
        let fresh = trainer.fork();
        let first = EventLog::new(self.log.events().first(CHECKED_EVENTS));
        let first = first.with_node_features(self.log.node_features().clone());
        let fork = |_: &Opening<'_>| Ok(fresh.fork());
        let breaches = check_model(&Submission::new(&fork), &first, self.check)?.breaches();
        Ok(TrialOutcome { epoch: selection.best_epoch, outcomes, breaches })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::laws::Law;
    use crate::read::synthetic::{SyntheticConfig, generate};

    fn compared(like: &ModelConfig, (events, nodes): (u32, u32), broken: Law) -> LeakReport {
        let settings = SyntheticConfig { events, nodes, ..SyntheticConfig::default() };
        let stream = Stream::from(generate(&settings).expect("a stream"));
        let protocol = StreamProtocol { step: StepRule::Events(50), ..StreamProtocol::default() };
        let mut told = Vec::new();
        let report = compare(&stream, protocol, like, &mut |name, progress, _, _| {
            told.push((name.to_string(), progress.epoch));
        });
        told.dedup();
        assert_eq!(told.len(), 2 * EPOCHS as usize, "{told:?}");
        let report = report.expect("compared");
        assert_eq!(report.results.len(), 2);
        assert_eq!(report.honest_breaches, []);
        assert!(report.leaking_breaches.iter().any(|breach| breach.law == broken), "{report:?}");
        report
    }

    #[test]
    fn on_a_synthetic_stream_the_leak_lifts_every_number_and_breaks_a_law() {
        let like = LstepConfig { gap: 1000.0, ..LstepConfig::default() }.into();
        let report = compared(&like, (6_000, 400), Law::OtherRows);
        assert_eq!(report.fault, Fault::Filter);
        for row in &report.results {
            // The least of the four is AP with historical negatives: 67.1 against 62.3.
            assert!(row.leaking.ap > row.honest.ap + 0.03, "{row:?}");
            assert!(row.leaking.auc > row.honest.auc + 0.03, "{row:?}");
        }
    }

    #[test]
    fn filling_histories_up_to_the_longest_of_a_call_breaks_a_law() {
        let like = DyGFormerConfig { longest: 16, patch: 4, ..DyGFormerConfig::default() };
        let report = compared(&like.into(), (1_000, 100), Law::Split);
        assert_eq!(report.fault, Fault::Padding);
    }
}
