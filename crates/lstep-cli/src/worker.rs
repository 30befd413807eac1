//! A grid that several processes fill, on one machine or many, over a shared folder: one cell, all
//! that are free, the list of cells, and the tables at the end. Which launcher starts the processes
//! is not known here; `launch.rs` writes files for some.

use crate::grid::{self, Display};
use crate::interrupt::{Stopped, stop_flag};
use crate::say;
use crate::table::Table;
use crate::{comparison, launch};
use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use lstep::disk::FolderLock;
use lstep::experiments::{Cell, CellState, Grid, GridEvent, Ran, fill_cells};
use lstep::training::RunFolder;
use serde::Serialize;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// How long a worker waits until another one has written the grid's file.
const PATIENCE: Duration = Duration::from_secs(60);

/// What a process does for a grid that others fill with it.
#[derive(Args)]
#[command(next_help_heading = "Several machines, over a shared folder")]
#[group(multiple = false)]
pub struct Part {
    /// Train one cell, by its number from 0 (--list shows them), and print no tables: for job
    /// arrays
    #[arg(long, value_name = "I")]
    cell: Option<usize>,

    /// Train whatever cells are free, one after the other, until all are finished: what a killed
    /// worker left is taken over. Start as many as you like
    #[arg(long, conflicts_with = "jobs")]
    worker: bool,

    /// Make the tables of what is finished, without training. Exit code 1 if cells are missing
    #[arg(long)]
    collect: bool,

    /// List the cells with their numbers and how far they are
    #[arg(long)]
    list: bool,

    /// Write the grid's file and print what a launcher needs to fill the grid
    #[arg(long, value_name = "LAUNCHER")]
    emit: Option<Launcher>,
}

/// Who starts processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Launcher {
    /// A batch script with a job array
    Slurm,
    /// An indexed Job
    Kubernetes,
    /// A Python script
    Ray,
    /// A script that starts workers on this machine
    Shell,
}

impl Part {
    /// Whether anything but the whole grid is wanted.
    pub fn is_given(&self) -> bool {
        self.cell.is_some() || self.worker || self.collect || self.list || self.emit.is_some()
    }

    /// Does it; tells whether the answer is yes.
    pub fn run(&self, grid: &Grid, out: &Path, json: bool) -> Result<bool> {
        settle(grid, out)?;
        let cells = grid.cells(&grid::runs(out))?;
        if let Some(launcher) = self.emit {
            say(launch::text(launcher, out, &cells)?.trim_end())?;
            return Ok(true);
        }
        if self.list {
            return list(&cells, json);
        }
        if self.collect {
            return collect(grid, &cells, out, json);
        }
        if let Some(place) = self.cell {
            let Some(cell) = cells.get(place) else {
                bail!("--cell is {place}, but the grid has cells 0 to {}", cells.len() - 1);
            };
            // Another process has it: a launcher is to know.
            if let CellState::New | CellState::Begun = cell.state()? {
                drop(RunFolder::new(&cell.folder).lock()?);
            }
            return fill(std::slice::from_ref(cell), out);
        }
        refuse_without_locks(out)?;
        fill(&cells, out)
    }
}

/// Writes the grid's file if there is none. Several workers may come at once; one writes, and all
/// have to want the same.
fn settle(grid: &Grid, out: &Path) -> Result<()> {
    if RunFolder::new(out).holds_a_run() {
        bail!("{} holds a single run: choose another folder", out.display());
    }
    std::fs::create_dir_all(out).with_context(|| format!("cannot make {}", out.display()))?;
    let file = out.join("grid.toml");
    let started = Instant::now();
    loop {
        if let Some(kept) = Grid::read(&file)? {
            if kept == *grid {
                return Ok(());
            }
            let shown = out.display();
            bail!(
                "{shown} holds another grid ({}), and the numbers of its cells are shared: start \
                 every process with the same arguments, or with --resume {shown}; `lstep compare` \
                 without --cell and --worker changes a grid",
                kept.title
            );
        }
        match FolderLock::try_acquire(out)? {
            Some(_writing) if !file.exists() => grid.keep(&file)?,
            None if started.elapsed() > PATIENCE => drop(FolderLock::acquire(out)?),
            Some(_) | None => std::thread::sleep(Duration::from_millis(20)),
        }
    }
}

