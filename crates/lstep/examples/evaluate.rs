//! Evaluates models that only count, on a stream made here.
//!
//! ```text
//! cargo run --release --example evaluate
//! ```

#![allow(clippy::print_stdout, reason = "an example shows what it found")]

use lstep::Result;
use lstep::evaluation::Evaluation;
use lstep::protocol::Strategy;
use lstep::read::synthetic::{SyntheticConfig, generate};
use lstep::stream::Stream;

/// Makes a stream, and asks two models about its last 15 %.
pub fn main() -> Result<()> {
    // A file of your own: `lstep::read::read("events.csv", &ReadOptions::default())?`.
    let dataset = generate(&SyntheticConfig { events: 4_000, ..SyntheticConfig::default() })?;
    let stream = Stream::from(dataset);
    let report = Evaluation::new(&stream)
        .model("edgebank")?
        .model("poptrack")?
        .negatives([Strategy::Random, Strategy::Historical])
        .run()?;
    println!("{}: {} nodes, {} events", report.dataset, report.nodes, report.events);
    for row in &report.results {
        println!(
            "{:<24} {:<11} AP {:.4}",
            row.model.to_string(),
            row.negatives.to_string(),
            row.ap
        );
    }
    Ok(())
}
