//! A bundle as a file: a checkpoint, so that it is whole or absent and refused if a byte has
//! changed. Whatever it says is checked before it is used, for the digest only tells that nobody
//! altered what somebody wrote.
//!
//! | tensor | holds |
//! |---|---|
//! | `events.first` | the number of the first event in the file; always 0 in this format |
//! | `events.sources`, `.destinations`, `.times`, `.features` | a row for each event |
//! | `nodes.features` | a row for each node |
//! | `names.integers`, or `names.texts` and `names.ends` | the nodes' ids |
//! | `names.sides` | 1 for a destination, where sides are separated |
//! | `candidates` | the nodes that have been destinations |
//! | `info.nodes`, `info.training`, `info.silence` | what the model knew before its first event |
//! | `run.events` | how many events the run's stream had |
//! | `model.*` | weights and state, as the model saves them |
//!
//! Notes: `bundle` (the version of this layout), `settings` (TOML), `clock` (JSON), `dataset`,
//! `stream` (its SHA-256), `version`, and `calibration` (JSON) where the run has one. The whole log is kept, because models may draw from whole
//! histories. States keep events by number, so a layout with a shorter log says in `events.first`
//! where it begins.

use super::{Bundle, BundleInfo};
use crate::checkpoint::{Checkpoint, StreamExtent, Tensor, Values};
use crate::error::{Error, InputFault, Result};
use crate::event::{Clock, Events, Features, Ids, Names, NodeId, NodeSet, Side, Time};
use crate::graph::EventLog;
use crate::model::{Silence, StreamInfo};
use crate::results::Calibration;
use crate::serving::Live;
use crate::settings::RunConfig;
use std::path::Path;

/// The version of this layout. A change that old versions cannot read counts it up.
const LAYOUT: &str = "1";

