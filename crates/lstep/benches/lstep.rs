//! L-STEP at work: events a second in training, and how long one source against 1,000 candidates
//! takes to answer, half of the time and at worst in a hundred. On wikipedia where `LSTEP_DATA` has
//! it, else on the sample stream. Prints a table; weights have learned for one epoch, which changes
//! nothing about the time. What earlier questions of the same step asked for is remembered, as in a
//! service between two events; the first question, which remembers nothing, is told apart.
#![allow(clippy::print_stdout, reason = "the table is what this program is for")]

use lstep::event::{Event, NodeId, Time};
use lstep::graph::EventLog;
use lstep::model::{LstepConfig, ModelConfig, OptimizerConfig};
use lstep::protocol::{Split, StepRule, Visibility, cut};
use lstep::query::Queries;
use lstep::read::synthetic::{SyntheticConfig, generate};
use lstep::read::{ReadOptions, read};
use lstep::rng::KeyedRng;
use lstep::settings::TrainConfig;
use lstep::stream::info;
use lstep::training::{Progress, TrainingStream};
use std::path::PathBuf;
use std::time::Instant;

const CANDIDATES: usize = 1_000;
const QUESTIONS: usize = 500;

fn main() {
    if std::env::args().any(|argument| argument == "--test") {
        return; // `cargo test --benches` only wants to know that it runs.
    }
    let real = std::env::var_os("LSTEP_DATA")
        .map(|folder| PathBuf::from(folder).join("wikipedia/events.csv.gz"));
    let dataset = match real {
        Some(path) => read(path, &ReadOptions::default()).expect("wikipedia"),
        None => generate(&SyntheticConfig::default()).expect("a stream"),
    };
    let (name, log) = (dataset.name, EventLog::new(dataset.events));
    // The paper's settings for wikipedia, and the model that sees the pair with its own.
    let paper = LstepConfig { snapshots: 100, recent: 15, ..LstepConfig::default() };
    measure(&name, "lstep", &log, paper, StepRule::Events(128));
    measure(&name, "lstep-pair", &log, LstepConfig::pair(), StepRule::Events(200));
}

fn measure(name: &str, model: &str, log: &EventLog, config: LstepConfig, rule: StepRule) {
    let split = Split::chronological(log.events(), 0.7, 0.85).expect("three parts");
    let optimizer = OptimizerConfig::default();
    let mut trainer = ModelConfig::from(config)
        .trainer(&info(log, &split), 0, optimizer)
        .expect("settings are right");
    let training =
        TrainingStream::new(log, &split, rule, Visibility::Event, &TrainConfig::default())
            .expect("events");
    let started = Instant::now();
    training
        .run_epoch(trainer.as_mut(), &mut Progress::start(1), &mut |_, _| {
            std::ops::ControlFlow::Continue(())
        })
        .expect("an epoch");
    let seconds = started.elapsed().as_secs_f64();
    println!(
        "{name}, {model}: one training epoch {seconds:.2} s, {:.0} events/s",
        training.events() as f64 / seconds
    );

    for step in cut(log.events(), split.validation.start..split.test.end, rule, Visibility::Event) {
        let end = step.end;
        let events: Vec<Event> = step.map(|number| log.events().at(number as usize)).collect();
        trainer.observe(log.revealed(end), &events).expect("observed");
    }
    let mut destinations: Vec<NodeId> = log.events().destinations().to_vec();
    destinations.sort_unstable();
    destinations.dedup();
    let last = log.events().times()[log.len() - 1];
    let mut draw = KeyedRng::new(&[7]);
    let mut took = Vec::with_capacity(QUESTIONS);
    for question in 0..QUESTIONS {
        let source = log.events().sources()[draw.below(log.len() as u64) as usize];
        let time = Time::new(last.value() + 1.0 + question as f64).expect("finite");
        let mut ask = Queries::new();
        ask.push(
            source,
            time,
            (0..CANDIDATES).map(|_| destinations[draw.below(destinations.len() as u64) as usize]),
        );
        let started = Instant::now();
        trainer.score(log.past(log.len() as u32), &ask).expect("scored");
        took.push(started.elapsed().as_secs_f64() * 1e3);
    }
    let first = took[0];
    took.sort_by(f64::total_cmp);
    let at = |share: f64| took[((QUESTIONS - 1) as f64 * share) as usize];
    let rate = CANDIDATES as f64 * 1e3 / at(0.5);
    println!(
        "{model}: one source against {CANDIDATES} candidates: p50 {:.2} ms, p99 {:.2} ms, {rate:.0} pairs/s; the first {first:.2} ms",
        at(0.5),
        at(0.99)
    );
}
