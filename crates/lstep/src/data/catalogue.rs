//! The catalogue of public datasets: what they are, under which licence, and where to get them.
//!
//! It is the file `catalogue.toml`, carried along in the program. A checksum that nobody has
//! published is `unknown` there; no number in it is a guess. Fetching is the command's affair: the
//! library opens no connection.

use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};
use std::fmt;

/// All datasets of the catalogue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Catalogue {
    /// In the order of the tables that use them.
    #[serde(rename = "dataset")]
    pub datasets: Vec<Entry>,
}

/// A dataset of the catalogue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Its name here, that of its preset if there is one.
    pub name: String,
    /// Its name in papers.
    pub title: String,
    /// Other names.
    #[serde(default)]
    pub aliases: Vec<String>,
    /// Who collected it: DGB, TGB or SNAP.
    pub collection: String,
    /// Nodes.
    pub nodes: u64,
    /// Events.
    pub events: u64,
    /// Distinct times.
    pub times: u64,
    /// From the first to the last event, in words.
    pub duration: String,
    /// Numbers that a node carries, as read here.
    pub node_features: u32,
    /// Numbers that an event carries, as read here.
    pub edge_features: u32,
    /// Whether sources and destinations are different kinds of nodes.
    pub bipartite: bool,
    /// What its publishers allow.
    pub licence: String,
    /// The page that describes it.
    pub source: String,
    /// The file to download.
    pub url: String,
    /// Its size in bytes, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// Where the host tells its checksums, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record: Option<String>,
    /// What the file's bytes have to give.
    pub checksum: Checksum,
    /// The file with the events, as it is called after fetching.
    pub file: String,
    /// Whether the file may not be in time order, so that it is read with `sort`.
    #[serde(default)]
    pub sort: bool,
}

/// What a file's bytes have to give.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Checksum {
    /// Nobody has said.
    Unknown,
    /// MD5 in hexadecimal, as Zenodo gives it.
    Md5(String),
    /// SHA-256 in hexadecimal.
    Sha256(String),
}

impl std::str::FromStr for Checksum {
    type Err = Error;

    fn from_str(text: &str) -> Result<Checksum> {
        let refused = || {
            Error::setting(
                "checksum",
                text,
                "write md5:HEX with 32 digits, sha256:HEX with 64, or unknown",
            )
        };
        if text == "unknown" {
            return Ok(Checksum::Unknown);
        }
        let (kind, digits) = text.split_once(':').ok_or_else(refused)?;
        let digits = digits.to_lowercase();
        let whole = |count: usize| {
            digits.len() == count && digits.bytes().all(|digit| digit.is_ascii_hexdigit())
        };
        match kind {
            "md5" if whole(32) => Ok(Checksum::Md5(digits)),
            "sha256" if whole(64) => Ok(Checksum::Sha256(digits)),
            _ => Err(refused()),
        }
    }
}

impl TryFrom<String> for Checksum {
    type Error = Error;

    fn try_from(text: String) -> Result<Checksum> {
        text.parse()
    }
}

impl From<Checksum> for String {
    fn from(checksum: Checksum) -> String {
        checksum.to_string()
    }
}

impl fmt::Display for Checksum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Checksum::Unknown => f.write_str("unknown"),
            Checksum::Md5(digits) => write!(f, "md5:{digits}"),
            Checksum::Sha256(digits) => write!(f, "sha256:{digits}"),
        }
    }
}

impl Catalogue {
    /// The catalogue that the program carries along.
    pub fn embedded() -> Catalogue {
        toml::from_str(include_str!("catalogue.toml")).expect("a test reads the catalogue")
    }

    /// The dataset of this name. Case, blanks and dots do not matter: `Can. Parl.` is `canparl`.
    pub fn find(&self, name: &str) -> Result<&Entry> {
        let wanted = folded(name);
        self.datasets
            .iter()
            .find(|entry| entry.names().any(|known| folded(known) == wanted))
            .ok_or_else(|| {
                Error::unknown("dataset", name, self.datasets.iter().map(|entry| &entry.name))
            })
    }
}

impl Entry {
    fn names(&self) -> impl Iterator<Item = &str> {
        [&self.name, &self.title].into_iter().chain(&self.aliases).map(String::as_str)
    }

    /// What the downloaded file is called.
    pub fn archive(&self) -> &str {
        self.url.rsplit('/').next().unwrap_or(&self.url)
    }
}

/// Where a dataset can be had: the embedded catalogue's entry, if it has one.
pub fn where_to_get(name: &str) -> Option<Entry> {
    Catalogue::embedded().find(name).ok().cloned()
}

fn folded(name: &str) -> String {
    name.chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|letter| letter.to_ascii_lowercase())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::preset_names;
    use std::collections::HashSet;

    #[test]
    fn the_catalogue_has_the_datasets_of_the_tables_each_with_an_address() {
        let catalogue = Catalogue::embedded();
        for (collection, count) in [("DGB", 13), ("TGB", 5), ("SNAP", 3)] {
            assert_eq!(
                catalogue.datasets.iter().filter(|entry| entry.collection == collection).count(),
                count
            );
        }
        for entry in &catalogue.datasets {
            assert!(
                entry.url.starts_with("https://") && entry.source.starts_with("https://"),
                "{}",
                entry.name
            );
            assert!(
                entry.events > 0 && entry.nodes > 0 && entry.times <= entry.events,
                "{}",
                entry.name
            );
            assert!(
                entry.archive().ends_with(".zip") || entry.archive() == entry.file,
                "{}",
                entry.name
            );
        }
    }

    #[test]
    fn every_preset_can_be_fetched_and_no_two_datasets_share_a_name() {
        let catalogue = Catalogue::embedded();
        for name in &preset_names() {
            assert_eq!(catalogue.find(name).expect("in the catalogue").name, *name);
        }
        let mut seen = HashSet::new();
        for entry in &catalogue.datasets {
            let names: HashSet<String> = entry.names().map(folded).collect();
            assert!(names.into_iter().all(|name| seen.insert(name)), "{}", entry.name);
        }
    }

    #[test]
    fn a_dataset_is_found_as_papers_write_it() {
        let catalogue = Catalogue::embedded();
        for (written, name) in
            [("Can. Parl.", "canparl"), ("Social Evo.", "socialevo"), ("Contact", "contacts")]
        {
            assert_eq!(catalogue.find(written).expect("in the catalogue").name, *name);
        }
        let error = catalogue.find("ucy").expect_err("no such dataset").to_string();
        assert!(error.contains("ucy") && error.contains("uci"), "{error}");
        assert_eq!(where_to_get("UCI").expect("in the catalogue").name, "uci");
        assert_eq!(where_to_get("my own"), None);
    }

    #[test]
    fn a_checksum_is_whole_or_refused() {
        let text = format!("sha256:{}", "0a".repeat(32));
        assert_eq!(text.parse::<Checksum>().expect("64 digits").to_string(), text);
        for text in
            ["", "md5", "md5:12", "sha256:xyz", "sha1:00", &format!("md5:{}", "g".repeat(32))]
        {
            assert!(text.parse::<Checksum>().is_err(), "{text}");
        }
    }
}
