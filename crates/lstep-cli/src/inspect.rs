//! `lstep inspect`: what is in a stream.

use crate::args::{EventsFile, faults_table};
use crate::say;
use crate::settings::wrapped;
use crate::table::Table;
use anyhow::Result;
use clap::Args;
use lstep::read::{Diagnosis, diagnose};
use lstep::stream::{InspectReport, inspect};

/// Count what is in a stream and how far it repeats itself.
#[derive(Args)]
#[command(after_help = "\
Examples:
  lstep inspect events.csv.gz
  lstep inspect logs/2026-01.csv logs/2026-02.csv --time-format '%d.%m.%Y %H:%M'
  lstep inspect parts/                                a folder of CSV, JSON Lines or Parquet parts
  lstep inspect mail.parquet --src sender --dst recipient --time sent_at
  zcat log.csv.gz | lstep inspect - --json")]
pub struct Inspect {
    #[command(flatten)]
    file: EventsFile,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Inspect {
    /// Reads, counts, prints.
    pub fn run(&self) -> Result<()> {
        let data = self.file.data();
        let dataset = match self.file.read() {
            Ok(dataset) => dataset,
            Err(error) => {
                // The first fault ends the reading; who has to mend the file wants to see all.
                if let Ok(Some(found)) = diagnose(&data.events, &data.options()) {
                    show_faults(&found, self.json)?;
                }
                return Err(error);
            }
        };
        let report = inspect(&dataset);
        if self.json {
            return say(serde_json::to_string_pretty(&report)?);
        }
        show(&report)?;
        let times = dataset.events.times();
        let span = times.first().zip(times.last());
        let dates = span.and_then(|(&first, &last)| {
            let clock = dataset.clock.as_unix(first, last)?;
            Some(format!("{} to {}", clock.show(first), clock.show(last)))
        });
        if let Some(dates) = dates {
            say(format!("hint: times look like those since 1970: {dates}"))?;
        }
        if 2 * report.stats.tied_events > report.stats.events {
            say(
                "hint: most events share their time with another, and their order in the file means \
                 nothing: look at numbers with --ties shuffled, too",
            )?;
        }
        if let Ok(Some(found)) = diagnose(&data.events, &data.options()) {
            let columns = found.columns.iter().map(|(name, role)| format!("{name} ({role})"));
            let columns = format!("columns: {}", columns.collect::<Vec<_>>().join(", "));
            say(wrapped(&columns, 80, ""))?;
            found.hints.iter().try_for_each(|hint| say(format!("hint: {hint}")))?;
        }
        Ok(())
    }
}

/// Prints all faults of a file.
fn show_faults(found: &Diagnosis, json: bool) -> Result<()> {
    if found.faults.is_empty() {
        return Ok(());
    }
    if json {
        return say(serde_json::to_string_pretty(found)?);
    }
    // There is no result, so nothing goes to standard output.
    crate::tell(format!("{} of {} rows have no fault", found.good_rows, found.rows));
    crate::tell(faults_table(&found.faults));
    found.hints.iter().for_each(|hint| crate::tell(format!("hint: {hint}")));
    Ok(())
}

/// Prints an inspection for people.
pub fn show(report: &InspectReport) -> Result<()> {
    let stats = &report.stats;
    let percent = |share: f64| format!("{:.1} %", 100.0 * share);
    let text =
        |value: &serde_json::Value| value.as_str().map_or_else(|| value.to_string(), String::from);
    let mut table = Table::new([report.dataset.as_str(), "", ""]);
    let mut row = |name: &str, value: String, note: &str| {
        table.row(vec![name.to_string(), value, note.to_string()]);
    };
    row(
        "nodes",
        stats.nodes.to_string(),
        if stats.bipartite { "no node is both source and destination" } else { "" },
    );
    row("sources", stats.sources.to_string(), "");
    row("destinations", stats.destinations.to_string(), "");
    row("events", stats.events.to_string(), "");
    row("distinct times", stats.distinct_times.to_string(), "");
    row(
        "tied events",
        percent(stats.tied_events as f64 / stats.events.max(1) as f64),
        "share their time with another event",
    );
    row("first time", text(&report.first_time), "");
    row("last time", text(&report.last_time), "");
    row("distinct pairs", stats.distinct_pairs.to_string(), "");
    row("self-loops", stats.self_loops.to_string(), "");
    row("duplicates", stats.duplicate_events.to_string(), "same pair and time as an earlier event");
    row("repeats", percent(stats.repeat_share), "events whose pair occurred before");
    row("replies", percent(stats.reply_share), "events that answer an earlier one");
    row("busiest node", format!("{} events", stats.busiest_node_events), "");
    row("edge features", stats.edge_feature_width.to_string(), "");
    row("node features", stats.node_feature_width.to_string(), "");
    match (stats.parts, stats.surprise, stats.new_nodes_in_test) {
        (Some([train, validation, test]), Some(surprise), Some(new_nodes)) => {
            row(
                "70/15/15 split",
                format!("{train} / {validation} / {test}"),
                "train, validation, test by time",
            );
            row("surprise", percent(surprise), "test pairs never seen in train");
            row("new in test", format!("{new_nodes} nodes"), "never seen in train");
        }
        _ => row("70/15/15 split", "impossible".to_string(), "too few distinct times"),
    }
    say(table.show().trim_end())
}
