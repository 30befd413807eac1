//! A training step that goes through the operations that models are made of, with sizes above the
//! sharing threshold.

use lstep_tensor::*;

/// The parameters of the model below.
pub fn parameters() -> Parameters {
    let mut p = Parameters::new(3);
    for (name, rows, cols) in [
        ("in", 96, 70),
        ("out", 64, 96),
        ("q", 64, 64),
        ("k", 64, 64),
        ("v", 64, 64),
        ("tokens", 8, 8),
        ("mix.in", 4, 8),
        ("mix.out", 8, 4),
        ("gru.input", 192, 64),
        ("gru.hidden", 192, 64),
        ("times", 64, 74),
        ("score", 1, 64),
    ] {
        p.add(name, rows, cols, Init::Linear { inputs: cols });
    }
    for (name, cols) in
        [("in.bias", 96), ("gain", 64), ("shift", 64), ("gru.b1", 192), ("gru.b2", 192)]
    {
        p.add(name, 1, cols, Init::Normal { mean: 0.5, deviation: 0.2 });
    }
    for (name, cols) in [("mix.gain", 8), ("mix.shift", 8), ("mix.b1", 4), ("mix.b2", 8)] {
        p.add(name, 1, cols, Init::Normal { mean: 0.5, deviation: 0.2 });
    }
    p.add("slots", 1, 10, Init::Normal { mean: 0.1, deviation: 0.1 });
    p.add("omega", 1, 33, Init::Uniform { low: 0.0, high: 1.0 });
    p.add("phase", 1, 33, Init::Zeros);
    p.add("filter.re", 33, 50, Init::Normal { mean: 0.0, deviation: 0.1 });
    p.add("filter.im", 33, 50, Init::Normal { mean: 0.0, deviation: 0.1 });
    p.add("filter.sum", 1, 50, Init::Normal { mean: 0.0, deviation: 0.1 });
    p
}

const NODES: usize = 400;
const ENTRIES: usize = 10 * NODES;

