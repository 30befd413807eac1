//! `lstep audit`: does a trained model keep the laws on its own data?

use crate::evaluation::{share, show_ties};
use crate::table::Table;
use crate::{interrupt, progress, say};
use anyhow::Result;
use clap::Args;
use lstep::audit::laws::{Breach, Questions};
use lstep::audit::{
    AuditOptions, AuditReport, AuditSize, Fault, LeakReport, audit, show_released_leak,
};
use lstep::protocol::StepRule;
use lstep::training::RunFolder;
use serde::Serialize;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Check on your own data that a trained model keeps the laws.
///
/// Asks as evaluation does, in whole steps all over the stream, with rows of 2, 11, 101 and 1,000
/// candidates. Then it changes what may not matter (the future, what comes after training, the
/// names of nodes, the order and number of candidates, the other rows, the size of calls, threads,
/// earlier questions) and compares scores to the last bit. Exit code 1 if any law is broken.
#[derive(Args)]
#[command(after_help = "\
Examples:
  lstep audit run
  lstep audit run --events 50000 --json
  lstep audit run --thorough 10m                other steps and candidates for ten minutes
  lstep audit run --show-released-leak          what the fault of the authors' released code is worth on this stream")]
pub struct Audit {
    /// Folder of a run
    #[arg(value_name = "RUN")]
    run: PathBuf,

    /// How many of the first events to check on
    #[arg(long, value_name = "N", default_value_t = AuditOptions::default().events)]
    events: usize,

    /// Ask for so long, such as 30s, 10m or 2h: each round has other steps and other candidates
    #[arg(long, value_name = "TIME", value_parser = duration)]
    thorough: Option<Duration>,

    /// How many rounds to ask at least
    #[arg(long, value_name = "N", default_value_t = 1)]
    rounds: u64,

    /// How many questions a round has: full, light, or auto, which is light for a slow model
    #[arg(long, value_name = "SIZE", default_value = "auto", value_parser = size)]
    size: AuditSize,

    /// Seed of the questions
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,

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
        let stop = interrupt::stop_flag()?;
        let mut options = AuditOptions::default();
        (options.events, options.rounds, options.seed) = (self.events, self.rounds, self.seed);
        options.time = self.thorough.unwrap_or_default();
        options.size = self.size;
        let audited = audit(&folder, options, &mut |rounds| {
            busy.set_message(format!("checking the laws, {rounds} round(s) done"));
            if stop.load(Ordering::Relaxed) {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        });
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
    let AuditReport { questions, rounds, .. } = audited;
    say(format!("{}, on the first {} events, {rounds} round(s)", audited.model, audited.events))?;
    let Questions { steps, rows, pairs, with_history, first_appearances, .. } = questions;
    say(format!(
        "asked {pairs} pairs about {rows} events of {steps} steps; in {with_history} a node of the \
         event has met somebody before, in {first_appearances} one has not"
    ))?;
    let covered = 100.0 * questions.evaluated_asked as f64 / questions.evaluated.max(1) as f64;
    say(format!(
        "that is {covered:.1} % of the {} events after training; --thorough asks about more",
        questions.evaluated
    ))?;
    if audited.size == AuditSize::Light {
        say("a light audit, for this model takes long: --size full asks in more and larger calls")?;
    }
    let mut table = Table::new(["law", "", "compared", "changed", "seconds"]);
    for law in &audited.laws {
        table.row(vec![
            law.says.clone(),
            if law.changed > 0 { "BROKEN" } else { "kept" }.into(),
            law.compared.to_string(),
            law.changed.to_string(),
            format!("{:.2}", law.seconds),
        ]);
    }
    say(table.show().trim_end())?;
    for breach in &audited.breaches {
        say(format!("broken: {}: {}", breach.law, breach.evidence))?;
    }
    let Some(ties) = &audited.ties else { return Ok(()) };
    show_ties(std::slice::from_ref(ties))?;
    say(format!("{:+.4} hang on the order of rows", ties.file_ap - ties.shuffled_ap))
}

fn size(text: &str) -> Result<AuditSize, String> {
    match text {
        "auto" => Ok(AuditSize::Auto),
        "full" => Ok(AuditSize::Full),
        "light" => Ok(AuditSize::Light),
        _ => Err("choose auto, full or light".to_string()),
    }
}

/// Reads a time such as 90, 30s, 10m or 2h.
fn duration(text: &str) -> Result<Duration, String> {
    let (number, unit) = match text.strip_suffix(['s', 'm', 'h']) {
        Some(number) => (number, &text[number.len()..]),
        None => (text, "s"),
    };
    let seconds = match unit {
        "m" => 60,
        "h" => 3600,
        _ => 1,
    };
    let number: u64 = number.parse().map_err(|_| "give a time such as 30s, 10m or 2h")?;
    Ok(Duration::from_secs(number.saturating_mul(seconds)))
}
