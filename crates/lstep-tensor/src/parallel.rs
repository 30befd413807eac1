//! Work split into chunks whose size never depends on the number of threads.
//!
//! A reduction over fixed chunks, merged in order, gives the same bits on any number of threads.
//! Small work stays on the calling thread. `rayon`'s parallel iterators over slices run on `join`,
//! which allocates nothing inside a pool; a call from outside a pool passes through the pool's
//! queue, which allocates a block now and then. Run whole steps inside
//! [`rayon::ThreadPool::install`] to avoid both that and the hand-over.

use rayon::prelude::*;
use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::matrix::MatrixMut;

/// Below this many scalar operations a second thread costs more than it saves.
const WORTH_A_THREAD: usize = 64 * 1024;

/// Runs `work` on a thread of the pool while the other threads stay awake for its parallel parts.
///
/// A step is some eighty operations of a few dozen microseconds. A thread that falls asleep between
/// two of them takes as long to wake as the next one lasts, and with sleeping threads two cores
/// were hardly faster than one. Threads that find nothing to do give way to other programs, and
/// after a while do sleep; work within `work` that comes here again calls them back.
pub fn awake<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    if rayon::current_thread_index().is_none() {
        return rayon::scope(|_| keep_awake(work));
    }
    let _engaged = Engaged::new();
    HELP.with_borrow(|help| help.as_ref().map(Help::call));
    work()
}

/// Runs `work` in a pool of its own as [`awake`] does in the common one.
pub fn awake_in<T: Send>(pool: &rayon::ThreadPool, work: impl FnOnce() -> T + Send) -> T {
    pool.install(|| keep_awake(work))
}

fn keep_awake<T>(work: impl FnOnce() -> T) -> T {
    let _engaged = Engaged::new();
    let help = Help { home: rayon::current_thread_index(), ..Help::default() };
    help.call();
    let before = HELP.replace(Some(help.clone()));
    // Also when `work` panics: the others would wait for it.
    let _ending = Ending { help, before };
    work()
}

/// The threads that are asked to stay awake for somebody's work.
#[derive(Clone, Default)]
struct Help {
    /// The thread that does the work.
    home: Option<usize>,
    done: Arc<AtomicBool>,
    /// How many have been called and not left.
    helpers: Arc<AtomicUsize>,
}

impl Help {
    /// Calls all threads, unless some are there.
    fn call(&self) {
        let others = rayon::current_num_threads() - 1;
        if others == 0 || self.helpers.load(Ordering::Acquire) > 0 {
            return;
        }
        self.helpers.store(others, Ordering::Release);
        let help = self.clone();
        rayon::spawn_broadcast(move |place| {
            if help.home != Some(place.index()) {
                help_until(&help.done);
                help.helpers.fetch_sub(1, Ordering::AcqRel);
            }
        });
    }
}

/// Says that it is done when it goes.
struct Ending {
    help: Help,
    before: Option<Help>,
}

impl Drop for Ending {
    fn drop(&mut self) {
        self.help.done.store(true, Ordering::Release);
        HELP.set(self.before.take());
    }
}

thread_local! {
    /// How often this thread is at work for somebody who keeps threads awake.
    static ENGAGED: Cell<u32> = const { Cell::new(0) };
    /// Who helps this thread with its work.
    static HELP: RefCell<Option<Help>> = const { RefCell::new(None) };
}

/// The thread is at work as long as this lives.
struct Engaged;

impl Engaged {
    fn new() -> Engaged {
        ENGAGED.set(ENGAGED.get() + 1);
        Engaged
    }
}

impl Drop for Engaged {
    fn drop(&mut self) {
        ENGAGED.set(ENGAGED.get() - 1);
    }
}

/// Does what there is to do until the end, or until there has been nothing for a while.
///
/// A thread may come here while it waits for a part of its own work, which cannot end before it is
/// back: one that is at work already does not stay, and none stays where nothing is left to do.
/// Threads that waited for one another's end would wait for ever.
fn help_until(done: &AtomicBool) {
    if ENGAGED.get() > 0 {
        return;
    }
    let _engaged = Engaged::new();
    let (mut idle, mut since) = (0, None);
    while !done.load(Ordering::Acquire) {
        match rayon::yield_now() {
            Some(rayon::Yield::Executed) => (idle, since) = (0, None),
            _ if idle < IDLE => {
                idle += 1;
                std::hint::spin_loop();
            }
            _ if since.get_or_insert_with(Instant::now).elapsed() > PATIENCE => return,
            _ => std::thread::yield_now(),
        }
    }
}

/// Rounds without work after which a waiting thread lets other programs run.
const IDLE: u32 = 2_000;

/// How long a thread then waits for more before it may fall asleep.
const PATIENCE: Duration = Duration::from_millis(1);

/// Runs `work` with operations that stay on this thread: for parts of something larger that are
/// shared between threads themselves.
pub fn alone<T>(work: impl FnOnce() -> T) -> T {
    struct Alone;
    impl Drop for Alone {
        fn drop(&mut self) {
            ALONE.set(ALONE.get() - 1);
        }
    }
    ALONE.set(ALONE.get() + 1);
    let _alone = Alone;
    work()
}

