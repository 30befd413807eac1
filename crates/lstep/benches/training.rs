//! How training grows with the stream: one pass of L-STEP (L 100, K 20, steps of 200, scope `touched`) over 5 million synthetic events
//! of 640,000 nodes, or over the millions that LSTEP_TRAINING names. A row for every doubling: time per event since the row before, and the
//! memory held. Prints a table; not a criterion bench, since one pass takes minutes.

#![allow(clippy::print_stdout, reason = "the table is what this program is for")]

use lstep::graph::EventLog;
use lstep::model::{LstepConfig, ModelConfig, Optimiser};
use lstep::protocol::{Split, StepRule, Visibility};
use lstep::read::synthetic::{SyntheticConfig, generate};
use lstep::run::{Course, Progress, facts};
use std::time::Instant;

/// Events before the first row; each further row is at twice as many.
const FIRST: u64 = 250_000;

fn main() {
    if std::env::args().any(|argument| argument == "--test") {
        return; // `cargo test --benches` only wants to know that it runs.
    }
    let millions: f64 = std::env::var("LSTEP_TRAINING").unwrap_or("5".into()).parse().expect("millions of events");
    let events = (millions * 1e6) as u32;
    let config = SyntheticConfig {
        nodes: (millions * 128_000.0) as u32,
        events,
        span: 365 * 86_400,
        habits: 0.001,
        ..SyntheticConfig::default()
    };
    let log = EventLog::new(generate(&config).expect("a stream").events);
    // Nearly everything trains; a split has three parts, and none may be empty.
    let split = Split::chronological(log.events(), 0.998, 0.999).expect("three parts");
    let course = Course::new(&log, &split, StepRule::Events(200), Visibility::Event, 0).expect("events");
    let optimiser = Optimiser { adam: lstep_tensor::AdamConfig::default(), clip: None };
    let model = ModelConfig::Lstep(LstepConfig { snapshots: 100, ..LstepConfig::default() });
    let mut pupil = model.pupil(&facts(&log, &split), 0, optimiser).expect("settings are right");
    println!("{} nodes, {} training events", config.nodes, course.events());
    println!("| events | microseconds per event | events/s | memory, MiB |");
    println!("|---|---|---|---|");
    let total = course.events() as u64;
    let (mut from, mut next, mut started) = (0, FIRST.min(total), Instant::now());
    let mut watch = |_: &Progress, done: u64| {
        if done >= next {
            let (seconds, count) = (started.elapsed().as_secs_f64(), (done - from) as f64);
            let memory = held_mebibytes().map_or("-".into(), |memory| memory.to_string());
            println!("| {done} | {:.1} | {:.0} | {memory} |", seconds / count * 1e6, count / seconds);
            (from, next, started) =
                (done, if next == total { u64::MAX } else { (2 * next).min(total) }, Instant::now());
        }
        true
    };
    course.go_on(pupil.as_mut(), &mut Progress::start(1), &mut watch).expect("a pass");
    let peak = status_mebibytes("VmHWM:").map_or("-".into(), |memory| memory.to_string());
    println!("peak memory {peak} MiB, the stream and making it included");
}

fn held_mebibytes() -> Option<u64> {
    status_mebibytes("VmRSS:")
}

/// A line of Linux's account of this process; nothing elsewhere.
fn status_mebibytes(line: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|text| text.strip_prefix(line))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kibibytes| kibibytes / 1024)
}
