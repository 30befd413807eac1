//! A model that this crate does not know: registered by name, then trained, resumed, evaluated,
//! compared and audited like the others.

use lstep::audit::laws::{Check, check_config};
use lstep::checkpoint::Checkpoint;
use lstep::event::Event;
use lstep::experiments::ModelSpec;
use lstep::graph::{EventLog, Past, Revealed, Seed};
use lstep::model::{
    LaneGradients, Learner, Model, ModelConfig, ModelKind, OptimizerConfig, Session, StreamInfo,
    TrainBatch, TrainContext, Trainer, new_trainer, open, registry,
};
use lstep::query::{Queries, Scores};
use lstep::read::synthetic::{SyntheticConfig, generate};
use lstep::settings::{DataConfig, RunConfig};
use lstep::stream::Stream;
use lstep::training::{RunFolder, TrainedRun, TrainingRun};
use lstep_tensor::{Init, ParameterId, Parameters};
use serde::{Deserialize, Serialize};
use std::ops::ControlFlow;
use std::sync::Once;

/// How often a pair met among the source's newest events, through one weight and one bias.
#[derive(Clone)]
struct Met {
    settings: MetConfig,
    parameters: Parameters,
    weights: ParameterId,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct MetConfig {
    recent: usize,
}

impl Default for MetConfig {
    fn default() -> MetConfig {
        MetConfig { recent: 10 }
    }
}

impl Met {
    fn new(settings: MetConfig, seed: u64) -> Met {
        let mut parameters = Parameters::new(seed);
        let weights = parameters.add("weights", 1, 2, Init::Zeros);
        Met { settings, parameters, weights }
    }

    fn met(&self, past: Past<'_>, seed: Seed, candidate: lstep::event::NodeId) -> f64 {
        let newest = past.history(seed).iter().rev().take(self.settings.recent);
        newest.filter(|neighbour| neighbour.node() == candidate).count() as f64
    }

    fn logit(&self, met: f64) -> f64 {
        let weights = self.parameters.get(self.weights).values;
        f64::from(weights[0]) * met + f64::from(weights[1])
    }
}

impl Model for Met {
    type State = ();

    fn begin(&self, _: &StreamInfo) {}

    fn score(&self, past: Past<'_>, (): &(), ask: &Queries) -> lstep::Result<Scores> {
        let row = |row: lstep::query::Row<'_>| {
            let logit = |&other| self.logit(self.met(past, row.seed(), other));
            row.candidates.iter().map(logit).collect::<Vec<_>>()
        };
        Scores::new(ask, ask.rows().flat_map(row).collect())
    }

    fn observe(&self, _: Revealed<'_>, (): &mut (), _: &[Event]) -> lstep::Result<()> {
        Ok(())
    }
}

impl Learner for Met {
    type Ahead = ();

    fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    fn parameters_mut(&mut self) -> &mut Parameters {
        &mut self.parameters
    }

    fn gradients(
        &self,
        past: Past<'_>,
        _: Revealed<'_>,
        (): &(),
        batch: TrainBatch<'_>,
        context: TrainContext<'_>,
    ) -> lstep::Result<LaneGradients<()>> {
        let pairs = batch.len() as f64;
        let (mut loss, mut gradient) = (0.0, [0.0; 2]);
        for ((seed, candidate), happened) in batch.pairs() {
            let label = if happened { 1.0 } else { 0.0 };
            let met = self.met(past, seed, candidate);
            let likely = 1.0 / (1.0 + (-self.logit(met)).exp());
            loss -= (1.0 - label - likely).abs().ln() / pairs;
            gradient[0] += (likely - label) * met / pairs;
            gradient[1] += (likely - label) / pairs;
        }
        let slots = context.gradients[0].get_mut(self.weights).iter_mut();
        slots.zip(gradient).for_each(|(slot, gradient)| *slot += gradient as f32);
        Ok(LaneGradients { losses: Some(vec![loss]), ahead: () })
    }

