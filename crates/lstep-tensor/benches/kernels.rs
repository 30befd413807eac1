//! Matmul, sums, attention, functions and the position filter, forward and backward, on 1 and 2
//! threads.
//!
//! `cargo bench -p lstep-tensor`. With `RUSTFLAGS="--cfg bench_gemm"` the `gemm` crate stands beside
//! our product for comparison; it takes long to build, so nobody else waits for it.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use lstep_tensor::*;

fn pools() -> [(usize, rayon::ThreadPool); 2] {
    [1, 2].map(|n| (n, rayon::ThreadPoolBuilder::new().num_threads(n).build().expect("a pool")))
}

fn values(n: usize) -> Vec<f32> {
    let mut values = vec![0.0; n];
    Init::Normal { mean: 0.0, deviation: 1.0 }.fill(&mut values, 1, n, 1, "values");
    values
}

/// `out = x w^T` by the gemm crate.
#[cfg(bench_gemm)]
fn gemm_product(
    (m, n, k): (usize, usize, usize),
    x: &[f32],
    w: &[f32],
    out: &mut [f32],
    threads: usize,
) {
    let parallelism = match threads {
        1 => gemm::Parallelism::None,
        _ => gemm::Parallelism::Rayon(threads),
    };
    let (k_stride, n_stride) = (k as isize, n as isize);
    assert!(x.len() == m * k && w.len() == n * k && out.len() == m * n);
    // SAFETY: the sizes and strides are those of the three buffers.
    unsafe {
        gemm::gemm(
            m,
            n,
            k,
            out.as_mut_ptr(),
            1,
            n_stride,
            false,
            x.as_ptr(),
            1,
            k_stride,
            w.as_ptr(),
            k_stride,
            1,
            0.0,
            1.0,
            false,
            false,
            false,
            parallelism,
        );
    }
}

fn products(c: &mut Criterion) {
    let mut group = c.benchmark_group("product");
    for (m, n, k) in [(800, 272, 272), (10_000, 172, 272), (272, 272, 800), (1, 172, 344)] {
        group.throughput(Throughput::Elements((2 * m * n * k) as u64));
        let (x, w) = (values(m * k), values(n * k));
        let parameters = Parameters::new(0);
        #[cfg(bench_gemm)]
        let mut out = vec![0.0_f32; m * n];
        for (threads, pool) in &pools() {
            let mut workspace = Workspace::new();
            let id = BenchmarkId::new(format!("{m}x{n}x{k}"), threads);
            group.bench_function(id, |b| {
                pool.install(|| {
                    b.iter(|| {
                        let mut tape = workspace.infer(&parameters);
                        let (x, w) = (tape.borrow(&x, k), tape.borrow(&w, k));
                        tape.linear(x, w, None, Activation::Identity)
                    });
                });
            });
            #[cfg(bench_gemm)]
            group.bench_function(
                BenchmarkId::new(format!("{m}x{n}x{k} gemm crate"), threads),
                |b| {
                    pool.install(|| b.iter(|| gemm_product((m, n, k), &x, &w, &mut out, *threads)));
                },
            );
        }
    }
    group.finish();
}

/// A layer's three products, forward and backward, by either kind of arithmetic: the wide layers of
/// a mixer over 48 histories of 20.
fn split(c: &mut Criterion) {
    let mut group = c.benchmark_group(format!("layer (matrix unit: {})", has_matrix_unit()));
    for (rows, inputs, outputs) in [(960, 172, 688), (960, 688, 172)] {
        let mut p = Parameters::new(0);
        let init = Init::Linear { inputs };
        let (x, w) =
            (p.add("x", rows, inputs, Init::XavierUniform), p.add("w", outputs, inputs, init));
        group.throughput(Throughput::Elements((3 * 2 * rows * inputs * outputs) as u64));
        for (threads, pool) in &pools() {
            for products in [Matmul::F32, Matmul::Bf16x2] {
                let (mut workspace, mut gradients) = (Workspace::new(), Gradients::of(&p));
                let id = BenchmarkId::new(
                    format!("{rows} x {inputs} to {outputs} {products:?}"),
                    threads,
                );
                group.bench_function(id, |b| {
                    pool.install(|| {
                        b.iter(|| {
                            let mut t =
                                workspace.train(&p, DropoutKey::default()).with_matmul(products);
                            let (x, w) = (t.parameter(x), t.parameter(w));
                            let y = t.linear(x, w, None, Activation::Identity);
                            let loss = t.sum(y);
                            t.backward(loss, &mut gradients);
                        });
                    });
                });
            }
        }
    }
    group.finish();
}