/// Workers find out by locks what is free.
fn refuse_without_locks(out: &Path) -> Result<()> {
    if FolderLock::try_acquire(out)?.is_some_and(|lock| !lock.keeps_others_out()) {
        bail!(
            "the file system of {} has no locks, so workers cannot tell which cells are free: \
             start one process for each cell with --cell I, or mount it with locks",
            out.display()
        );
    }
    Ok(())
}

/// Runs cells that others may be running, too.
fn fill(cells: &[Cell], out: &Path) -> Result<bool> {
    let display = Display::new(cells, 0);
    let stop = stop_flag()?;
    let mut waits = false;
    let waiting = std::sync::Mutex::new(&mut waits);
    let threads = rayon::current_num_threads();
    let Ran { finished, failed, stopped } = fill_cells(cells, threads, &|place, moment| {
        if let (GridEvent::Waiting, Ok(mut waits)) = (&moment, waiting.lock())
            && !std::mem::replace(&mut **waits, true)
        {
            let name = cells[place].name();
            crate::tell(format!("waiting: another process runs {name} and maybe others"));
        }
        display.take(place, &moment);
        !stop.load(Ordering::Relaxed)
    })?;
    let (done, of) = (finished.len(), cells.len());
    if stopped {
        bail!(Stopped(format!(
            "Stopped and saved: {done} of {of} cells are finished. Go on with the same command"
        )));
    }
    if let Some(error) = display.failures().first() {
        bail!("{} of {of} cells failed; the first: {error}", failed.len());
    }
    crate::tell(format!("{done} of {of} cells are finished; tables: {}", collecting(out)));
    Ok(true)
}

fn collecting(out: &Path) -> String {
    format!("lstep compare --resume {} --collect", launch::quoted(&out.display().to_string()))
}

fn collect(grid: &Grid, cells: &[Cell], out: &Path, json: bool) -> Result<bool> {
    let _writing = FolderLock::acquire(out)?;
    let (mut finished, mut missing) = (Vec::new(), Vec::new());
    for (place, cell) in cells.iter().enumerate() {
        match cell.state()? {
            CellState::Finished(result) => finished.push(*result),
            CellState::New | CellState::Begun => missing.push(format!("{place} ({})", cell.name())),
        }
    }
    let comparison = grid.comparison(finished, Vec::new(), cells.len());
    comparison::tell(&comparison, out, json)?;
    if missing.is_empty() {
        return Ok(true);
    }
    let (count, of) = (missing.len(), cells.len());
    crate::tell(format!("{count} of {of} cells are not finished: {}", missing.join("; ")));
    Ok(false)
}

/// A cell in a list.
#[derive(Serialize)]
struct Row {
    cell: usize,
    dataset: String,
    model: String,
    seed: Option<u64>,
    state: &'static str,
    folder: String,
    memory_bytes: u64,
}

fn list(cells: &[Cell], json: bool) -> Result<bool> {
    let row = |(place, cell): (usize, &Cell)| {
        let state = match cell.state()? {
            CellState::Finished(_) => "finished",
            CellState::Begun => "begun",
            CellState::New => "new",
        };
        Ok(Row {
            cell: place,
            dataset: cell.dataset.clone(),
            model: cell.model.clone(),
            seed: cell.seed,
            state,
            folder: cell.folder.display().to_string(),
            memory_bytes: cell.memory,
        })
    };
    let rows: Vec<Row> = cells.iter().enumerate().map(row).collect::<Result<_>>()?;
    if json {
        say(serde_json::to_string_pretty(&rows)?)?;
        return Ok(true);
    }
    let mut table = Table::new(["cell", "dataset", "model", "seed", "state"]);
    for row in rows {
        let seed = row.seed.map_or("-".to_string(), |seed| seed.to_string());
        let state = row.state.to_string();
        table.row(vec![row.cell.to_string(), row.dataset, row.model, seed, state]);
    }
    say(table.show().trim_end())?;
    Ok(true)
}
