//! A process that was forked has none of the threads of its parent.
//!
//! The library's threads live on in the parent alone. In the child, work would wait for them
//! without end, so it is refused. A process that forks before its first job is not concerned.

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::sync::atomic::{AtomicU32, Ordering};

/// The process that did the first job; nobody has number 0.
static OWNER: AtomicU32 = AtomicU32::new(0);

/// Refuses to work in a child of the process that has worked before.
pub fn refuse_child() -> PyResult<()> {
    let here = std::process::id();
    match OWNER.compare_exchange(0, here, Ordering::Relaxed, Ordering::Relaxed) {
        Ok(_) => Ok(()),
        Err(owner) if owner == here => Ok(()),
        Err(_) => Err(PyRuntimeError::new_err(
            "this process was forked after lstep had started its threads, which it does not have: \
             start processes with multiprocessing's \"spawn\" or \"forkserver\"",
        )),
    }
}
