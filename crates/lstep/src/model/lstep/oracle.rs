//! Every number of the oracle: a slow, literal implementation of the paper in double precision.
//!
//! Reads each `*.json` of the fixture folder, and of the folder that `LSTEP_ORACLE` names.

use super::*;
use crate::event::{Events, Features, Time};
use crate::graph::EventLog;
use crate::model::composite::{CompositeState, TestLosses};
use crate::model::{Learner, Model, Negative, TrainBatch};
use lstep_tensor::Gradients;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Largest error allowed, relative to the largest number of the same table.
const TOLERANCE: f64 = 1e-4;

fn floats(value: &Value) -> Vec<f64> {
    match value {
        Value::Array(list) => list.iter().flat_map(floats).collect(),
        number => vec![number.as_f64().expect("a number")],
    }
}

fn integer(value: &Value) -> usize {
    value.as_u64().expect("a whole number") as usize
}

/// Compares a table with the oracle's.
fn close(what: &str, found: &[f64], expected: &[f64]) {
    close_for_size(what, found, expected, 1e-6);
}

/// Errors relative to the largest of the numbers, or to `least` where all are smaller.
fn close_for_size(what: &str, found: &[f64], expected: &[f64], least: f64) {
    assert_eq!(found.len(), expected.len(), "{what}");
    let largest = expected.iter().fold(least, |most: f64, value| most.max(value.abs()));
    for (place, (found, expected)) in found.iter().zip(expected).enumerate() {
        let error = (found - expected).abs() / largest;
        assert!(error < TOLERANCE, "{what}[{place}]: {found} is not {expected}, error {error:.1e}");
    }
}

type State = CompositeState<LstepEncoder, Mlp>;

struct Oracle {
    file: String,
    numbers: Value,
    log: EventLog,
    events: Vec<Event>,
    negatives: Vec<NodeId>,
    model: Lstep,
    nodes: usize,
    batch: usize,
}

impl Oracle {
    fn read(path: &Path) -> Oracle {
        let text = std::fs::read_to_string(path).expect("the file");
        let numbers: Value = serde_json::from_str(&text).expect("JSON");
        let config = &numbers["config"];
        let real = |key: &str| config[key].as_f64().expect("a number");
        let settings = LstepConfig {
            time_width: integer(&config["time_dim"]),
            node_width: integer(&config["node_dim"]),
            edge_width: integer(&config["edge_dim"]),
            position_width: integer(&config["position_dim"]),
            snapshots: integer(&config["snapshots"]),
            recent: integer(&config["recent"]),
            gap: real("t_gap"),
            alpha: real("alpha"),
            beta: real("beta"),
            alpha_neg: real("alpha_neg"),
            alpha_pe: real("alpha_pe"),
            start: Start::Zeros,
            scope: Scope::All,
            variant: Variant::Full,
            ..LstepConfig::default()
        };
        let rows = numbers["events"].as_array().expect("events");
        let column = |key: &str| rows.iter().map(|row| NodeId(integer(&row[key]) as u32)).collect();
        let times = rows
            .iter()
            .map(|row| Time::new(row["t"].as_f64().expect("a time")).expect("finite"))
            .collect();
        let table = |key: &str, width: usize| {
            Features::new(width, floats(&numbers[key]).into_iter().map(|x| x as f32).collect())
                .expect("finite")
        };
        let events = Events::new(
            column("src"),
            column("dst"),
            times,
            table("edge_features", settings.edge_width),
        );
        let log = EventLog::new(events.expect("in order"))
            .with_node_features(table("node_features", settings.node_width));
        let mut model = Lstep::new(settings, 0).expect("settings");
        for (name, values) in numbers["parameters"].as_object().expect("weights") {
            let values: Vec<f32> = floats(values).into_iter().map(|x| x as f32).collect();
            model.parameters_mut().load(name, &values).expect("the same names and shapes");
        }
        Oracle {
            file: path.display().to_string(),
            events: log.events().iter().collect(),
            negatives: floats(&numbers["negatives"])
                .into_iter()
                .map(|node| NodeId(node as u32))
                .collect(),
            nodes: integer(&config["nodes"]),
            batch: integer(&config["batch"]),
            log,
            model,
            numbers,
        }
    }

    /// The state after batch 0, which only gives the initial positions.
    fn begin(&self) -> State {
        let initial = floats(&self.numbers["initial_position"]);
        let met: NodeSet = self.events[..self.batch]
            .iter()
            .flat_map(|event| [event.source, event.destination])
            .collect();
        let nodes: Vec<NodeId> = met.iter().collect();
        let width = self.model.encoder().config.position_width;
        let vectors: Vec<f32> = nodes
            .iter()
            .flat_map(|node| &initial[node.index() * width..][..width])
            .map(|&x| x as f32)
            .collect();
        let mut positions = Positions::new(width, self.model.encoder().config.snapshots);
        positions.push_snapshot(&nodes, &vectors);
        let info = StreamInfo::new(self.nodes, (Time::ZERO, Time::ZERO));
        let mut state = self.model.begin(&info);
        (state.encoder.positions, state.encoder.met) = (positions, met);
        state
    }

