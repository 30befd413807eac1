//! Scoring: rows do not know of each other, nothing is kept for gradients, dropout does nothing.

use lstep_tensor::*;
use proptest::prelude::*;

fn model() -> Parameters {
    let mut p = Parameters::new(9);
    for (name, rows, cols) in [("a", 48, 37), ("b", 37, 48), ("q", 36, 36), ("score", 1, 36)] {
        p.add(name, rows, cols, Init::Linear { inputs: cols });
    }
    p.add("bias", 1, 48, Init::Normal { mean: 0.0, deviation: 1.0 });
    p.add("gain", 1, 37, Init::Ones);
    p.add("shift", 1, 37, Init::Zeros);
    p
}

/// Scores of queries numbered `from ..`: each has 5 neighbours whose features and times follow from
/// its number.
fn scores(workspace: &mut Workspace, p: &Parameters, queries: std::ops::Range<usize>) -> Vec<u32> {
    let get = |tape: &mut Tape<'_>, name: &str| tape.parameter(p.find(name).expect("it was added"));
    let n = queries.len();
    let mut tape = workspace.infer(p);
    let numbers: Vec<usize> = queries.collect();
    let x = tape.input(5 * n, 20, |x| {
        for (row, x) in x.chunks_mut(20).enumerate() {
            let number = numbers[row / 5] * 5 + row % 5;
            x.iter_mut()
                .enumerate()
                .for_each(|(i, x)| *x = ((number * 20 + i) as f32 * 0.77).sin());
        }
    });
    let times =
        tape.times(numbers.iter().flat_map(|&q| (0..5).map(move |j| (q * 1000 + j * 77) as f64)));
    let frequencies = tape.times((0..17).map(|i| 10_f64.powf(-f64::from(i) / 4.0)));
    let offsets = tape.indices((0..=n).map(|i| 5 * i as u32));
    let wide = tape.zeros(n, 37);
    let left = tape.columns(wide, 0..20);
    let right = tape.columns(wide, 20..37);
    tape.segment_sum_into(left, x, Segments { rows: None, offsets }, Weighting::Mean);
    tape.time_sum_into(right, times, offsets, frequencies, Weighting::Sum);
    let (w, b) = (get(&mut tape, "a"), get(&mut tape, "bias"));
    let h = tape.linear(wide, w, Some(b), Activation::Gelu);
    let w = get(&mut tape, "b");
    let h = tape.linear(h, w, None, Activation::Tanh);
    let (gain, shift) = (get(&mut tape, "gain"), get(&mut tape, "shift"));
    let h = tape.layer_norm(h, gain, shift, 1e-5);
    let h = tape.dropout(h, 0.5);
    let h = tape.columns(h, 1..37);
    let w = get(&mut tape, "q");
    let q = tape.linear(h, w, None, Activation::Identity);
    let h = tape.attention(
        q,
        h,
        h,
        Heads { heads: 3, query_rows: 1, key_rows: 1, keys: Keys::All, dropout: 0.5 },
    );
    let w = get(&mut tape, "score");
    let out = tape.linear(h, w, None, Activation::Sigmoid);
    tape.value(out).to_vec().iter().map(|x| x.to_bits()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn splitting_queries_into_calls_changes_no_bit(cuts in prop::collection::vec(0_usize..300, 0..8)) {
        let p = model();
        let mut workspace = Workspace::new();
        let together = scores(&mut workspace, &p, 0..300);
        let mut edges: Vec<usize> = cuts.into_iter().chain([0, 300]).collect();
        edges.sort_unstable();
        let apart: Vec<u32> = edges.windows(2).flat_map(|w| scores(&mut workspace, &p, w[0]..w[1])).collect();
        prop_assert_eq!(together, apart);
    }
}

#[test]
fn inference_keeps_no_gradients_and_dropout_is_the_identity() {
    let mut parameters = Parameters::new(0);
    let w = parameters.add("w", 100, 100, Init::XavierUniform);
    let run = |workspace: &mut Workspace, training: bool| {
        let mut tape = if training {
            workspace.train(&parameters, DropoutKey::default())
        } else {
            workspace.infer(&parameters)
        };
        let x = tape.parameter(w);
        let y = tape.tanh(x);
        let dropped = tape.dropout(y, 0.5);
        assert_eq!(dropped == y, !training);
        let loss = tape.sum(dropped);
        if training {
            tape.backward(loss, &mut Gradients::of(&parameters));
        }
    };
    let (mut a, mut b) = (Workspace::new(), Workspace::new());
    run(&mut a, false);
    run(&mut b, true);
    assert!(a.bytes() < b.bytes() * 2 / 3, "{} and {}", a.bytes(), b.bytes());
}

#[test]
fn dropout_keeps_the_mean_and_changes_with_seed_step_and_place() {
    let parameters = Parameters::new(0);
    let mut workspace = Workspace::new();
    let mut masks = |draw: DropoutKey| {
        let mut tape = workspace.train(&parameters, draw);
        let ones = tape.constant(200, 100, &[1.0; 20_000]);
        let (first, second) = (tape.dropout(ones, 0.3), tape.dropout(ones, 0.3));
        (tape.value(first).to_vec(), tape.value(second).to_vec())
    };
    let (first, second) = masks(DropoutKey { seed: 1, step: 1 });
    let mean = first.iter().sum::<f32>() / 20_000.0;
    assert!((mean - 1.0).abs() < 0.02, "{mean}");
    assert!(first.iter().all(|&x| x == 0.0 || (x - 1.0 / 0.7).abs() < 1e-6));
    assert_ne!(first, second);
    assert_eq!(first, masks(DropoutKey { seed: 1, step: 1 }).0);
    assert_ne!(first, masks(DropoutKey { seed: 1, step: 2 }).0);
    assert_ne!(first, masks(DropoutKey { seed: 2, step: 1 }).0);
}
