//! What holds for every model that learns, whatever it computes: training knows nothing of what
//! comes after it, a state that is saved goes on as if it had not been, and threads change no
//! score, no loss and no weight.

use lstep::checkpoint::Checkpoint;
use lstep::event::{Event, Events, Features, NodeId};
use lstep::graph::EventLog;
use lstep::model::{FeatureWidths, ModelConfig, OptimizerConfig, Session, Trainer, registry};
use lstep::protocol::{EvalScope, Split, StepRule, Strategy, Visibility};
use lstep::query::Queries;
use lstep::read::synthetic::{SyntheticConfig, generate};
use lstep::settings::{DataConfig, RunConfig, TrainConfig};
use lstep::stream::{Stream, info};
use lstep::training::{Progress, RunFolder, Training, TrainingRun, TrainingStream};
use lstep_tensor::Matmul;
use std::ops::ControlFlow;

const STEP: usize = 50;
/// Where validation and test begin, as shares of the time.
const PARTS: (f64, f64) = (0.6, 0.8);

fn stream() -> Events {
    let settings =
        SyntheticConfig { nodes: 60, events: 600, features: 2, ..SyntheticConfig::default() };
    generate(&settings).expect("a stream").events
}

/// The same events, those from `first` on between nodes that nobody has seen before.
fn with_another_future(events: &Events, first: usize) -> Events {
    let renamed = |nodes: &[NodeId]| -> Vec<NodeId> {
        let new = |(number, node): (usize, &NodeId)| {
            if number < first { *node } else { NodeId(node.0 + 1_000) }
        };
        nodes.iter().enumerate().map(new).collect()
    };
    let features = Features::new(events.features().width(), events.features().values().to_vec())
        .expect("finite");
    Events::new(
        renamed(events.sources()),
        renamed(events.destinations()),
        events.times().to_vec(),
        features,
    )
    .expect("in order")
}

/// A small trainer of a kind, with how its kind is trained.
fn trainer(model: &str, log: &EventLog, split: &Split) -> (Box<dyn Trainer>, TrainConfig) {
    let config = RunConfig::builder(DataConfig::default()).model(model).build().expect("defaults");
    let optimizer =
        OptimizerConfig { adam: lstep_tensor::AdamConfig::default(), ..config.train.optimizer() };
    (config.model.trainer(&info(log, split), 0, optimizer).expect("a trainer"), config.train)
}

/// Models that take a millisecond for a pair or more, without optimisation: asked and taught less.
fn is_slow(model: &str) -> bool {
    let fast = ["lstep", "lstep-pair", "tgn", "jodie", "dyrep", "nat", "tncn", "ctan"];
    learned_names().any(|name| name == model) && !fast.contains(&model)
}

fn learned_names() -> impl Iterator<Item = &'static str> {
    registry::MODELS.iter().filter(|kind| kind.learns()).map(|kind| kind.name())
}

fn split(events: &Events) -> Split {
    Split::chronological(events, PARTS.0, PARTS.1).expect("three parts")
}

/// Trains for an epoch; tells its loss.
fn epoch(trainer: &mut dyn Trainer, train: &TrainConfig, log: &EventLog, split: &Split) -> f64 {
    let rule = StepRule::Events(STEP as u32);
    let training = TrainingStream::new(log, split, rule, Visibility::Event, train).expect("events");
    let mut progress = Progress::start(1);
    training
        .run_epoch(trainer, &mut progress, &mut |_, _| ControlFlow::Continue(()))
        .expect("an epoch");
    progress.loss()
}

fn observe(session: &mut dyn Session, log: &EventLog, from: usize, to: usize) {
    let events: Vec<Event> = log.events().iter().skip(from).take(to - from).collect();
    for step in events.chunks(STEP) {
        session.observe(log.revealed(step[step.len() - 1].number + 1), step).expect("observed");
    }
}

/// Every source of the last events against the destinations of all of them.
fn questions(log: &EventLog) -> Queries {
    let last: Vec<Event> = log.events().iter().skip(log.len() - 20).collect();
    let mut ask = Queries::new();
    for event in &last {
        ask.push(event.source, event.time, last.iter().map(|other| other.destination));
    }
    ask
}

