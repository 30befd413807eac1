//! The real binary, run to its end.

use serde_json::Value;
use std::process::{Command, Output};

pub fn lstep(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_lstep")).args(arguments).output().expect("the binary runs")
}

/// What a command that does its work prints as JSON.
pub fn json(arguments: &[&str]) -> Value {
    let output = lstep(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// What a refusal says: exit code 2, nothing on standard output, and every one of the words in the
/// message.
pub fn refused(arguments: &[&str], words: &[&str]) {
    let output = lstep(arguments);
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
    assert!(output.stdout.is_empty() && !message.contains("panicked"), "{arguments:?}: {message}");
    for word in words {
        assert!(message.contains(word), "{arguments:?}: {word} is missing: {message}");
    }
}
