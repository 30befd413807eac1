//! A run as one TOML: `purpose`, then `[data] [protocol] [model] [train]`. Unknown keys are refused; defaults are
//! written once.

use super::builder::refused;
use crate::disk::path_text;
use crate::error::Result;
use crate::event::TimeFormat;
use crate::model::ModelConfig;
use crate::protocol::Protocol;
use crate::read::{FeatureColumns, ReadOptions};
use crate::settings::{Purpose, TrainConfig};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Everything a run depends on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunConfig {
    /// What it is for. Runs of before this was a setting are benchmarks.
    #[serde(default, skip_serializing_if = "Purpose::is_benchmark")]
    pub purpose: Purpose,
    /// The events.
    pub data: DataConfig,
    /// How they are split, stepped and asked about.
    pub protocol: Protocol,
    /// What learns.
    pub model: ModelConfig,
    /// How it learns.
    pub train: TrainConfig,
}

/// A file of events and how to read it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DataConfig {
    /// The file, or a folder with its parts.
    #[serde(with = "path_text")]
    pub events: PathBuf,
    /// Further files of the same stream, read after the first.
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "path_text::list")]
    pub more: Vec<PathBuf>,
    /// Column of sources.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub src: Option<String>,
    /// Column of destinations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dst: Option<String>,
    /// Column of times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<String>,
    /// How times are written, as in `strptime`, where they are neither numbers nor ISO 8601.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_format: Option<String>,
    /// Columns that are features, separated by commas; `none`, or `all`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub features: Option<String>,
    /// Table of node features.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "path_text::option")]
    pub node_features: Option<PathBuf>,
    /// Whether the same id as source and as destination names two nodes.
    #[serde(default)]
    pub bipartite: bool,
    /// Whether events are sorted instead of refused.
    #[serde(default)]
    pub sort: bool,
    /// What stands between fields of text: one character, or `tab`; found from the first line if
    /// absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub separator: Option<String>,
    /// Whether the first line is an event and no header; found from its content if false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_header: bool,
    /// Whether the first line is a header, even if it looks like an event.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub header: bool,
    /// Whether rows with a fault are left out instead of refusing the file.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub skip_bad: bool,
    /// Whether events that repeat an earlier one exactly are left out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dedup: bool,
}

impl DataConfig {
    /// How to read the file.
    pub fn options(&self) -> ReadOptions {
        ReadOptions {
            source: self.src.clone(),
            destination: self.dst.clone(),
            time: self.time.clone(),
            features: match self.features.as_deref() {
                None => FeatureColumns::Automatic,
                Some("none") => FeatureColumns::None,
                Some("all") => FeatureColumns::All,
                Some(columns) => FeatureColumns::Named(
                    columns.split(',').map(|column| column.trim().to_string()).collect(),
                ),
            },
            bipartite: self.bipartite,
            sort: self.sort,
            node_features: self.node_features.clone(),
            separator: self.separator.as_deref().and_then(separator),
            header: self.no_header.then_some(false).or(self.header.then_some(true)),
            time_format: self.time_format.as_deref().and_then(TimeFormat::new),
            more: self.more.clone(),
            skip_bad: self.skip_bad,
            dedup: self.dedup,
            ..ReadOptions::default()
        }
    }
}

/// A separator as users write it: one character of ASCII, or `tab`.
pub fn separator(text: &str) -> Option<u8> {
    match text.as_bytes() {
        b"tab" | b"\\t" => Some(b'\t'),
        [byte] if byte.is_ascii() && !matches!(byte, b'"' | b'\n' | b'\r') => Some(*byte),
        _ => None,
    }
}

impl RunConfig {
    /// The settings as TOML.
    pub fn to_toml(&self) -> String {
        toml::to_string_pretty(self).expect("settings are plain data")
    }

    /// Reads what [`RunConfig::to_toml`] wrote.
    pub fn from_toml(name: &str, text: &str) -> Result<RunConfig> {
        toml::from_str(text).map_err(|error| refused(name, &error))
    }
}