/// One forward pass over constants that depend on nothing; returns the loss.
pub fn forward(tape: &mut Tape<'_>, p: &Parameters, features: &'static [f32]) -> Var {
    let get = |tape: &mut Tape<'_>, name: &str| tape.parameter(p.find(name).expect("it was added"));
    let table = tape.borrow(features, 33);
    let offsets = tape.indices((0..=NODES).map(|i| 10 * i as u32));
    let rows = tape.indices((0..ENTRIES).map(|j| ((j * 7919) % NODES) as u32));
    let slots = tape.indices((0..ENTRIES).map(|j| (j % 10) as u32));
    let times = tape.times((0..ENTRIES).map(|j| (j as f64 * 1234.567) % 1e6));
    let frequencies = tape.times((0..37).map(|i| 10_f64.powf(-f64::from(i) / 5.0)));
    let weights = get(tape, "slots");
    let segments = Segments { rows: Some(rows), offsets };

    let wide = tape.zeros(NODES, 70);
    let features = tape.columns(wide, 0..33);
    let encodings = tape.columns(wide, 33..70);
    let by_slot = Weighting::By { weights, slots: Some(slots) };
    tape.segment_sum_into(features, table, segments, by_slot);
    tape.time_sum_into(encodings, times, offsets, frequencies, by_slot);
    let (w, b) = (get(tape, "in"), get(tape, "in.bias"));
    let h = tape.linear(wide, w, Some(b), Activation::Relu);
    let h = tape.dropout(h, 0.2);
    let w = get(tape, "out");
    let h = tape.linear(h, w, None, Activation::Gelu);
    let (gain, shift) = (get(tape, "gain"), get(tape, "shift"));
    let h = tape.layer_norm(h, gain, shift, 1e-5);

    let [q, k, v] = ["q", "k", "v"].map(|name| {
        let w = get(tape, name);
        tape.linear(h, w, None, Activation::Identity)
    });
    let heads = Heads { heads: 2, query_rows: 8, key_rows: 8, keys: Keys::All, dropout: 0.1 };
    let h = tape.attention(q, k, v, heads);
    let tokens = tape.transpose_blocks(h, 8);
    let w = get(tape, "tokens");
    let tokens = tape.linear(tokens, w, None, Activation::Tanh);
    let h = tape.transpose_blocks(tokens, 64);
    let [inner, outer, gain, shift, inner_bias, outer_bias] =
        ["mix.in", "mix.out", "mix.gain", "mix.shift", "mix.b1", "mix.b2"]
            .map(|name| get(tape, name));
    let net =
        TokenNet { gain, shift, inner, inner_bias, outer, outer_bias, epsilon: 1e-5, dropout: 0.1 };
    let h = tape.mix_tokens(h, net);

    let qkv = tape.concat_columns(&[q, k, v]);
    let blocks = Blocks {
        heads: 2,
        offsets: tape.indices((0..=NODES / 20).map(|i| 20 * i as u32)),
        repeats: None,
        dropout: 0.1,
    };
    let attended = tape.self_attention(qkv, blocks);
    let w = get(tape, "q");
    let h = tape.layer(
        attended,
        w,
        None,
        Then { activation: Activation::Gelu, dropout: 0.1, add: Some(h) },
    );
    let both = tape.zeros(NODES, 2 * 37);
    let (plain, weighted) = (tape.columns(both, 0..37), tape.columns(both, 37..74));
    tape.time_sums_into(plain, weighted, times, offsets, frequencies, weights, Some(slots));
    let w = get(tape, "times");
    let from_times = tape.linear(both, w, None, Activation::Exp);
    let h = tape.mul(h, from_times);

    let neighbours = tape.segment_sum(h, segments, Weighting::Mean);
    let cell = Cell {
        input_weight: get(tape, "gru.input"),
        hidden_weight: get(tape, "gru.hidden"),
        input_bias: get(tape, "gru.b1"),
        hidden_bias: get(tape, "gru.b2"),
    };
    let h = tape.gru_cell(neighbours, h, cell);

    let (omega, phase) = (get(tape, "omega"), get(tape, "phase"));
    let encoded = tape.trainable_time_encoding(times, omega, phase);
    let (re, im, sum) = (get(tape, "filter.re"), get(tape, "filter.im"), get(tape, "filter.sum"));
    let kernel = tape.fold_filter(re, im, sum);
    let runs = Runs {
        offsets,
        runs: tape.indices(
            (0..ENTRIES)
                .flat_map(|j| [(j % NODES) as u32, 5 * (j % 10) as u32, 5 * (j % 10) as u32 + 5]),
        ),
    };
    let positions = tape.run_kernel(kernel, table, runs);

    let u_rows = tape.indices((0..1000).map(|i| (i * 31 % NODES) as u32));
    let v_rows = tape.indices((0..1000).map(|i| (i * 57 % NODES) as u32));
    let pairs = tape.gather_pair(Pair { u: h, u_rows, v: h, v_rows }, None, Activation::Relu);
    let w = get(tape, "score");
    let logits = tape.linear(pairs, w, None, Activation::Identity);
    let labels = tape.input(1000, 1, |y| y.iter_mut().step_by(2).for_each(|y| *y = 1.0));
    let loss = tape.cross_entropy(logits, labels);
    let (pu, pv) = (tape.gather(positions, u_rows), tape.gather(positions, v_rows));
    let distance = tape.row_distance(pu, pv);
    let distance = tape.mean(distance);
    let soft = tape.softmax(encoded);
    let soft = tape.square(soft);
    let soft = tape.sum(soft);
    let loss = tape.add(loss, distance);
    let soft = tape.scale(soft, 1e-3);
    tape.add(loss, soft)
}

/// A feature table that lives as long as the program.
pub fn features() -> &'static [f32] {
    static TABLE: std::sync::OnceLock<Vec<f32>> = std::sync::OnceLock::new();
    TABLE.get_or_init(|| (0..NODES * 33).map(|i| (i as f32 * 0.37).sin()).collect())
}

#[allow(dead_code, reason = "each test binary uses a part")]
/// `steps` updates from the same start; losses and all final weights.
pub fn train(steps: u64) -> (Vec<f32>, Vec<f32>) {
    let mut p = parameters();
    let mut gradients = Gradients::of(&p);
    let mut adam = Adam::new(&p, AdamConfig::default());
    let mut workspace = Workspace::new();
    let mut losses = Vec::new();
    for step in 0..steps {
        gradients.zero();
        let mut tape = workspace.train(&p, DropoutKey { seed: 1, step });
        let loss = forward(&mut tape, &p, features());
        losses.push(tape.scalar(loss));
        tape.backward(loss, &mut gradients);
        gradients.clip_norm(1.0);
        adam.step(&mut p, &gradients);
    }
    let weights = p.iter().flat_map(|parameter| parameter.values.to_vec()).collect();
    (losses, weights)
}
