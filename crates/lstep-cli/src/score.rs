//! `lstep score`: who is next?

use crate::export::{self, Exported};
use crate::say;
use crate::table::Table;
use anyhow::{Result, bail};
use clap::{ArgGroup, Args};
use lstep::disk::path_text;
use lstep::event::Side;
use lstep::read::{ColumnData, ColumnType, TableFormat, read_ids, write_table};
use lstep::serving::{Recommended, Scored, Scorer, TopK};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Score candidates with a trained model.
///
/// The model has observed everything in its own file, and then observes the events of `--events`,
/// so that it answers from what is known now. An exported model (`lstep export`) answers as its run
/// would, but needs neither the file it was trained on nor the time to observe it. Higher scores
/// are likelier; only their order counts. A source is no candidate for itself unless it has met
/// itself.
///
/// A run for ranking also has the column `probability`: if the source has an event at the time
/// asked, how likely it is with this destination and no other. It was calibrated on the validation
/// part against all destinations, so those of a list add up to the chance that the list holds the
/// right one. It does not say whether the source acts at all. Other runs have scores only.
#[derive(Args)]
#[command(group = ArgGroup::new("whom").args(["source", "sources", "all"]))]
#[command(after_help = "\
Examples:
  lstep score run --source 17 --top 10
  lstep score run --source 17 --explain
  lstep score run --all --top 10 --out recs.parquet
  lstep score run --sources users.csv --candidates shop.csv --exclude-known --out recs.csv
  lstep score run --source ann --at 2026-03-04T05:06:07Z --events new.csv
  lstep score run --pairs questions.csv --json
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
        required_unless_present_any = ["pairs", "save", "sources", "all"],
        conflicts_with = "pairs"
    )]
    source: Option<String>,

    /// Tell them for every node that has been a source
    #[arg(long, conflicts_with = "pairs", requires = "out")]
    all: bool,

    /// Tell them for the ids of a file: one on each line, or a column of a table. A node that no
    /// event names is answered as a newcomer, which the column `known` says
    #[arg(long, value_name = "FILE", conflicts_with = "pairs", requires = "out")]
    sources: Option<PathBuf>,

    /// Choose among the ids of a file only [default: all that have been a destination]
    #[arg(long, value_name = "FILE", requires = "whom")]
    candidates: Option<PathBuf>,

    /// Leave out partners that a source has met already
    #[arg(long, requires = "whom")]
    exclude_known: bool,

    /// Say why, counted from the events: how often the two have met, how many others have met the
    /// candidate lately
    #[arg(long, requires = "whom")]
    explain: bool,

    /// At which time, written as in the events [default: just after the last event]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    at: Option<String>,

    /// How many candidates to show for each source
    #[arg(long, value_name = "N", default_value_t = 10)]
    top: usize,

    /// Table of source, destination and time to score; rows come out in the order of their times. A
    /// node that no event names is scored as a newcomer, which is said
    #[arg(long, value_name = "FILE", conflicts_with = "at")]
    pairs: Option<PathBuf>,

    /// Write the answers to a file: .csv, .tsv, .jsonl (also .gz or .zst) or .parquet
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,

    /// More events, which have happened since
    #[arg(long, value_name = "FILE")]
    events: Option<PathBuf>,

    /// Write the model with the events of --events to a file, for the next questions
    #[arg(long, value_name = "FILE", requires = "events")]
    save: Option<PathBuf>,

    /// Replace the files of --save and --out if there are any
    #[arg(long)]
    force: bool,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Score {
    /// Observes, scores, prints.
    pub fn run(&self) -> Result<()> {
        if self.force && self.save.is_none() && self.out.is_none() {
            bail!("--force has no meaning without --out or --save: leave it out");
        }
        if let Some(out) = &self.out {
            TableFormat::of_path(out)?;
        }
        let claimed = [&self.save, &self.out].into_iter().flatten();
        let _writing =
            claimed.map(|path| export::claim(path, self.force)).collect::<Result<Vec<_>>>()?;
        let busy = crate::progress::busy("observing the events");
        let opened = self.open();
        busy.finish_and_clear();
        let (scorer, saved) = opened?;
        if self.source.is_none() && self.sources.is_none() && !self.all && self.pairs.is_none() {
            let saved = saved.expect("clap asks for a question or a file to save to");
            return saved.print(self.json);
        }
        if let Some(saved) = saved {
            crate::tell(saved);
        }
        match &self.out {
            Some(out) => self.write(&scorer, out),
            None => self.print(&scorer),
        }
    }

    /// The model after everything that it is to know, and what was saved of it.
    fn open(&self) -> Result<(Scorer, Option<Exported>)> {
        let mut scorer = Scorer::open(&self.run)?;
        if let Some(events) = &self.events {
            scorer.observe_file(events)?;
        }
        let saved = self.save.as_ref().map(|path| export::write(scorer.bundle(), path));
        Ok((scorer, saved.transpose()?))
    }

    /// The question, with the ids of its files.
    fn wanted(&self, scorer: &Scorer) -> Result<TopK> {
        let data = &scorer.bundle().about().settings.data;
        let ids = |path: &PathBuf, side| {
            let named = if side == Side::Source { &data.src } else { &data.dst };
            read_ids(path, side, named.as_deref())
        };
        let listed = self.sources.as_ref().map(|path| ids(path, Side::Source)).transpose()?;
        let candidates = self.candidates.as_ref();
        Ok(TopK {
            k: self.top,
            sources: listed.or_else(|| self.source.as_ref().map(|source| vec![source.clone()])),
            candidates: candidates.map(|path| ids(path, Side::Destination)).transpose()?,
            at: self.at.clone(),
            exclude_known: self.exclude_known,
            explain: self.explain,
        })
    }

    fn answers(&self, scorer: &Scorer) -> Result<Vec<Scored>> {
        if let Some(pairs) = &self.pairs {
            return Ok(scorer.score_pairs(pairs)?);
        }
        // A name on the command line that no event has is a slip of the pen.
        if let Some(source) = &self.source
            && scorer.bundle().names().find(source, Side::Source).is_none()
        {
            return Err(lstep::Error::UnknownNode { id: source.clone() }.into());
        }
        Ok(scorer.top_scored(&self.wanted(scorer)?)?)
    }

    /// Prints the answers.
    fn print(&self, scorer: &Scorer) -> Result<()> {
        let scored = self.answers(scorer)?;
        say_newcomers(&scored);
        if self.json {
            return say(serde_json::to_string_pretty(&scored)?);
        }
        let mut columns = vec!["source", "destination", "time", "score"];
        let calibrated = scored.iter().any(|row| row.probability.is_some());
        columns.extend(calibrated.then_some("probability"));
        columns.extend(self.explain.then_some("why"));
        let mut table = Table::with_columns(columns.into_iter().map(String::from).collect());
        for row in &scored {
            let mut cells = vec![
                row.source.clone(),
                row.destination.clone(),
                row.time.clone(),
                shown(row.score),
            ];
            cells.extend(row.probability.map(|said| format!("{said:.4}")));
            cells.extend(row.why.as_ref().map(|why| why.words.clone()));
            table.row(cells);
        }
        say(table.show().trim_end())
    }

    /// Writes the answers to a file and prints what was written.
    fn write(&self, scorer: &Scorer, out: &Path) -> Result<()> {
        let began = Instant::now();
        if self.pairs.is_some() || self.source.is_some() {
            let scored = self.answers(scorer)?;
            say_newcomers(&scored);
            let rows = write_scored(out, &scored)?;
            let written = Written {
                file: out.into(),
                rows,
                answers: None,
                seconds: seconds(began),
                rate: None,
            };
            return written.print(self.json);
        }
        let recommender = scorer.recommender(&self.wanted(scorer)?)?;
        let bar = crate::progress::sources(recommender.sources().len());
        let answers = recommender.write(out, |done| {
            bar.set_position(done as u64);
            Ok(())
        });
        bar.finish_and_clear();
        let answers = answers?;
        let seconds = seconds(began);
        let rate = (seconds > 0.0).then(|| answers.pairs as f64 / seconds);
        let rows = answers.rows;
        Written { file: out.into(), rows, answers: Some(answers), seconds, rate }.print(self.json)
    }
}

