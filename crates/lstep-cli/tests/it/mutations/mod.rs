//! Files that cannot hurt: every fuzz target on good files with faults, without a fuzzer.
//!
//! Inputs are drawn from a seed and a number, so each can be made again. They are read in a process
//! of its own with a limit of memory, which is watched: a panic, a crash, more than 10 seconds for
//! an input or more than 1 GiB is a finding. Findings are kept in `target/tmp/findings`; mended
//! ones are in `tests/fixtures/findings` and read again by the ordinary tests.
//!
//! The long run, with other inputs than the ordinary test's where a seed is given:
//!
//! ```text
//! LSTEP_MUTATIONS=20000 LSTEP_MUTATION_SEED=7 \
//!   cargo test --workspace --test it -- --ignored mutations::many --nocapture
//! ```

#[path = "../../../../../fuzz/src/lib.rs"]
mod fuzz;
mod good;
mod mutate;

use fuzz::{EntryPoint, TARGETS};
use lstep::rng::KeyedRng;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};
use std::{env, fs};

/// How long an input may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Memory of a process that reads inputs, in KiB: 1 GiB for an input, and what the program, its
/// threads and the good files take.
const MEMORY: u64 = (1 << 20) + (1 << 18);

/// Tells the process that reads inputs which ones: seed, first number, number behind the last.
const WORK: &str = "LSTEP_MUTATION_WORK";

/// What the reader does in place of reading.
const HARM: &str = "LSTEP_MUTATION_HARM";

/// What the reader says of an input that was not refused.
const READ: &str = "read";

/// A target with its good files.
struct Target {
    name: &'static str,
    entry_point: EntryPoint,
    good: Vec<Vec<u8>>,
}

fn targets() -> Vec<Target> {
    let target = |&(name, entry_point): &(&'static str, EntryPoint)| Target {
        name,
        entry_point,
        good: good::files(name),
    };
    TARGETS.iter().map(target).collect()
}

/// The input of a number, and the target it is for. Targets take turns.
fn input(targets: &[Target], seed: u64, number: u64) -> (&Target, Vec<u8>) {
    let target = &targets[number as usize % targets.len()];
    (target, mutate::mutate(&target.good, &mut KeyedRng::new(&[seed, number])))
}

/// An input that hurt.
#[derive(Debug)]
#[allow(dead_code, reason = "it is shown whole where a test fails")]
struct Finding {
    target: &'static str,
    seed: u64,
    number: u64,
    what: String,
    kept: PathBuf,
}

/// What came of a run.
struct Ran {
    inputs: u64,
    /// How many of them were not refused.
    read: u64,
    findings: Vec<Finding>,
    slowest: Duration,
}

/// Reads inputs until there are as many, or time is over. `harm` is what the reader does in place
/// of its work, to see that it is found.
fn run(seed: u64, count: u64, time: Option<Duration>, harm: Option<&str>) -> Ran {
    let targets = targets();
    let started = Instant::now();
    let over = || time.is_some_and(|time| started.elapsed() > time);
    let mut ran = Ran { inputs: 0, read: 0, findings: Vec::new(), slowest: Duration::ZERO };
    while ran.inputs < count && !over() && ran.findings.len() < 100 {
        let mut reader = reader(seed, ran.inputs, count);
        reader.envs(harm.map(|harm| (HARM, harm)));
        let mut child = reader.spawn().expect("this test runs once more");
        let (send, receive) = mpsc::channel();
        let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let listener = std::thread::spawn(move || {
            lines.map_while(Result::ok).try_for_each(|line| send.send(line))
        });
        // Good files are made first, on a machine that may be busy.
        let (mut patience, mut since) = (12 * PATIENCE, Instant::now());
        let mut now = None;
        let ended = loop {
            match receive.recv_timeout(patience) {
                Ok(line) if line == READ => ran.read += 1,
                Ok(line) => {
                    // Numbers stand alone on their lines, whatever else the harness prints.
                    let Ok(number) = line.parse() else { continue };
                    if now.is_some() {
                        ran.slowest = ran.slowest.max(since.elapsed());
                    }
                    (now, since, patience) = (Some(number), Instant::now(), PATIENCE);
                    ran.inputs = number;
                    if number == count || over() {
                        break None;
                    }
                }
                Err(mpsc::RecvTimeoutError::Timeout) => {
                    break Some(format!("it took more than {} s", patience.as_secs()));
                }
                Err(mpsc::RecvTimeoutError::Disconnected) => break Some(String::new()),
            }
        };
        let _ = child.kill();
        let status = child.wait().expect("it was started");
        let _ = listener.join().expect("reads to the end");
        let mut said = String::new();
        let _ = child.stderr.take().expect("piped").read_to_string(&mut said);
        if let Some(what) = ended {
            let number = now.unwrap_or_else(|| panic!("no input was read: {status}, {said}"));
            let what = format!("{what} {status}: {}", said.trim());
            ran.findings.push(keep(&targets, seed, number, what));
            ran.inputs = number + 1;
        }
    }
    ran
}

