//! Compares learned models with ones that only count: the same stream, the same questions.
//!
//! ```text
//! cargo run --release --example compare
//! ```

#![allow(clippy::print_stdout, reason = "an example shows what it found")]

use lstep::Result;
use lstep::evaluation::Evaluation;
use lstep::protocol::{EvalScope, Strategy};
use lstep::read::synthetic::{SyntheticConfig, generate};
use lstep::stream::Stream;
use lstep::training::Training;

/// Prints a line for each model, the best by average precision first.
pub fn main() -> Result<()> {
    let config = SyntheticConfig { nodes: 100, events: 2_000, ..SyntheticConfig::default() };
    let stream = Stream::from(generate(&config)?);
    let scope = EvalScope { strategies: vec![Strategy::Historical], ..EvalScope::default() };

    let counting = Evaluation::new(&stream).model("edgebank")?.model("poptrack")?;
    let mut rows = counting.scope(scope.clone()).run()?.results;
    for model in ["graphmixer", "lstep-pair"] {
        let trained = Training::new(&stream).model(model)?.set("train.epochs", 1).run()?;
        rows.extend(trained.evaluate(&scope)?.results);
    }
    rows.sort_by(|a, b| b.ap.total_cmp(&a.ap));
    for row in &rows {
        println!("{:<24} AP {:.4}  AUC {:.4}", row.model.to_string(), row.ap, row.auc);
    }
    // Equal hashes: all were asked the same questions.
    assert!(rows.iter().all(|row| row.negatives_sha256 == rows[0].negatives_sha256));
    Ok(())
}