    fn observe_ahead(
        &self,
        _: Revealed<'_>,
        (): &mut (),
        _: &[Event],
        (): (),
    ) -> lstep::Result<()> {
        Ok(())
    }

    fn save_state<'a>(&self, (): &'a (), _: &mut Checkpoint<'a>) {}

    fn load_state(&self, _: &StreamInfo, _: &mut Checkpoint<'_>) -> lstep::Result<()> {
        Ok(())
    }
}

struct MetKind;

impl ModelKind for MetKind {
    type Settings = MetConfig;

    fn name(&self) -> &'static str {
        "met"
    }

    fn about(&self) -> &'static str {
        "how often the pair met lately"
    }

    fn learns(&self) -> bool {
        true
    }

    fn defaults(&self) -> MetConfig {
        MetConfig::default()
    }

    fn presets(&self) -> &'static str {
        "[train]\nepochs = 2\nlearning_rate = 0.01\n\n[datasets.uci]\nmodel = { recent = 30 }\n"
    }

    fn check(&self, settings: &MetConfig) -> lstep::Result<()> {
        match settings.recent {
            0 => Err(lstep::Error::setting("model.recent", 0, "it has to be at least 1")),
            _ => Ok(()),
        }
    }

    fn open(&self, settings: &MetConfig, info: &StreamInfo) -> lstep::Result<Box<dyn Session>> {
        Ok(open(Met::new(settings.clone(), 0), info))
    }

    fn trainer(
        &self,
        settings: &MetConfig,
        info: &StreamInfo,
        seed: u64,
        optimizer: OptimizerConfig,
    ) -> lstep::Result<Box<dyn Trainer>> {
        Ok(new_trainer(Met::new(settings.clone(), seed), info, optimizer))
    }
}

fn register() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| registry::register(&MetKind).expect("a new name"));
}

#[test]
fn a_model_of_another_crate_is_trained_resumed_and_evaluated_by_its_name() {
    register();
    assert!(registry::register(&MetKind).is_err(), "a name is taken once");
    let settings = SyntheticConfig { nodes: 60, events: 2_000, ..SyntheticConfig::default() };
    let stream = Stream::from(generate(&settings).expect("a stream"));
    let config = RunConfig::builder(DataConfig::default())
        .model("met")
        .set(&["model.recent=5".to_string()])
        .build()
        .expect("a known name");
    assert_eq!((config.train.epochs, config.model.settings()), (2, Some(&MetConfig { recent: 5 })));
    let place = tempfile::tempdir().expect("a folder");
    let folder = RunFolder::new(place.path().join("run"));
    let mut training = TrainingRun::begin(config, stream.clone(), folder.clone()).expect("begun");
    let mut steps = 0;
    let stopped = training.run(&mut |_| {
        steps += 1;
        if steps < 3 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    assert!(!stopped.expect("trained"), "stopped before its end");
    let mut training = TrainingRun::resume_with(folder.clone(), stream.clone()).expect("resumed");
    assert!(training.run(&mut |_| ControlFlow::Continue(())).expect("trained"));
    let trained = TrainedRun::open_with(&folder, stream).expect("opened");
    let scope = trained.config().protocol.full_scope();
    let report = trained.evaluate(&scope).expect("evaluated");
    assert_eq!(report.model, "met");
    assert!(report.results[0].ap > 0.6, "{}", report.results[0].ap);
}

#[test]
fn a_model_of_another_crate_is_audited_and_has_a_place_in_grids() {
    register();
    let settings = SyntheticConfig { nodes: 30, events: 300, ..SyntheticConfig::default() };
    let log = EventLog::new(generate(&settings).expect("a stream").events);
    let config: ModelConfig = "met".parse().expect("registered");
    assert_eq!(check_config(&config, &log, Check::small()).expect("checked").breaches(), []);
    let spec: ModelSpec = "met:recent=3".parse().expect("registered");
    assert!(spec.learns());
    let preset = RunConfig::builder(DataConfig::default()).model("met").preset("uci").build();
    assert_eq!(preset.expect("known").model.settings(), Some(&MetConfig { recent: 30 }));
}
