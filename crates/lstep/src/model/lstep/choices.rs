//! In which form positions are stored: what each choice makes of them, beside double precision.

use super::*;
use crate::graph::EventLog;
use crate::model::composite::CompositeState;
use crate::model::{Learner, Model};
use crate::read::synthetic::{SyntheticConfig, generate};

const WIDTH: usize = 6;

fn small() -> LstepConfig {
    LstepConfig {
        time_width: 5,
        node_width: 4,
        edge_width: 2,
        position_width: WIDTH,
        snapshots: 4,
        recent: 8,
        gap: 10.0,
        ..LstepConfig::default()
    }
}

fn stream() -> EventLog {
    let stream = SyntheticConfig { nodes: 30, events: 240, ..SyntheticConfig::default() };
    EventLog::new(generate(&stream).expect("a stream").events)
}

type State = CompositeState<LstepEncoder, Mlp>;

/// Steps of 40 events, and the state after all of them but the last.
fn run(model: &Lstep, log: &EventLog) -> (State, Vec<Event>) {
    let events: Vec<Event> = log.events().iter().collect();
    let info = StreamInfo::of(events.iter().copied()).expect("events");
    let mut state = model.begin(&info);
    let (seen, last) = events.split_at(200);
    for step in seen.chunks(40) {
        model.observe(log.revealed(step[39].number + 1), &mut state, step).expect("observed");
    }
    (state, last.to_vec())
}

fn positions(state: &State) -> Vec<Vec<f32>> {
    let nodes = state.encoder.met.iter();
    nodes.filter_map(|node| Some(state.encoder.positions.latest(node)?.to_vec())).collect()
}

/// What Eq. pe_updated makes of the nodes of the last step, before it is stored; and what is stored.
fn before_and_after(stored: Stored) -> (Vec<f32>, Vec<f32>) {
    let log = stream();
    let model = Lstep::new(LstepConfig { stored, ..small() }, 5).expect("settings");
    let (state, last) = run(&model, &log);
    let nodes: Vec<NodeId> = touched(&last).iter().collect();
    let (encoder, parameters) = (model.encoder(), model.parameters());
    let (mut raw, known) = (Vec::new(), log.revealed(240));
    let now = *last.last().expect("events");
    let mut scratch = ObserveScratch::default();
    encoder.updated(parameters, known, &state.encoder, (now, &nodes), &mut scratch, &mut raw);
    let snapshot = encoder.ahead(parameters, known, &state.encoder, &last, &mut scratch);
    let snapshot = snapshot.expect("positions");
    assert_eq!(snapshot.nodes, nodes);
    (raw, snapshot.vectors)
}

#[test]
fn positions_are_stored_in_the_form_that_the_setting_says() {
    let (raw, stored) = before_and_after(Stored::AsIs);
    assert_eq!(raw, stored);
    for choice in [Stored::Normalised, Stored::Centred] {
        let (raw, stored) = before_and_after(choice);
        let mut expected: Vec<f64> = raw.iter().map(|&x| f64::from(x)).collect();
        let count = (expected.len() / WIDTH) as f64;
        assert!(count > 2.0, "{count} nodes");
        if choice == Stored::Centred {
            for column in 0..WIDTH {
                let of_column = expected.iter().skip(column).step_by(WIDTH);
                let mean = of_column.sum::<f64>() / count;
                assert!(mean.abs() > 1e-3, "{mean} says nothing");
                expected.iter_mut().skip(column).step_by(WIDTH).for_each(|x| *x -= mean);
            }
        }
        for (expected, stored) in expected.chunks(WIDTH).zip(stored.chunks(WIDTH)) {
            let size = (expected.iter().map(|x| x * x).sum::<f64>() / WIDTH as f64).sqrt();
            assert!(size > 0.0 && (size - 1.0).abs() > 1e-3, "{size} says nothing");
            for (expected, stored) in expected.iter().zip(stored) {
                let error = (expected / size - f64::from(*stored)).abs();
                assert!(error < 1e-5, "{stored} and not {}", expected / size);
            }
        }
        // Zeros have no size, and a node alone has everything in common with itself.
        let model = Lstep::new(LstepConfig { stored: choice, ..small() }, 5).expect("settings");
        let mut zeros = vec![0.0; WIDTH];
        model.encoder().bring_to_form(&mut zeros);
        assert_eq!(zeros, [0.0; WIDTH]);
        let mut alone = [0.3, -1.7e-7, 12.5, 0.0, -3.4, 1e-9];
        model.encoder().bring_to_form(&mut alone);
        assert_eq!(alone == [0.0; WIDTH], choice == Stored::Centred);
    }
}

#[test]
fn what_positions_have_in_common_does_not_depend_on_their_order() {
    let model = Lstep::new(LstepConfig { stored: Stored::Centred, ..small() }, 5);
    let encoder = model.expect("settings").encoder().clone();
    let vectors: Vec<f32> = (0..50 * WIDTH).map(|i| (i as f32 * 0.7).sin() * 3.1).collect();
    let reversed =
        |vectors: &[f32]| -> Vec<f32> { vectors.chunks(WIDTH).rev().flatten().copied().collect() };
    let (mut there, mut back) = (vectors.clone(), reversed(&vectors));
    encoder.bring_to_form(&mut there);
    encoder.bring_to_form(&mut back);
    assert_eq!(there, reversed(&back));
}

#[test]
fn a_state_that_was_stored_goes_on_to_the_same_bits() {
    let log = stream();
    for stored in [Stored::Normalised, Stored::Centred] {
        let model = Lstep::new(LstepConfig { stored, ..small() }, 5).expect("settings");
        let (mut state, last) = run(&model, &log);
        let info = StreamInfo::of(log.events().iter()).expect("events");
        let mut checkpoint = Checkpoint::default();
        model.save_state(&state, &mut checkpoint);
        let mut checkpoint = checkpoint.into_owned();
        let mut loaded = model.load_state(&info, &mut checkpoint).expect("loaded");
        assert_eq!(positions(&loaded), positions(&state));
        for state in [&mut state, &mut loaded] {
            model.observe(log.revealed(240), state, &last).expect("observed");
        }
        assert_eq!(positions(&loaded), positions(&state));
    }
}