impl Bundle {
    /// Writes the file, in place of an older one of that name if there is one.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<()> {
        self.checkpoint().write(path)
    }

    /// Reads a file that [`Bundle::write`] wrote.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, is something else, is not exactly as it was written, or does not
    /// describe a model that can be used.
    pub fn read(path: impl AsRef<Path>) -> Result<Bundle> {
        let path = path.as_ref();
        Bundle::of_file(path.display().to_string(), Checkpoint::read(path)?)
    }

    /// Reads the bytes of such a file; `name` is named in errors. For tests on arbitrary bytes.
    #[doc(hidden)]
    pub fn from_bytes(name: &str, bytes: &[u8]) -> Result<Bundle> {
        Bundle::of_file(name.to_string(), Checkpoint::from_bytes(name, bytes)?)
    }

    fn of_file(file: String, checkpoint: Checkpoint<'_>) -> Result<Bundle> {
        match checkpoint.notes.get("bundle").map(String::as_str) {
            Some(LAYOUT) => {}
            Some(other) => {
                let problem = format!(
                    "is a model of layout {other}, this version of lstep reads layout {LAYOUT}"
                );
                let remedy = "read it with the version that wrote it";
                return Err(InputFault::new(file, problem, remedy).into());
            }
            None => {
                let problem = "is a checkpoint of training, not an exported model";
                let remedy = "give the folder of the run, or export the run";
                return Err(InputFault::new(file, problem, remedy).into());
            }
        }
        Bundle::of_checkpoint(checkpoint).map_err(|error| {
            let why = match error {
                Error::Input(fault) if fault.file == "checkpoint" => {
                    format!("it {}", fault.problem)
                }
                other => other.to_string(),
            };
            let problem = format!("does not describe a model that can be used: {why}");
            InputFault::new(file, problem, "export the run again").into()
        })
    }

    fn checkpoint(&self) -> Checkpoint<'_> {
        let mut file = Checkpoint::default();
        let BundleInfo { dataset, settings, stream_sha256, run_events, version, calibration } =
            &self.about;
        let clock = serde_json::to_string(&self.clock).expect("a clock is plain data");
        for (name, text) in [
            ("bundle", LAYOUT.to_string()),
            ("settings", settings.to_toml()),
            ("clock", clock),
            ("dataset", dataset.clone()),
            ("stream", stream_sha256.clone()),
            ("version", version.clone()),
        ] {
            file.notes.insert(name.to_string(), text);
        }
        if let Some(curve) = calibration {
            let text = serde_json::to_string(curve).expect("a curve is plain data");
            file.notes.insert("calibration".to_string(), text);
        }
        let (from, to) = self.info.training;
        file.push_u64("info.nodes", vec![self.info.nodes as u64]);
        file.push_f64("info.training", vec![from.value(), to.value()]);
        file.push_f64("info.silence", self.info.silence.to_numbers().to_vec());
        file.push_u64("run.events", vec![*run_events]);

        let log = self.live.log();
        let (events, column) = (log.events(), |nodes: &[NodeId]| {
            nodes.iter().map(|node| node.0).collect::<Vec<u32>>()
        });
        file.push_u64("events.first", vec![0]);
        file.push_u32("events.sources", column(events.sources()));
        file.push_u32("events.destinations", column(events.destinations()));
        let times: Vec<f64> = events.times().iter().map(|time| time.value()).collect();
        file.push_f64("events.times", times);
        file.tensors.push(table("events.features", events.features()));
        file.tensors.push(table("nodes.features", log.node_features()));
        let (ids, sides) = self.names.columns();
        match ids {
            Ids::Integer(ids) => {
                let bits: Vec<u64> = ids.iter().map(|&id| id as u64).collect();
                file.push_u64("names.integers", bits);
            }
            Ids::Text { buffer, ends } => {
                file.push_u8("names.texts", buffer.as_bytes());
                file.push_u64("names.ends", ends.iter().map(|&end| end as u64).collect::<Vec<_>>());
            }
        }
        if let Some(sides) = sides {
            let sides: Vec<u8> = sides.iter().map(|&side| side as u8).collect();
            file.push_u8("names.sides", sides);
        }
        file.push_u32(
            "candidates",
            self.destinations.iter().map(|node| node.0).collect::<Vec<_>>(),
        );
        for mut tensor in self.model().tensors {
            tensor.name.insert_str(0, "model.");
            file.tensors.push(tensor);
        }
        file
    }

    fn of_checkpoint(mut file: Checkpoint<'_>) -> Result<Bundle> {
        let settings = RunConfig::from_toml("settings", file.note("settings")?)?;
        let curve = match file.notes.get("calibration") {
            Some(text) => {
                let read = serde_json::from_str::<Calibration>(text).ok();
                let none = || faulty("has no curve from scores to probabilities".into());
                Some(read.filter(Calibration::is_sound).ok_or_else(none)?)
            }
            None => None,
        };
        let about = BundleInfo {
            dataset: file.note("dataset")?.to_string(),
            settings,
            stream_sha256: file.note("stream")?.to_string(),
            run_events: one(&file, "run.events")?,
            version: file.note("version")?.to_string(),
            calibration: curve,
        };
        let clock: Clock = serde_json::from_str(file.note("clock")?)
            .map_err(|error| faulty(format!("has a clock that is none ({error})")))?;
        let names = names(&file)?;
        let info = info(&file, &names)?;
        let first = one(&file, "events.first")?;
        if first != 0 {
            return Err(faulty(format!("begins with event {first}, and has to with event 0")));
        }
        let column = |name: &str| -> Result<Vec<NodeId>> {
            let nodes: Vec<NodeId> = file.u32(name)?.iter().map(|&node| NodeId(node)).collect();
            match nodes.iter().find(|node| node.index() >= names.len()) {
                Some(node) => Err(faulty(format!(
                    "has node {} in {name:?}, and names for {} nodes",
                    node.0,
                    names.len()
                ))),
                None => Ok(nodes),
            }
        };
        let (sources, destinations) = (column("events.sources")?, column("events.destinations")?);
        let candidates = column("candidates")?;
        let destination: NodeSet = destinations.iter().copied().collect();
        if !candidates.is_sorted_by(|a, b| a < b)
            || destination.iter().any(|node| candidates.binary_search(&node).is_err())
        {
            let problem = "has candidates that are not all destinations, each once and in order";
            return Err(faulty(problem.into()));
        }
        let times = file.f64("events.times")?.iter().map(|&time| time_of(time));
        let times = times.collect::<Result<Vec<Time>>>()?;
        if times.is_empty() {
            return Err(faulty("has no events".into()));
        }
        let event_features = features(&mut file, "events.features", times.len())?;
        let node_features = features(&mut file, "nodes.features", names.len())?;
        let events = Events::new(sources, destinations, times, event_features)?;

        let model = file.tensors.into_iter().filter_map(|mut tensor| {
            tensor.name = tensor.name.strip_prefix("model.")?.to_string();
            Some(tensor)
        });
        let model = Checkpoint { tensors: model.collect(), ..Checkpoint::default() };
        let extent = StreamExtent { nodes: names.len(), event_features: events.features().width() };
        let trainer = about.trainer(&info, extent, model)?;
        let log = EventLog::new(events).with_node_features(node_features);
        let destinations = candidates.into_iter().collect();
        let live = Live::resume(log, trainer);
        Ok(Bundle { live, names, clock, destinations, info, about })
    }
}

