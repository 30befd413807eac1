//! Ctrl-C, SIGTERM and SIGHUP, listened to once for the whole program: the step ends, everything is
//! saved, and a second signal stops at once, which leaves whole files, too. Where everything is
//! saved already, the first one does.

use anyhow::{Context, Result};
use std::fmt;
use std::ops::ControlFlow;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

/// The number of Ctrl-C's signal, SIGINT.
const INTERRUPT: u8 = 2;

/// Work that was stopped and saved; says how to go on. Not a failure, and not done either.
#[derive(Debug)]
pub struct Stopped(pub String);

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

static STOP: AtomicBool = AtomicBool::new(false);
/// The signal that stopped the program.
static SIGNAL: AtomicU8 = AtomicU8::new(INTERRUPT);
/// How to go on, once nothing is lost by stopping at once.
static SAVED: OnceLock<String> = OnceLock::new();
static LISTENING: OnceLock<()> = OnceLock::new();

/// The exit code of what was stopped: 128 and the signal's number, as shells have it.
pub fn code() -> u8 {
    128 + SIGNAL.load(Ordering::Relaxed)
}

/// Listens from now on; the flag tells whether to stop.
pub fn stop_flag() -> Result<&'static AtomicBool> {
    if LISTENING.set(()).is_ok() {
        listen().context("cannot listen to Ctrl-C")?;
    }
    Ok(&STOP)
}

/// Whether to go on, for what is watched. Without [`stop_flag`] nobody listens, and a signal ends
/// the program.
pub fn go_on() -> ControlFlow<()> {
    if STOP.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}

/// From now on a signal stops at once and says this: what took long is on the disk.
pub fn all_is_saved(how_to_go_on: String) {
    // Whoever said it first goes on saying it.
    let _ = SAVED.set(how_to_go_on);
}

fn on_signal(signal: u8) {
    SIGNAL.store(signal, Ordering::Relaxed);
    if let Some(how_to_go_on) = SAVED.get() {
        crate::tell(how_to_go_on);
        std::process::exit(code().into());
    }
    if STOP.swap(true, Ordering::Relaxed) {
        std::process::exit(code().into());
    }
    crate::tell("Stopping after the step; Ctrl-C again stops at once.");
}

#[cfg(unix)]
fn listen() -> std::io::Result<()> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM])?;
    if !is_ignored(SIGHUP) {
        signals.add_signal(SIGHUP)?;
    }
    let handle = move || signals.forever().for_each(|signal| on_signal(signal as u8));
    std::thread::Builder::new().name("signals".into()).spawn(handle).map(drop)
}

/// Whether whoever started the program wants it to ignore a signal, as `nohup` does with SIGHUP.
#[cfg(unix)]
fn is_ignored(signal: i32) -> bool {
    // Linux tells the set of ignored signals; where nobody tells, none is.
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|set| u64::from_str_radix(set.trim(), 16).ok()).unwrap_or(0);
    ignored & (1 << (signal - 1)) != 0
}

#[cfg(not(unix))]
fn listen() -> Result<(), ctrlc::Error> {
    ctrlc::set_handler(|| on_signal(INTERRUPT))
}
