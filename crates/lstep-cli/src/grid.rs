//! Running a grid for people: its flags, progress of the whole with the time left, stopping and
//! going on.

use crate::front::CommandLine;
use crate::interrupt::{Stopped, stop_flag};
use crate::progress;
use anyhow::{Context, Result, bail};
use clap::Args;
use lstep::disk::FolderLock;
use lstep::error::printable_line;
use lstep::experiments::paper::stream_in;
use lstep::experiments::{
    Cell, CellState, Comparison, DatasetDigest, Grid, GridData, GridEvent, Jobs, run_cells,
    write_comparison,
};
use lstep::read::part_files;
use lstep::settings::DataConfig;
use lstep::training::RunFolder;
use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How a grid is run.
#[derive(Args)]
#[command(next_help_heading = "Running")]
pub struct Running {
    /// Cells at once, each on its share of the threads; `auto` is as many as threads, while memory
    /// lasts
    #[arg(long, value_name = "N|auto", default_value = "auto", value_parser = jobs)]
    pub jobs: AtOnce,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// How many cells run at once; nothing where the machine decides.
#[derive(Clone, Copy)]
pub struct AtOnce(pub Option<usize>);

fn jobs(text: &str) -> Result<AtOnce, String> {
    match text.parse() {
        _ if text == "auto" => Ok(AtOnce(None)),
        Ok(count) if count > 0 => Ok(AtOnce(Some(count))),
        _ => Err("give a number of cells, at least 1, or auto".into()),
    }
}

/// Seeds of learned models.
#[derive(Debug, Clone, PartialEq)]
pub struct Seeds(pub Vec<u64>);

/// Seeds as `0..4`, which is 0 to 4, or separated by commas.
pub fn seeds(text: &str) -> Result<Seeds, String> {
    let wrong = || "give seeds as 0..4 (0 to 4) or 0,1,2".to_string();
    let number = |text: &str| text.trim().parse::<u32>().map(u64::from).map_err(|_| wrong());
    let mut seeds = Vec::new();
    for part in text.split(',') {
        match part.split_once("..") {
            Some((first, last)) if number(first)? <= number(last)? => {
                seeds.extend(number(first)?..=number(last)?);
            }
            Some(_) => return Err(wrong()),
            None => seeds.push(number(part)?),
        }
    }
    Ok(Seeds(seeds))
}

/// A file of events with where it is for good, so that a grid is gone on with from anywhere. A
/// folder stands for the stream in it.
pub fn lasting(mut data: DataConfig) -> Result<DataConfig> {
    if data.events == Path::new("-") {
        bail!("a grid has to find its events again: give a file, not standard input");
    }
    if data.events.is_dir() {
        match stream_in(&data.events) {
            Some(found) => data.events = found,
            // The parts of one stream stay a folder.
            None => drop(part_files([data.events.as_path()])?),
        }
    }
    for path in [Some(&mut data.events), data.node_features.as_mut()].into_iter().flatten() {
        *path = path.canonicalize().with_context(|| format!("cannot read {}", path.display()))?;
    }
    Ok(data)
}

/// Looks into files of events; those that a grid knew before are not read again.
pub fn digest(files: Vec<DataConfig>, before: Option<&Grid>) -> Result<Vec<GridData>> {
    let mut datasets = Vec::new();
    for data in files {
        let busy = progress::busy(&format!("reading {}", data.events.display()));
        let known =
            before.and_then(|before| before.datasets.iter().find(|known| known.data == data));
        let digest = DatasetDigest::of(&data, known);
        busy.finish_and_clear();
        datasets.push(GridData { digest: digest.context("cannot read the events")?, data });
    }
    Ok(datasets)
}

/// Makes the folder of a grid if there is none, and keeps other writers out of it until the lock is
/// dropped.
pub fn lock(out: &Path) -> Result<FolderLock> {
    if RunFolder::new(out).holds_a_run() {
        bail!(
            "{} holds a single run, whose report would be lost: choose another folder",
            out.display()
        );
    }
    std::fs::create_dir_all(out).with_context(|| format!("cannot make {}", out.display()))?;
    Ok(FolderLock::acquire(out)?)
}

/// Runs what is left of a grid in a folder that is locked, and gathers everything.
///
/// The grid's own files are in `out`, its cells below `runs`.
pub fn run(
    grid: &Grid,
    out: &Path,
    runs: &Path,
    at_once: AtOnce,
    run_epoch: &str,
) -> Result<Comparison> {
    let file = out.join("grid.toml");
    grid.fits(&file)?;
    let cells = grid.cells(runs)?;
    let (mut finished, mut pending) = (Vec::new(), Vec::new());
    for cell in cells {
        match cell.state()? {
            CellState::Finished(result) => finished.push(*result),
            CellState::New | CellState::Begun => pending.push(cell),
        }
    }
    grid.keep(&file)?;
    let of = finished.len() + pending.len();
    let threads = rayon::current_num_threads();
    let jobs = at_once
        .0
        .map_or_else(|| Jobs::auto(pending.len(), threads), |count| Jobs::fixed(count, threads));
    if !pending.is_empty() {
        let at_once = jobs.at_once.min(pending.len());
        let before = if finished.is_empty() {
            String::new()
        } else {
            format!(", {} finished before", finished.len())
        };
        crate::tell(format!(
            "{of} cells{before}, {at_once} at once on {} thread(s) each",
            jobs.threads
        ));
    }
    let display = Display::new(&pending, finished.len());
    let stop = stop_flag()?;
    let mut ran = run_cells(&pending, jobs, &|place, moment| {
        display.take(place, &moment);
        !stop.load(Ordering::Relaxed)
    })?;
    display.bar.finish_and_clear();
    for (cell, text) in ran.failed.iter_mut().zip(display.failures()) {
        cell.error = text;
    }
    finished.extend(ran.finished);
    let comparison = grid.comparison(finished, ran.failed, of);
    if ran.stopped {
        let done = comparison.cells.len();
        write_comparison(out, &comparison)?;
        bail!(Stopped(format!(
            "Stopped and saved: {done} of {of} cells are finished. Go on with: {run_epoch}"
        )));
    }
    Ok(comparison)
}

/// The whole grid on a line, and a line for each cell that ends.
pub struct Display<'a> {
    cells: &'a [Cell],
    before: usize,
    started: Instant,
    bar: indicatif::ProgressBar,
    shares: Mutex<Shares>,
}

