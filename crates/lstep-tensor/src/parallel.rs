//! Work split into chunks whose size never depends on the number of threads.
//!
//! A reduction over fixed chunks, merged in order, gives the same bits on any number of threads. Small work stays on the
//! calling thread. `rayon`'s parallel iterators over slices run on `join`, which allocates nothing inside a pool; a call
//! from outside a pool passes through the pool's queue, which allocates a block now and then. Run whole steps inside
//! [`rayon::ThreadPool::install`] to avoid both that and the hand-over.

use rayon::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::matrix::MatrixMut;

/// Below this many scalar operations a second thread costs more than it saves.
const WORTH_A_THREAD: usize = 64 * 1024;

/// Runs `work` on a thread of the pool while the other threads stay awake for its parallel parts.
///
/// A step is some eighty operations of a few dozen microseconds. A thread that falls asleep between two of them takes as long to
/// wake as the next one lasts, and with sleeping threads two cores were hardly faster than one. Threads that find nothing to do
/// give way to other programs after a while, but do not sleep before `work` ends. On a thread of the pool `work` is simply
/// called: whoever brought it there keeps the others awake.
pub fn awake<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    if rayon::current_thread_index().is_some() {
        return work();
    }
    rayon::scope(|scope| keep_awake(scope, work))
}

/// Runs `work` in a pool of its own as [`awake`] does in the common one.
pub fn awake_in<T: Send>(pool: &rayon::ThreadPool, work: impl FnOnce() -> T + Send) -> T {
    pool.scope(|scope| keep_awake(scope, work))
}

fn keep_awake<'scope, T>(scope: &rayon::Scope<'scope>, work: impl FnOnce() -> T) -> T {
    let home = rayon::current_thread_index();
    let done = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&done);
    scope.spawn_broadcast(move |_, place| {
        if home != Some(place.index()) {
            help_until(&told);
        }
    });
    // Also when `work` panics: the others would wait for ever.
    let _ending = Ending(&done);
    work()
}

/// Says that it is done when it goes.
struct Ending<'a>(&'a AtomicBool);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

fn help_until(done: &AtomicBool) {
    let mut idle = 0;
    while !done.load(Ordering::Acquire) {
        match rayon::yield_now() {
            Some(rayon::Yield::Executed) => idle = 0,
            _ if idle < IDLE => {
                idle += 1;
                std::hint::spin_loop();
            }
            _ => std::thread::yield_now(),
        }
    }
}

/// Rounds without work after which a waiting thread lets other programs run.
const IDLE: u32 = 2_000;

/// Whether `work` scalar operations should be shared between threads.
pub(crate) fn is_worth(work: usize) -> bool {
    work >= WORTH_A_THREAD && rayon::current_num_threads() > 1
}

/// Calls `task(first_row, rows)` on consecutive chunks of `chunk` rows of `out`.
pub(crate) fn rows(out: MatrixMut<'_>, chunk: usize, work: usize, task: impl Fn(usize, MatrixMut<'_>) + Sync + Send) {
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

/// Calls `task(index, chunk)` on consecutive chunks of `size` values.
pub(crate) fn chunks(out: &mut [f32], size: usize, work: usize, task: impl Fn(usize, &mut [f32]) + Sync + Send) {
    if is_worth(work) && out.len() > size {
        out.par_chunks_mut(size).enumerate().with_max_len(1).for_each(|(i, part)| task(i, part));
    } else {
        for (i, part) in out.chunks_mut(size).enumerate() {
            task(i, part);
        }
    }
}
