//! Several processes that train one model, as threads: whatever number there is, the run's files
//! are those of one.

use super::*;
use crate::model::Ranks;
use crate::model::ranks_fixture::{Threads, on_ranks};
use crate::read::synthetic::{SyntheticConfig, generate};
use crate::settings::DataConfig;
use std::path::Path;

fn stream() -> Stream {
    let config = SyntheticConfig { nodes: 40, events: 300, ..SyntheticConfig::default() };
    Stream::from(generate(&config).expect("a stream"))
}

/// Small settings of a model, with so many lanes.
fn config(model: &str, small: &[&str], lanes: usize) -> RunConfig {
    let lanes = format!("train.lanes={lanes}");
    let keys = ["train.epochs=2", "protocol.step=50", lanes.as_str()];
    let keys: Vec<String> = keys.iter().chain(small).map(|key| key.to_string()).collect();
    RunConfig::builder(DataConfig::default()).model(model).set(&keys).build().expect("settings")
}

/// Trains on so many ranks until `steps` steps are done, and tells whether it is finished.
fn train(ranks: usize, folder: &Path, config: &RunConfig, stream: &Stream, steps: usize) -> bool {
    let resumes = RunFolder::new(folder).holds_a_run();
    let each = |exchange: Threads| {
        let reduce = Ranks::new(exchange).expect("a power of two");
        let (first, folder) = (reduce.rank() == 0, RunFolder::new(folder));
        let (reduce, stream) = (Box::new(reduce), stream.clone());
        let run = match (first, resumes) {
            (true, false) => TrainingRun::begin_sharing(config.clone(), stream, folder, reduce),
            (false, false) => TrainingRun::begin_beside(config.clone(), stream, reduce),
            (true, true) => {
                TrainingRun::resume_with(folder, stream).and_then(|run| run.share(reduce))
            }
            (false, true) => {
                TrainingRun::beside_with(folder, stream).and_then(|run| run.share(reduce))
            }
        };
        let mut run = run.expect("alike");
        let mut done = 0;
        // The last rank is the one that wants to stop; all do.
        let last = run.reduce.rank() + 1 == ranks;
        let stop = &mut |event: TrainEvent<'_>| {
            done += usize::from(matches!(event, TrainEvent::Step { .. }));
            if last && done >= steps { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        run.run(stop).expect("trained")
    };
    let finished = on_ranks(ranks, each);
    assert!(finished.iter().all(|one| *one == finished[0]), "{finished:?}");
    finished[0]
}

fn bytes(folder: &Path) -> [Vec<u8>; 2] {
    ["last.safetensors", "best.safetensors"]
        .map(|name| std::fs::read(folder.join(name)).expect("written"))
}

#[test]
fn the_number_of_ranks_changes_no_byte_of_a_checkpoint() {
    let stream = stream();
    let models = [
        ("lstep", lstep_testkit::small::LSTEP),
        ("lstep-pair", lstep_testkit::small::LSTEP),
        ("tgn", &["model.recent=4"]),
        ("graphmixer", lstep_testkit::small::GRAPHMIXER),
        ("dygformer", &["model.longest=8", "model.channel_width=8"]),
    ];
    for (model, small) in models {
        let place = tempfile::tempdir().expect("a folder");
        let config = config(model, small, 4);
        let alone = place.path().join("alone");
        let mut run = TrainingRun::begin(config.clone(), stream.clone(), RunFolder::new(&alone))
            .expect("begun");
        assert!(run.run(&mut |_| ControlFlow::Continue(())).expect("trained"));
        for ranks in [2, 4] {
            let folder = place.path().join(ranks.to_string());
            assert!(train(ranks, &folder, &config, &stream, usize::MAX), "{model}");
            assert!(bytes(&folder) == bytes(&alone), "{model}, {ranks} ranks");
        }
    }
}

#[test]
fn a_run_of_two_ranks_goes_on_with_one_and_with_four() {
    let (stream, place) = (stream(), tempfile::tempdir().expect("a folder"));
    let config = config("graphmixer", lstep_testkit::small::GRAPHMIXER, 6);
    let whole = place.path().join("whole");
    assert!(train(1, &whole, &config, &stream, usize::MAX));
    for ranks in [1, 4] {
        let folder = place.path().join(ranks.to_string());
        assert!(!train(2, &folder, &config, &stream, 3), "it is stopped after three steps");
        assert!(train(ranks, &folder, &config, &stream, usize::MAX));
        assert!(bytes(&folder) == bytes(&whole), "{ranks}");
    }
}

#[test]
fn ranks_with_other_settings_or_without_a_lane_are_refused() {
    let stream = stream();
    let refused = |lanes: usize, other: &str| {
        on_ranks(2, |exchange| {
            let reduce = Ranks::new(exchange).expect("a power of two");
            let own = if reduce.rank() == 1 { other } else { "train.seed=0" };
            let small = [lstep_testkit::small::GRAPHMIXER, &[own]].concat();
            let config = config("graphmixer", &small, lanes);
            let run = TrainingRun::begin_beside(config, stream.clone(), Box::new(reduce));
            run.err().map(|error| error.to_string())
        })
    };
    assert_eq!(refused(2, "train.seed=0"), [None, None]);
    let seeds = refused(2, "train.seed=1");
    assert!(seeds[0].as_ref().is_some_and(|text| text.contains("settings")), "{seeds:?}");
    let lanes = refused(1, "train.seed=0");
    assert!(lanes[0].as_ref().is_some_and(|text| text.contains("train.lanes")), "{lanes:?}");
}

#[test]
fn a_run_of_before_the_tree_of_lanes_goes_on_in_its_order() {
    let (stream, place) = (stream(), tempfile::tempdir().expect("a folder"));
    let config = config("graphmixer", lstep_testkit::small::GRAPHMIXER, 5);
    let begin = |name: &str| {
        let folder = RunFolder::new(place.path().join(name));
        TrainingRun::begin(config.clone(), stream.clone(), folder).expect("begun")
    };
    let go_on = &mut |_: TrainEvent<'_>| ControlFlow::Continue(());
    let weights = |name: &str| {
        let best = RunFolder::new(place.path().join(name)).best();
        Checkpoint::read(best).expect("an epoch").sha256()
    };
    begin("tree").run(go_on).expect("trained");
    let mut old = begin("old");
    old.order = LaneOrder::Sequence;
    old.reduce.set_order(old.order).expect("one process");
    old.run(go_on).expect("trained");
    assert_ne!(weights("old"), weights("tree"), "five lanes tell the orders apart");

    let mut stopped = begin("stopped");
    stopped.order = LaneOrder::Sequence;
    stopped.reduce.set_order(stopped.order).expect("one process");
    stopped.run(&mut |_| ControlFlow::Break(())).expect("stopped after a step");
    drop(stopped);
    let folder = RunFolder::new(place.path().join("stopped"));
    let mut last = Checkpoint::read(folder.last()).expect("saved");
    last.notes.remove(LANE_ORDER).expect("today's checkpoints say it");
    last.write(folder.last()).expect("written as before");
    let mut resumed = TrainingRun::resume_with(folder, stream.clone()).expect("resumed");
    resumed.run(go_on).expect("trained");
    assert_eq!(weights("stopped"), weights("old"));
}