#[test]
fn a_run_has_room_for_features_wider_than_its_settings() {
    let settings =
        SyntheticConfig { nodes: 60, events: 600, features: 180, ..SyntheticConfig::default() };
    for model in learned_names() {
        let mut stream =
            Stream::new("wide", generate(&settings).expect("a stream").events).expect("named");
        let numbers = (0..60 * 177).map(|number| (number as f32).sin()).collect();
        stream.log = stream.log.with_node_features(Features::new(177, numbers).expect("60 rows"));
        let config =
            RunConfig::builder(DataConfig::default()).model(model).build().expect("defaults");
        let folder = tempfile::tempdir().expect("a folder");
        let folder = RunFolder::new(folder.path().join("run"));
        let mut fit = TrainingRun::begin(config, stream, folder.clone()).expect("begun");
        let written = folder.config().expect("its settings").model;
        assert_eq!(
            written,
            written.widened_for(FeatureWidths { node: 177, edge: 180 }),
            "the widths it has"
        );
        // The first step has nothing to learn from; the third has.
        let mut steps = 0;
        let mut watch = |_: lstep::training::TrainEvent<'_>| {
            steps += 1;
            if steps < 3 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        };
        assert!(!fit.run(&mut watch).expect("features have room"), "stopped before its end");
    }
}

#[test]
fn nothing_that_comes_after_training_changes_a_loss_of_it() {
    let events = stream();
    let first = split(&events).train.end as usize;
    for model in learned_names() {
        let losses = [events.clone(), with_another_future(&events, first)].map(|events| {
            let split = split(&events);
            let log = EventLog::new(events);
            let (mut trainer, train) = trainer(model, &log, &split);
            epoch(trainer.as_mut(), &train, &log, &split)
        });
        assert!(losses[0].is_finite() && losses[0] > 0.0, "{model}: {losses:?}");
        assert_eq!(losses[0].to_bits(), losses[1].to_bits(), "{model}: {losses:?}");
    }
}

#[test]
fn a_state_saved_half_way_goes_on_as_if_it_had_not_been() {
    let events = stream();
    let split = split(&events);
    let log = EventLog::new(events);
    let ask = questions(&log);
    let past = || log.past(log.len() as u32);
    for model in learned_names() {
        let (mut pupil_there, train) = trainer(model, &log, &split);
        epoch(pupil_there.as_mut(), &train, &log, &split);
        let trained = split.train.end as usize;
        let half = trained + STEP;
        observe(pupil_there.as_mut(), &log, trained, half);
        let mut checkpoint = Checkpoint::default();
        pupil_there.save(&mut checkpoint);
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("state.safetensors");
        checkpoint.write(&path).expect("written");
        drop(checkpoint);

        let (mut reopened, _) = trainer(model, &log, &split);
        reopened.load(Checkpoint::read(&path).expect("read")).expect("loaded");
        let scores = [pupil_there.as_mut(), reopened.as_mut()].map(|trainer| {
            observe(trainer, &log, half, log.len() - 20);
            trainer.score(past(), &ask).expect("scored").values().to_vec()
        });
        assert_eq!(scores[0], scores[1], "{model}");
        let (fresh, _) = trainer(model, &log, &split);
        let untrained = fresh.score(past(), &ask).expect("scored").values().to_vec();
        assert_ne!(scores[0], untrained, "{model}: weights and state say something");
    }
}

#[test]
fn threads_change_no_score_however_much_is_asked() {
    let events = stream();
    let split = split(&events);
    let log = EventLog::new(events);
    // Enough candidates for every model to share its work among threads.
    let mut ask = Queries::new();
    for event in log.events().iter().skip(log.len() - 40) {
        ask.push(event.source, event.time, (0..300).map(NodeId));
    }
    let learned = learned_names().map(|name| ModelConfig::learned(name).expect("known"));
    for model in ModelConfig::counting_models().into_iter().chain(learned) {
        let slow = is_slow(model.name());
        let scores = [1, 3].map(|threads| {
            let pool =
                rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool");
            pool.install(|| {
                let mut session = model.open(&info(&log, &split)).expect("opened");
                observe(session.as_mut(), &log, 0, log.len() - 40);
                let mut few = Queries::new();
                if slow {
                    ask.rows().take(2).for_each(|row| {
                        few.push(row.source, row.time, row.candidates.iter().copied());
                    });
                }
                session
                    .score(log.past(log.len() as u32), if slow { &few } else { &ask })
                    .expect("scored")
                    .values()
                    .to_vec()
            })
        });
        assert!(scores[0] == scores[1], "{model}");
    }
}

