//! How fast the past can be asked: recent-20 queries on a log of a million events, on all cores and
//! on one.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use lstep::event::{Events, Features, NodeId, Time};
use lstep::graph::{EventLog, Seed};
use lstep::query::Queries;
use lstep::rng::KeyedRng;
use rayon::prelude::*;
use std::hint::black_box;

const EVENTS: usize = 1_000_000;
const NODES: u64 = 20_000;
const QUERIES: usize = 1_000_000;

fn stream() -> Events {
    let mut draw = KeyedRng::new(&[1]);
    let mut nodes = || {
        (0..EVENTS).map(|_| NodeId((draw.unit().powi(2) * NODES as f64) as u32)).collect::<Vec<_>>()
    };
    let (sources, destinations) = (nodes(), nodes());
    let times = (0..EVENTS).map(|n| Time::new(n as f64).expect("finite")).collect();
    Events::new(sources, destinations, times, Features::none()).expect("in order")
}

fn queries(criterion: &mut Criterion) {
    let events = stream();
    let log = EventLog::new(events.clone());
    let mut draw = KeyedRng::new(&[2]);
    let mut rows = Queries::new();
    for _ in 0..QUERIES {
        let node = NodeId((draw.unit().powi(2) * NODES as f64) as u32);
        let time = Time::new(draw.unit() * EVENTS as f64).expect("finite");
        rows.push(node, time, []);
    }
    let seeds: Vec<Seed> = rows.rows().map(|row| row.seed()).collect();
    let past = log.past(EVENTS as u32);
    // Every meeting is read, as a model would.
    let ask = |seed: &Seed| -> f64 {
        past.recent(*seed, 20)
            .iter()
            .map(|neighbour| seed.time().since(neighbour.time()) + f64::from(neighbour.node().0))
            .sum()
    };
    let mut group = criterion.benchmark_group("recent 20");
    group.throughput(Throughput::Elements(QUERIES as u64)).sample_size(10);
    group.bench_function("one thread", |bench| {
        bench.iter(|| black_box(seeds.iter().map(ask).sum::<f64>()));
    });
    group.bench_function("all threads", |bench| {
        bench.iter(|| {
            black_box(
                seeds.par_chunks(4096).map(|chunk| chunk.iter().map(ask).sum::<f64>()).sum::<f64>(),
            )
        });
    });
    group.finish();

    let mut group = criterion.benchmark_group("log");
    group.throughput(Throughput::Elements(EVENTS as u64)).sample_size(10);
    group.bench_function("built at once", |bench| {
        bench.iter(|| black_box(EventLog::new(events.clone())));
    });
    group.bench_function("grown event by event", |bench| {
        bench.iter(|| {
            let mut log = EventLog::default();
            for event in events.iter() {
                log.push(event.source, event.destination, event.time, &[]).expect("in order");
            }
            black_box(log)
        });
    });
    group.finish();
}

criterion_group!(benches, queries);
criterion_main!(benches);
