//! Fused operations against plain ones: the same thing written the slow way, in `f64` or with many
//! small operations.

#![allow(
    clippy::needless_range_loop,
    reason = "plain versions follow the indices of their equations"
)]
#![allow(clippy::unwrap_used, reason = "a fixture that does not parse is a bug of the test")]

use lstep_tensor::*;
use proptest::prelude::*;

fn values(n: usize, seed: u64) -> Vec<f32> {
    let mut values = vec![0.0; n];
    Init::Normal { mean: 0.0, deviation: 1.0 }.fill(&mut values, 1, n, seed, "values");
    values
}

fn assert_close(ours: &[f32], plain: &[f64], tolerance: f64) {
    assert_eq!(ours.len(), plain.len());
    for (i, (&a, &b)) in ours.iter().zip(plain).enumerate() {
        assert!(
            (f64::from(a) - b).abs() <= tolerance * b.abs().max(1.0),
            "element {i}: {a} and {b}"
        );
    }
}

/// Re(DFT(F conj(DFT(s)))) / l, by the definition of the transform.
fn plain_kernel(re: &[f32], im: &[f32], sum: &[f32]) -> Vec<f64> {
    let l = sum.len();
    let angle = |j: usize, k: usize| -std::f64::consts::TAU * ((j * k) % l) as f64 / l as f64;
    let spectrum: Vec<(f64, f64)> = (0..l)
        .map(|k| {
            let part =
                |f: fn(f64) -> f64| (0..l).map(|m| f64::from(sum[m]) * f(angle(m, k))).sum::<f64>();
            (part(f64::cos), -part(f64::sin))
        })
        .collect();
    let mut kernel = Vec::new();
    for (re, im) in re.chunks(l).zip(im.chunks(l)) {
        for j in 0..l {
            let mut total = 0.0;
            for k in 0..l {
                let (a, b) = spectrum[k];
                let (x, y) = (f64::from(re[k]), f64::from(im[k]));
                let (p, q) = (x * a - y * b, x * b + y * a);
                total += p * angle(j, k).cos() - q * angle(j, k).sin();
            }
            kernel.push(total / l as f64);
        }
    }
    kernel
}

/// Transform, filter, inverse transform, weighted sum, on l copies of positions [l, d]: the four
/// steps as they stand.
fn plain_filter(re: &[f32], im: &[f32], sum: &[f32], history: &[f32]) -> Vec<f64> {
    let l = sum.len();
    let d = history.len() / l;
    let angle = |j: usize, k: usize| std::f64::consts::TAU * ((j * k) % l) as f64 / l as f64;
    (0..d)
        .map(|dim| {
            let mut out = 0.0;
            let filtered: Vec<(f64, f64)> = (0..l)
                .map(|k| {
                    let x = |f: fn(f64) -> f64| {
                        (0..l)
                            .map(|j| f64::from(history[j * d + dim]) * f(angle(j, k)))
                            .sum::<f64>()
                    };
                    let (a, b) = (x(f64::cos), -x(f64::sin));
                    let (c, e) = (f64::from(re[dim * l + k]), f64::from(im[dim * l + k]));
                    (a * c - b * e, a * e + b * c)
                })
                .collect();
            for j in 0..l {
                let real: f64 = (0..l)
                    .map(|k| filtered[k].0 * angle(j, k).cos() - filtered[k].1 * angle(j, k).sin())
                    .sum();
                out += f64::from(sum[j]) * real / l as f64;
            }
            out
        })
        .collect()
}