/// Four digits behind the point, unless the score is a count of many digits.
fn shown(score: f64) -> String {
    if score.abs() < 1e6 { format!("{score:.4}") } else { format!("{score:.6e}") }
}

fn seconds(began: Instant) -> f64 {
    began.elapsed().as_secs_f64()
}

fn say_newcomers(scored: &[Scored]) {
    let newcomers = scored.iter().filter(|row| !row.known).count();
    if newcomers > 0 {
        crate::tell(format!(
            "{newcomers} of {} pairs have a node that no event names: it is scored as a newcomer",
            scored.len()
        ));
    }
}

/// Scored pairs as a table.
fn write_scored(path: &Path, scored: &[Scored]) -> Result<u64> {
    let mut columns = vec![
        ("source", ColumnType::Text),
        ("destination", ColumnType::Text),
        ("time", ColumnType::Text),
        ("score", ColumnType::Double),
    ];
    let calibrated = scored.iter().any(|row| row.probability.is_some());
    columns.extend(calibrated.then_some(("probability", ColumnType::Double)));
    columns.push(("known", ColumnType::Boolean));
    let explained = scored.iter().any(|row| row.why.is_some());
    columns.extend(explained.then_some(("why", ColumnType::Text)));
    let texts = |cell: fn(&Scored) -> &String| {
        ColumnData::Texts(scored.iter().map(cell).cloned().collect())
    };
    let rows = write_table(path, &columns, |table| {
        let mut cells = vec![
            texts(|row| &row.source),
            texts(|row| &row.destination),
            texts(|row| &row.time),
            ColumnData::Doubles(scored.iter().map(|row| row.score).collect()),
        ];
        if calibrated {
            let said = scored.iter().filter_map(|row| row.probability);
            cells.push(ColumnData::Doubles(said.collect()));
        }
        cells.push(ColumnData::Booleans(scored.iter().map(|row| row.known).collect()));
        if explained {
            let why =
                |row: &Scored| row.why.as_ref().map_or(String::new(), |why| why.words.clone());
            cells.push(ColumnData::Texts(scored.iter().map(why).collect()));
        }
        table.write(cells)
    })?;
    Ok(rows)
}

