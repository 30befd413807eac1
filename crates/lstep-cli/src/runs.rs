//! `lstep runs`: the runs below a folder, and runs side by side.

use crate::evaluation::share;
use crate::say;
use crate::table::Table;
use anyhow::{Context, Result, bail};
use clap::Args;
use lstep::disk::{REPORT_LIMIT, path_text, read_text};
use lstep::evaluation::{KeptRanks, PairedDifference};
use lstep::results::{EvaluationReport, ResultRow, main_row};
use lstep::settings::{RunConfig, differences};
use lstep::training::RunFolder;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// List the runs below a folder: model, events, numbers.
#[derive(Args)]
#[command(after_help = "\
Examples:
  lstep runs .
  lstep runs grid --json")]
pub struct Runs {
    /// Folder to look in, at any depth
    #[arg(value_name = "FOLDER", default_value = ".")]
    folder: PathBuf,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A run in a list.
#[derive(Debug, Serialize)]
struct Listed {
    #[serde(serialize_with = "path_text::serialize")]
    run: PathBuf,
    model: String,
    protocol: String,
    #[serde(serialize_with = "path_text::serialize")]
    events: PathBuf,
    seed: u64,
    /// Epochs done, and the best of them.
    epochs: Option<u32>,
    best_epoch: Option<u32>,
    stream_sha256: Option<String>,
    updates: usize,
    results: Vec<ResultRow>,
}

impl Runs {
    /// Looks and prints.
    pub fn run(&self) -> Result<()> {
        let mut found = Vec::new();
        find(&self.folder, 0, &mut found)?;
        found.sort();
        if found.is_empty() {
            bail!(
                "{} holds no run at any depth: name a folder that `lstep train` made, or one above",
                self.folder.display()
            );
        }
        let listed = found.iter().map(|path| Listed::read(path)).collect::<Result<Vec<_>>>()?;
        if self.json {
            return say(serde_json::to_string_pretty(&listed)?);
        }
        let columns = ["run", "model", "data", "protocol", "seed", "epochs", "asked", "number"];
        let mut table = Table::new(columns);
        for run in &listed {
            let main = main_row(&run.results);
            let name = run.run.strip_prefix(&self.folder).unwrap_or(&run.run);
            let name = if name.as_os_str().is_empty() { Path::new(".") } else { name };
            let epochs = run.epochs.map_or("-".to_string(), |done| {
                format!("{done}, best {}", run.best_epoch.unwrap_or(0))
            });
            table.row(vec![
                name.display().to_string(),
                run.model.clone(),
                run.stream_sha256.as_deref().map_or("-", |hash| &hash[..hash.len().min(8)]).into(),
                run.protocol.clone(),
                run.seed.to_string(),
                epochs,
                main.map_or("not finished".into(), |row| format!("{} {}", row.part, row.negatives)),
                main.map_or("-".into(), number),
            ]);
        }
        say(table.show().trim_end())?;
        say("data: the first letters of the hash of the events; equal ones are equal events")
    }
}

fn number(row: &ResultRow) -> String {
    let (metric, value) = row.headline();
    format!("{metric} {}", share(value))
}

impl Listed {
    fn read(path: &Path) -> Result<Listed> {
        let folder = RunFolder::new(path);
        let config = folder.config()?;
        let report = match folder.file("report.json").exists() {
            true => Some(report(&folder)?),
            false => None,
        };
        let known = folder.known_stream()?.map(|known| known.sha256);
        let epochs = folder.epochs().unwrap_or_default();
        Ok(Listed {
            run: path.to_path_buf(),
            model: config.model.to_string(),
            protocol: config.protocol.name().to_string(),
            events: config.data.events.clone(),
            seed: config.train.seed,
            epochs: epochs.last().map(|epoch| epoch.epoch),
            best_epoch: epochs.iter().filter(|epoch| epoch.improved).map(|epoch| epoch.epoch).max(),
            stream_sha256: known
                .or_else(|| report.as_ref().and_then(|report| report.stream_sha256.clone())),
            updates: folder.updates()?.len(),
            results: report.map_or(Vec::new(), |report| report.results),
        })
    }
}

fn report(folder: &RunFolder) -> Result<EvaluationReport> {
    let path = folder.file("report.json");
    let text = read_text(&path, REPORT_LIMIT)
        .with_context(|| format!("{} is not finished", folder.path().display()))?;
    Ok(EvaluationReport::from_json(&path, &text)?)
}

/// How many folders deep runs are looked for: a grid has its runs four below.
const DEPTH: usize = 8;

fn find(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) -> Result<()> {
    if RunFolder::new(folder).holds_a_run() {
        found.push(folder.to_path_buf());
        return Ok(());
    }
    if depth == DEPTH {
        return Ok(());
    }
    let entries = std::fs::read_dir(folder)
        .with_context(|| format!("cannot look into {}", folder.display()))?;
    for entry in entries {
        let entry = entry?;
        // Links may lead in circles.
        if entry.file_type()?.is_dir() {
            find(&entry.path(), depth + 1, found)?;
        }
    }
    Ok(())
}

/// Runs side by side, as JSON.
#[derive(Serialize)]
struct SideBySide {
    runs: Vec<String>,
    same_events: bool,
    questions: Vec<Question>,
    settings: Vec<Difference>,
}

#[derive(Serialize)]
struct Question {
    question: String,
    metric: &'static str,
    values: Vec<Option<f64>>,
    /// The interval of each value that holds 95 % of its values over draws of test events.
    intervals: Vec<Option<(f64, f64)>>,
    same_negatives: bool,
    /// Each value minus the first, with the interval of the paired difference, where both were
    /// asked the same questions and are ranked.
    differences: Vec<Option<PairedDifference>>,
}

#[derive(Serialize)]
struct Difference {
    setting: String,
    values: Vec<String>,
}

/// Shows finished runs side by side: their numbers, and the settings in which they differ.
pub fn compare_runs(paths: &[PathBuf], json: bool) -> Result<()> {
    let folders: Vec<RunFolder> = paths.iter().map(RunFolder::new).collect();
    let reports = folders.iter().map(report).collect::<Result<Vec<_>>>()?;
    let configs =
        folders.iter().map(RunFolder::config).collect::<lstep::Result<Vec<RunConfig>>>()?;
    let kept = folders
        .iter()
        .map(|folder| KeptRanks::read(folder.file("ranks.json")))
        .collect::<lstep::Result<Vec<_>>>()?;
    let names: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    let hash = |report: &EvaluationReport| report.stream_sha256.clone();
    let same_events = reports.iter().all(|report| hash(report) == hash(&reports[0]));
    let mut asked: Vec<(String, &'static str)> = Vec::new();
    let question = |row: &ResultRow| {
        (format!("{} {} {}", row.part, row.setting, row.negatives), row.headline().0)
    };
    for row in reports.iter().flat_map(|report| &report.results) {
        if !asked.contains(&question(row)) {
            asked.push(question(row));
        }
    }
    let questions: Vec<Question> = asked
        .into_iter()
        .map(|wanted| {
            let rows: Vec<Option<&ResultRow>> = reports
                .iter()
                .map(|report| report.results.iter().find(|row| question(row) == wanted))
                .collect();
            let kept_of = |place: usize| {
                let hash = &rows[place]?.negatives_sha256;
                kept[place].iter().find(|kept| kept.negatives_sha256 == *hash)
            };
            let intervals = (0..rows.len()).map(|place| kept_of(place)?.interval).collect();
            let differences = (0..rows.len())
                .map(|place| match place {
                    0 => None,
                    _ if !same_events => None,
                    _ => kept_of(place)?.minus(kept_of(0)?),
                })
                .collect();
            let mut hashes = rows.iter().flatten().map(|row| &row.negatives_sha256);
            let first = hashes.next();
            Question {
                values: rows.iter().map(|row| row.map(|row| row.headline().1)).collect(),
                intervals,
                differences,
                same_negatives: hashes.all(|hash| Some(hash) == first),
                metric: wanted.1,
                question: wanted.0,
            }
        })
        .collect();
    let settings: Vec<Difference> = differences(&configs)
        .into_iter()
        .map(|(setting, values)| Difference { setting, values })
        .collect();
    if json {
        let all = SideBySide { runs: names, same_events, questions, settings };
        return say(serde_json::to_string_pretty(&all)?);
    }
    let mut table =
        Table::with_columns(["question".to_string()].into_iter().chain(names.clone()).collect());
    for row in &questions {
        let mark = if row.same_negatives { "" } else { " (other negatives)" };
        let mut cells = vec![format!("{} {}{mark}", row.question, row.metric)];
        cells.extend(row.values.iter().map(|value| value.map_or("-".into(), share)));
        table.row(cells);
        if row.intervals.iter().any(Option::is_some) {
            let shown = |interval: &Option<(f64, f64)>| {
                interval.map_or("-".into(), |(low, high)| format!("{low:.4} to {high:.4}"))
            };
            let about = "  95 % interval".to_string();
            table.row(std::iter::once(about).chain(row.intervals.iter().map(shown)).collect());
        }
        if row.differences.iter().any(Option::is_some) {
            let shown = |found: &Option<PairedDifference>| {
                found.map_or("-".into(), |found| {
                    let PairedDifference { difference, low, high } = found;
                    format!("{difference:+.4} ({low:+.4} to {high:+.4})")
                })
            };
            let about = "  minus the first".to_string();
            table.row(std::iter::once(about).chain(row.differences.iter().map(shown)).collect());
        }
    }
    say(table.show().trim_end())?;
    for row in &questions {
        for (name, found) in names.iter().zip(&row.differences).skip(1) {
            if let Some(found) = found {
                let verdict = found.verdict();
                say(format!("{name} is {verdict} {} ({} {})", names[0], row.question, row.metric))?;
            }
        }
    }
    if !same_events {
        say("These runs are about other events: their numbers cannot be compared")?;
    }
    if !settings.is_empty() {
        let columns = ["setting".to_string()].into_iter().chain(names).collect();
        let mut table = Table::with_columns(columns);
        for row in &settings {
            table.row([row.setting.clone()].into_iter().chain(row.values.clone()).collect());
        }
        say("")?;
        say(table.show().trim_end())?;
    }
    Ok(())
}