#[test]
fn the_folded_kernel_is_the_fixture_of_the_equations() {
    let fixture: serde_json::Value =
        serde_json::from_str(include_str!("../fixtures/kernel.json")).unwrap();
    let flat = |key: &str| -> Vec<f32> {
        fn walk(value: &serde_json::Value, out: &mut Vec<f32>) {
            match value {
                serde_json::Value::Array(items) => items.iter().for_each(|item| walk(item, out)),
                number => out.push(number.as_f64().unwrap() as f32),
            }
        }
        let mut out = Vec::new();
        walk(&fixture[key], &mut out);
        out
    };
    let (re, im, sum, expected) =
        (flat("filter.re"), flat("filter.im"), flat("position.sum"), flat("kernel"));
    let parameters = Parameters::new(0);
    let mut workspace = Workspace::new();
    let mut tape = workspace.infer(&parameters);
    let l = sum.len();
    let (re, im) = (tape.constant(re.len() / l, l, &re), tape.constant(im.len() / l, l, &im));
    let sum = tape.constant(1, l, &sum);
    let kernel = tape.fold_filter(re, im, sum);
    let kernel = tape.value(kernel);
    for (place, expected) in expected.iter().enumerate() {
        let folded = kernel.row(place % l)[place / l];
        assert!((folded - expected).abs() < 1e-6, "{folded} and {expected}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn runs_of_positions_equal_the_four_steps_on_all_copies(
        l in 1_usize..40, d in 1_usize..40, cuts in prop::collection::vec(0_usize..40, 0..6), seed: u64,
    ) {
        let (re, im, sum) = (values(d * l, seed), values(d * l, seed ^ 1), values(l, seed ^ 2));
        let mut edges: Vec<usize> = cuts.iter().map(|c| c % (l + 1)).chain([l]).collect();
        edges.sort_unstable();
        edges.dedup();
        let table = values(d * edges.len(), seed ^ 3);
        // Slots before the first edge have no run: zero vectors.
        let mut history = vec![0.0; l * d];
        for (r, pair) in edges.windows(2).enumerate() {
            for slot in pair[0]..pair[1] {
                history[slot * d..][..d].copy_from_slice(&table[r * d..][..d]);
            }
        }
        let parameters = Parameters::new(0);
        let mut workspace = Workspace::new();
        let mut tape = workspace.infer(&parameters);
        let (re_var, im_var, sum_var) = (tape.constant(d, l, &re), tape.constant(d, l, &im), tape.constant(1, l, &sum));
        let kernel = tape.fold_filter(re_var, im_var, sum_var);
        let positions = tape.constant(edges.len(), d, &table);
        let count = edges.len() as u32 - 1;
        let runs = Runs {
            offsets: tape.indices([0, count]),
            runs: tape.indices((0..count).flat_map(|r| [r, edges[r as usize] as u32, edges[r as usize + 1] as u32])),
        };
        let out = tape.run_kernel(kernel, positions, runs);
        let scale = 1e-5 * l as f64;
        let kernel = tape.value(kernel);
        let folded: Vec<f32> = (0..d).flat_map(|dim| (0..l).map(move |slot| kernel.row(slot)[dim])).collect();
        assert_close(&folded, &plain_kernel(&re, &im, &sum), scale);
        assert_close(&tape.value(out).to_vec(), &plain_filter(&re, &im, &sum, &history), scale);
    }

    #[test]
    fn segment_sums_equal_gathering_and_adding(
        n in 1_usize..30, c in 1_usize..40, lengths in prop::collection::vec(0_usize..9, 1..12), seed: u64,
    ) {
        let x = values(n * c, seed);
        let slot_weights = values(9, seed ^ 1);
        let entries: usize = lengths.iter().sum();
        let rows: Vec<u32> = (0..entries).map(|j| (((j as u64 * 7919) ^ seed) % n as u64) as u32).collect();
        let mut offsets = vec![0];
        let mut slots = Vec::new();
        for &len in &lengths {
            offsets.push(offsets.last().unwrap() + len as u32);
            slots.extend((0..len as u32).map(|k| 8 - k));
        }
        let parameters = Parameters::new(0);
        let mut workspace = Workspace::new();
        let mut tape = workspace.infer(&parameters);
        let x_var = tape.constant(n, c, &x);
        let weights = tape.constant(1, 9, &slot_weights);
        let segments = Segments { rows: Some(tape.indices(rows.iter().copied())), offsets: tape.indices(offsets.iter().copied()) };
        let slot_list = tape.indices(slots.iter().copied());
        for kind in 0..3 {
            let weighting = [Weighting::Sum, Weighting::Mean, Weighting::By { weights, slots: Some(slot_list) }][kind];
            let out = tape.segment_sum(x_var, segments, weighting);
            let mut plain = vec![0.0; lengths.len() * c];
            for (i, &len) in lengths.iter().enumerate() {
                for j in offsets[i] as usize..offsets[i + 1] as usize {
                    let w = [1.0, 1.0 / len as f64, f64::from(slot_weights[slots[j] as usize])][kind];
                    for k in 0..c {
                        plain[i * c + k] += w * f64::from(x[rows[j] as usize * c + k]);
                    }
                }
            }
            assert_close(&tape.value(out).to_vec(), &plain, 1e-5);
        }
    }

    #[test]
    fn time_sums_equal_cosines_in_double_precision(
        d in 1_usize..50, lengths in prop::collection::vec(0_usize..9, 1..12), scale in 0_i32..10, seed: u64,
    ) {
        let entries: usize = lengths.iter().sum();
        let times: Vec<f64> = values(entries, seed).iter().map(|&t| f64::from(t).abs() * 10_f64.powi(scale)).collect();
        let frequencies: Vec<f64> = (0..d).map(|i| 10_f64.powf(-(i as f64) / 10.0)).collect();
        let slot_weights = values(9, seed ^ 1);
        let offsets: Vec<u32> = std::iter::once(0)
            .chain(lengths.iter().scan(0, |end, &len| { *end += len as u32; Some(*end) }))
            .collect();
        let slots: Vec<u32> = lengths.iter().flat_map(|&len| 0..len as u32).collect();
        let parameters = Parameters::new(0);
        let mut workspace = Workspace::new();
        let mut tape = workspace.infer(&parameters);
        let weights = tape.constant(1, 9, &slot_weights);
        let (t, f) = (tape.times(times.iter().copied()), tape.times(frequencies.iter().copied()));
        let (o, s) = (tape.indices(offsets.iter().copied()), tape.indices(slots.iter().copied()));
        let plain_out = tape.zeros(lengths.len(), d);
        let weighted_out = tape.zeros(lengths.len(), d);
        tape.time_sums_into(plain_out, weighted_out, t, o, f, weights, Some(s));
        let alone = tape.time_sum(t, o, f, Weighting::By { weights, slots: Some(s) });
        let sum = tape.time_sum(t, o, f, Weighting::Sum);
        let encoded = tape.time_encoding(t, f);
        let again = tape.segment_sum(encoded, Segments { rows: None, offsets: o }, Weighting::Sum);
        let (mut plain, mut weighted) = (vec![0.0; lengths.len() * d], vec![0.0; lengths.len() * d]);
        for i in 0..lengths.len() {
            for j in offsets[i] as usize..offsets[i + 1] as usize {
                for k in 0..d {
                    let cosine = (times[j] * frequencies[k]).cos();
                    plain[i * d + k] += cosine;
                    weighted[i * d + k] += cosine * f64::from(slot_weights[slots[j] as usize]);
                }
            }
        }
        for out in [plain_out, sum, again] {
            assert_close(&tape.value(out).to_vec(), &plain, 2e-6);
        }
        for out in [weighted_out, alone] {
            assert_close(&tape.value(out).to_vec(), &weighted, 6e-6);
        }
    }

    #[test]
    fn fused_attention_equals_products_and_softmax(
        blocks in 1_usize..4, tq in 1_usize..6, tk in 1_usize..7, heads in 1_usize..4, d in 1_usize..9, seed: u64,
    ) {
        let (q, k, v) = (values(blocks * tq * heads * d, seed), values(blocks * tk * heads * d, seed ^ 1), values(blocks * tk * heads * d, seed ^ 2));
        let parameters = Parameters::new(0);
        let mut workspace = Workspace::new();
        let mut tape = workspace.infer(&parameters);
        let (qv, kv, vv) = (tape.constant(blocks * tq, heads * d, &q), tape.constant(blocks * tk, heads * d, &k), tape.constant(blocks * tk, heads * d, &v));
        let counts: Vec<u32> = (0..blocks).map(|b| 1 + (b * 3 % tk) as u32).collect();
        let keys = Keys::First(tape.indices(counts.iter().copied()));
        let fused = tape.attention(qv, kv, vv, Heads { heads, query_rows: tq, key_rows: tk, keys, dropout: 0.0 });
        for b in 0..blocks {
            for h in 0..heads {
                let (rows, keys) = (b * tq..(b + 1) * tq, b * tk..b * tk + counts[b] as usize);
                let columns = h * d..(h + 1) * d;
                let [qb, kb, vb] = [(qv, rows.clone()), (kv, keys.clone()), (vv, keys)].map(|(x, rows)| {
                    let part = tape.rows(x, rows);
                    tape.columns(part, columns.clone())
                });
                let scores = tape.linear(qb, kb, None, Activation::Identity);
                let scores = tape.scale(scores, 1.0 / (d as f32).sqrt());
                let weights = tape.softmax(scores);
                let plain = tape.matmul(weights, vb);
                let part = tape.rows(fused, rows);
                let part = tape.columns(part, columns);
                let (part, plain) = (tape.value(part).to_vec(), tape.value(plain).to_vec());
                for (a, b) in part.iter().zip(&plain) {
                    prop_assert!((a - b).abs() < 1e-5);
                }
            }
        }
    }

    #[test]
    fn a_pair_of_gathered_products_equals_a_layer_on_the_concatenation(n in 1_usize..20, c in 1_usize..20, out in 1_usize..20, seed: u64) {
        let parameters = Parameters::new(0);
        let mut workspace = Workspace::new();
        let mut tape = workspace.infer(&parameters);
        let h = tape.constant(n, c, &values(n * c, seed));
        let w = tape.constant(out, 2 * c, &values(out * 2 * c, seed ^ 1));
        let b = tape.constant(1, out, &values(out, seed ^ 2));
        let u_rows = tape.indices((0..13).map(|i| (i * 5 % n) as u32));
        let v_rows = tape.indices((0..13).map(|i| (i * 3 % n) as u32));
        let (hu, hv) = (tape.gather(h, u_rows), tape.gather(h, v_rows));
        let both = tape.concat_columns(&[hu, hv]);
        let plain = tape.linear(both, w, Some(b), Activation::Relu);
        let (wu, wv) = (tape.columns(w, 0..c), tape.columns(w, c..2 * c));
        let u = tape.linear(h, wu, None, Activation::Identity);
        let v = tape.linear(h, wv, None, Activation::Identity);
        let fused = tape.gather_pair(Pair { u, u_rows, v, v_rows }, Some(b), Activation::Relu);
        for (a, b) in tape.value(fused).to_vec().iter().zip(tape.value(plain).to_vec()) {
            prop_assert!((a - b).abs() < 1e-5 * (1.0 + b.abs()) * c as f32);
        }
    }
}

#[test]
fn the_gradient_of_cross_entropy_is_that_of_sigmoid_and_logarithm() {
    let mut parameters = Parameters::new(0);
    let z = parameters.add("z", 1, 5, Init::Normal { mean: 0.0, deviation: 2.0 });
    let labels = [1.0, 0.0, 1.0, 0.0, 0.5];
    let mut workspace = Workspace::new();
    let mut gradients = Gradients::of(&parameters);
    let mut tape = workspace.train(&parameters, DropoutKey::default());
    let logits = tape.parameter(z);
    let y = tape.constant(1, 5, &labels);
    let loss = tape.cross_entropy(logits, y);
    tape.backward(loss, &mut gradients);
    for ((&z, &y), &g) in
        parameters.get(z).values.iter().zip(&labels).zip(&gradients.get(z).to_vec())
    {
        let p = 1.0 / (1.0 + (-f64::from(z)).exp());
        // d/dp of -(y log p + (1 - y) log(1 - p)), times dp/dz.
        let slope = (-f64::from(y) / p + (1.0 - f64::from(y)) / (1.0 - p)) * p * (1.0 - p) / 5.0;
        assert!((f64::from(g) - slope).abs() < 1e-6);
    }
}

#[test]
fn a_row_that_counts_three_times_is_three_equal_rows() {
    let rows: Vec<f32> = (0..48).map(|i| ((i * 29 % 17) as f32 - 8.0) / 6.0).collect();
    let (parameters, mut workspace) = (Parameters::new(0), Workspace::new());
    let mut tape = workspace.infer(&parameters);
    // Blocks of 1 and 3 rows; the last row of the second one counts three times.
    let short = tape.constant(4, 12, &rows);
    let (offsets, repeats) = (tape.indices([0, 1, 4]), tape.indices([1, 1, 1, 3]));
    let once = tape
        .self_attention(short, Blocks { heads: 2, offsets, repeats: Some(repeats), dropout: 0.0 });
    let order = tape.indices([1, 2, 3, 3, 3]);
    let long = tape.gather(short, order);
    let [q, k, v] = [0, 4, 8].map(|from| tape.columns(long, from..from + 4));
    let heads = Heads { heads: 2, query_rows: 5, key_rows: 5, keys: Keys::All, dropout: 0.0 };
    let thrice = tape.attention(q, k, v, heads);
    for row in 0..3 {
        for (a, b) in tape.value(once).row(row + 1).iter().zip(tape.value(thrice).row(row)) {
            assert!((a - b).abs() < 1e-5, "{a} {b}");
        }
    }
    assert_eq!(tape.value(once).row(0), &rows[8..12], "a row alone sees itself");
}

#[test]
fn a_layer_with_dropout_and_a_sum_has_the_bits_of_the_three_steps() {
    let mut parameters = Parameters::new(5);
    let shapes = [("x", 70, 33), ("weight", 90, 33), ("bias", 1, 90), ("add", 70, 90)];
    let ids = shapes.map(|(name, rows, cols)| {
        parameters.add(name, rows, cols, Init::Normal { mean: 0.1, deviation: 0.7 })
    });
    let (mut workspace, draw) = (Workspace::new(), DropoutKey { seed: 3, step: 4 });
    for activation in [
        Activation::Identity,
        Activation::Relu,
        Activation::Sigmoid,
        Activation::Gelu,
        Activation::Square,
    ] {
        let mut run = |fused: bool| {
            let mut tape = workspace.train(&parameters, draw);
            let [x, weight, bias, add] = ids.map(|id| tape.parameter(id));
            let out = if fused {
                tape.layer(x, weight, Some(bias), Then { activation, dropout: 0.3, add: Some(add) })
            } else {
                let out = tape.linear(x, weight, Some(bias), activation);
                let out = tape.dropout(out, 0.3);
                tape.add(out, add)
            };
            let values = tape.value(out).to_vec();
            let bounded = tape.sigmoid(out);
            let loss = tape.sum(bounded);
            let mut gradients = Gradients::of(&parameters);
            tape.backward(loss, &mut gradients);
            (values, ids.map(|id| gradients.get(id).to_vec()))
        };
        let (fused, plain) = (run(true), run(false));
        assert_eq!(fused.0, plain.0, "{activation:?}");
        for (fused, plain) in fused.1.iter().zip(&plain.1) {
            // The mask and the slope are multiplied in another order.
            let plain: Vec<f64> = plain.iter().map(|&x| f64::from(x)).collect();
            assert_close(fused, &plain, 1e-3);
        }
    }
}

#[test]
fn a_circular_convolution_is_its_sum() {
    let (blocks, length, columns) = (3, 6, 5);
    let (x, kernel) = (values(blocks * length * columns, 1), values(length * columns, 2));
    let mut plain = Vec::new();
    for block in 0..blocks {
        for t in 0..length {
            for c in 0..columns {
                let product = |s: usize| {
                    let from = kernel[(t + length - s) % length * columns + c];
                    f64::from(from) * f64::from(x[(block * length + s) * columns + c])
                };
                plain.push((0..length).map(product).sum());
            }
        }
    }
    let (parameters, mut workspace) = (Parameters::new(0), Workspace::new());
    let mut tape = workspace.infer(&parameters);
    let (x, kernel) = (tape.borrow(&x, columns), tape.borrow(&kernel, columns));
    let y = tape.circular_convolution(x, kernel);
    assert_close(&tape.value(y).to_vec(), &plain, 1e-5);
}

#[test]
fn a_net_over_tokens_equals_its_steps_on_transposed_blocks() {
    let (blocks, tokens, inner, channels) = (7, 20, 10, 37);
    let mut parameters = Parameters::new(6);
    let shapes =
        [(1, tokens), (1, tokens), (inner, tokens), (1, inner), (tokens, inner), (1, tokens)];
    let x =
        parameters.add("x", blocks * tokens, channels, Init::Normal { mean: 0.3, deviation: 1.0 });
    let weights: [ParameterId; 6] = std::array::from_fn(|i| {
        let (rows, cols) = shapes[i];
        parameters.add(
            &format!("weight {i}"),
            rows,
            cols,
            Init::Normal { mean: 0.2, deviation: 0.4 },
        )
    });
    let mut workspace = Workspace::new();
    let mut run = |fused: bool| {
        let mut tape = workspace.train(&parameters, DropoutKey::default());
        let x_var = tape.parameter(x);
        let [gain, shift, inner, inner_bias, outer, outer_bias] =
            weights.map(|id| tape.parameter(id));
        let (epsilon, dropout) = (1e-5, 0.0);
        let out = if fused {
            tape.mix_tokens(
                x_var,
                TokenNet { gain, shift, inner, inner_bias, outer, outer_bias, epsilon, dropout },
            )
        } else {
            let turned = tape.transpose_blocks(x_var, tokens);
            let normal = tape.layer_norm(turned, gain, shift, epsilon);
            let hidden = tape.linear(normal, inner, Some(inner_bias), Activation::Gelu);
            let mixed = tape.linear(hidden, outer, Some(outer_bias), Activation::Identity);
            let mixed = tape.transpose_blocks(mixed, channels);
            tape.add(mixed, x_var)
        };
        let values = tape.value(out).to_vec();
        let bounded = tape.sigmoid(out);
        let loss = tape.sum(bounded);
        let mut gradients = Gradients::of(&parameters);
        tape.backward(loss, &mut gradients);
        let of_weights = weights.map(|id| gradients.get(id).to_vec());
        (values, gradients.get(x).to_vec(), of_weights)
    };
    let (fused, plain) = (run(true), run(false));
    let wide = |values: &[f32]| values.iter().map(|&x| f64::from(x)).collect::<Vec<f64>>();
    assert_close(&fused.0, &wide(&plain.0), 1e-5);
    assert_close(&fused.1, &wide(&plain.1), 1e-4);
    for (fused, plain) in fused.2.iter().zip(&plain.2) {
        assert_close(fused, &wide(plain), 1e-4);
    }
}
