//! A disk that refuses at a chosen call: every creation, write, sync, link and rename of this
//! thread is counted.

use std::cell::Cell;
use std::io;

thread_local! {
    static CALLS: Cell<usize> = const { Cell::new(0) };
    static FAILING: Cell<Option<(usize, bool)>> = const { Cell::new(None) };
}

/// How a disk refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// Once.
    Once,
    /// From then on.
    Lasting,
}

/// Does something on a disk that refuses the call of this number, counted from 0. Tells what came
/// of it, and how many calls there were.
pub fn with_refusal<T>(call: usize, how: Refusal, work: impl FnOnce() -> T) -> (T, usize) {
    CALLS.set(0);
    FAILING.set(Some((call, how == Refusal::Lasting)));
    let result = work();
    FAILING.set(None);
    (result, CALLS.get())
}

pub(super) fn next() -> io::Result<()> {
    let Some((call, lasting)) = FAILING.get() else { return Ok(()) };
    let now = CALLS.get();
    CALLS.set(now + 1);
    if now == call || (lasting && now > call) {
        return Err(io::Error::new(io::ErrorKind::StorageFull, "the disk refuses"));
    }
    Ok(())
}
