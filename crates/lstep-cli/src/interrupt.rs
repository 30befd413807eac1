//! Ctrl-C, listened to once for the whole program: the step ends, everything is saved, and a second
//! Ctrl-C stops at once, which leaves whole files, too. Where everything is saved already, the
//! first one does.

use anyhow::{Context, Result};
use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// The exit code of what was stopped: 128 and the signal's number, as shells have it.
pub const CODE: u8 = 130;

/// Work that was stopped and saved; says how to go on. Not a failure, and not done either.
#[derive(Debug)]
pub struct Stopped(pub String);

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

static STOP: AtomicBool = AtomicBool::new(false);
/// How to go on, once nothing is lost by stopping at once.
static SAVED: OnceLock<String> = OnceLock::new();
static LISTENING: OnceLock<()> = OnceLock::new();

/// Listens from now on; the flag tells whether to stop.
pub fn stop_flag() -> Result<&'static AtomicBool> {
    if LISTENING.set(()).is_ok() {
        ctrlc::set_handler(|| {
            if let Some(how_to_go_on) = SAVED.get() {
                crate::tell(how_to_go_on);
                std::process::exit(CODE.into());
            }
            if STOP.swap(true, Ordering::Relaxed) {
                std::process::exit(CODE.into());
            }
            crate::tell("Stopping after the step; Ctrl-C again stops at once.");
        })
        .context("cannot listen to Ctrl-C")?;
    }
    Ok(&STOP)
}

/// From now on Ctrl-C stops at once and says this: what took long is on the disk.
pub fn all_is_saved(how_to_go_on: String) {
    // Whoever said it first goes on saying it.
    let _ = SAVED.set(how_to_go_on);
}
