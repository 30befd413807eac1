use super::*;
use crate::checkpoint::spoil;
use crate::disk::faults::{Refusal, with_refusal};
use crate::read::synthetic::{SyntheticConfig, generate};
use crate::settings::DataConfig;
use std::path::Path;

fn stream() -> Stream {
    let config = SyntheticConfig { nodes: 40, events: 300, ..SyntheticConfig::default() };
    Stream::from(generate(&config).expect("a stream"))
}

fn config() -> RunConfig {
    let keys = ["train.epochs=2", "protocol.step=50", "model.layers=1", "train.average=0.9"];
    let keys = keys.iter().chain(lstep_testkit::small::GRAPHMIXER).map(|key| key.to_string());
    RunConfig::builder(DataConfig::default())
        .model("graphmixer")
        .set(&keys.collect::<Vec<_>>())
        .build()
        .expect("settings")
}

fn go_on(_: TrainEvent<'_>) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// Begins the run in a folder, or resumes it, and trains to the end.
fn train(stream: &Stream, folder: &Path) -> Result<bool> {
    let folder = RunFolder::new(folder);
    let mut run = match folder.holds_a_run() {
        true => TrainingRun::resume_with(folder, stream.clone())?,
        false => TrainingRun::begin(config(), stream.clone(), folder)?,
    };
    run.run(&mut go_on)
}

fn weights(folder: &Path) -> [Vec<u8>; 2] {
    ["last.safetensors", "best.safetensors"]
        .map(|name| std::fs::read(folder.join(name)).expect("written"))
}

#[test]
fn whichever_call_the_disk_refuses_the_run_ends_with_the_same_bytes() {
    let place = tempfile::tempdir().expect("a folder");
    let stream = stream();
    let calm = place.path().join("calm");
    assert!(train(&stream, &calm).expect("trained"));
    let mut failures = 0;
    for how in [Refusal::Once, Refusal::Lasting] {
        for call in 0.. {
            let folder = place.path().join(format!("{how:?}-{call}"));
            let (result, calls) = with_refusal(call, how, || train(&stream, &folder));
            if calls <= call {
                assert!(result.expect("nothing was refused"));
                break;
            }
            failures += usize::from(result.is_err());
            for name in ["last.safetensors", "best.safetensors"] {
                let path = folder.join(name);
                if path.exists() {
                    Checkpoint::read(&path).unwrap_or_else(|error| panic!("{call}: {error}"));
                }
            }
            let left = std::fs::read_dir(&folder).expect("a folder");
            let left = left.filter(|entry| {
                let name = entry.as_ref().expect("an entry").file_name();
                name.as_encoded_bytes().ends_with(b".partial")
            });
            assert_eq!(left.count(), 0, "{call}");
            assert!(train(&stream, &folder).expect("goes on"), "{call}");
            assert_eq!(weights(&folder), weights(&calm), "{how:?} {call}");
            assert_eq!(RunFolder::new(&folder).epochs().expect("read").len(), 2, "{call}");
        }
    }
    assert!(failures > 20, "{failures}");
}

#[test]
fn a_run_stopped_in_validation_ends_with_the_same_bytes() {
    let place = tempfile::tempdir().expect("a folder");
    let stream = stream();
    let calm = place.path().join("calm");
    assert!(train(&stream, &calm).expect("trained"));
    // Resumed by the same process, and by another one.
    for opened_again in [false, true] {
        let folder = RunFolder::new(place.path().join(format!("stopped-{opened_again}")));
        let mut run = TrainingRun::begin(config(), stream.clone(), folder.clone()).expect("begun");
        let mut stop = |event: TrainEvent<'_>| match event {
            TrainEvent::Validation { .. } => ControlFlow::Break(()),
            TrainEvent::Step { .. } | TrainEvent::Epoch(_) => ControlFlow::Continue(()),
        };
        assert!(!run.run(&mut stop).expect("stopped"));
        assert!(!folder.best().exists(), "nothing is validated yet");
        if opened_again {
            drop(run);
            run = TrainingRun::resume_with(folder.clone(), stream.clone()).expect("resumed");
        }
        assert!(run.run(&mut go_on).expect("trained"));
        assert_eq!(weights(folder.path()), weights(&calm));
    }
    let mut run = TrainingRun::begin_in_memory(config(), stream.clone()).expect("begun");
    let mut events = 0;
    let mut stop = |event: TrainEvent<'_>| match event {
        TrainEvent::Validation { .. } => {
            events += 1;
            if events == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        }
        TrainEvent::Step { .. } | TrainEvent::Epoch(_) => ControlFlow::Continue(()),
    };
    assert!(!run.run(&mut stop).expect("stopped"));
    assert!(run.run(&mut go_on).expect("trained"));
    let asked = EvalScope::default();
    let scores = |run: TrainedRun| {
        let report = run.evaluate(&asked).expect("evaluated");
        report.results.iter().map(|row| row.ap.to_bits()).collect::<Vec<_>>()
    };
    let calm = TrainedRun::open_with(&RunFolder::new(&calm), stream).expect("opened");
    assert_eq!(scores(run.into_trained().expect("trained")), scores(calm));
}

