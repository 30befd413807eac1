//! Cells side by side: as many at once as cores and memory allow, each in a pool of threads of its
//! own.
//!
//! No number depends on how many run at once. A cell that fails does not stop the others.

use super::memory::available;
use crate::disk::FolderLock;
use crate::error::{Error, Remedy, Result};
use crate::experiments::{Cell, CellRun};
use crate::experiments::{CellResult, FailedCell};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How many cells run at once, and on how many threads each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Jobs {
    /// Cells at once.
    pub at_once: usize,
    /// Threads of each.
    pub threads: usize,
    /// Bytes that all of them together may take; one cell runs whatever it takes.
    pub memory: Option<u64>,
}

impl Jobs {
    /// As many cells as cores, as long as there are so many and memory lasts.
    pub fn auto(cells: usize, cores: usize) -> Jobs {
        let at_once = cores.min(cells).max(1);
        Jobs { at_once, threads: (cores / at_once).max(1), memory: available() }
    }

    /// So many cells at once, whatever memory there is.
    pub fn fixed(at_once: usize, cores: usize) -> Jobs {
        Jobs { at_once, threads: (cores / at_once).max(1), memory: None }
    }
}

/// What a grid tells while it runs.
#[derive(Debug)]
pub enum GridEvent<'a> {
    /// A cell begins or goes on.
    Begun,
    /// This share of a cell is done.
    Share(f64),
    /// A cell is finished.
    Finished(&'a CellResult),
    /// A cell has ended with an error.
    Failed(&'a Error),
    /// A worker waits, because another process runs this cell.
    Waiting,
}

/// Gets told the number of a cell and what happens to it; says whether to go on.
pub type GridWatch<'a> = dyn Fn(usize, GridEvent<'_>) -> bool + Sync + 'a;

/// What came of a grid.
#[derive(Debug, Default)]
pub struct Ran {
    /// Finished cells, in their order.
    pub finished: Vec<CellResult>,
    /// Failed cells, in their order.
    pub failed: Vec<FailedCell>,
    /// Whether it was stopped before the end.
    pub stopped: bool,
}

/// Runs cells until all are finished or failed, or `watch` says to stop.
pub fn run_cells(cells: &[Cell], jobs: Jobs, watch: &GridWatch<'_>) -> Result<Ran> {
    let queue = Queue::new(cells, jobs.memory);
    let pools: Result<Vec<rayon::ThreadPool>> =
        (0..jobs.at_once.max(1)).map(|_| pool(jobs.threads)).collect();
    std::thread::scope(|scope| {
        for pool in pools? {
            let queue = &queue;
            scope.spawn(move || {
                while let Some(taken) = queue.take() {
                    let (place, cell) = (taken.place, &cells[taken.place]);
                    let outcome = match run_cell(cell, place, &pool, watch) {
                        Outcome::Busy => {
                            let error = FolderLock::busy(&cell.folder);
                            let run_epoch = watch(place, GridEvent::Failed(&error));
                            Outcome::Failed(error.to_string(), run_epoch)
                        }
                        outcome => outcome,
                    };
                    queue.done(place, outcome);
                }
            });
        }
        Ok::<(), Error>(())
    })?;
    Ok(queue.ran())
}

/// How long a worker waits before it looks again at cells that others run.
const PAUSE: Duration = Duration::from_millis(500);

/// Runs cells one after the other beside other processes that do the same: whatever is free, until
/// all cells are finished or have failed here, or `watch` says to stop. What an ended process left
/// of a cell is gone on with.
///
/// # Errors
///
/// If there are no locks, which alone keep two processes from training one cell.
pub fn fill_cells(cells: &[Cell], threads: usize, watch: &GridWatch<'_>) -> Result<Ran> {
    let pool = pool(threads)?;
    let queue = Queue::new(cells, None);
    let mut left: Vec<usize> = (0..cells.len()).collect();
    while !left.is_empty() {
        let mut busy = Vec::new();
        for place in left {
            match run_cell(&cells[place], place, &pool, watch) {
                Outcome::Busy => busy.push(place),
                ended => queue.done(place, ended),
            }
            if queue.lock().stopped {
                return Ok(queue.ran());
            }
        }
        if let Some(&first) = busy.first() {
            if !watch(first, GridEvent::Waiting) {
                return Ok(queue.ran());
            }
            std::thread::sleep(PAUSE);
        }
        left = busy;
    }
    Ok(queue.ran())
}

fn pool(threads: usize) -> Result<rayon::ThreadPool> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    pool.map_err(|error| Error::refused("threads", threads, error.to_string(), Remedy::FewerJobs))
}

/// Runs a cell in a pool, and tells its end.
fn run_cell(cell: &Cell, place: usize, pool: &rayon::ThreadPool, watch: &GridWatch<'_>) -> Outcome {
    if !watch(place, GridEvent::Begun) {
        return Outcome::Stopped;
    }
    let share = |share| watch(place, GridEvent::Share(share));
    match lstep_tensor::awake_in(pool, || cell.take(&share)) {
        Ok(CellRun::Finished(result)) => {
            let run_epoch = watch(place, GridEvent::Finished(&result));
            Outcome::Finished(result, run_epoch)
        }
        Ok(CellRun::Stopped) => Outcome::Stopped,
        Ok(CellRun::Busy) => Outcome::Busy,
        Err(error) => {
            let run_epoch = watch(place, GridEvent::Failed(&error));
            Outcome::Failed(error.to_string(), run_epoch)
        }
    }
}