#[test]
fn threads_change_no_loss_and_no_weight_whichever_way_layers_multiply() {
    let events = stream();
    let split = split(&events);
    let log = EventLog::new(events);
    // Lessons long enough to be cut into lanes; few, because many of the models are slow.
    let batch = |model: &str, products: Matmul, threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool");
        pool.install(|| {
            let config = ModelConfig::learned(model).expect("known");
            let train = TrainConfig { matmul: products, ..TrainConfig::default() };
            let mut trainer =
                config.trainer(&info(&log, &split), 0, train.optimizer()).expect("a trainer");
            let training =
                TrainingStream::new(&log, &split, StepRule::Events(120), Visibility::Event, &train)
                    .expect("events");
            let mut progress = Progress::start(1);
            training
                .run_epoch(trainer.as_mut(), &mut progress, &mut |progress, _| {
                    if progress.step < if is_slow(model) { 1 } else { 3 } {
                        ControlFlow::Continue(())
                    } else {
                        ControlFlow::Break(())
                    }
                })
                .expect("batches");
            let mut checkpoint = Checkpoint::default();
            trainer.save(&mut checkpoint);
            let file = tempfile::NamedTempFile::new().expect("a file");
            checkpoint.write(file.path()).expect("written");
            (progress.loss().to_bits(), std::fs::read(file.path()).expect("read"))
        })
    };
    for model in learned_names() {
        let [exact, split] = [Matmul::F32, Matmul::Bf16x2].map(|products| {
            let one = batch(model, products, 1);
            let counts: &[usize] = if is_slow(model) { &[3] } else { &[2, 6] };
            for &threads in counts {
                assert!(
                    one == batch(model, products, threads),
                    "{model}, {products:?}, {threads} threads"
                );
            }
            one
        });
        assert!(exact.1 != split.1, "{model}: two kinds of products");
        let [exact, split] = [exact.0, split.0].map(f64::from_bits);
        assert!((exact - split).abs() < 1e-3 * exact, "{model}: {exact} and {split}");
    }
}

#[test]
fn for_a_number_of_lanes_threads_change_no_bit_and_lanes_change_only_the_last() {
    let events = stream();
    let split = split(&events);
    let log = EventLog::new(events);
    let batches = |model: &str, lanes: usize, threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool");
        pool.install(|| {
            let config = RunConfig::builder(DataConfig::default()).model(model).build();
            let config = config.expect("defaults");
            let train = TrainConfig { lanes: Some(lanes), ..config.train };
            let mut trainer =
                config.model.trainer(&info(&log, &split), 0, train.optimizer()).expect("a trainer");
            let rule = StepRule::Events(60);
            let training = TrainingStream::new(&log, &split, rule, Visibility::Event, &train);
            let training = training.expect("events");
            let losses: Vec<Option<u64>> = (0..3)
                .map(|step| training.train_step(trainer.as_mut(), 1, step).expect("a step"))
                .map(|loss| loss.map(f64::to_bits))
                .collect();
            let mut checkpoint = Checkpoint::default();
            trainer.save(&mut checkpoint);
            (losses, checkpoint.sha256())
        })
    };
    for model in ["lstep", "lstep-pair", "tgn", "graphmixer", "dygformer"] {
        let one = batches(model, 1, 1);
        for lanes in [4, 6] {
            let some = batches(model, lanes, 1);
            for threads in [2, 6] {
                assert!(some == batches(model, lanes, threads), "{model}, {lanes}, {threads}");
            }
            assert_ne!(some.1, one.1, "{model}: {lanes} lanes are added in another order");
            for (some, one) in some.0.iter().zip(&one.0) {
                let [some, one] = [some, one].map(|loss| loss.map_or(0.0, f64::from_bits));
                // Dropout is drawn by lane, so losses are close and not the same.
                assert!((some - one).abs() <= 0.2 * one, "{model}, {lanes}: {some} and {one}");
            }
        }
    }
}

/// Numbers of nodes decide which hash bucket they fall into and in which order they are visited.
/// None of that may reach a score.
#[test]
fn how_nodes_are_numbered_changes_no_loss_and_no_figure() {
    let stream = Stream::from(
        generate(&SyntheticConfig { nodes: 60, events: 600, ..SyntheticConfig::default() })
            .expect("a stream"),
    );
    for model in learned_names() {
        let trained = |numbering: &str| {
            let run = Training::new(&stream)
                .model(model)
                .expect("known")
                .set("protocol.numbering", numbering)
                .set("protocol.held_out", 0.1)
                .set("train.epochs", 1)
                .run()
                .expect("trained");
            let nodes = run.stream().log.events().sources().to_vec();
            let scope = EvalScope { strategies: Strategy::DRAWN.to_vec(), ..EvalScope::default() };
            let report = run.evaluate(&scope).expect("evaluated");
            let figures: Vec<(f64, f64)> =
                report.results.iter().map(|row| (row.ap, row.auc)).collect();
            (nodes, figures)
        };
        let (appearance, hashed) = (trained("appearance"), trained("hashed"));
        assert_ne!(appearance.0, hashed.0, "{model}: nodes have other numbers");
        assert_eq!(appearance.1, hashed.1, "{model}");
    }
}
