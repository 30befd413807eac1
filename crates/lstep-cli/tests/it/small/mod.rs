//! What journeys that train share: a stream and settings small enough to train in a moment.
#![allow(dead_code, reason = "no journey uses all of it")]

pub mod place;

use std::process::Command;

/// Settings that make a model small enough for a test.
pub const SMALL: [&str; 7] = [
    "model.position_width=8",
    "model.time_width=8",
    "model.node_width=8",
    "model.edge_width=4",
    "model.snapshots=6",
    "model.recent=4",
    "protocol.step.events=50",
];

/// The real binary, without data from outside.
pub fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lstep"));
    command.args(arguments).env_remove("LSTEP_DATA");
    command
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("UTF-8")
}

/// Writes a stream of 3,000 events.
pub fn generate(path: &str, seed: &str) {
    let sizes = [
        "--events",
        "3000",
        "--nodes",
        "200",
        "--communities",
        "4",
        "--features",
        "2",
        "--seed",
        seed,
    ];
    let output = command(&["generate", path]).args(sizes).output().expect("the binary runs");
    assert!(output.status.success(), "{}", text(&output.stderr));
}
