//! Learned systems against plain implementations in PyTorch (`fixtures/systems/make_systems.py`):
//! logits, loss, all gradients.

use lstep::event::{Event, Events, Features, NodeId, Time};
use lstep::graph::EventLog;
use lstep::model::{
    Cawn, CawnConfig, Ctan, CtanConfig, DyGFormer, DyGFormerConfig, DyRep, DyRepConfig, FreeDyG,
    FreeDyGConfig, GraphMixer, GraphMixerConfig, Jodie, JodieConfig, Learner, ModelConfig, Nat,
    NatConfig, Negative, Pint, PintConfig, StreamInfo, Tcl, TclConfig, Tgat, TgatConfig, Tgn,
    TgnConfig, Tncn, TncnConfig, Tpnet, TpnetConfig, TrainBatch, TrainContext, registry,
};
use lstep::query::Queries;
use lstep_tensor::{DropoutKey, Gradients};
use serde::Deserialize;
use std::collections::BTreeMap;

/// Source, destination, time, features.
type Row = (u32, u32, f64, Vec<f32>);

#[derive(Deserialize)]
struct Fixture {
    config: ModelConfig,
    step: usize,
    events: Vec<Row>,
    node_features: Vec<Vec<f32>>,
    negatives: Vec<u32>,
    weights: BTreeMap<String, Vec<f32>>,
    logits: Vec<f64>,
    loss: f64,
    gradients: BTreeMap<String, Vec<f64>>,
}

impl Fixture {
    fn read(text: &str) -> Fixture {
        serde_json::from_str(text).expect("the fixture is what the script writes")
    }

    fn log(&self) -> EventLog {
        let column = |f: fn(&Row) -> u32| self.events.iter().map(|row| NodeId(f(row))).collect();
        let features = self.events.iter().flat_map(|row| row.3.iter().copied()).collect();
        let events = Events::new(
            column(|row| row.0),
            column(|row| row.1),
            self.events.iter().map(|row| Time::new(row.2).expect("finite")).collect(),
            Features::new(self.events[0].3.len(), features).expect("finite"),
        )
        .expect("sorted");
        let width = self.node_features.first().map_or(0, Vec::len);
        let nodes = Features::new(width, self.node_features.concat()).expect("finite");
        EventLog::new(events).with_node_features(nodes)
    }
}

fn assert_close(name: &str, ours: impl IntoIterator<Item = f64>, theirs: &[f64], tolerance: f64) {
    let ours: Vec<f64> = ours.into_iter().collect();
    assert_eq!(ours.len(), theirs.len(), "{name}");
    let scale = theirs.iter().fold(1e-4f64, |most, value| most.max(value.abs()));
    for (place, (a, b)) in ours.iter().zip(theirs).enumerate() {
        assert!((a - b).abs() <= tolerance * scale, "{name}[{place}]: {a} here, {b} there");
    }
}

/// Loads the fixture's weights, lets all steps but the last be observed, and compares what is said
/// about the last.
fn compare<M: Learner>(mut model: M, fixture: &Fixture) {
    let names: Vec<String> =
        model.parameters().iter().map(|parameter| parameter.name.to_string()).collect();
    assert_eq!(names.len(), fixture.weights.len(), "{names:?}");
    for name in &names {
        model.parameters_mut().load(name, &fixture.weights[name]).expect("a weight of that shape");
    }
    let log = fixture.log();
    let events: Vec<Event> = log.events().iter().collect();
    let info = StreamInfo::of(events.iter().copied()).expect("events");
    let mut state = model.begin(&info);
    let last = events.len() - fixture.step;
    for step in events[..last].chunks(fixture.step) {
        let until = step[step.len() - 1].number + 1;
        model.observe(log.revealed(until), &mut state, step).expect("observed");
    }
    let (step, negatives) =
        (&events[last..], fixture.negatives.iter().map(|&node| NodeId(node)).collect::<Vec<_>>());
    let past = log.past(events.len() as u32);

    let mut ask = Queries::new();
    step.iter().for_each(|event| ask.push(event.source, event.time, [event.destination]));
    step.iter()
        .zip(&negatives)
        .for_each(|(event, &other)| ask.push(event.source, event.time, [other]));
    let scores = model.score(past, &state, &ask).expect("scored");
    assert_close("logits", scores.values().iter().copied(), &fixture.logits, 2e-5);

    let mut gradients = [Gradients::of(model.parameters())];
    let negatives: Vec<Negative> = (step.iter().zip(&negatives))
        .map(|(event, &destination)| Negative { source: event.source, destination })
        .collect();
    let batch = TrainBatch { events: step, negatives: &negatives };
    let context = TrainContext {
        dropout_key: DropoutKey::default(),
        matmul: lstep_tensor::Matmul::F32,
        loss: lstep::model::Loss::Bce,
        lanes: 0..1,
        of: 1,
        gradients: &mut gradients,
    };
    let known = log.revealed(events.len() as u32);
    let computed = model.gradients(past, known, &state, batch, context).expect("learned");
    assert_close("loss", computed.losses.expect("a loss"), &[fixture.loss], 1e-5);
    for (name, theirs) in &fixture.gradients {
        let ours = gradients[0].get(model.parameters().find(name).expect("known")).to_vec();
        assert_close(name, ours.into_iter().map(f64::from), theirs, 1e-4);
    }
}

macro_rules! read {
    ($name:literal) => {
        Fixture::read(include_str!(concat!("../fixtures/systems/", $name, ".json")))
    };
}