/// Nine layers on 800 rows: the shapes of a link-prediction encoder with 172 features and 100 time
/// columns.
fn chain(c: &mut Criterion) {
    let mut p = Parameters::new(0);
    let mut add = |name: &str, out: usize, inputs: usize| {
        (
            p.add(&format!("{name}.weight"), out, inputs, Init::Linear { inputs }),
            p.add(&format!("{name}.bias"), 1, out, Init::Linear { inputs }),
        )
    };
    let link_in = add("link.in", 272, 272);
    let link_out = add("link.out", 272, 272);
    let node_link = add("node_link", 172, 444);
    let position_in = add("position.in", 172, 272);
    let position_out = add("position.out", 172, 172);
    let merge = add("merge", 172, 344);
    let predict_in = add("predict.in", 172, 344);
    let predict_out = add("predict.out", 1, 172);
    let rows = 800;
    let (link, node, position) = (values(rows * 272), values(rows * 172), values(rows * 272));
    // Twice for layers on data (forward and to the weights), three times for the others (to the
    // input too).
    let flops = 2
        * rows
        * (2 * (272 * 272 + 172 * 272) + 3 * (272 * 272 + 172 * 444 + 172 * 172 + 172 * 344))
        + 2 * (rows / 2) * 3 * (172 * 344 + 172);
    let mut group = c.benchmark_group("training step of the chain");
    group.throughput(Throughput::Elements(flops as u64));
    for (threads, pool) in &pools() {
        let mut workspace = Workspace::new();
        let mut gradients = Gradients::of(&p);
        group.bench_function(BenchmarkId::from_parameter(threads), |b| {
            pool.install(|| {
                b.iter(|| {
                    gradients.zero();
                    let mut t = workspace.train(&p, DropoutKey::default());
                    let (link, node, position) =
                        (t.borrow(&link, 272), t.borrow(&node, 172), t.borrow(&position, 272));
                    let layer = |t: &mut Tape<'_>,
                                 x: Var,
                                 (w, b): (ParameterId, ParameterId),
                                 f: Activation| {
                        let (w, b) = (t.parameter(w), t.parameter(b));
                        t.linear(x, w, Some(b), f)
                    };
                    let layer_into =
                        |t: &mut Tape<'_>, out: Var, x: Var, (w, b): (ParameterId, ParameterId)| {
                            let (w, b) = (t.parameter(w), t.parameter(b));
                            t.linear_into(out, x, w, Some(b), Activation::Identity);
                        };
                    let wide = t.zeros(rows, 444);
                    let (left, right) = (t.columns(wide, 0..172), t.columns(wide, 172..444));
                    t.copy_into(left, node);
                    let h = layer(&mut t, link, link_in, Activation::Relu);
                    layer_into(&mut t, right, h, link_out);
                    let merged = t.zeros(rows, 344);
                    let (left, right) = (t.columns(merged, 0..172), t.columns(merged, 172..344));
                    layer_into(&mut t, left, wide, node_link);
                    let h = layer(&mut t, position, position_in, Activation::Relu);
                    layer_into(&mut t, right, h, position_out);
                    let h = layer(&mut t, merged, merge, Activation::Identity);
                    let pairs = t.reshape(h, rows / 2, 344);
                    let h = layer(&mut t, pairs, predict_in, Activation::Relu);
                    let logits = layer(&mut t, h, predict_out, Activation::Identity);
                    let labels = t.input(rows / 2, 1, |y| y[..rows / 4].fill(1.0));
                    let loss = t.cross_entropy(logits, labels);
                    t.backward(loss, &mut gradients);
                });
            });
        });
        group.bench_function(BenchmarkId::new("adam", threads), |b| {
            let mut p = Parameters::new(0);
            p.add("all", 1, NUMBERS, Init::Zeros);
            let mut adam_alone = Adam::new(&p, AdamConfig::default());
            let gradients = Gradients::of(&p);
            pool.install(|| b.iter(|| adam_alone.step(&mut p, &gradients)));
        });
    }
    group.finish();
}

/// Numbers in the weights of such an encoder.
const NUMBERS: usize = 450_000;

fn segment_sum(c: &mut Criterion) {
    let mut group = c.benchmark_group("gather and sum 24000 x 172 into 800");
    let mut p = Parameters::new(0);
    let x = p.add("x", 2000, 172, Init::XavierUniform);
    for (threads, pool) in &pools() {
        let (mut workspace, mut gradients) = (Workspace::new(), Gradients::of(&p));
        group.bench_function(BenchmarkId::from_parameter(threads), |b| {
            pool.install(|| {
                b.iter(|| {
                    let mut t = workspace.train(&p, DropoutKey::default());
                    let x = t.parameter(x);
                    let rows = t.indices((0..24_000).map(|j| j * 7919 % 2000));
                    let offsets = t.indices((0..=800).map(|i| 30 * i));
                    let y =
                        t.segment_sum(x, Segments { rows: Some(rows), offsets }, Weighting::Sum);
                    let loss = t.sum(y);
                    t.backward(loss, &mut gradients);
                });
            });
        });
    }
    group.finish();
}

