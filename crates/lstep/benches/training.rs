//! How training grows with the stream: one pass of L-STEP (L 100, K 20, steps of 200, scope
//! `touched`) over synthetic streams of 0.25 to 4 million events, or of the millions that
//! LSTEP_TRAINING names (`LSTEP_TRAINING=5` has 640,000 nodes). A row for each stream: time per
//! event of the whole pass and of its last quarter, when histories are full. Nodes grow with
//! events, so that every stream fills its histories alike. Processor time is what a busy machine
//! leaves comparable, with RAYON_NUM_THREADS=1: idle threads wait awake. Prints a table; not a
//! criterion bench, since a pass takes minutes.

#![allow(clippy::print_stdout, reason = "the table is what this program is for")]

use lstep::graph::EventLog;
use lstep::model::{LstepConfig, ModelConfig, OptimizerConfig};
use lstep::protocol::{Split, StepRule, Visibility};
use lstep::read::synthetic::{SyntheticConfig, generate};
use lstep::settings::TrainConfig;
use lstep::stream::info;
use lstep::training::{Progress, TrainingStream};
use std::time::Instant;

fn main() {
    if std::env::args().any(|argument| argument == "--test") {
        return; // `cargo test --benches` only wants to know that it runs.
    }
    let sizes = std::env::var("LSTEP_TRAINING").unwrap_or("0.25,0.5,1,2,4".into());
    println!("{} threads", rayon::current_num_threads());
    println!(
        "| events | nodes | microseconds per event | in the last quarter | processor, microseconds per event | memory, MiB |"
    );
    println!("|---|---|---|---|---|---|");
    for millions in sizes.split(',') {
        pass(millions.trim().parse().expect("millions of events, separated by commas"));
    }
    let peak = status_mebibytes("VmHWM:").map_or("-".into(), |memory| memory.to_string());
    println!("peak memory {peak} MiB, the streams and making them included");
}

fn pass(millions: f64) {
    let config = SyntheticConfig {
        nodes: (millions * 128_000.0) as u32,
        events: (millions * 1e6) as u32,
        span: 365 * 86_400,
        habits: 0.001,
        ..SyntheticConfig::default()
    };
    let log = EventLog::new(generate(&config).expect("a stream").events);
    // Nearly everything trains; a split has three parts, and none may be empty.
    let split = Split::chronological(log.events(), 0.998, 0.999).expect("three parts");
    let training = TrainingStream::new(
        &log,
        &split,
        StepRule::Events(200),
        Visibility::Event,
        &TrainConfig::default(),
    )
    .expect("events");
    let optimizer = OptimizerConfig::default();
    let model = ModelConfig::from(LstepConfig { snapshots: 100, ..LstepConfig::default() });
    let mut trainer = model.trainer(&info(&log, &split), 0, optimizer).expect("settings are right");
    let total = training.events() as u64;
    let (started, used) = (Instant::now(), processor_seconds());
    let mut late: Option<(u64, Instant)> = None;
    let mut watch = |_: &Progress, done: u64| {
        if late.is_none() && done * 4 >= total * 3 {
            late = Some((done, Instant::now()));
        }
        std::ops::ControlFlow::Continue(())
    };
    training.run_epoch(trainer.as_mut(), &mut Progress::start(1), &mut watch).expect("a pass");
    let each = |seconds: f64, events: u64| seconds / events as f64 * 1e6;
    let late = late.map_or(0.0, |(from, since)| each(since.elapsed().as_secs_f64(), total - from));
    let processor = processor_seconds()
        .zip(used)
        .map(|(now, before)| format!("{:.1}", each(now - before, total)));
    let memory = held_mebibytes().map_or("-".into(), |memory| memory.to_string());
    println!(
        "| {total} | {} | {:.1} | {late:.1} | {} | {memory} |",
        config.nodes,
        each(started.elapsed().as_secs_f64(), total),
        processor.unwrap_or("-".into()),
    );
}

/// What this process has used of all processors, from Linux's account of it; nothing elsewhere.
fn processor_seconds() -> Option<f64> {
    let account = std::fs::read_to_string("/proc/self/stat").ok()?;
    let mut numbers = account.rsplit(')').next()?.split_whitespace().skip(11);
    let ticks: f64 = numbers.next()?.parse::<f64>().ok()? + numbers.next()?.parse::<f64>().ok()?;
    Some(ticks / 100.0)
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