    fn check(&self) {
        let mut state = self.begin();
        for expected in self.numbers["batches"].as_array().expect("batches") {
            let index = integer(&expected["index"]);
            let span = index * self.batch..((index + 1) * self.batch).min(self.events.len());
            let what = |name: &str| format!("{} batch {index} {name}", self.file);
            self.check_approximate(&state, &expected["approximate"], &what("approximate"));
            self.check_losses(&state, span.clone(), expected, &what);
            let step = &self.events[span.clone()];
            let now = step[step.len() - 1].time.value();
            assert_eq!(Some(now), expected["now"].as_f64(), "{}", what("now"));
            self.model
                .observe(self.log.revealed(span.end as u32), &mut state, step)
                .expect("observed");
            let width = self.model.encoder().config.position_width;
            let zeros = vec![0.0; width];
            let after: Vec<f64> = (0..self.nodes)
                .flat_map(|node| {
                    state.encoder.positions.latest(NodeId(node as u32)).unwrap_or(&zeros).to_vec()
                })
                .map(f64::from)
                .collect();
            close(&what("position_after"), &after, &floats(&expected["position_after"]));
        }
    }

    fn check_approximate(&self, state: &State, expected: &Value, what: &str) {
        let mut gathered = Gathered::default();
        gathered.clear();
        for node in 0..self.nodes as u32 {
            gathered.seed(Seed::new(NodeId(node), Time::ZERO));
        }
        let mut workspace = Workspace::new();
        let parameters = self.model.parameters();
        let mut tape = workspace.infer(parameters);
        let equations = self.model.encoder().equations(parameters, false);
        let approximate =
            equations.approximate(&mut tape, &gathered, &state.encoder, &mut Vec::new());
        close(what, &values(&tape, approximate), &floats(expected));
    }

    fn check_losses(
        &self,
        state: &State,
        span: std::ops::Range<usize>,
        expected: &Value,
        what: &dyn Fn(&str) -> String,
    ) {
        let past = self.log.past(span.end as u32);
        let events = &self.events[span.clone()];
        let negatives: Vec<Negative> = (events.iter().zip(&self.negatives[span.clone()]))
            .map(|(event, &destination)| Negative { source: event.source, destination })
            .collect();
        let batch = TrainBatch { events, negatives: &negatives };
        let mut gradients = Gradients::of(self.model.parameters());
        self.model.losses(past, state, batch, |mut tape, losses| {
            self.check_forward(&mut tape, &losses, expected, what);
            tape.backward(losses.total, &mut gradients);
        });
        let expected = expected["gradients"].as_object().expect("gradients");
        assert_eq!(expected.len(), self.model.parameters().len(), "{}", what("gradients"));
        // A gradient is a sum whose terms may cancel, and an f32 is good to its terms: tables below
        // a hundredth of the largest gradient are held to a millionth of that one. PyTorch's f32
        // misses more than that there.
        let all = expected.values().flat_map(floats);
        let least = 1e-2 * all.fold(1e-4, |most: f64, value| most.max(value.abs()));
        for (name, expected) in expected {
            let gradient = gradients.get(self.model.parameters().find(name).expect("a weight"));
            let found: Vec<f64> = (0..gradient.rows())
                .flat_map(|row| gradient.row(row).to_vec())
                .map(f64::from)
                .collect();
            close_for_size(&what(&format!("gradient {name}")), &found, &floats(expected), least);
        }
    }

    fn check_forward(
        &self,
        tape: &mut Tape<'_>,
        computed: &TestLosses<'_, LstepEncoder>,
        expected: &Value,
        what: &dyn Fn(&str) -> String,
    ) {
        let hidden = values(tape, computed.encoded.hidden.expect("vectors"));
        let width = self.model.encoder().config.node_width;
        let of_events = |key: &str| -> Vec<f64> {
            let events = expected["encodings"].as_array().expect("a list");
            events.iter().flat_map(|event| floats(&event[key])).collect()
        };
        let LossBatch { pairs, positives, .. } = computed.losses;
        let (sources, candidates) = (pairs.sources(), pairs.candidates());
        for (key, seeds) in [
            ("src", &sources[..positives]),
            ("dst", &candidates[..positives]),
            ("neg", &candidates[positives..]),
        ] {
            let encoding: Vec<f64> = seeds
                .iter()
                .flat_map(|&seed| hidden[seed as usize * width..][..width].to_vec())
                .collect();
            close(&what(key), &encoding, &of_events(key));
        }
        let probability = |logit: f64| 1.0 / (1.0 + (-logit).exp());
        let probabilities: Vec<f64> =
            values(tape, computed.logits).into_iter().map(probability).collect();
        let (positive, negative) = probabilities.split_at(positives);
        close(&what("y_pos"), positive, &floats(&expected["y_pos"]));
        close(&what("y_neg"), negative, &floats(&expected["y_neg"]));
        let encoder = self.model.encoder();
        let position = encoder
            .positional_loss(tape, &computed.encoded, computed.losses, computed.scratch)
            .expect("positions");
        for (key, var) in
            [("loss_lp", computed.prediction), ("loss_pe", position), ("loss", computed.total)]
        {
            close(&what(key), &[f64::from(tape.scalar(var))], &floats(&expected[key]));
        }
    }
}

fn values(tape: &lstep_tensor::Tape<'_>, var: lstep_tensor::Var) -> Vec<f64> {
    let matrix = tape.value(var);
    (0..matrix.rows()).flat_map(|row| matrix.row(row).to_vec()).map(f64::from).collect()
}

#[test]
fn every_number_of_the_oracle_comes_out() {
    let mut folders = vec![PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/lstep")];
    folders.extend(std::env::var_os("LSTEP_ORACLE").map(PathBuf::from));
    for folder in folders {
        let mut files: Vec<PathBuf> = if folder.is_dir() {
            std::fs::read_dir(&folder)
                .expect("the folder")
                .map(|entry| entry.expect("an entry").path())
                .collect()
        } else {
            vec![folder.clone()]
        };
        files.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
        files.sort();
        assert!(!files.is_empty(), "{} holds no oracle", folder.display());
        files.iter().for_each(|path| Oracle::read(path).check());
    }
}
