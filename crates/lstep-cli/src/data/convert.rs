//! `lstep data convert`: from any form that is read into any other.

use crate::args::{EventsFile, tell_left_out};
use crate::front::CommandLine;
use crate::{export, progress, say};
use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use lstep::data::convert;
use lstep::read::{Layout, RemarkKind};
use std::path::PathBuf;

/// Turn a file of events into another form.
///
/// The form follows from the name: .parquet; ml_NAME.csv is DGB's, with its .npy files; .csv and
/// .txt are CSV, .tsv is TSV, compressed for .gz and .zst. What a form cannot hold is refused,
/// or with --lossy said and lost. Ids, times and their order are kept exactly; features are numbers
/// of 32 bits, as models get them, and their columns are called f0, f1 and so on.
#[derive(Args)]
#[command(after_help = "\
Examples:
  lstep data convert events.csv.gz events.parquet
  lstep data convert 2026-01.csv 2026-02.csv all.parquet       several files become one
  lstep data convert data/uci/ml_uci.csv uci.csv.zst
  lstep data convert mail.parquet ml_mail.csv --lossy        text ids become numbers
  lstep data convert visits.csv visits_jodie.csv --layout jodie --bipartite")]
pub struct Convert {
    #[command(flatten)]
    file: EventsFile,

    /// Where to write
    #[arg(value_name = "OUT")]
    out: PathBuf,

    /// The form, if the name does not tell
    #[arg(long, value_enum)]
    layout: Option<Form>,

    /// Replace the file if there is one
    #[arg(long)]
    force: bool,

    /// Accept that something is lost; it is said what
    #[arg(long)]
    lossy: bool,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Form {
    /// CSV or TSV
    Table,
    Parquet,
    /// The Dynamic Graph Benchmark's three files
    Dgb,
    /// User, item, time, label, features
    Jodie,
}

impl Convert {
    /// Reads, writes, prints.
    pub fn run(&self) -> Result<()> {
        let layout = self.layout.map(|form| match form {
            Form::Table => Layout::Table,
            Form::Parquet => Layout::Parquet,
            Form::Dgb => Layout::Dgb,
            Form::Jodie => Layout::Jodie,
        });
        let (data, events) = (self.file.data(), self.file.first());
        let same = |file: &PathBuf| file.canonicalize().ok() == self.out.canonicalize().ok();
        if self.out.exists() && std::iter::once(&data.events).chain(&data.more).any(same) {
            bail!("{}: it is the file that is read, give another name", self.out.display());
        }
        let _writing = export::claim(&self.out, self.force)?;
        let busy = progress::busy(&format!("converting {}", events.display()));
        let report = convert(&data, &self.out, layout, self.lossy);
        busy.finish_and_clear();
        let mut report = report.with_context(|| format!("cannot convert {}", events.display()))?;
        tell_left_out(&report.left_out, report.events);
        for remark in &mut report.remarks {
            *remark = remark.said_by(&CommandLine);
        }
        if self.json {
            return say(serde_json::to_string_pretty(&report)?);
        }
        let files: Vec<String> =
            report.written.files.iter().map(|file| file.display().to_string()).collect();
        say(format!("{}: {} nodes, {} events", files.join(", "), report.nodes, report.events))?;
        for remark in &report.remarks {
            match remark.kind {
                RemarkKind::Note => say(format!("note: {remark}"))?,
                RemarkKind::Loss => say(format!("lost: {remark}"))?,
            }
        }
        Ok(())
    }
}
