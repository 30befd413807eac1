//! `lstep audit`: does a trained model keep the laws on its own data?

use crate::say;
use crate::table::Table;
use anyhow::Result;
use clap::Args;
use lstep::run::{Audited, RunFolder, audit};
use std::path::PathBuf;

/// Check on your own data that a trained model keeps the laws.
///
/// Perturbs the future, permutes candidates, changes the other rows, splits calls, changes threads, reopens the model and runs it
/// live, and compares scores to the last bit. Exit code 1 if any law is broken.
#[derive(Args)]
#[command(after_help = "\
Examples:
  lstep audit run
  lstep audit run --events 50000 --json")]
pub struct Audit {
    /// Folder of a run
    #[arg(value_name = "RUN")]
    run: PathBuf,

    /// How many of the first events to check on; the question comes in their middle
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    events: usize,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Audit {
    /// Checks and prints; tells whether all laws hold.
    pub fn run(&self) -> Result<bool> {
        let busy = crate::progress::busy("checking the laws");
        let audited = audit(&RunFolder::new(&self.run), self.events);
        busy.finish_and_clear();
        let audited = audited?;
        if self.json {
            say(serde_json::to_string_pretty(&audited)?)?;
        } else {
            show(&audited)?;
        }
        Ok(audited.breaches.is_empty())
    }
}

fn show(audited: &Audited) -> Result<()> {
    let mut table = Table::new(["law", "", "evidence"]);
    for law in &audited.laws {
        let breach = audited.breaches.iter().find(|breach| breach.law.to_string() == *law);
        let verdict = if breach.is_some() { "BROKEN" } else { "kept" };
        table.row(vec![law.clone(), verdict.into(), breach.map_or(String::new(), |breach| breach.evidence.clone())]);
    }
    say(format!("{}, on the first {} events", audited.model, audited.events))?;
    say(table.show().trim_end())
}