thread_local! {
    /// How often this thread has been asked to stay alone.
    static ALONE: Cell<u32> = const { Cell::new(0) };
}

/// Whether `work` scalar operations should be shared between threads.
pub(crate) fn is_worth(work: usize) -> bool {
    work >= WORTH_A_THREAD && ALONE.get() == 0 && rayon::current_num_threads() > 1
}

/// Both, at the same time unless this thread is alone.
pub(crate) fn join<A: Send, B: Send>(
    a: impl FnOnce() -> A + Send,
    b: impl FnOnce() -> B + Send,
) -> (A, B) {
    if ALONE.get() == 0 { rayon::join(a, b) } else { (a(), b()) }
}

/// Calls `task(first_row, rows)` on consecutive chunks of `chunk` rows of `out`.
pub(crate) fn rows(
    out: MatrixMut<'_>,
    chunk: usize,
    work: usize,
    task: impl Fn(usize, MatrixMut<'_>) + Sync + Send,
) {
    let MatrixMut { data, rows, cols, stride } = out;
    if rows == 0 || cols == 0 {
        return;
    }
    let data = &mut data[..(rows - 1) * stride + cols];
    let run = |(index, part): (usize, &mut [f32])| {
        let first = index * chunk;
        task(first, MatrixMut { data: part, rows: chunk.min(rows - first), cols, stride });
    };
    if is_worth(work) && rows > chunk {
        data.par_chunks_mut(chunk * stride).enumerate().with_max_len(1).for_each(run);
    } else {
        data.chunks_mut(chunk * stride).enumerate().for_each(run);
    }
}

/// Calls `task(first_row, rows, rows beside them)` on consecutive chunks of `chunk` rows of `out`
/// and the same rows of `beside`, which may have no columns at all.
pub(crate) fn rows_beside(
    out: MatrixMut<'_>,
    beside: MatrixMut<'_>,
    chunk: usize,
    work: usize,
    task: impl Fn(usize, MatrixMut<'_>, MatrixMut<'_>) + Sync + Send,
) {
    if beside.cols == 0 {
        rows(out, chunk, work, |first, part| {
            let none = MatrixMut::new(&mut [], part.rows, 0);
            task(first, part, none);
        });
        return;
    }
    assert_eq!(out.rows, beside.rows, "as many rows beside");
    let MatrixMut { data, rows, cols, stride } = out;
    if rows == 0 || cols == 0 {
        return;
    }
    let (width, beside_stride) = (beside.cols, beside.stride);
    let data = &mut data[..(rows - 1) * stride + cols];
    let beside = &mut beside.data[..(rows - 1) * beside_stride + width];
    let run = |(index, (part, beside)): (usize, (&mut [f32], &mut [f32]))| {
        let first = index * chunk;
        let rows = chunk.min(rows - first);
        let part = MatrixMut { data: part, rows, cols, stride };
        task(first, part, MatrixMut { data: beside, rows, cols: width, stride: beside_stride });
    };
    if is_worth(work) && rows > chunk {
        let parts =
            data.par_chunks_mut(chunk * stride).zip(beside.par_chunks_mut(chunk * beside_stride));
        parts.enumerate().with_max_len(1).for_each(run);
    } else {
        data.chunks_mut(chunk * stride)
            .zip(beside.chunks_mut(chunk * beside_stride))
            .enumerate()
            .for_each(run);
    }
}

/// Calls `task(index, chunk)` on consecutive chunks of `size` values.
pub(crate) fn chunks(
    out: &mut [f32],
    size: usize,
    work: usize,
    task: impl Fn(usize, &mut [f32]) + Sync + Send,
) {
    if is_worth(work) && out.len() > size {
        out.par_chunks_mut(size).enumerate().with_max_len(1).for_each(|(i, part)| task(i, part));
    } else {
        for (i, part) in out.chunks_mut(size).enumerate() {
            task(i, part);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    /// Work in parts that have parts of their own, as scores in pieces with matrix products in
    /// each.
    fn nested(pool: &rayon::ThreadPool) -> f32 {
        awake_in(pool, || {
            let pieces = (0..8u32).into_par_iter().map(|piece| {
                let mut values = vec![piece as f32; 64];
                values.par_chunks_mut(1).for_each(|part| part.iter_mut().for_each(|x| *x += 1.0));
                values.iter().sum::<f32>()
            });
            pieces.sum()
        })
    }

    #[test]
    fn threads_that_are_kept_awake_never_wait_for_one_another() {
        let (tell, told) = mpsc::channel();
        let pool =
            Arc::new(rayon::ThreadPoolBuilder::new().num_threads(2).build().expect("a pool"));
        for _ in 0..3 {
            let (pool, tell) = (Arc::clone(&pool), tell.clone());
            std::thread::spawn(move || {
                (0..2_000).for_each(|_| assert_eq!(nested(&pool), 64.0 * 36.0));
                tell.send(()).expect("somebody waits");
            });
        }
        for _ in 0..3 {
            told.recv_timeout(Duration::from_secs(120)).expect("nobody waits for ever");
        }
    }
}
