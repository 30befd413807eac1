//! `lstep watch`: is a model still as good?

use crate::args::tell_left_out;
use crate::evaluation::share;
use crate::say;
use crate::table::Table;
use anyhow::Result;
use clap::Args;
use lstep::serving::{Watched, watch};
use std::path::PathBuf;

/// Ask a model about newer events: is it as good as it was, and better than counting?
///
/// Every question is a source against all destinations known by then. The MRR on the new events
/// stands beside that on the test part of the run, and beside models that only count, on the same
/// questions. Nothing is changed: `lstep update` takes the events in. Exit code 1 if the model is
/// worse than one of them beyond chance (95 % interval).
#[derive(Args)]
#[command(after_help = "\
Examples:
  lstep watch run today.csv
  lstep watch run today.csv --questions 500 --json
  lstep watch run today.csv && lstep update run today.csv")]
pub struct Watch {
    /// Folder of a run, or an exported model, which has no test part to compare with
    #[arg(value_name = "RUN|MODEL")]
    run: PathBuf,

    /// Events that have happened since
    #[arg(value_name = "EVENTS")]
    events: PathBuf,

    /// Ask about at most this many events of a part, spread evenly
    #[arg(long, value_name = "N", default_value_t = 2_000)]
    questions: usize,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Watch {
    /// Asks and prints; tells whether the model holds.
    pub fn run(&self) -> Result<bool> {
        let busy = crate::progress::busy("asking about the events");
        let report = watch(&self.run, &self.events, self.questions);
        busy.finish_and_clear();
        let report = report?;
        tell_left_out(&report.left_out, report.new.events);
        if self.json {
            say(serde_json::to_string_pretty(&report)?)?;
            return Ok(!report.worse);
        }
        let columns = [
            "part",
            "events",
            "asked",
            "mrr",
            "95 %",
            "hits@10",
            "repeats",
            "new nodes",
            "activity",
        ];
        let mut table = Table::new(columns);
        let mut row = |part: &str, watched: &Watched| {
            table.row(vec![
                part.to_string(),
                watched.events.to_string(),
                watched.questions.to_string(),
                share(watched.mrr),
                format!("{:.3}-{:.3}", watched.low, watched.high),
                share(watched.hits_10),
                share(watched.repeats),
                share(watched.new_nodes),
                format!("{:.3e}", watched.activity),
            ]);
        };
        row("new", &report.new);
        if let Some(reference) = &report.reference {
            row("test", reference);
        }
        say(&report.model)?;
        say(table.show().trim_end())?;
        for beside in report.against_reference.iter().chain(&report.against_counting) {
            say(format!(
                "{} {} (mrr {}): {:+.4}, 95 % interval {:+.4} to {:+.4}",
                beside.verdict,
                beside.with,
                share(beside.mrr),
                beside.difference,
                beside.low,
                beside.high
            ))?;
        }
        report.drift.iter().try_for_each(|line| say(format!("changed: {line}")))?;
        let verdict = match report.worse {
            true => "The model is worse: train it anew with newer events (lstep train --from RUN)",
            false => "The model holds",
        };
        say(verdict)?;
        Ok(!report.worse)
    }
}
