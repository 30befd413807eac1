//! Trains a model without a folder, watches its epochs, and evaluates the best one.
//!
//! ```text
//! cargo run --release --example train_in_memory
//! ```

#![allow(clippy::print_stdout, reason = "an example shows what it found")]

use lstep::Result;
use lstep::protocol::{EvalScope, Strategy};
use lstep::read::synthetic::{SyntheticConfig, generate};
use lstep::stream::Stream;
use lstep::training::{TrainEvent, Training};
use std::ops::ControlFlow;

/// Trains GraphMixer for two epochs on a stream made here.
pub fn main() -> Result<()> {
    let config = SyntheticConfig { nodes: 200, events: 2_000, ..SyntheticConfig::default() };
    let stream = Stream::from(generate(&config)?);
    let trained = Training::new(stream)
        .model("graphmixer")?
        .set("train.epochs", 2)
        .set("model.recent", 10)
        .on_progress(|event| {
            if let TrainEvent::Epoch(epoch) = event {
                let (loss, ap) = (epoch.loss, epoch.validation_ap);
                println!("epoch {}  loss {loss:.4}  validation AP {ap:.4}", epoch.epoch);
            }
            // `ControlFlow::Break(())` would stop here.
            ControlFlow::Continue(())
        })
        .run()?;
    let strategies = vec![Strategy::Random, Strategy::Historical];
    let report = trained.evaluate(&EvalScope { strategies, ..EvalScope::default() })?;
    for row in &report.results {
        println!("test, {} negatives: AP {:.4}, AUC {:.4}", row.negatives, row.ap, row.auc);
    }
    Ok(())
}
