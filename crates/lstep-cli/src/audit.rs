//! `lstep audit`: does a trained model keep the laws on its own data?

use crate::evaluate::share;
use crate::table::Table;
use crate::{progress, say};
use anyhow::Result;
use clap::Args;
use lstep::audit::laws::{Breach, Questions};
use lstep::audit::{AuditReport, Fault, LeakReport, audit, show_released_leak};
use lstep::protocol::StepRule;
use lstep::training::RunFolder;
use serde::Serialize;
use std::path::PathBuf;

/// Check on your own data that a trained model keeps the laws.
///
/// Perturbs the future, permutes candidates, changes the other rows, splits calls, changes threads,
/// reopens the model and runs it live, and compares scores to the last bit. Exit code 1 if any law
/// is broken.
#[derive(Args)]
#[command(after_help = "\
Examples:
  lstep audit run
  lstep audit run --events 50000 --json
  lstep audit run --show-released-leak          what the fault of the authors' released code is worth on this stream")]
pub struct Audit {
    /// Folder of a run
    #[arg(value_name = "RUN")]
    run: PathBuf,

    /// How many of the first events to check on; the questions come at or after their middle
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    events: usize,

    /// Also train two small models on the stream, one with a label leak of released code, and print
    /// both numbers
    ///
    /// L-STEP's released code filters positions only of nodes of true events, so that a scorer can
    /// recognise negatives. DyGFormer's, which is shown for a run of DyGFormer, fills histories up
    /// to the longest of a call, true events and negatives being asked about in calls of their own.
    /// Both models have the same settings, seed, events and negatives; the settings are small ones,
    /// and printed. Takes a minute or two, with DyGFormer's long histories more. This is the only
    /// use of these leaks: no setting switches them on, and the leaking model is not saved.
    #[arg(long)]
    show_released_leak: bool,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What is printed as JSON.
#[derive(Serialize)]
struct Findings {
    #[serde(flatten)]
    audited: AuditReport,
    #[serde(skip_serializing_if = "Option::is_none")]
    released_leak: Option<LeakReport>,
}

impl Audit {
    /// Checks and prints; tells whether all laws hold.
    pub fn run(&self) -> Result<bool> {
        let folder = RunFolder::new(&self.run);
        let busy = progress::busy("checking the laws");
        let audited = audit(&folder, self.events);
        busy.finish_and_clear();
        let audited = audited?;
        let released_leak =
            if self.show_released_leak { Some(leak_showing(&folder)?) } else { None };
        let kept = audited.breaches.is_empty();
        if self.json {
            say(serde_json::to_string_pretty(&Findings { audited, released_leak })?)?;
        } else {
            show(&audited)?;
            released_leak.map_or(Ok(()), |leak| show_leak(&leak))?;
        }
        Ok(kept)
    }
}

/// Trains the two models with a bar on the terminal.
fn leak_showing(folder: &RunFolder) -> Result<LeakReport> {
    let bar = progress::epoch();
    let report = show_released_leak(folder, &mut |model, progress, done, of| {
        bar.set_length(of);
        bar.set_position(done);
        bar.set_prefix(format!("{model} model, epoch {}", progress.epoch));
        bar.set_message(format!("loss {:.4}", progress.loss()));
    });
    bar.finish_and_clear();
    Ok(report?)
}

fn show_leak(leak: &LeakReport) -> Result<()> {
    let step = match leak.protocol.step {
        StepRule::Events(events) => format!("steps of {events}"),
        StepRule::DistinctTime => "a step at every time".to_string(),
    };
    let LeakReport { training_events, epochs, learning_rate, seed, .. } = leak;
    let (whose, what) = match leak.fault {
        Fault::Filter => ("L-STEP", "filters positions only of nodes of true events"),
        Fault::Padding => {
            ("DyGFormer", "fills histories up to the longest of true events, or of negatives")
        }
    };
    say(format!(
        "\nThe label leak of {whose}'s released code, on the first {} events of {}:",
        leak.events, leak.dataset
    ))?;
    say(format!("two models trained alike, but the leaking one {what}"))?;
    let mut table =
        Table::new(["test, negatives", "honest ap", "leaking ap", "honest auc", "leaking auc"]);
    for row in &leak.results {
        let numbers = [row.honest.ap, row.leaking.ap, row.honest.auc, row.leaking.auc].map(share);
        table.row(std::iter::once(row.negatives.to_string()).chain(numbers).collect());
    }
    say(table.show().trim_end())?;
    say(format!("broken by the honest model: {}", laws(&leak.honest_breaches)))?;
    say(format!("broken by the leaking model: {}", laws(&leak.leaking_breaches)))?;
    let settings = leak.model.summary();
    say(format!(
        "{training_events} training events, {step}, seed {seed}, learning rate {learning_rate}, {settings};"
    ))?;
    say(format!(
        "of {epochs} epochs validation chose {} and {}",
        leak.honest_epoch, leak.leaking_epoch
    ))
}

/// The laws of some breaches, each once.
fn laws(breaches: &[Breach]) -> String {
    let mut laws: Vec<String> = breaches.iter().map(|breach| breach.law.to_string()).collect();
    laws.dedup();
    if laws.is_empty() { "no law".to_string() } else { laws.join("; ") }
}

fn show(audited: &AuditReport) -> Result<()> {
    let mut table = Table::new(["law", "", "evidence"]);
    for law in &audited.laws {
        let breach = audited.breaches.iter().find(|breach| breach.law.to_string() == *law);
        let verdict = if breach.is_some() { "BROKEN" } else { "kept" };
        table.row(vec![
            law.clone(),
            verdict.into(),
            breach.map_or(String::new(), |breach| breach.evidence.clone()),
        ]);
    }
    say(format!("{}, on the first {} events", audited.model, audited.events))?;
    let Questions { rows, pairs, with_history } = audited.questions;
    say(format!(
        "asked about {rows} events with {pairs} candidates; in {with_history} a node of the event has met somebody before"
    ))?;
    say(table.show().trim_end())
}
