//! The `lstep` binary, run to its end, and a folder to run it in.

use crate::small;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::SystemTime;
use std::{env, fs};

/// Bytes that must be UTF-8.
///
/// # Panics
/// If they are not.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("UTF-8")
}

/// The binary with some arguments, without data from outside.
///
/// Cargo builds the binary before it runs the integration tests of `lstep-cli` and puts it beside
/// their folder.
///
/// # Panics
/// If there is no binary, as in a test of another crate.
pub fn command(arguments: &[&str]) -> Command {
    let test = env::current_exe().expect("this test has a path");
    let folder = test.ancestors().nth(2).expect("tests are in target/PROFILE/deps");
    let binary = folder.join(format!("lstep{}", env::consts::EXE_SUFFIX));
    assert!(binary.is_file(), "{} is not built", binary.display());
    let mut command = Command::new(binary);
    command.args(arguments).env_remove("LSTEP_DATA");
    command
}

/// What can be run: a command, or arguments of `lstep`.
pub trait Run {
    /// Runs it to its end; gives the command line for messages, and what came of it.
    fn run(self) -> (String, Output);
}

impl Run for &mut Command {
    fn run(self) -> (String, Output) {
        let output = self.output().expect("the binary runs");
        (format!("{self:?}"), output)
    }
}

impl Run for &[&str] {
    fn run(self) -> (String, Output) {
        command(self).run()
    }
}

impl<const N: usize> Run for &[&str; N] {
    fn run(self) -> (String, Output) {
        command(self).run()
    }
}

impl Run for &Vec<&str> {
    fn run(self) -> (String, Output) {
        command(self).run()
    }
}

impl Run for &Vec<String> {
    fn run(self) -> (String, Output) {
        command(&[]).args(self).run()
    }
}

/// Runs a command to its end.
///
/// # Panics
/// If it does not start.
pub fn lstep(run: impl Run) -> Output {
    run.run().1
}

/// Runs a command that must succeed.
///
/// # Panics
/// If it fails.
pub fn done(run: impl Run) -> Output {
    let (command, output) = run.run();
    assert!(output.status.success(), "{command}: {}", text(&output.stderr));
    output
}

/// What a command that succeeds prints as JSON.
///
/// # Panics
/// If it fails or prints something else.
pub fn json(run: impl Run) -> Value {
    serde_json::from_slice(&done(run).stdout).expect("JSON")
}