/// How a cell ended, and whether others may begin.
enum Outcome {
    Finished(Box<CellResult>, bool),
    Failed(String, bool),
    Stopped,
    /// Another process runs it.
    Busy,
}

/// Cells that wait, cells that run, and the memory they take.
struct Queue<'a> {
    cells: &'a [Cell],
    memory: Option<u64>,
    inner: Mutex<Inner>,
    freed: Condvar,
}

#[derive(Default)]
struct Inner {
    waiting: Vec<usize>,
    running: usize,
    taken: u64,
    stopped: bool,
    finished: Vec<(usize, CellResult)>,
    failed: Vec<(usize, FailedCell)>,
}

/// A cell that runs; its memory is free again when this goes, also if the cell panics.
struct Taken<'q, 'a> {
    queue: &'q Queue<'a>,
    place: usize,
}

impl Drop for Taken<'_, '_> {
    fn drop(&mut self) {
        let mut inner = self.queue.lock();
        inner.running -= 1;
        inner.taken -= self.queue.cells[self.place].memory;
        drop(inner);
        self.queue.freed.notify_all();
    }
}

impl<'a> Queue<'a> {
    fn new(cells: &'a [Cell], memory: Option<u64>) -> Queue<'a> {
        let inner = Inner { waiting: (0..cells.len()).collect(), ..Inner::default() };
        Queue { cells, memory, inner: Mutex::new(inner), freed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The first waiting cell that fits into memory beside those that run; waits for one to end if
    /// none does.
    fn take<'q>(&'q self) -> Option<Taken<'q, 'a>> {
        let mut inner = self.lock();
        loop {
            if inner.stopped || inner.waiting.is_empty() {
                return None;
            }
            let fits = |place: &usize| {
                self.memory.is_none_or(|memory| inner.taken + self.cells[*place].memory <= memory)
            };
            let next =
                if inner.running == 0 { Some(0) } else { inner.waiting.iter().position(fits) };
            if let Some(next) = next {
                let place = inner.waiting.remove(next);
                inner.running += 1;
                inner.taken += self.cells[place].memory;
                return Some(Taken { queue: self, place });
            }
            inner = self.freed.wait(inner).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn done(&self, place: usize, outcome: Outcome) {
        let mut inner = self.lock();
        match outcome {
            Outcome::Finished(result, run_epoch) => {
                inner.finished.push((place, *result));
                inner.stopped |= !run_epoch;
            }
            Outcome::Failed(error, run_epoch) => {
                let Cell { dataset, model, seed, .. } = &self.cells[place];
                let failed = FailedCell {
                    dataset: dataset.clone(),
                    model: model.clone(),
                    seed: *seed,
                    error,
                };
                inner.failed.push((place, failed));
                inner.stopped |= !run_epoch;
            }
            Outcome::Stopped | Outcome::Busy => inner.stopped = true,
        }
    }

    fn ran(self) -> Ran {
        let mut inner = self.inner.into_inner().unwrap_or_else(PoisonError::into_inner);
        inner.finished.sort_by_key(|done| done.0);
        inner.failed.sort_by_key(|done| done.0);
        let complete = inner.finished.len() + inner.failed.len() == self.cells.len();
        Ran {
            finished: inner.finished.into_iter().map(|done| done.1).collect(),
            failed: inner.failed.into_iter().map(|done| done.1).collect(),
            stopped: !complete,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::EvalScope;
    use crate::settings::{DataConfig, RunConfig};

    fn cell(memory: u64) -> Cell {
        Cell {
            dataset: "d".into(),
            model: "m".into(),
            seed: Some(0),
            config: RunConfig::builder(DataConfig::default()).build().expect("defaults"),
            asked: EvalScope { parts: vec![], settings: vec![], strategies: vec![] },
            folder: "folder-that-is-not-there".into(),
            below: "d".into(),
            memory,
            events: 1,
            sha256: String::new(),
            counting: None,
        }
    }

    #[test]
    fn a_cell_that_does_not_fit_waits_and_a_smaller_one_goes_before_it() {
        let cells = [cell(60), cell(60), cell(30), cell(1000)];
        let queue = Queue::new(&cells, Some(100));
        let first = queue.take().expect("the first");
        let small = queue.take().expect("the one that fits beside it");
        assert_eq!((first.place, small.place), (0, 2));
        drop(first);
        let second = queue.take().expect("there is room again");
        assert_eq!(second.place, 1);
        drop((small, second));
        assert_eq!(queue.take().expect("alone it runs whatever it takes").place, 3);
    }

    #[test]
    fn cores_are_shared_between_as_many_cells_as_there_are() {
        let Jobs { at_once, threads, .. } = Jobs::auto(3, 8);
        assert_eq!((at_once, threads), (3, 2));
        assert_eq!(Jobs::auto(40, 2).at_once, 2);
        assert_eq!(Jobs::fixed(4, 2), Jobs { at_once: 4, threads: 1, memory: None });
    }

    #[test]
    fn a_cell_that_fails_is_listed_and_the_others_go_on() {
        let cells = [cell(1), cell(1)];
        let ran = run_cells(&cells, Jobs::fixed(2, 1), &|_, _| true).expect("small pools");
        assert_eq!((ran.finished.len(), ran.failed.len(), ran.stopped), (0, 2, false));
        assert!(!ran.failed[0].error.is_empty());
    }

    #[test]
    fn who_says_stop_is_obeyed_at_once() {
        let cells = [cell(1), cell(1)];
        let ran = run_cells(&cells, Jobs::fixed(1, 1), &|_, _| false).expect("small pools");
        assert!(ran.stopped && ran.failed.is_empty(), "{ran:?}");
    }
}
