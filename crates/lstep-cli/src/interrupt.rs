//! Ctrl-C, listened to once for the whole program: the step ends, everything is saved, and a second Ctrl-C stops at once, which leaves
//! whole files, too.

use anyhow::{Context, Result};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

static STOP: AtomicBool = AtomicBool::new(false);
static LISTENING: OnceLock<()> = OnceLock::new();

/// Listens from now on; the flag tells whether to stop.
pub fn stop_flag() -> Result<&'static AtomicBool> {
    if LISTENING.set(()).is_ok() {
        ctrlc::set_handler(|| {
            if STOP.swap(true, Ordering::Relaxed) {
                std::process::exit(130);
            }
            eprintln!("Stopping after the step; Ctrl-C again stops at once.");
        })
        .context("cannot listen to Ctrl-C")?;
    }
    Ok(&STOP)
}
