//! Progress for Python, and Ctrl-C.

use crate::error::Raised;
use pyo3::prelude::*;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// How often Python hears of progress at most: a bar need not move faster.
const OFTEN: Duration = Duration::from_millis(50);

/// Calls a Python function with what is done, and looks whether somebody pressed Ctrl-C.
pub struct Watch {
    function: Option<Py<PyAny>>,
    raised: Raised,
    last: Option<Instant>,
}

impl Watch {
    pub fn new(function: Option<Py<PyAny>>, raised: Raised) -> Watch {
        Watch { function, raised, last: None }
    }

    /// Tells how far the work is; breaks if Python raised something. The end is always told.
    pub fn tell(&mut self, what: &str, done: u64, of: u64) -> ControlFlow<()> {
        let now = Instant::now();
        if done < of && self.last.is_some_and(|last| now - last < OFTEN) {
            return ControlFlow::Continue(());
        }
        self.last = Some(now);
        self.call(|py, function| function.call1(py, (what, done, of)).map(drop))
    }

    /// Calls the function, if there is one, with what `call` hands over.
    pub fn call(
        &mut self,
        call: impl FnOnce(Python<'_>, &Py<PyAny>) -> PyResult<()>,
    ) -> ControlFlow<()> {
        Python::attach(|py| {
            let told = self.function.as_ref().map_or(Ok(()), |function| call(py, function));
            match told.and_then(|()| py.check_signals()) {
                Ok(()) => ControlFlow::Continue(()),
                Err(raised) => {
                    self.raised.keep(py, raised);
                    ControlFlow::Break(())
                }
            }
        })
    }
}
