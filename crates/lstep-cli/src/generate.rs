//! `lstep generate`: a synthetic stream with planted habits.

use crate::say;
use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use lstep::data::write_tgb;
use lstep::read::synthetic::{SyntheticConfig, generate};
use lstep::read::{check_ending, write_events};
use std::path::PathBuf;

/// Make a synthetic stream with planted habits.
///
/// Sources repeat recent partners; new partners come from their own community and its popular
/// members; popularity drifts; some nodes meet a favourite partner at a fixed period; some arrive
/// late. Every one of these can be switched off.
#[derive(Args)]
#[command(after_help = "\
Examples:
  lstep generate sample.csv
  lstep generate big.csv.zst --nodes 640000 --events 20000000
  lstep generate plain.parquet --repeat 0 --habits 0 --communities 1 --skew 1 --drift none
  lstep generate tgbl-sample_edgelist.csv --layout tgb --sources 800 --per-event 100")]
pub struct Generate {
    /// Where to write: .csv, .tsv or .parquet; .csv.gz and .csv.zst are compressed
    #[arg(value_name = "OUT")]
    out: PathBuf,

    /// Decides all that is left to chance
    #[arg(long, default_value_t = defaults().seed)]
    seed: u64,

    /// How many nodes there can be
    #[arg(long, default_value_t = defaults().nodes)]
    nodes: u32,

    /// How many of them only act, the others being only acted upon; without it all do both
    #[arg(long)]
    sources: Option<u32>,

    /// How many events
    #[arg(long, default_value_t = defaults().events)]
    events: u32,

    /// Seconds from the first to about the last event
    #[arg(long, default_value_t = defaults().span)]
    span: u64,

    /// Probability that an event repeats one of the source's last 8 partners
    #[arg(long, default_value_t = defaults().repeat)]
    repeat: f64,

    /// Probability that a repeat takes the latest partner, else the one before with the same
    /// probability, and so on
    #[arg(long, default_value_t = defaults().recency)]
    recency: f64,

    /// Communities; 1 switches them off
    #[arg(long, default_value_t = defaults().communities)]
    communities: u32,

    /// Probability that a new partner comes from the source's own community
    #[arg(long, default_value_t = defaults().within)]
    within: f64,

    /// How uneven activity and popularity are; 1 is even
    #[arg(long, default_value_t = defaults().skew)]
    skew: f64,

    /// Seconds in which popularity moves once through a community, or `none` [default: 20 days]
    #[arg(long, value_parser = drift)]
    drift: Option<Drift>,

    /// Share of sources with a favourite partner
    #[arg(long, default_value_t = defaults().habits)]
    habits: f64,

    /// Seconds between two meetings with the favourite partner
    #[arg(long, default_value_t = defaults().habit_period)]
    habit_period: u64,

    /// Share of nodes that arrive after the beginning
    #[arg(long, default_value_t = defaults().late)]
    late: f64,

    /// Numbers that each event carries
    #[arg(long, default_value_t = defaults().features)]
    features: u32,

    /// The form of the files; `tgb` needs --sources and a name such as tgbl-sample_edgelist.csv
    #[arg(long, value_enum, default_value_t = Form::Table)]
    layout: Form,

    /// Negatives for each event of validation and test, with `--layout tgb` [default: 100]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    per_event: Option<u32>,

    /// Replace the file if there is one
    #[arg(long)]
    force: bool,

    /// Print what was written as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Form {
    /// CSV, TSV or Parquet, as the name says
    Table,
    /// The Temporal Graph Benchmark's: an edge list like tgbl-wiki's, and pickles with negatives
    /// for validation and test
    Tgb,
}

/// Seconds of a drift, or that there is none.
#[derive(Clone, Copy)]
struct Drift(Option<u64>);

fn drift(text: &str) -> Result<Drift, String> {
    match text {
        "none" => Ok(Drift(None)),
        _ => text
            .parse()
            .map(|seconds| Drift(Some(seconds)))
            .map_err(|_| "give seconds, or `none`".to_string()),
    }
}

fn defaults() -> SyntheticConfig {
    SyntheticConfig::default()
}

impl Generate {
    /// Makes and writes the stream.
    pub fn run(&self) -> Result<()> {
        let config = self.config();
        if self.per_event.is_some() && self.layout != Form::Tgb {
            bail!("--per-event has no meaning here: it belongs to --layout tgb");
        }
        let _writing = crate::export::claim(&self.out, self.force)?;
        check_ending(&self.out)?;
        let busy = crate::progress::busy(&format!("making {} events", config.events));
        let written = generate(&config).and_then(|dataset| {
            let files = match self.layout {
                Form::Table => write_events(&self.out, &dataset).map(|()| vec![self.out.clone()]),
                Form::Tgb => {
                    write_tgb(&self.out, &dataset, self.per_event.map(|count| count as usize))
                }
            };
            Ok((dataset.names.len(), dataset.events.len(), files?))
        });
        busy.finish_and_clear();
        let (nodes, events, files) = written.context("cannot generate the stream")?;
        if self.json {
            let lossy = |path: &PathBuf| path.to_string_lossy().into_owned();
            let (out, files) = (lossy(&self.out), files.iter().map(lossy).collect::<Vec<_>>());
            let written = serde_json::json!({ "out": out, "files": files, "nodes": nodes, "events": events, "settings": config });
            return say(serde_json::to_string_pretty(&written)?);
        }
        let files: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
        say(format!("{}: {nodes} nodes, {events} events, seed {}", files.join(", "), config.seed))
    }

    fn config(&self) -> SyntheticConfig {
        SyntheticConfig {
            seed: self.seed,
            nodes: self.nodes,
            sources: self.sources,
            events: self.events,
            span: self.span,
            repeat: self.repeat,
            recency: self.recency,
            communities: self.communities,
            within: self.within,
            skew: self.skew,
            drift: self.drift.map_or(defaults().drift, |drift| drift.0),
            habits: self.habits,
            habit_period: self.habit_period,
            late: self.late,
            features: self.features,
        }
    }
}
