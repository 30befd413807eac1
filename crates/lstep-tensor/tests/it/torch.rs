//! Layers and the optimiser against numbers made with PyTorch (`fixtures/make_torch.py`).

#![allow(clippy::unwrap_used, reason = "a fixture that does not parse is a bug of the test")]

use std::collections::BTreeMap;

use lstep_tensor::*;
use serde_json::Value;

fn fixture() -> Value {
    serde_json::from_str(include_str!("../fixtures/torch.json")).expect("the fixture is JSON")
}

fn floats(value: &Value) -> Vec<f32> {
    value.as_array().expect("a list").iter().map(|x| x.as_f64().expect("a number") as f32).collect()
}

fn assert_close(name: &str, ours: &[f32], theirs: &[f32], tolerance: f32) {
    assert_eq!(ours.len(), theirs.len(), "{name}");
    let scale = theirs.iter().fold(1e-3_f32, |a, b| a.max(b.abs()));
    for (i, (a, b)) in ours.iter().zip(theirs).enumerate() {
        assert!((a - b).abs() <= tolerance * scale, "{name}[{i}]: {a} and {b}");
    }
}

/// Runs `layer` on the inputs of a case, compares the result and all gradients.
fn compare(case: &Value, layer: impl Fn(&mut Tape<'_>, &BTreeMap<&str, Var>) -> Var) {
    let mut parameters = Parameters::new(0);
    let inputs = case["inputs"].as_object().expect("inputs");
    let ids: BTreeMap<&str, ParameterId> = inputs
        .iter()
        .map(|(name, input)| {
            let shape: Vec<usize> = input["shape"]
                .as_array()
                .unwrap()
                .iter()
                .map(|n| n.as_u64().unwrap() as usize)
                .collect();
            let cols = *shape.last().unwrap();
            let rows = shape[..shape.len() - 1].iter().product();
            let id = parameters.add(name, rows, cols, Init::Zeros);
            parameters.load(name, &floats(&input["values"])).unwrap();
            (name.as_str(), id)
        })
        .collect();
    let mut workspace = Workspace::new();
    let mut gradients = Gradients::of(&parameters);
    let mut tape = workspace.train(&parameters, DropoutKey::default());
    let vars = ids.iter().map(|(&name, &id)| (name, tape.parameter(id))).collect();
    let out = layer(&mut tape, &vars);
    assert_close("out", &tape.value(out).to_vec(), &floats(&case["out"]), 2e-6);
    let (rows, cols) = tape.shape(out);
    let weights = tape.input(rows, cols, |w| {
        for (i, w) in w.iter_mut().enumerate() {
            *w = ((i * 37 % 19) as f32 - 9.0) / 9.0;
        }
    });
    let product = tape.mul(out, weights);
    let loss = tape.sum(product);
    tape.backward(loss, &mut gradients);
    for (name, theirs) in case["gradients"].as_object().expect("gradients") {
        assert_close(name, &gradients.get(ids[name.as_str()]).to_vec(), &floats(theirs), 5e-6);
    }
}

fn cell(v: &BTreeMap<&str, Var>) -> Cell {
    Cell {
        input_weight: v["weight_ih"],
        hidden_weight: v["weight_hh"],
        input_bias: v["bias_ih"],
        hidden_bias: v["bias_hh"],
    }
}

#[test]
fn the_gru_cell_is_pytorchs() {
    compare(&fixture()["gru"], |tape, v| tape.gru_cell(v["x"], v["h"], cell(v)));
}

#[test]
fn the_rnn_cell_is_pytorchs() {
    compare(&fixture()["rnn"], |tape, v| tape.rnn_cell(v["x"], v["h"], cell(v)));
}

#[test]
fn layer_norm_is_pytorchs() {
    compare(&fixture()["layer_norm"], |tape, v| {
        tape.layer_norm(v["x"], v["gain"], v["bias"], 1e-5)
    });
}

#[test]
fn gelu_is_pytorchs() {
    compare(&fixture()["gelu"], |tape, v| tape.gelu(v["x"]));
}

#[test]
fn masked_attention_with_projections_is_pytorchs() {
    let fixture = fixture();
    let case = &fixture["attention"];
    let counts: Vec<u32> = floats(&case["counts"]).into_iter().map(|n| n as u32).collect();
    for marked in [false, true] {
        compare(case, |tape, v| {
            let keys = if marked {
                let marks = counts.iter().flat_map(|&n| (0..5).map(move |k| u32::from(k < n)));
                Keys::Marked(tape.indices(marks))
            } else {
                Keys::First(tape.indices(counts.iter().copied()))
            };
            let project = |tape: &mut Tape<'_>, x: Var, i: usize| {
                let weight = tape.rows(v["in_proj_weight"], 8 * i..8 * i + 8);
                let bias = tape.columns(v["in_proj_bias"], 8 * i..8 * i + 8);
                tape.linear(x, weight, Some(bias), Activation::Identity)
            };
            let q = project(tape, v["q"], 0);
            let k = project(tape, v["kv"], 1);
            let value = project(tape, v["kv"], 2);
            let heads = Heads { heads: 2, query_rows: 2, key_rows: 5, keys, dropout: 0.0 };
            let mixed = tape.attention(q, k, value, heads);
            tape.linear(mixed, v["out_proj.weight"], Some(v["out_proj.bias"]), Activation::Identity)
        });
    }
}

#[test]
fn cross_entropy_is_pytorchs_even_for_extreme_logits() {
    let fixture = fixture();
    let case = &fixture["cross_entropy"];
    compare(case, |tape, v| {
        let labels = tape.constant(1, 7, &floats(&case["labels"]));
        tape.cross_entropy(v["z"], labels)
    });
}

#[test]
fn adam_follows_pytorchs_path_and_resumes_exactly() {
    for case in fixture()["adam"].as_array().unwrap() {
        let mut parameters = Parameters::new(0);
        let id = parameters.add("p", 1, 12, Init::Zeros);
        let start: Vec<f32> = (0..12).map(|i| -1.0 + 2.0 * i as f32 / 11.0).collect();
        parameters.load("p", &start).unwrap();
        let config = AdamConfig {
            learning_rate: 0.01,
            weight_decay: case["weight_decay"].as_f64().unwrap(),
            ..AdamConfig::default()
        };
        let clip = case["clip"].as_f64().unwrap();
        let mut adam = Adam::new(&parameters, config);
        let mut gradients = Gradients::of(&parameters);
        for (step, expected) in case["path"].as_array().unwrap().iter().enumerate() {
            for (i, g) in gradients.get_mut(id).iter_mut().enumerate() {
                *g = (((step * 31 + i * 17) % 23) as f32 - 11.0) / 7.0;
            }
            if clip > 0.0 {
                gradients.clip_norm(clip);
            }
            // Through a copy of the state, as after a restart.
            let mut resumed = Adam::new(&parameters, config);
            resumed.load_steps(adam.steps());
            for moments in adam.moments() {
                resumed.load(moments).unwrap();
            }
            adam = resumed;
            adam.step(&mut parameters, &gradients);
            assert_close("path", parameters.get(id).values, &floats(expected), 1e-6);
        }
        let moments = adam.moments().next().unwrap();
        assert_close("first", moments.first, &floats(&case["first"]), 1e-6);
        assert_close("second", moments.second, &floats(&case["second"]), 1e-6);
        assert_eq!(adam.steps(), 10);
    }
}
