//! Asks a trained model about events that are still to come, and tells it what happened.
//!
//! ```text
//! cargo run --release --example live
//! ```

#![allow(clippy::print_stdout, reason = "an example shows what it found")]

use lstep::Result;
use lstep::event::{Events, NodeId};
use lstep::query::Queries;
use lstep::read::synthetic::{SyntheticConfig, generate};
use lstep::serving::Live;
use lstep::stream::Stream;
use lstep::training::Training;

/// Trains on the first 1,900 events of a stream; the last hundred then come in one by one.
pub fn main() -> Result<()> {
    let config = SyntheticConfig { nodes: 100, events: 2_000, ..SyntheticConfig::default() };
    let events = generate(&config)?.events;
    let known: Events = events.first(1_900);
    let trained = Training::new(Stream::new("known", known)?)
        .model("lstep-pair")?
        .set("train.epochs", 1)
        .run()?;
    let session = trained.at_the_end()?;
    let mut live = Live::resume(trained.into_stream().log, session);

    let everybody: Vec<NodeId> = (0..events.node_bound() as u32).map(NodeId).collect();
    let mut hits = 0;
    for event in events.iter().skip(1_900) {
        let mut ask = Queries::new();
        ask.push(event.source, event.time, everybody.iter().copied());
        let scores = live.score(&ask)?;
        let truth = scores.values()[event.destination.index()];
        let better = scores.values().iter().filter(|score| **score > truth).count();
        hits += usize::from(better < 10);

        let features = events.features().row(event.number as usize);
        live.push(event.source, event.destination, event.time, features)?;
        live.observe()?;
    }
    println!("{hits} of 100 destinations were among the ten likeliest of {}", everybody.len());
    Ok(())
}