/// A file of answers.
#[derive(Debug, Serialize)]
struct Written {
    #[serde(serialize_with = "path_text::serialize")]
    file: PathBuf,
    rows: u64,
    #[serde(flatten)]
    answers: Option<Recommended>,
    seconds: f64,
    #[serde(rename = "pairs_per_second")]
    rate: Option<f64>,
}

impl Written {
    fn print(&self, json: bool) -> Result<()> {
        if json {
            return say(serde_json::to_string_pretty(self)?);
        }
        let (file, rows, seconds) = (self.file.display(), self.rows, self.seconds);
        let Some(answers) = &self.answers else {
            return say(format!("{file}: {rows} rows, {seconds:.1} s"));
        };
        let Recommended { sources, candidates, new_sources, without_any, at, .. } = answers;
        let rate = self.rate.unwrap_or(0.0) / 1e6;
        say(format!(
            "{file}: {rows} rows for {sources} sources among {candidates} candidates at {at}, \
             {seconds:.1} s, {rate:.2} million pairs/s"
        ))?;
        if *new_sources > 0 {
            crate::tell(format!(
                "{new_sources} of {sources} sources are named by no event: they are answered as \
                 newcomers, `known` is false"
            ));
        }
        if *without_any > 0 {
            crate::tell(format!("{without_any} of {sources} sources have no candidate left"));
        }
        Ok(())
    }
}