fn attention(c: &mut Criterion) {
    let mut group = c.benchmark_group("attention 400 x 2 x 64 x 50");
    group.sample_size(20);
    // Six products of 64 x 64 x 50 per block and head.
    group.throughput(Throughput::Elements(6 * 2 * 800 * 64 * 64 * 50));
    let mut p = Parameters::new(0);
    let ids = ["q", "k", "v"]
        .map(|name| p.add(name, 400 * 64, 100, Init::Normal { mean: 0.0, deviation: 1.0 }));
    for (threads, pool) in &pools() {
        let (mut workspace, mut gradients) = (Workspace::new(), Gradients::of(&p));
        group.bench_function(BenchmarkId::from_parameter(threads), |b| {
            pool.install(|| {
                b.iter(|| {
                    let mut t = workspace.train(&p, DropoutKey::default());
                    let [q, k, v] = ids.map(|id| t.parameter(id));
                    let heads = Heads {
                        heads: 2,
                        query_rows: 64,
                        key_rows: 64,
                        keys: Keys::All,
                        dropout: 0.0,
                    };
                    let y = t.attention(q, k, v, heads);
                    let loss = t.sum(y);
                    t.backward(loss, &mut gradients);
                });
            });
        });
    }
    group.finish();
}

fn functions(c: &mut Criterion) {
    let mut group = c.benchmark_group("functions of 2.4 M values");
    let p = Parameters::new(0);
    let x = values(2_400_000);
    for (threads, pool) in &pools() {
        let mut workspace = Workspace::new();
        for f in [
            Activation::Cos,
            Activation::Tanh,
            Activation::Sigmoid,
            Activation::Exp,
            Activation::Gelu,
        ] {
            group.bench_function(BenchmarkId::new(format!("{f:?}"), threads), |b| {
                pool.install(|| {
                    b.iter(|| {
                        let mut t = workspace.infer(&p);
                        let x = t.borrow(&x, 100);
                        t.apply(x, f)
                    });
                });
            });
        }
        group.bench_function(
            BenchmarkId::new("time sum of 24000 x 100 into 800, two weightings", threads),
            |b| {
                let weights = values(30);
                pool.install(|| {
                    b.iter(|| {
                        let mut t = workspace.infer(&p);
                        let times = t.times((0..24_000).map(|j| f64::from(j) * 1234.5));
                        let frequencies =
                            t.times((0..100).map(|i| 10_f64.powf(-f64::from(i) / 10.0)));
                        let offsets = t.indices((0..=800).map(|i| 30 * i));
                        let slots = t.indices((0..24_000).map(|j| j % 30));
                        let weights = t.borrow(&weights, 30);
                        let (plain, weighted) = (t.zeros(800, 100), t.zeros(800, 100));
                        t.time_sums_into(
                            plain,
                            weighted,
                            times,
                            offsets,
                            frequencies,
                            weights,
                            Some(slots),
                        );
                    });
                });
            },
        );
    }
    group.finish();
}

fn position_filter(c: &mut Criterion) {
    let mut group = c.benchmark_group("position filter 384 x 100 snapshots, d 172");
    let mut p = Parameters::new(0);
    let init = Init::Normal { mean: 0.0, deviation: 0.1 };
    let (re, im) = (p.add("re", 172, 100, init), p.add("im", 172, 100, init));
    let sum = p.add("sum", 1, 100, init);
    let table = values(384 * 100 * 172);
    for runs_per_node in [100, 10] {
        for (threads, pool) in &pools() {
            let (mut workspace, mut gradients) = (Workspace::new(), Gradients::of(&p));
            group.bench_function(BenchmarkId::new(format!("{runs_per_node} runs"), threads), |b| {
                pool.install(|| {
                    b.iter(|| {
                        let mut t = workspace.train(&p, DropoutKey::default());
                        let (re, im, sum) = (t.parameter(re), t.parameter(im), t.parameter(sum));
                        let kernel = t.fold_filter(re, im, sum);
                        let positions = t.borrow(&table, 172);
                        let length = 100 / runs_per_node;
                        let count = 384 * runs_per_node;
                        let runs = Runs {
                            offsets: t.indices((0..=384).map(|i| i * runs_per_node)),
                            runs: t.indices((0..count).flat_map(|r| {
                                let slot = r % runs_per_node * length;
                                [r, slot, slot + length]
                            })),
                        };
                        let y = t.run_kernel(kernel, positions, runs);
                        let loss = t.sum(y);
                        t.backward(loss, &mut gradients);
                    });
                });
            });
        }
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().measurement_time(std::time::Duration::from_secs(2)).warm_up_time(std::time::Duration::from_millis(500));
    targets = products, split, chain, segment_sum, attention, functions, position_filter
}
criterion_main!(benches);