/// As [`json`], of a command that writes nothing to standard error in a pipe.
///
/// # Panics
/// If it fails or prints something else.
pub fn quiet_json(run: impl Run) -> Value {
    let output = done(run);
    assert!(output.stderr.is_empty(), "quiet in a pipe: {}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// Runs a command that must be refused: exit code 2, nothing on standard output, no panic, and
/// every one of the words in the message.
///
/// # Panics
/// If it is not refused so.
pub fn refused(run: impl Run, words: &[&str]) {
    let (command, output) = run.run();
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{command}: {message}");
    assert!(output.stdout.is_empty(), "{command}: {}", text(&output.stdout));
    assert!(!message.contains("panicked"), "{message}");
    for word in words {
        assert!(message.contains(word), "{command}: {word} is missing: {message}");
    }
}

/// Everything of a report but what the clock says.
///
/// # Panics
/// If it is not a report.
pub fn without_seconds(mut report: Value) -> Value {
    for rows in ["results", "baselines"] {
        for row in report[rows].as_array_mut().into_iter().flatten() {
            row["seconds"] = Value::Null;
            row["events_per_second"] = Value::Null;
        }
    }
    report["training"] = Value::Null;
    // It is that of the seconds, too.
    report.as_object_mut().expect("a report").remove("digest");
    report
}

/// A temporary folder to run the command in, with a stream in it.
#[derive(Debug)]
pub struct Place {
    folder: tempfile::TempDir,
    events: String,
}

impl Place {
    /// A folder with nothing in it.
    ///
    /// # Panics
    /// If it cannot be made.
    pub fn empty() -> Place {
        let folder = tempfile::tempdir().expect("a folder");
        Place { folder, events: String::new() }
    }

    /// A folder with a generated stream of 3,000 events, `events.csv`.
    pub fn new() -> Place {
        Place::with_events("events.csv")
    }

    /// A folder with a generated stream of 3,000 events of that name.
    pub fn with_events(name: &str) -> Place {
        let place = Place { events: name.to_string(), ..Place::empty() };
        place.generate(name, "4");
        place
    }

    /// Writes a stream of 3,000 events; `seed` tells streams apart.
    pub fn generate(&self, name: &str, seed: &str) {
        let sizes = "--force --events 3000 --nodes 200 --communities 4 --features 2 --seed";
        let path = self.at(name);
        let arguments = ["generate", &path].into_iter().chain(sizes.split(' ')).chain([seed]);
        done(&arguments.collect::<Vec<_>>());
    }

    /// The path of something in the folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The path of something in the folder, as an argument.
    pub fn at(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    /// The stream that [`Place::new`] made, as an argument.
    pub fn events(&self) -> String {
        self.at(&self.events)
    }

    /// Whether the folder holds something of that name.
    pub fn holds(&self, name: &str) -> bool {
        self.path(name).exists()
    }

    /// The bytes of a file.
    ///
    /// # Panics
    /// If it cannot be read; so do the other readers.
    pub fn bytes(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// A file as text.
    pub fn words(&self, name: &str) -> String {
        text(&self.bytes(name))
    }

    /// A file as JSON.
    pub fn json(&self, name: &str) -> Value {
        serde_json::from_slice(&self.bytes(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// Writes a file.
    pub fn write(&self, name: &str, contents: impl AsRef<[u8]>) {
        fs::write(self.path(name), contents).unwrap_or_else(|error| panic!("{name}: {error}"));
    }

    /// The names of what a folder holds, sorted.
    pub fn names(&self, name: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(name)).expect("a folder");
        let mut names: Vec<String> = entries
            .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    /// Every file below a folder with its time and bytes.
    pub fn files(&self, name: &str) -> Vec<(PathBuf, SystemTime, Vec<u8>)> {
        let mut found = Vec::new();
        for path in files_below(&self.path(name)) {
            let time = fs::metadata(&path).and_then(|about| about.modified()).expect("a time");
            let bytes = fs::read(&path).expect("read");
            found.push((path, time, bytes));
        }
        found
    }

    /// Copies a folder from outside, with everything below it.
    ///
    /// # Panics
    /// If a file cannot be copied.
    pub fn copy_folder(&self, from: &Path, name: &str) {
        for path in files_below(from) {
            let to = self.path(name).join(path.strip_prefix(from).expect("below the folder"));
            fs::create_dir_all(to.parent().expect("a folder")).expect("made");
            fs::copy(&path, &to).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        }
    }

    /// Arguments of `lstep train` on the stream for a benchmark, with the small settings of L-STEP
    /// and some more.
    pub fn train(&self, run: &str, more: &[&str]) -> Vec<String> {
        let mut arguments = vec!["train".to_string(), self.events(), "--out".into(), self.at(run)];
        arguments.extend(["--for".to_string(), "benchmark".to_string()]);
        for setting in small::LSTEP.iter().chain(more) {
            arguments.extend(["--set".to_string(), setting.to_string()]);
        }
        arguments
    }

    /// Trains L-STEP with small settings and some more.
    pub fn trained(&self, run: &str, more: &[&str]) -> Output {
        done(&self.train(run, more))
    }

    /// `lstep compare` or `lstep sweep` on the stream, with the small settings of L-STEP.
    pub fn grid(&self, verb: &str, out: &str, more: &[&str]) -> Command {
        let mut command = command(&[verb, &self.events(), "--out", &self.at(out)]);
        for setting in small::LSTEP {
            command.args(["--set", setting]);
        }
        command.args(more);
        command
    }
}

impl Default for Place {
    fn default() -> Place {
        Place::new()
    }
}

/// All files below a folder, sorted by path.
fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let entries =
            fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        for entry in entries {
            let path = entry.expect("an entry").path();
            if path.is_dir() { folders.push(path) } else { found.push(path) }
        }
    }
    found.sort();
    found
}
