//! A folder with a stream in it, and the program asked in words.

use super::{SMALL, command, generate, text};
use serde_json::Value;
use std::fs;
use std::process::Output;

pub fn lstep(arguments: &[&str]) -> Output {
    command(arguments).output().expect("the binary runs")
}

pub fn done(arguments: &[&str]) -> Output {
    let output = lstep(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
    output
}

pub fn json(arguments: &[&str]) -> Value {
    serde_json::from_slice(&done(arguments).stdout).expect("JSON")
}

/// What a refusal says: exit code 2, nothing on standard output, and every one of the words in the
/// message.
pub fn refused(arguments: &[&str], words: &[&str]) {
    let output = lstep(arguments);
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
    assert!(output.stdout.is_empty(), "{arguments:?}");
    assert!(!message.contains("panicked"), "{message}");
    for word in words {
        assert!(message.contains(word), "{arguments:?}: {word} is missing: {message}");
    }
}

/// A folder with a stream in it, and places for runs.
pub struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    pub fn new() -> Place {
        let place = Place { folder: tempfile::tempdir().expect("a folder") };
        place.generate("events.csv", "4");
        place
    }

    pub fn generate(&self, name: &str, seed: &str) {
        generate(&self.at(name), seed);
    }

    pub fn at(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    pub fn bytes(&self, name: &str) -> Vec<u8> {
        fs::read(self.folder.path().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    pub fn words(&self, name: &str) -> String {
        text(&self.bytes(name))
    }

    pub fn holds(&self, name: &str) -> bool {
        self.folder.path().join(name).exists()
    }

    /// `lstep train` on the stream into a run, with the small settings and some more.
    pub fn train<'a>(&'a self, run: &str, more: &[&'a str]) -> Vec<String> {
        let mut arguments =
            vec!["train".to_string(), self.at("events.csv"), "--out".into(), self.at(run)];
        for setting in SMALL.iter().chain(more) {
            arguments.extend(["--set".to_string(), setting.to_string()]);
        }
        arguments
    }

    pub fn trained(&self, run: &str, more: &[&str]) -> Output {
        done(&strs(&self.train(run, more)))
    }
}

pub fn strs(arguments: &[String]) -> Vec<&str> {
    arguments.iter().map(String::as_str).collect()
}

/// Everything of a report but the clock's part.
pub fn without_seconds(mut report: Value) -> Value {
    for row in report["results"].as_array_mut().expect("a list") {
        row["seconds"] = Value::Null;
        row["events_per_second"] = Value::Null;
    }
    report["training"] = Value::Null;
    report
}