/// A table with its width in its shape.
fn table<'a>(name: &str, features: &'a Features) -> Tensor<'a> {
    let shape = vec![features.rows(), features.width()];
    Tensor { name: name.to_string(), shape, values: Values::F32(features.values().into()) }
}

/// The table that [`table`] made: a row for each of `rows`, or none at all.
fn features(file: &mut Checkpoint<'_>, name: &str, rows: usize) -> Result<Features> {
    let [found, width] = file.tensor(name)?.shape[..] else {
        return Err(faulty(format!("has {name:?} that is no table")));
    };
    let found = if width == 0 { rows } else { found };
    if found != rows {
        return Err(faulty(format!("has {found} rows in {name:?}, and {rows} are needed")));
    }
    Features::new(width, file.take_f32(name)?)
}

fn names(file: &Checkpoint<'_>) -> Result<Names> {
    let ids = if has(file, "names.integers") {
        Ids::Integer(file.u64("names.integers")?.iter().map(|&bits| bits as i64).collect())
    } else {
        let buffer = String::from_utf8(file.u8("names.texts")?.to_vec())
            .map_err(|_| faulty("has names that are no UTF-8".into()))?;
        let end = |&end: &u64| usize::try_from(end).unwrap_or(usize::MAX);
        Ids::Text { buffer, ends: file.u64("names.ends")?.iter().map(end).collect() }
    };
    if ids.len() as u64 > Names::MOST {
        return Err(faulty(format!("has {} names, more than a node can have", ids.len())));
    }
    let side = |&side: &u8| match side {
        0 => Ok(Side::Source),
        1 => Ok(Side::Destination),
        other => Err(faulty(format!("has a node on side {other}, and there are sides 0 and 1"))),
    };
    let sides = match has(file, "names.sides") {
        true => Some(file.u8("names.sides")?.iter().map(side).collect::<Result<Vec<Side>>>()?),
        false => None,
    };
    Names::from_columns(&ids, sides.as_deref())
}

fn info(file: &Checkpoint<'_>, names: &Names) -> Result<StreamInfo> {
    let nodes = one(file, "info.nodes")?;
    if nodes > names.len() as u64 {
        return Err(faulty(format!("knew {nodes} nodes of {} before its training", names.len())));
    }
    let [from, to] = file.f64("info.training")? else {
        return Err(faulty("has no first and last time of training".into()));
    };
    let training = (time_of(*from)?, time_of(*to)?);
    if training.1 < training.0 {
        return Err(faulty(format!("was trained from {from} to {to}, which is earlier")));
    }
    let silence = match has(file, "info.silence") {
        true => Silence::from_numbers(file.f64("info.silence")?)
            .ok_or_else(|| faulty("has silences that no events have".into()))?,
        // Models of earlier versions have no use for it.
        false => Silence::default(),
    };
    Ok(StreamInfo { nodes: nodes as usize, training, silence })
}

fn has(file: &Checkpoint<'_>, name: &str) -> bool {
    file.tensors.iter().any(|tensor| tensor.name == name)
}

fn time_of(value: f64) -> Result<Time> {
    Time::new(value).ok_or_else(|| faulty(format!("has a time that is {value}")))
}

fn one(file: &Checkpoint<'_>, name: &str) -> Result<u64> {
    match file.u64(name)? {
        [value] => Ok(*value),
        other => Err(faulty(format!("has {} numbers as {name:?}, and one is needed", other.len()))),
    }
}

/// What is wrong with the file, to be read after "it".
fn faulty(problem: String) -> Error {
    InputFault::new("checkpoint", problem, "export the run again").into()
}

#[cfg(test)]
mod tests;
