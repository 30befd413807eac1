//! `lstep score`: who is next?

use crate::say;
use crate::table::Table;
use anyhow::Result;
use clap::Args;
use lstep::serving::{Scored, Scorer};
use lstep::training::RunFolder;
use std::path::PathBuf;

/// Score candidates with a trained model.
///
/// The model first observes everything in its own file, and then the events of `--events`, so that
/// it answers from what is known now. Scores are logits: higher is likelier; `probability` is their
/// sigmoid.
#[derive(Args)]
#[command(after_help = "\
Examples:
  lstep score run --source 17 --top 10
  lstep score run --source ann --at 2026-03-04T05:06:07Z --events new.csv
  lstep score run --pairs questions.csv --json")]
pub struct Score {
    /// Folder of a run
    #[arg(value_name = "RUN")]
    run: PathBuf,

    /// Whose next partners to tell
    #[arg(
        long,
        value_name = "ID",
        allow_hyphen_values = true,
        required_unless_present = "pairs",
        conflicts_with = "pairs"
    )]
    source: Option<String>,

    /// At which time, written as in the events [default: just after the last event]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    at: Option<String>,

    /// How many candidates to show
    #[arg(long, value_name = "N", default_value_t = 10)]
    top: usize,

    /// Table of source, destination and time to score; rows come out in the order of their times. A
    /// node that no event names is scored as a newcomer, which is said
    #[arg(long, value_name = "FILE", conflicts_with = "at")]
    pairs: Option<PathBuf>,

    /// More events, which have happened since
    #[arg(long, value_name = "FILE")]
    events: Option<PathBuf>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Score {
    /// Observes, scores, prints.
    pub fn run(&self) -> Result<()> {
        let busy = crate::progress::busy("observing the events");
        let answered = self.answer();
        busy.finish_and_clear();
        let scored = answered?;
        let newcomers = scored.iter().filter(|row| !row.known).count();
        if newcomers > 0 {
            crate::tell(format!(
                "{newcomers} of {} pairs have a node that no event names: it is scored as a newcomer",
                scored.len()
            ));
        }
        if self.json {
            return say(serde_json::to_string_pretty(&scored)?);
        }
        let mut table = Table::new(["source", "destination", "time", "probability", "score"]);
        for row in &scored {
            let probability = format!("{:.4}", row.probability);
            table.row(vec![
                row.source.clone(),
                row.destination.clone(),
                row.time.clone(),
                probability,
                format!("{:.4}", row.score),
            ]);
        }
        say(table.show().trim_end())
    }

    fn answer(&self) -> Result<Vec<Scored>> {
        let scorer = Scorer::open(&RunFolder::new(&self.run), self.events.as_deref())?;
        Ok(match (&self.pairs, &self.source) {
            (Some(pairs), _) => scorer.score_pairs(pairs)?,
            (None, Some(source)) => scorer.top(source, self.at.as_deref(), self.top)?,
            (None, None) => unreachable!("clap asks for one of the two"),
        })
    }
}
