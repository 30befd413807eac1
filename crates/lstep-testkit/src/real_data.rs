//! Public datasets, where the variable `LSTEP_DATA` says they are.
//!
//! Tests that need them are marked `#[ignore = "needs LSTEP_DATA"]` and live in modules called
//! `real_data`. `.ci/run` runs them with `-- --ignored real_data` where the data is. When such a
//! test runs without the data, it fails.

use std::path::PathBuf;

/// The folder of the datasets.
///
/// # Panics
/// If `LSTEP_DATA` is not set.
pub fn folder() -> PathBuf {
    std::env::var_os("LSTEP_DATA").map_or_else(
        || panic!("LSTEP_DATA names no folder: this test needs NAME/events.csv.gz below it"),
        PathBuf::from,
    )
}

/// The events of a dataset: `LSTEP_DATA/NAME/events.csv.gz`.
///
/// # Panics
/// If `LSTEP_DATA` is not set or the file is missing.
pub fn events(name: &str) -> PathBuf {
    let path = folder().join(name).join("events.csv.gz");
    assert!(path.is_file(), "there is no {}", path.display());
    path
}
