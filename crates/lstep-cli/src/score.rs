//! `lstep score`: who is next?

use crate::export::{self, Exported};
use crate::say;
use crate::table::Table;
use anyhow::Result;
use clap::Args;
use lstep::serving::{Scored, Scorer};
use std::path::PathBuf;

/// Score candidates with a trained model.
///
/// The model has observed everything in its own file, and then observes the events of `--events`,
/// so that it answers from what is known now. An exported model (`lstep export`) answers as its run
/// would, but needs neither the file it was trained on nor the time to observe it. Scores are
/// logits: higher is likelier; `probability` is their sigmoid.
#[derive(Args)]
#[command(after_help = "\
Examples:
  lstep score run --source 17 --top 10
  lstep score run --source ann --at 2026-03-04T05:06:07Z --events new.csv
  lstep score run --pairs questions.csv --json
  lstep score model.lstep --source 17 --top 10
  lstep score model.lstep --events new.csv --save newer.lstep")]
pub struct Score {
    /// Folder of a run, or an exported model
    #[arg(value_name = "RUN|MODEL")]
    run: PathBuf,

    /// Whose next partners to tell
    #[arg(
        long,
        value_name = "ID",
        allow_hyphen_values = true,
        required_unless_present_any = ["pairs", "save"],
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

    /// Write the model with the events of --events to a file, for the next questions
    #[arg(long, value_name = "FILE", requires = "events")]
    save: Option<PathBuf>,

    /// Replace the file of --save if there is one
    #[arg(long, requires = "save")]
    force: bool,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Score {
    /// Observes, scores, prints.
    pub fn run(&self) -> Result<()> {
        let save = self.save.as_ref().map(|path| export::claim(path, self.force));
        let _writing = save.transpose()?;
        let busy = crate::progress::busy("observing the events");
        let answered = self.answer();
        busy.finish_and_clear();
        let Answer { scored, saved } = answered?;
        let Some(scored) = scored else {
            let saved = saved.expect("clap asks for a question or a file to save to");
            return saved.print(self.json);
        };
        if let Some(saved) = saved {
            crate::tell(saved);
        }
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

    fn answer(&self) -> Result<Answer> {
        let mut scorer = Scorer::open(&self.run)?;
        if let Some(events) = &self.events {
            scorer.observe_file(events)?;
        }
        let scored = match (&self.pairs, &self.source) {
            (Some(pairs), _) => Some(scorer.score_pairs(pairs)?),
            (None, Some(source)) => Some(scorer.top(source, self.at.as_deref(), self.top)?),
            (None, None) => None,
        };
        let saved = self.save.as_ref().map(|path| export::write(scorer.bundle(), path));
        Ok(Answer { scored, saved: saved.transpose()? })
    }
}

/// What there is to print.
struct Answer {
    scored: Option<Vec<Scored>>,
    saved: Option<Exported>,
}