/// How much of every cell was there when it was first heard of, and is now.
struct Shares {
    first: Vec<Option<f64>>,
    now: Vec<f64>,
    ended: usize,
    /// What to say of cells that failed.
    failed: BTreeMap<usize, String>,
}

impl<'a> Display<'a> {
    /// A display of cells, after some that are finished already.
    pub fn new(cells: &'a [Cell], before: usize) -> Display<'a> {
        let shares = Shares {
            first: vec![None; cells.len()],
            now: vec![0.0; cells.len()],
            ended: 0,
            failed: BTreeMap::new(),
        };
        let bar = progress::grid();
        Display { cells, before, started: Instant::now(), bar, shares: Mutex::new(shares) }
    }

    /// Shows what happens to a cell.
    pub fn take(&self, place: usize, moment: &GridEvent<'_>) {
        let mut shares = self.shares.lock().unwrap_or_else(PoisonError::into_inner);
        match moment {
            GridEvent::Begun | GridEvent::Waiting => return,
            GridEvent::Share(share) => {
                shares.first[place].get_or_insert(*share);
                shares.now[place] = *share;
            }
            GridEvent::Finished(_) | GridEvent::Failed(_) => {
                if let GridEvent::Failed(error) = moment {
                    shares.failed.insert(place, error.display_with(&CommandLine).to_string());
                }
                shares.first[place].get_or_insert(0.0);
                shares.now[place] = 1.0;
                shares.ended += 1;
            }
        }
        let left = self.left(&shares);
        let (ended, of) = (self.before + shares.ended, self.before + self.cells.len());
        drop(shares);
        let left = left.map_or(String::new(), |left| format!(", about {} left", spoken(left)));
        self.bar.set_prefix(format!("{ended}/{of} cells"));
        let name = printable_line(&self.cells[place].name()).into_owned();
        self.bar.set_message(format!("{name}{left}"));
        let end = match moment {
            GridEvent::Finished(result) => {
                let numbers: Vec<String> = (result.results.iter().take(3))
                    .map(|row| match row.mrr {
                        Some(mrr) => format!("mrr {mrr:.4}"),
                        None => format!("{} ap {:.4}", row.negatives, row.ap),
                    })
                    .collect();
                numbers.join(", ")
            }
            GridEvent::Failed(error) => format!("FAILED: {}", error.display_with(&CommandLine)),
            GridEvent::Begun | GridEvent::Share(_) | GridEvent::Waiting => return,
        };
        let line = format!("[{ended}/{of}] {name}: {end}{left}");
        if std::io::stderr().is_terminal() { self.bar.println(line) } else { crate::tell(line) }
    }

    /// What to say of the cells that failed, in their order.
    pub fn failures(&self) -> Vec<String> {
        let shares = self.shares.lock().unwrap_or_else(PoisonError::into_inner);
        shares.failed.values().cloned().collect()
    }

    /// From the work done since the start, how long the rest takes. Cells that stop early make it
    /// shorter.
    fn left(&self, shares: &Shares) -> Option<Duration> {
        let (mut done, mut rest) = (0.0, 0.0);
        for (place, cell) in self.cells.iter().enumerate() {
            done += cell.work() * (shares.now[place] - shares.first[place].unwrap_or(0.0));
            rest += cell.work() * (1.0 - shares.now[place]);
        }
        let whole = (done + rest).max(f64::MIN_POSITIVE);
        self.bar.set_length(1000);
        self.bar.set_position((1000.0 * done / whole) as u64);
        let known = done / whole > 0.005 && rest > 0.0;
        known.then(|| {
            Duration::from_secs_f64((self.started.elapsed().as_secs_f64() * rest / done).min(1e9))
        })
    }
}

fn spoken(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..120 => format!("{seconds} s"),
        seconds @ 120..7200 => format!("{} min", seconds / 60),
        seconds => format!("{:.1} h", seconds as f64 / 3600.0),
    }
}

/// The grid that a folder holds.
pub fn kept(out: &Path) -> Result<Grid> {
    let path = out.join("grid.toml");
    Grid::read(&path)?.with_context(|| {
        format!("{} is not there: begin a grid with --out {}", path.display(), out.display())
    })
}

/// Where cells are.
pub fn runs(out: &Path) -> PathBuf {
    out.join("runs")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_ranges_with_both_ends_or_lists() {
        assert_eq!(seeds("0..4"), Ok(Seeds(vec![0, 1, 2, 3, 4])));
        assert_eq!(seeds("3, 1,7..8"), Ok(Seeds(vec![3, 1, 7, 8])));
        for text in ["", "4..0", "a", "0..", "-1"] {
            assert!(seeds(text).is_err(), "{text}");
        }
    }

    #[test]
    fn time_left_is_spoken_in_one_unit() {
        let said = [45, 600, 9000].map(|seconds| spoken(Duration::from_secs(seconds)));
        assert_eq!(said, ["45 s", "10 min", "2.5 h"]);
    }
}
