//! `lstep report`: what a run or a comparison looks like, as a file for a browser.

use crate::evaluate::show_on;
use crate::front::CommandLine;
use crate::{progress, say};
use anyhow::{Result, bail};
use clap::Args;
use lstep::disk::{path_text, write_text};
use lstep::evaluation::EvalProgress;
use lstep::experiments::{Comparison, read_comparison};
use lstep::report::{comparison_page, run_page};
use lstep::training::{EvaluationWithBaselines, RunFolder, TrainedRun};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Make report.html of a run or of a comparison, to be looked at in a browser.
///
/// One file that needs no network. For a run: results beside models that only count, learning
/// curves, ROC and precision-recall, distributions of scores, calibration, quality over time and by
/// activity, L-STEP's filter and positions, time of each phase, the data's own stats, all settings.
/// `lstep train` writes it at its end; this makes it anew, and the model answers the test questions
/// once more. For a comparison: tables, ranks with their critical difference, quality against time.
#[derive(Args)]
#[command(after_help = "\
Examples:
  lstep report run                  writes run/report.html
  lstep report grid                 writes grid/report.html, of a folder that `lstep compare` made
  lstep report run --out page.html")]
pub struct Report {
    /// Folder of a run or of a comparison
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,

    /// Where to write it [default: report.html in the folder]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,

    /// Print what was written as JSON
    #[arg(long)]
    json: bool,
}

/// What is printed as JSON.
#[derive(Serialize)]
struct Written {
    #[serde(serialize_with = "path_text::serialize")]
    report: PathBuf,
    bytes: usize,
}

impl Report {
    /// Makes the page and writes it.
    pub fn run(&self) -> Result<()> {
        let run = RunFolder::new(&self.folder);
        let page = if run.holds_a_run() {
            let trained = TrainedRun::open(&run)?;
            let evaluated = evaluate_showing(&trained)?;
            run_page(&run, &trained, &evaluated)?
        } else if self.folder.join("comparison.json").exists() {
            comparison_page(&read_comparison(&self.folder)?)
        } else {
            bail!(
                "{} holds neither a run (config.toml) nor a comparison (comparison.json): name a folder that `lstep train` or `lstep \
                 compare` made",
                self.folder.display()
            )
        };
        let path = self.out.clone().unwrap_or_else(|| self.folder.join("report.html"));
        write_text(&path, &page)?;
        if self.json {
            return say(serde_json::to_string_pretty(&Written {
                report: path,
                bytes: page.len(),
            })?);
        }
        say(format!("{}: {} kB, open it in a browser", path.display(), page.len() / 1000))
    }
}

/// Asks a trained model and the counting models everything, with a bar on the terminal.
pub fn evaluate_showing(trained: &TrainedRun) -> Result<EvaluationWithBaselines> {
    let bar = progress::candidates("");
    let mut watch = |progress: EvalProgress<'_>| show_on(&bar, progress);
    let everything = trained.config().scope();
    let evaluated = trained.evaluate_with_baselines(&everything, &mut watch).or_else(|error| {
        let (possible, reasons) = trained.possible(&everything);
        if possible == everything || possible.settings.is_empty() || possible.strategies.is_empty()
        {
            return Err(error);
        }
        for (what, reason) in &reasons {
            let reason = reason.display_with(&CommandLine);
            crate::tell(format!("Left out of the report: {what}: {reason}"));
        }
        trained.evaluate_with_baselines(&possible, &mut watch)
    });
    bar.finish_and_clear();
    Ok(evaluated?)
}

/// Writes the page of a comparison into its folder.
pub fn write_comparison_page(folder: &Path, comparison: &Comparison) -> Result<()> {
    Ok(write_text(folder.join("report.html"), &comparison_page(comparison))?)
}