#[test]
fn a_folder_has_one_run_that_writes_and_any_number_that_read() {
    let place = tempfile::tempdir().expect("a folder");
    let stream = stream();
    let path = place.path().join("run");
    assert!(train(&stream, &path).expect("trained"));
    let folder = RunFolder::new(&path);
    let run = TrainingRun::resume_with(folder.clone(), stream.clone()).expect("nobody else");
    folder.lock().expect("the same writer");
    let error = train(&stream, &path).expect_err("another writer");
    assert_eq!(error.kind(), crate::error::ErrorKind::Conflict);
    assert!(error.to_string().starts_with(&path.display().to_string()), "{error}");
    TrainedRun::open_with(&RunFolder::new(&path), stream.clone()).expect("readers need no lock");
    drop(run);
    assert!(train(&stream, &path).expect("free again"));
}

#[test]
fn a_number_that_was_changed_in_a_checkpoint_never_hurts_a_run_that_resumes() {
    let place = tempfile::tempdir().expect("a folder");
    let stream = stream();
    let small: [(&str, &[&str]); 9] = [
        ("lstep-pair", &["model.position_width=8", "model.snapshots=6", "model.recent=4"]),
        ("tgn", &["model.recent=4"]),
        ("tpnet", &["model.recent=4", "model.node_width=8", "model.projection_width=8"]),
        ("jodie", &["model.node_width=8"]),
        ("pint", &["model.node_width=8", "model.recent=4", "model.positions=walks"]),
        ("nat", &["model.node_width=8", "model.first_hop=4", "model.second_hop=3"]),
        ("tncn", &["model.node_width=8", "model.hidden=8", "model.recent=4"]),
        ("ctan", &["model.node_width=8", "model.time_width=8", "model.recent=4"]),
        ("graphmixer", lstep_testkit::small::GRAPHMIXER),
    ];
    for (number, (model, settings)) in small.into_iter().enumerate() {
        let folder = RunFolder::new(place.path().join(model));
        let keys = ["train.epochs=2", "protocol.step=50"].iter().chain(settings);
        let config = RunConfig::builder(DataConfig::default())
            .model(model)
            .set(&keys.map(|key| key.to_string()).collect::<Vec<_>>())
            .build()
            .expect("settings");
        // Stopped within the second epoch, so that there is a state.
        let mut steps = 0;
        TrainingRun::begin(config, stream.clone(), folder.clone())
            .and_then(|mut run| {
                run.run(&mut |event| {
                    steps += u32::from(matches!(event, TrainEvent::Step { .. }));
                    if steps < 7 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
                })
            })
            .expect("stopped");
        let good = Checkpoint::read(folder.last()).expect("read");
        let mut draw = crate::rng::KeyedRng::new(&[0x5b02, number as u64]);
        for round in 0..60 {
            let mut spoilt = good.clone();
            let changed = spoil::change_one(&mut spoilt, &mut draw, |tensor| {
                let of_weights = ["weight.", "first.", "second."];
                of_weights.iter().any(|part| tensor.starts_with(part)) == (round % 10 == 0)
            });
            spoilt.write(folder.last()).expect("written");
            let resumed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                let run = TrainingRun::resume_with(folder.clone(), stream.clone());
                // A few steps; what comes of them is up to the numbers.
                let mut left = 3;
                let _ = run.and_then(|mut run| {
                    run.run(&mut |_| {
                        left -= 1;
                        if left > 0 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
                    })
                });
            }));
            resumed.unwrap_or_else(|_| panic!("{model}: {changed}"));
        }
        for progress in
            [r#""epoch":0"#, r#""epoch":4294967295"#, r#""step":4294967295"#, r#""batches":99"#]
        {
            let mut spoilt = good.clone();
            let note = spoilt.notes.get_mut("progress").expect("noted");
            let key = progress.split_once(':').expect("a key").0;
            let at = note.find(key).expect("there");
            let end = at + note[at..].find([',', '}']).expect("an end");
            note.replace_range(at..end, progress);
            spoilt.write(folder.last()).expect("written");
            let error = TrainingRun::resume_with(folder.clone(), stream.clone()).err();
            let error = error.unwrap_or_else(|| panic!("{progress}")).to_string();
            assert!(error.contains("last.safetensors"), "{error}");
        }
    }
}