/// A process that reads inputs. It tells the number of each before, on a line of its own, and
/// whether it was read after.
fn reader(seed: u64, from: u64, to: u64) -> Command {
    let this = env::current_exe().expect("this test has a path");
    let arguments = ["--exact", "mutations::reader_of_inputs", "--ignored", "--nocapture"];
    let mut command = if cfg!(target_os = "linux") {
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("ulimit -v {MEMORY} && exec \"$0\" \"$@\"")]).arg(this);
        shell
    } else {
        Command::new(this)
    };
    command
        .args(arguments)
        .env(WORK, format!("{seed} {from} {to}"))
        // Threads take address space, which is what is limited.
        .envs([("RAYON_NUM_THREADS", "2"), ("MALLOC_ARENA_MAX", "2"), ("RUST_BACKTRACE", "0")])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Writes an input that hurt to where it can be looked at.
fn keep(targets: &[Target], seed: u64, number: u64, what: String) -> Finding {
    let (target, bytes) = input(targets, seed, number);
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("findings");
    fs::create_dir_all(&folder).expect("a folder");
    let kept = folder.join(format!("{}-{seed}-{number}", target.name));
    fs::write(&kept, bytes).expect("written");
    Finding { target: target.name, seed, number, what, kept }
}

fn variable(name: &str) -> Option<u64> {
    let text = env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is {text:?}, which is no number")))
}

#[test]
fn good_files_are_read() {
    let mut refused = Vec::new();
    for target in targets() {
        for (place, good) in target.good.iter().enumerate() {
            if !(target.entry_point)(good) {
                refused.push((target.name, place));
            }
        }
    }
    assert!(refused.is_empty(), "{refused:?}");
}

#[test]
fn what_hurt_once_does_not_hurt_again() {
    let findings = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/findings");
    let mut read = 0;
    for (name, entry_point) in TARGETS {
        let Ok(kept) = fs::read_dir(findings.join(name)) else { continue };
        for file in kept {
            let path = file.expect("an entry").path();
            let started = Instant::now();
            entry_point(&fs::read(&path).expect("a file"));
            assert!(started.elapsed() < PATIENCE, "{}", path.display());
            read += 1;
        }
    }
    assert!(read > 0, "there are findings in {}", findings.display());
}

#[test]
fn a_thousand_mutated_inputs_do_not_hurt() {
    let ran = run(1, 1_000, None, None);
    assert!(ran.findings.is_empty(), "{:#?}", ran.findings);
    assert_eq!(ran.inputs, 1_000);
}

#[test]
fn an_input_that_panics_or_takes_too_much_is_found() {
    for (harm, words) in [("panic", "as asked"), ("memory", "memory allocation of 1342177280")] {
        let Ran { inputs, findings, .. } = run(3, 1, None, Some(harm));
        let [finding] = &findings[..] else { panic!("{harm}: {findings:?}") };
        assert_eq!(inputs, 1);
        // Elsewhere nobody limits the memory of a process.
        let limited = harm != "memory" || cfg!(target_os = "linux");
        assert!(!limited || finding.what.contains(words), "{}", finding.what);
        fs::remove_file(&finding.kept).expect("kept");
    }
}

/// How many, from which seed and for how many seconds at most is said by variables.
#[test]
#[ignore = "takes minutes: see this module"]
fn many_mutated_inputs_do_not_hurt() {
    let time = variable("LSTEP_MUTATION_SECONDS").map(Duration::from_secs);
    let otherwise = if time.is_some() { u64::MAX } else { 20_000 };
    let count = variable("LSTEP_MUTATIONS").unwrap_or(otherwise);
    let seed = variable("LSTEP_MUTATION_SEED").unwrap_or(2);
    let started = Instant::now();
    let ran = run(seed, count, time, None);
    let mut out = std::io::stdout();
    let _ = writeln!(
        out,
        "{} inputs of seed {seed}, {} of them read, in {:.0?} over {} targets, the slowest in \
         {:.2?}: {} findings",
        ran.inputs,
        ran.read,
        started.elapsed(),
        TARGETS.len(),
        ran.slowest,
        ran.findings.len(),
    );
    assert!(ran.findings.is_empty(), "{:#?}", ran.findings);
}

#[test]
#[ignore = "is started by the other tests of this module"]
fn reader_of_inputs() {
    let Ok(work) = env::var(WORK) else { return };
    let numbers = work.split(' ').map(|number| number.parse().expect("a number"));
    let [seed, from, to] = numbers.collect::<Vec<u64>>().try_into().expect("three numbers");
    let harm = env::var(HARM).ok();
    let targets = targets();
    let mut out = std::io::stdout();
    // The harness has begun a line.
    writeln!(out).expect("somebody listens");
    for number in from..to {
        let (target, bytes) = input(&targets, seed, number);
        writeln!(out, "{number}").expect("somebody listens");
        match harm.as_deref() {
            Some("memory") => drop(std::hint::black_box(vec![1_u8; 5 << 28])),
            Some("panic") => panic!("as asked"),
            _ => {}
        }
        if (target.entry_point)(&bytes) {
            writeln!(out, "{READ}").expect("somebody listens");
        }
    }
    writeln!(out, "{to}").expect("somebody listens");
    out.flush().expect("somebody listens");
}
