//! How time and memory grow with the stream: reading, log, negatives and an evaluation, for 1, 4
//! and 16 million synthetic events (or the millions that LSTEP_GROWTH lists, separated by commas;
//! `20` has 640,000 nodes). Each size runs in a process of its own, so that its peak memory is its
//! own. Prints a table; not a criterion bench, since one pass takes long enough to time.

#![allow(clippy::print_stdout, reason = "the table is what this program is for")]

use lstep::evaluation::{EvaluatedModel, Evaluation};
use lstep::model::{EdgeBankConfig, Memory};
use lstep::protocol::{EvalScope, Part, Protocol, Setting, Strategy, StreamProtocol};
use lstep::read::synthetic::{SyntheticConfig, generate};
use lstep::read::{ReadOptions, read, write_events};
use lstep::stream::Stream;
use std::process::Command;
use std::time::Instant;

fn main() {
    if std::env::args().any(|argument| argument == "--test") {
        return; // `cargo test --benches` only wants to know that it runs.
    }
    if let Ok(child) = std::env::var("LSTEP_GROWTH_CHILD") {
        let (millions, path) = child.split_once(':').expect("made by the parent");
        return measure(millions.parse().expect("a number"), path);
    }
    let folder = std::env::temp_dir().join("lstep-growth");
    std::fs::create_dir_all(&folder).expect("a temporary folder");
    println!(
        "| events | nodes | read, s | events/s | log, s | evaluate, s | test events/s | peak read, MiB | peak, MiB |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    for millions in std::env::var("LSTEP_GROWTH").unwrap_or("1,4,16".into()).split(',') {
        let path = folder.join(format!("{millions}.csv"));
        let config = SyntheticConfig {
            nodes: 32_000 * millions.parse::<u32>().expect("millions of events"),
            events: millions.parse::<u32>().expect("millions of events") * 1_000_000,
            span: 365 * 86_400,
            habits: 0.001,
            ..SyntheticConfig::default()
        };
        write_events(&path, &generate(&config).expect("a stream")).expect("written");
        let status = Command::new(std::env::current_exe().expect("this program"))
            .env("LSTEP_GROWTH_CHILD", format!("{millions}:{}", path.display()))
            .status()
            .expect("it runs");
        assert!(status.success());
        std::fs::remove_file(&path).expect("removed");
    }
}

fn measure(millions: u32, path: &str) {
    let started = Instant::now();
    let dataset = read(path, &ReadOptions::default()).expect("read");
    let reading = started.elapsed().as_secs_f64();
    let (nodes, events) = (dataset.names.len(), dataset.events.len());
    assert_eq!(events as u32, millions * 1_000_000);
    let started = Instant::now();
    let stream = Stream::from(dataset);
    let log = started.elapsed().as_secs_f64();
    let peak_read = peak_mebibytes();
    let evaluation = Evaluation {
        protocol: Protocol::Stream(StreamProtocol::default()),
        asked: EvalScope {
            parts: vec![Part::Test],
            settings: vec![Setting::Transductive],
            strategies: vec![Strategy::Random, Strategy::Historical, Strategy::Inductive],
        },
        models: vec![EvaluatedModel::Fixed(EdgeBankConfig { memory: Memory::Unlimited }.into())],
        read_negatives: None,
        write_negatives: None,
    };
    let started = Instant::now();
    let report = evaluation.run(&stream, &|_, _, _| ()).expect("evaluated");
    let evaluating = started.elapsed().as_secs_f64();
    let asked = report.results[0].events;
    println!(
        "| {events} | {nodes} | {reading:.2} | {:.0} | {log:.2} | {evaluating:.2} | {:.0} | {peak_read} | {} |",
        events as f64 / (reading + log),
        asked as f64 / evaluating,
        peak_mebibytes()
    );
}

/// The most memory this process has had, as Linux tells; zero elsewhere.
fn peak_mebibytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok())
        .map_or(0, |kibibytes| kibibytes / 1024)
}
