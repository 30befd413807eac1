//! Small trained models for the tests of this room.

use crate::event::{Events, Features, NodeId, Time};
use crate::serving::Bundle;
use crate::settings::{DataConfig, RunConfig};
use crate::stream::Stream;
use std::ops::ControlFlow;

use crate::training::{RunFolder, TrainedRun, TrainingRun};

/// A model trained for one short epoch on letters of thirty people at seconds 0 to 599.
pub(super) fn bundle(model: &str) -> Bundle {
    let small: &[&str] = match model {
        "graphmixer" => &["model.channels=8", "model.recent=4"],
        "nat" => &["model.first_hop=4", "model.second_hop=3"],
        "pint" => &["model.recent=4", "model.positions=walks"],
        "tncn" => &["model.recent=4", "model.mode=zero-and-one-hop"],
        "ctan" => &["model.recent=4", "model.iterations=2"],
        "tgn" => &["model.recent=4"],
        "dygformer" => &["model.channel_width=4", "model.longest=8", "model.patch=2"],
        "lstep" | "lstep-pair" => {
            &["model.position_width=8", "model.snapshots=6", "model.recent=4"]
        }
        // They have no widths, and no weights either.
        "edgebank" | "poptrack" | "heuristics" => {
            return trained(model, 600, &["protocol.step=50"]);
        }
        _ => &[],
    };
    let widths = ["model.time_width=8", "model.node_width=8", "model.edge_width=4"];
    trained(model, 600, &[&widths, small, &["protocol.step=50"]].concat())
}

/// L-STEP with as few numbers as it can have, on a few letters: a small file.
pub(super) fn tiny() -> Bundle {
    let widths = ["position", "time", "node", "edge"].map(|name| format!("model.{name}_width=1"));
    let mut settings: Vec<&str> = widths.iter().map(String::as_str).collect();
    settings.extend(["model.snapshots=1", "model.recent=1", "protocol.step=5"]);
    trained("lstep", 40, &settings)
}

fn trained(model: &str, events: u32, settings: &[&str]) -> Bundle {
    let time = |second: u32| Time::new(f64::from(second)).expect("finite");
    let events = Events::new(
        (0..events).map(|n| NodeId(n % 30)).collect(),
        (0..events).map(|n| NodeId((n * n + 2) % 30)).collect(),
        (0..events).map(time).collect(),
        Features::none(),
    )
    .expect("in order");
    let stream = Stream::new("letters", events).expect("few nodes");
    let settings: Vec<String> = ["train.epochs=1", "train.ema=0.9"]
        .iter()
        .chain(settings)
        .map(|setting| setting.to_string())
        .collect();
    let config = RunConfig::builder(DataConfig::default())
        .model(model)
        .set(&settings)
        .build()
        .expect("settings");
    let place = tempfile::tempdir().expect("a folder");
    let folder = RunFolder::new(place.path().join("run"));
    TrainingRun::begin(config, stream.clone(), folder.clone())
        .and_then(|mut training| training.run(&mut |_| ControlFlow::Continue(())))
        .expect("trained");
    Bundle::of_trained(TrainedRun::open_with(&folder, stream).expect("opened")).expect("made")
}
