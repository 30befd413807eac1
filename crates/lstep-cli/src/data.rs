//! `lstep data`: public datasets, where to get them, and the forms they come in.

mod convert;
mod digest;
mod download;
mod fetch;
mod unpack;
#[cfg(test)]
mod unpack_tests;

use crate::say;
use crate::table::Table;
use anyhow::Result;
use clap::{Args, Subcommand};
use lstep::data::{Catalogue, Checksum, Entry};

/// List, fetch and convert datasets.
#[derive(Args)]
#[command(after_help = "\
Examples:
  lstep data list                               what there is: 13 datasets of DGB, 5 of TGB, 3 of SNAP
  lstep data list tgbl-wiki                     one of them in full
  lstep data fetch uci --to data                download, check, unpack; the same command goes on after a cut
  lstep data fetch uci --from uci.zip           from a copy that is already here, or from another address
  lstep data convert mail.csv.gz mail.parquet   from any form that is read into any other")]
pub struct Data {
    #[command(subcommand)]
    command: DataCommand,
}

#[derive(Subcommand)]
enum DataCommand {
    /// Show the catalogue: counts, features, licence, source and checksum
    List(List),
    /// Download a dataset, check it and unpack it
    Fetch(fetch::Fetch),
    /// Turn a file of events into another form
    Convert(convert::Convert),
}

impl Data {
    /// Runs the subcommand.
    pub fn run(&self) -> Result<()> {
        match &self.command {
            DataCommand::List(list) => list.run(),
            DataCommand::Fetch(fetch) => fetch.run(),
            DataCommand::Convert(convert) => convert.run(),
        }
    }
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  lstep data list
  lstep data list \"Can. Parl.\"
  lstep data list --json")]
struct List {
    /// Show only this dataset, in full
    #[arg(value_name = "NAME")]
    name: Option<String>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl List {
    fn run(&self) -> Result<()> {
        let catalogue = Catalogue::embedded();
        let Some(name) = &self.name else {
            let shown = if self.json {
                serde_json::to_string_pretty(&catalogue.datasets)?
            } else {
                overview(&catalogue)
            };
            return say(shown.trim_end());
        };
        let entry = catalogue.find(name)?;
        let shown = if self.json { serde_json::to_string_pretty(entry)? } else { stats(entry) };
        say(shown.trim_end())
    }
}

fn overview(catalogue: &Catalogue) -> String {
    let mut table = Table::new([
        "name",
        "title",
        "from",
        "nodes",
        "events",
        "times",
        "duration",
        "node feat.",
        "edge feat.",
        "checksum",
        "licence",
    ]);
    for entry in &catalogue.datasets {
        table.row(vec![
            entry.name.clone(),
            entry.title.clone(),
            entry.collection.clone(),
            entry.nodes.to_string(),
            entry.events.to_string(),
            entry.times.to_string(),
            entry.duration.clone(),
            entry.node_features.to_string(),
            entry.edge_features.to_string(),
            kind(entry).to_string(),
            entry.licence.clone(),
        ]);
    }
    let mut text = table.show();
    let mut told = Vec::new();
    for entry in &catalogue.datasets {
        if !told.contains(&&entry.source) {
            told.push(&entry.source);
            text.push_str(&format!("{:<4}  {}\n", entry.collection, entry.source));
        }
    }
    text.push_str("checksum `host`: Zenodo tells the MD5 of its files and is asked; `unknown`: printed and kept at the first download\n");
    text.push_str("lstep data list NAME shows one in full, lstep data fetch NAME downloads it\n");
    text
}

fn kind(entry: &Entry) -> &'static str {
    match (&entry.checksum, &entry.record) {
        (Checksum::Md5(_), _) => "md5",
        (Checksum::Sha256(_), _) => "sha256",
        (Checksum::Unknown, Some(_)) => "host",
        (Checksum::Unknown, None) => "unknown",
    }
}

fn stats(entry: &Entry) -> String {
    let mut table = Table::new([entry.name.as_str(), entry.title.as_str()]);
    let mut row = |name: &str, value: String| table.row(vec![name.to_string(), value]);
    row("collection", entry.collection.clone());
    row("nodes", entry.nodes.to_string());
    row("events", entry.events.to_string());
    row("distinct times", entry.times.to_string());
    row("duration", entry.duration.clone());
    row("node features", entry.node_features.to_string());
    row("edge features", entry.edge_features.to_string());
    row("bipartite", if entry.bipartite { "yes" } else { "no" }.to_string());
    row("licence", entry.licence.clone());
    row("source", entry.source.clone());
    row("file", entry.url.clone());
    row("bytes", entry.size.map_or("unknown".to_string(), |size| size.to_string()));
    row("checksum", entry.checksum.to_string());
    if let Some(record) = &entry.record {
        row("host's checksums", record.clone());
    }
    table.show()
}