#[test]
fn graphmixer_is_the_plain_one_with_features_and_without() {
    for fixture in [read!("graphmixer"), read!("graphmixer_featureless")] {
        let config: &GraphMixerConfig = fixture.config.settings().expect("a fixture of its own");
        compare(GraphMixer::new(config.clone(), 0).expect("right settings"), &fixture);
    }
}

#[test]
fn tgn_is_the_plain_one_with_features_and_without() {
    for fixture in [read!("tgn"), read!("tgn_featureless")] {
        let config: &TgnConfig = fixture.config.settings().expect("a fixture of its own");
        compare(Tgn::new(config.clone(), 0).expect("right settings"), &fixture);
    }
}

#[test]
fn jodie_is_the_plain_one_with_features_and_without() {
    for fixture in [read!("jodie"), read!("jodie_featureless")] {
        let config: &JodieConfig = fixture.config.settings().expect("a fixture of its own");
        compare(Jodie::new(config.clone(), 0).expect("right settings"), &fixture);
    }
}

#[test]
fn dyrep_is_the_plain_one_with_features_and_without() {
    for fixture in [read!("dyrep"), read!("dyrep_featureless")] {
        let config: &DyRepConfig = fixture.config.settings().expect("a fixture of its own");
        compare(DyRep::new(config.clone(), 0).expect("right settings"), &fixture);
    }
}

#[test]
fn nat_is_the_plain_one_with_features_and_without() {
    for fixture in [read!("nat"), read!("nat_featureless")] {
        let config: &NatConfig = fixture.config.settings().expect("a fixture of its own");
        compare(Nat::new(config.clone(), 0).expect("right settings"), &fixture);
    }
}

#[test]
fn pint_is_the_plain_one_with_features_and_without_by_identity_and_by_walks() {
    for fixture in [read!("pint"), read!("pint_featureless"), read!("pint_walks")] {
        let config: &PintConfig = fixture.config.settings().expect("a fixture of its own");
        compare(Pint::new(config.clone(), 0).expect("right settings"), &fixture);
    }
}

#[test]
fn tncn_is_the_plain_one_with_features_and_without_in_both_modes() {
    for fixture in [read!("tncn"), read!("tncn_featureless"), read!("tncn_zero_and_one_hop")] {
        let config: &TncnConfig = fixture.config.settings().expect("a fixture of its own");
        compare(Tncn::new(config.clone(), 0).expect("right settings"), &fixture);
    }
}

#[test]
fn ctan_is_the_plain_one_with_features_and_without_over_one_hop_and_more() {
    for fixture in [read!("ctan"), read!("ctan_featureless"), read!("ctan_three_iterations")] {
        let config: &CtanConfig = fixture.config.settings().expect("a fixture of its own");
        compare(Ctan::new(config.clone(), 0).expect("right settings"), &fixture);
    }
}

#[test]
fn dygformer_is_the_plain_one_with_features_and_without_padded_and_not() {
    for fixture in [read!("dygformer"), read!("dygformer_featureless"), read!("dygformer_unpadded")]
    {
        let config: &DyGFormerConfig = fixture.config.settings().expect("a fixture of its own");
        compare(DyGFormer::new(config.clone(), 0).expect("right settings"), &fixture);
    }
}

#[test]
fn tgat_is_the_plain_one_with_features_and_without() {
    for fixture in [read!("tgat"), read!("tgat_featureless")] {
        let config: &TgatConfig = fixture.config.settings().expect("a fixture of its own");
        compare(Tgat::new(config.clone(), 0).expect("right settings"), &fixture);
    }
}

#[test]
fn cawn_is_the_plain_one_with_features_and_without_by_both_laws() {
    for fixture in [read!("cawn"), read!("cawn_featureless")] {
        let config: &CawnConfig = fixture.config.settings().expect("a fixture of its own");
        compare(Cawn::new(config.clone(), 0).expect("right settings"), &fixture);
    }
}

#[test]
fn tcl_is_the_plain_one_with_features_and_without() {
    for fixture in [read!("tcl"), read!("tcl_featureless")] {
        let config: &TclConfig = fixture.config.settings().expect("a fixture of its own");
        compare(Tcl::new(config.clone(), 0).expect("right settings"), &fixture);
    }
}

#[test]
fn freedyg_is_the_plain_one_with_features_and_without() {
    for fixture in [read!("freedyg"), read!("freedyg_featureless")] {
        let config: &FreeDyGConfig = fixture.config.settings().expect("a fixture of its own");
        compare(FreeDyG::new(config.clone(), 0).expect("right settings"), &fixture);
    }
}

#[test]
fn tpnet_is_the_plain_one_with_features_and_without_masked_and_not() {
    for fixture in [read!("tpnet"), read!("tpnet_featureless"), read!("tpnet_masked")] {
        let config: &TpnetConfig = fixture.config.settings().expect("a fixture of its own");
        compare(Tpnet::new(config.clone(), 0).expect("right settings"), &fixture);
    }
}

/// L-STEP's own fixture is `oracle` beside it: it goes further than logits and gradients.
#[test]
fn every_learned_model_of_the_registry_has_a_fixture() {
    for kind in registry::MODELS.iter().filter(|kind| kind.learns() && kind.stored_as() != "lstep")
    {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/systems");
        let path = format!("{folder}/{}.json", kind.name());
        let text = std::fs::read_to_string(&path).expect("make_systems.py writes one");
        assert_eq!(Fixture::read(&text).config.name(), kind.name());
    }
}
