//! Every operation's gradient against finite differences.

use lstep_tensor::*;

/// Parameters a, b, c of the given shapes with values around 0.5.
fn parameters(shapes: &[(usize, usize)]) -> (Parameters, Vec<ParameterId>) {
    let mut parameters = Parameters::new(11);
    let ids = shapes
        .iter()
        .enumerate()
        .map(|(i, &(rows, cols))| {
            parameters.add(&format!("p{i}"), rows, cols, Init::Normal { mean: 0.1, deviation: 0.7 })
        })
        .collect();
    (parameters, ids)
}

/// Sum of out * fixed numbers, so that every element has a gradient of its own.
fn weighted_loss(tape: &mut Tape<'_>, out: Var) -> Var {
    let (rows, cols) = tape.shape(out);
    let weights = tape.input(rows, cols, |w| {
        for (i, w) in w.iter_mut().enumerate() {
            *w = ((i * 37 % 19) as f32 - 9.0) / 9.0;
        }
    });
    let product = tape.mul(out, weights);
    tape.sum(product)
}

fn check(shapes: &[(usize, usize)], op: impl Fn(&mut Tape<'_>, &[Var]) -> Var) {
    let (mut parameters, ids) = parameters(shapes);
    let worst = check::gradients(&mut parameters, 1e-2, |tape| {
        let vars: Vec<Var> = ids.iter().map(|&id| tape.parameter(id)).collect();
        let out = op(tape, &vars);
        weighted_loss(tape, out)
    });
    assert!(worst.error < 2e-3, "{worst:?}");
}

#[test]
fn linear_with_every_activation() {
    for f in [
        Activation::Identity,
        Activation::Tanh,
        Activation::Sigmoid,
        Activation::Gelu,
        Activation::Cos,
        Activation::Square,
        Activation::Exp,
    ] {
        check(&[(5, 4), (3, 4), (1, 3)], |t, p| t.linear(p[0], p[1], Some(p[2]), f));
        check(&[(5, 4), (3, 4)], |t, p| t.linear(p[0], p[1], None, f));
    }
}

#[test]
fn layers_with_dropout_and_a_sum_behind_them() {
    for activation in [Activation::Identity, Activation::Tanh, Activation::Gelu] {
        for (dropout, add) in [(0.4, false), (0.0, true), (0.4, true)] {
            check(&[(5, 4), (3, 4), (1, 3), (5, 3)], |t, p| {
                t.layer(
                    p[0],
                    p[1],
                    Some(p[2]),
                    Then { activation, dropout, add: add.then_some(p[3]) },
                )
            });
        }
    }
}

#[test]
fn a_net_over_the_tokens_of_blocks_with_and_without_dropout() {
    for dropout in [0.0, 0.3] {
        check(&[(12, 5), (1, 4), (1, 4), (3, 4), (1, 3), (4, 3), (1, 4)], |t, p| {
            let net = TokenNet {
                gain: p[1],
                shift: p[2],
                inner: p[3],
                inner_bias: p[4],
                outer: p[5],
                outer_bias: p[6],
                epsilon: 1e-2,
                dropout,
            };
            t.mix_tokens(p[0], net)
        });
    }
}

#[test]
fn linear_with_relu_away_from_the_kink() {
    check(&[(6, 4), (3, 4)], |t, p| {
        let positive = t.exp(p[0]);
        let weight = t.square(p[1]);
        let shift = t.constant(1, 3, &[5.0, -90.0, 3.0]);
        t.linear(positive, weight, Some(shift), Activation::Relu)
    });
}

#[test]
fn linear_into_columns_of_a_concatenation() {
    check(&[(5, 4), (3, 4), (2, 4), (4, 5)], |t, p| {
        let wide = t.zeros(5, 5);
        let left = t.columns(wide, 0..3);
        let right = t.columns(wide, 3..5);
        t.linear_into(left, p[0], p[1], None, Activation::Tanh);
        t.linear_into(right, p[0], p[2], None, Activation::Gelu);
        t.linear(wide, p[3], None, Activation::Identity)
    });
}

#[test]
fn matmul() {
    check(&[(5, 4), (4, 6)], |t, p| t.matmul(p[0], p[1]));
}

#[test]
fn element_wise_functions() {
    for f in [
        Activation::Tanh,
        Activation::Sigmoid,
        Activation::Gelu,
        Activation::Cos,
        Activation::Exp,
        Activation::Square,
    ] {
        check(&[(4, 5)], |t, p| t.apply(p[0], f));
    }
}

#[test]
fn sums_differences_products_and_scalings() {
    check(&[(4, 5), (4, 5)], |t, p| {
        let sum = t.add(p[0], p[1]);
        let product = t.mul(sum, p[0]);
        let difference = t.sub(product, p[1]);
        let same = t.mul(difference, difference);
        t.scale(same, -0.3)
    });
}

#[test]
fn row_and_column_broadcasts() {
    check(&[(4, 5), (1, 5), (4, 1)], |t, p| {
        let shifted = t.add_row(p[0], p[1]);
        t.scale_rows(shifted, p[2])
    });
}

#[test]
fn concatenations_and_slices() {
    check(&[(4, 3), (4, 2), (2, 5)], |t, p| {
        let wide = t.concat_columns(&[p[0], p[1]]);
        let high = t.concat_rows(&[wide, p[2]]);
        let rows = t.rows(high, 2..6);
        let columns = t.columns(rows, 1..4);
        let again = t.tanh(columns);
        let flat = t.reshape(again, 2, 6);
        let both = t.columns(flat, 1..5);
        t.mul(both, both)
    });
}

#[test]
fn transposed_blocks() {
    check(&[(6, 4), (5, 3)], |t, p| {
        let tokens = t.transpose_blocks(p[0], 3);
        let mixed = t.linear(tokens, p[1], None, Activation::Identity);
        t.transpose_blocks(mixed, 4)
    });
}

#[test]
fn circular_convolutions() {
    check(&[(8, 3), (4, 3)], |t, p| {
        let y = t.circular_convolution(p[0], p[1]);
        t.square(y)
    });
}

#[test]
fn gathered_rows_including_repeated_ones() {
    check(&[(4, 3)], |t, p| {
        let rows = t.indices([3, 0, 3, 3, 1]);
        let picked = t.gather(p[0], rows);
        t.square(picked)
    });
}

#[test]
fn gathered_rows_of_a_large_table() {
    check(&[(20, 2)], |t, p| {
        let rows = t.indices([3, 19]);
        let picked = t.gather(p[0], rows);
        t.square(picked)
    });
}

#[test]
fn gathered_pairs() {
    for f in [Activation::Relu, Activation::Tanh, Activation::Gelu] {
        check(&[(4, 3), (5, 3), (1, 3)], |t, p| {
            let u_rows = t.indices([3, 0, 3, 1]);
            let v_rows = t.indices([4, 4, 2, 0]);
            t.gather_pair(Pair { u: p[0], u_rows, v: p[1], v_rows }, Some(p[2]), f)
        });
    }
}

#[test]
fn segment_sums_of_every_weighting() {
    check(&[(5, 3), (1, 4)], |t, p| {
        let rows = t.indices([4, 0, 4, 2, 1, 1, 3]);
        let offsets = t.indices([0, 3, 3, 5, 7]);
        let slots = t.indices([1, 2, 3, 2, 3, 0, 3]);
        let segments = Segments { rows: Some(rows), offsets };
        let a = t.segment_sum(p[0], segments, Weighting::Sum);
        let b = t.segment_sum(p[0], segments, Weighting::Mean);
        let c = t.segment_sum(p[0], segments, Weighting::By { weights: p[1], slots: Some(slots) });
        let all = t.concat_columns(&[a, b, c]);
        t.square(all)
    });
}

#[test]
fn segment_sums_of_neighbouring_rows_with_a_weight_each() {
    check(&[(6, 3), (6, 1)], |t, p| {
        let offsets = t.indices([0, 2, 2, 6]);
        let segments = Segments { rows: None, offsets };
        t.segment_sum(p[0], segments, Weighting::By { weights: p[1], slots: None })
    });
}

#[test]
fn sums_means_and_distances() {
    check(&[(5, 3), (5, 3)], |t, p| {
        let distance = t.row_distance(p[0], p[1]);
        let sums = t.row_sum(p[0]);
        let product = t.mul(distance, sums);
        let mean = t.mean(product);
        let sum = t.sum(p[1]);
        t.mul(mean, sum)
    });
}

#[test]
fn softmax() {
    check(&[(4, 5)], |t, p| t.softmax(p[0]));
}

#[test]
fn layer_norm() {
    check(&[(4, 19), (1, 19), (1, 19)], |t, p| t.layer_norm(p[0], p[1], p[2], 1e-5));
}

#[test]
fn attention_of_separate_matrices_with_every_choice_of_keys() {
    for kind in 0..3 {
        check(&[(6, 4), (9, 4), (9, 2)], |t, p| {
            let counts = t.indices([3, 0, 2]);
            let marks = t.indices([1, 0, 1, 0, 0, 0, 0, 1, 1]);
            let keys = [Keys::All, Keys::First(counts), Keys::Marked(marks)][kind];
            t.attention(
                p[0],
                p[1],
                p[2],
                Heads { heads: 2, query_rows: 2, key_rows: 3, keys, dropout: 0.0 },
            )
        });
    }
}

#[test]
fn attention_of_a_matrix_with_itself_and_with_dropout() {
    for dropout in [0.0, 0.4] {
        check(&[(6, 4)], |t, p| {
            t.attention(
                p[0],
                p[0],
                p[0],
                Heads { heads: 2, query_rows: 3, key_rows: 3, keys: Keys::All, dropout },
            )
        });
        check(&[(6, 4), (4, 4)], |t, p| {
            let keys = t.constant(6, 4, &[0.3; 24]);
            let values = t.linear(p[0], p[1], None, Activation::Identity);
            t.attention(
                p[0],
                keys,
                values,
                Heads { heads: 2, query_rows: 3, key_rows: 3, keys: Keys::All, dropout },
            )
        });
        check(&[(6, 12)], |t, p| {
            let part = |t: &mut Tape<'_>, i: usize| t.columns(p[0], 4 * i..4 * i + 4);
            let (q, k, v) = (part(t, 0), part(t, 1), part(t, 2));
            t.attention(
                q,
                k,
                v,
                Heads { heads: 1, query_rows: 2, key_rows: 2, keys: Keys::All, dropout },
            )
        });
    }
}

#[test]
fn sums_of_fixed_time_encodings() {
    check(&[(1, 3)], |t, p| {
        let times = t.times([0.5, 3.0, 1e6, 7.5]);
        let frequencies = t.times((0..20).map(|i| 10_f64.powf(-f64::from(i) / 10.0)));
        let offsets = t.indices([0, 3, 3, 4]);
        let slots = t.indices([0, 2, 1, 2]);
        let weighting = Weighting::By { weights: p[0], slots: Some(slots) };
        let single = t.time_sum(times, offsets, frequencies, weighting);
        let wide = t.zeros(3, 41);
        let plain = t.columns(wide, 0..20);
        let weighted = t.columns(wide, 21..41);
        t.time_sums_into(plain, weighted, times, offsets, frequencies, p[0], Some(slots));
        let all = t.concat_columns(&[single, wide]);
        t.square(all)
    });
}

#[test]
fn trainable_time_encoding() {
    check(&[(1, 5), (1, 5)], |t, p| {
        let times = t.times([0.0, 0.5, 1.5, 2.0]);
        t.trainable_time_encoding(times, p[0], p[1])
    });
}

#[test]
fn recurrent_cells() {
    for gates in [1, 3] {
        check(
            &[(4, 3), (4, 2), (2 * gates, 3), (2 * gates, 2), (1, 2 * gates), (1, 2 * gates)],
            |t, p| {
                let cell = Cell {
                    input_weight: p[2],
                    hidden_weight: p[3],
                    input_bias: p[4],
                    hidden_bias: p[5],
                };
                if gates == 3 { t.gru_cell(p[0], p[1], cell) } else { t.rnn_cell(p[0], p[1], cell) }
            },
        );
    }
}

#[test]
fn cross_entropy() {
    check(&[(6, 1)], |t, p| {
        let labels = t.constant(6, 1, &[1.0, 0.0, 1.0, 0.0, 0.3, 1.0]);
        t.cross_entropy(p[0], labels)
    });
}

#[test]
fn softmax_cross_entropy() {
    check(&[(6, 1)], |t, p| t.softmax_cross_entropy(p[0], 3));
    check(&[(5, 1)], |t, p| t.softmax_cross_entropy(p[0], 5));
}

#[test]
fn the_position_filter_folded_and_run() {
    check(&[(3, 5), (3, 5), (1, 5)], position_filter);
    check(&[(3, 6), (3, 6), (1, 6)], position_filter);
}

/// Of an odd and of an even length: the halves of the transform meet differently. Runs in both
/// orders, with and without gaps.
fn position_filter(t: &mut Tape<'_>, p: &[Var]) -> Var {
    let kernel = t.fold_filter(p[0], p[1], p[2]);
    let positions = t.input(4, 3, |values| {
        for (i, value) in values.iter_mut().enumerate() {
            *value = (i as f32 * 0.7).sin();
        }
    });
    let runs = Runs {
        offsets: t.indices([0, 2, 2, 5, 8]),
        runs: t.indices([0, 0, 2, 1, 2, 5, 3, 1, 2, 2, 2, 3, 3, 3, 5, 2, 4, 5, 0, 1, 4, 3, 0, 1]),
    };
    let out = t.run_kernel(kernel, positions, runs);
    t.square(out)
}

#[test]
fn dropout_with_a_fixed_mask() {
    check(&[(6, 7)], |t, p| {
        let dropped = t.dropout(p[0], 0.3);
        t.square(dropped)
    });
}

#[test]
fn a_detached_matrix_passes_no_gradient_and_shared_parameters_add_up() {
    let (mut parameters, ids) = parameters(&[(1, 1)]);
    parameters.values_mut(ids[0])[0] = 3.0;
    let mut workspace = Workspace::new();
    let mut gradients = Gradients::of(&parameters);
    for expected in [7.0, 14.0] {
        let mut tape = workspace.train(&parameters, DropoutKey::default());
        let x = tape.parameter(ids[0]);
        let constant = tape.detach(x);
        let a = tape.mul(x, constant); // 3
        let b = tape.add(x, x); // 2
        let c = tape.add(a, b);
        let d = tape.scale(x, 2.0); // 2
        let loss = tape.add(c, d);
        tape.backward(loss, &mut gradients);
        assert_eq!(gradients.get(ids[0]).to_vec(), [expected], "gradients accumulate until zeroed");
    }
    gradients.zero();
    assert_eq!(gradients.get(ids[0]).to_vec(), [0.0]);
}

#[test]
fn equal_rows_have_distance_gradient_zero() {
    let (parameters, ids) = parameters(&[(2, 3)]);
    let mut workspace = Workspace::new();
    let mut gradients = Gradients::of(&parameters);
    let mut tape = workspace.train(&parameters, DropoutKey::default());
    let x = tape.parameter(ids[0]);
    let same = tape.detach(x);
    let distance = tape.row_distance(x, same);
    let loss = tape.sum(distance);
    tape.backward(loss, &mut gradients);
    assert_eq!(gradients.get(ids[0]).to_vec(), [0.0; 6]);
}

#[test]
fn self_attention_of_blocks_of_any_length_and_rows_that_count_several_times() {
    for dropout in [0.0, 0.3] {
        check(&[(7, 12)], |t, p| {
            let (offsets, repeats) = (t.indices([0, 3, 4, 4, 7]), t.indices([1, 1, 3, 2, 1, 5, 1]));
            t.self_attention(p[0], Blocks { heads: 2, offsets, repeats: Some(repeats), dropout })
        });
    }
}
