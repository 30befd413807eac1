//! How fast counting models score: rows of two candidates, as for average precision, and rows of a
//! thousand, as for MRR with ranking included.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use lstep::event::{Event, Events, Features, NodeId, Time};
use lstep::graph::EventLog;
use lstep::metric::{Ranks, rank};
use lstep::model::{ModelConfig, StreamInfo};
use lstep::query::Queries;
use lstep::rng::KeyedRng;
use std::hint::black_box;

const EVENTS: usize = 500_000;
const NODES: u64 = 10_000;

fn log() -> EventLog {
    let mut draw = KeyedRng::new(&[1]);
    let mut nodes = || {
        (0..EVENTS).map(|_| NodeId((draw.unit().powi(3) * NODES as f64) as u32)).collect::<Vec<_>>()
    };
    let (sources, destinations) = (nodes(), nodes());
    let times = (0..EVENTS).map(|n| Time::new(n as f64).expect("finite")).collect();
    EventLog::new(Events::new(sources, destinations, times, Features::none()).expect("in order"))
}

fn questions(rows: usize, candidates: usize) -> Queries {
    let mut draw = KeyedRng::new(&[3]);
    let mut ask = Queries::new();
    let time = Time::new(EVENTS as f64).expect("finite");
    for _ in 0..rows {
        let source = NodeId((draw.unit().powi(3) * NODES as f64) as u32);
        let row: Vec<NodeId> = (0..candidates).map(|_| NodeId(draw.below(NODES) as u32)).collect();
        ask.push(source, time, row);
    }
    ask
}

fn scoring(criterion: &mut Criterion) {
    let log = log();
    let end = log.len() as u32;
    let info =
        StreamInfo::new(NODES as usize, (Time::ZERO, Time::new(EVENTS as f64).expect("finite")));
    let events: Vec<Event> = log.events().iter().collect();
    for (name, rows, candidates) in
        [("pairs, 200 rows of 2", 200, 2), ("ranks, 200 rows of 1000", 200, 1000)]
    {
        let ask = questions(rows, candidates);
        let mut group = criterion.benchmark_group(name);
        group.throughput(Throughput::Elements(ask.pairs() as u64)).sample_size(20);
        for model in ModelConfig::counting_models() {
            let mut session = model.open(&info).expect("settings are right");
            session.observe(log.revealed(end), &events).expect("counted");
            group.bench_function(model.to_string(), |bench| {
                bench.iter(|| {
                    let scores = session.score(log.past(end), &ask).expect("scored");
                    let mut ranks = Ranks::new();
                    for row in 0..ask.len() {
                        let row = &scores.values()[ask.span(row)];
                        ranks.add(rank(row[0], &row[1..]).expect("finite"));
                    }
                    black_box(ranks.mrr())
                });
            });
        }
        group.finish();
    }

    let mut group = criterion.benchmark_group("observing");
    group.throughput(Throughput::Elements(EVENTS as u64)).sample_size(10);
    for model in ModelConfig::counting_models() {
        group.bench_function(model.to_string(), |bench| {
            bench.iter(|| {
                let mut session = model.open(&info).expect("settings are right");
                for step in events.chunks(200) {
                    session.observe(log.revealed(end), step).expect("counted");
                }
                black_box(session)
            });
        });
    }
    group.finish();
}

criterion_group!(benches, scoring);
criterion_main!(benches);
