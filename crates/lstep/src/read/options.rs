//! What the user may say about a file; by default everything is found in the file itself.

use crate::event::TimeFormat;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// What the user says about a file of events.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReadOptions {
    /// The layout; found from the file's name and header if absent.
    pub format: Option<Format>,
    /// The column of sources: its name, or its number from 1 (`--src`).
    pub source: Option<String>,
    /// The column of destinations (`--dst`).
    pub destination: Option<String>,
    /// The column of times (`--time`).
    pub time: Option<String>,
    /// The columns that are features (`--features`).
    pub features: FeatureColumns,
    /// Whether the same id as source and as destination names two nodes (`--bipartite`).
    pub bipartite: bool,
    /// Whether events are sorted by time, keeping the order of equal times; otherwise unsorted
    /// events are refused (`--sort`).
    pub sort: bool,
    /// A table of node features: CSV or Parquet with the id first, or `.npy` with one row for each
    /// integer id.
    pub node_features: Option<PathBuf>,
    /// What stands between fields; found from the first line if absent.
    pub separator: Option<u8>,
    /// Whether the first line is a header; found from its content if absent.
    pub header: Option<bool>,
    /// How times are written, where they are neither numbers nor ISO 8601 (`--time-format`).
    pub time_format: Option<TimeFormat>,
    /// Further files of the same stream, which are read after the first.
    pub more: Vec<PathBuf>,
    /// Whether rows with a fault are left out and counted, instead of refusing the file
    /// (`--skip-bad`).
    pub skip_bad: bool,
    /// Whether events that repeat an earlier one exactly are left out and counted (`--dedup`).
    pub dedup: bool,
}

/// Which columns are features.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum FeatureColumns {
    /// Those called `w`, `weight`, `f0`, `f1`, ..., `feat...`, `edge_feat...` or `msg...`; without
    /// a header all after the time.
    #[default]
    Automatic,
    /// None.
    None,
    /// All that have no other use, except `label`, `idx` and columns without a name.
    All,
    /// These.
    Named(Vec<String>),
}

/// A layout of events in files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// A table of text with columns found by name; compressed or not.
    Table,
    /// The Dynamic Graph Benchmark's `ml_NAME.csv` with `ml_NAME.npy` and `ml_NAME_node.npy` beside
    /// it.
    Dgb,
    /// User, item, time, label, features, where the header has one name for all features.
    Jodie,
    /// TGB's `tgbl-wiki`, `-subreddit`, `-lastfm`, `-uci` and `-enron`: as JODIE, with times cut to
    /// integers.
    TgbWiki,
    /// TGB's `tgbl-coin` and `tgbl-review`: time, source, destination, weight.
    TgbWeight,
    /// TGB's `tgbl-comment`: time, source, destination, words, score.
    TgbComment,
    /// TGB's `tgbl-flight`: time, source, destination, call sign, type code.
    TgbFlight,
    /// Apache Parquet.
    Parquet,
}

impl Format {
    /// The layout that a file's name promises.
    pub fn of_name(path: &Path) -> Format {
        let name =
            path.file_name().map(|name| name.to_string_lossy().to_lowercase()).unwrap_or_default();
        let plain = without_compression(&name);
        let tgb = |sets: &[&str]| {
            sets.iter().any(|set| plain.starts_with(&format!("tgbl-{set}_edgelist")))
        };
        if plain.ends_with(".parquet") || plain.ends_with(".pq") {
            Format::Parquet
        } else if plain.starts_with("ml_") && plain.ends_with(".csv") {
            Format::Dgb
        } else if tgb(&["wiki", "subreddit", "lastfm", "uci", "enron"]) {
            Format::TgbWiki
        } else if tgb(&["coin", "review"]) {
            Format::TgbWeight
        } else if tgb(&["comment"]) {
            Format::TgbComment
        } else if tgb(&["flight"]) {
            Format::TgbFlight
        } else {
            Format::Table
        }
    }
}

/// A file's name without `.gz` or `.zst`.
pub(super) fn without_compression(name: &str) -> &str {
    name.strip_suffix(".gz").or_else(|| name.strip_suffix(".zst")).unwrap_or(name)
}

/// A file's name without what it says about compression, as stem and ending. Names need not be
/// UTF-8.
pub(super) fn stem(path: &Path) -> Option<(OsString, Option<&OsStr>)> {
    let is = |ending: &OsStr, known: &str| ending.eq_ignore_ascii_case(known);
    let packed = path.extension().is_some_and(|ending| is(ending, "gz") || is(ending, "zst"));
    let plain = Path::new(if packed { path.file_stem()? } else { path.file_name()? });
    Some((plain.file_stem()?.to_os_string(), plain.extension()))
}

/// What a data set is called: the file's stem; `NAME` for `ml_NAME.csv` and `NAME_edgelist.csv`;
/// the folder of an `events.csv`.
pub(crate) fn dataset_name(path: &Path) -> String {
    let file = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let plain = without_compression(&file);
    let stem = plain.rsplit_once('.').map_or(plain, |(stem, _)| stem);
    if stem == "events"
        && let Some(folder) = path.parent().and_then(Path::file_name)
    {
        return folder.to_string_lossy().into_owned();
    }
    let stem = stem.strip_prefix("ml_").unwrap_or(stem);
    stem.split_once("_edgelist").map_or(stem, |(name, _)| name).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_promises_a_layout() {
        for (name, format) in [
            ("events.csv.gz", Format::Table),
            ("data/ml_uci.csv", Format::Dgb),
            ("ml_uci.csv.zst", Format::Dgb),
            ("tgbl-wiki_edgelist_v2.csv", Format::TgbWiki),
            ("tgbl-coin_edgelist_v2.csv", Format::TgbWeight),
            ("tgbl-comment_edgelist.csv", Format::TgbComment),
            ("tgbl-flight_edgelist_v2.csv", Format::TgbFlight),
            ("a.PARQUET", Format::Parquet),
        ] {
            assert_eq!(Format::of_name(Path::new(name)), format, "{name}");
        }
    }

    #[test]
    fn a_data_set_is_named_after_its_file_or_folder() {
        for (path, name) in [
            ("x/uci/events.csv.gz", "uci"),
            ("events.csv", "events"),
            ("x/ml_enron.csv", "enron"),
            ("tgbl-wiki_edgelist_v2.csv", "tgbl-wiki"),
            ("mail.2021.tsv.zst", "mail.2021"),
        ] {
            assert_eq!(dataset_name(Path::new(path)), name);
        }
    }
}
