//! `lstep bound`: the paper's theorem, measured on a trained model.

use crate::table::Table;
use crate::{progress, say};
use anyhow::Result;
use clap::Args;
use lstep::audit::{BoundReport, bound};
use lstep::disk::write_text;
use lstep::report::bound_page;
use lstep::training::RunFolder;
use std::path::PathBuf;

/// Measure how far approximate positions move, beside the bound of the paper's theorem.
///
/// Theorem 1 says that on a slowly changing graph |p~(t'') - p~(t)| is at most epsilon = S (2L - 2)
/// A P from one step to the next: S the largest sum over frequencies of |eigenvalue x filter|, L
/// the remembered steps, A the sum of the absolute weights of the weighted sum, P the longest
/// position remembered. The model goes on from training through validation and test, and every move
/// is measured. `direct` is a bound that needs no slow change: how far stored positions really
/// went, times the kernel's largest weight at that age.
#[derive(Args)]
#[command(after_help = "\
Examples:
  lstep bound run                   prints the table, writes run/bound.html with the plot
  lstep bound run --json            every node")]
pub struct Bound {
    /// Folder of a run of L-STEP
    #[arg(value_name = "RUN")]
    run: PathBuf,

    /// Nodes to measure at most, taken evenly from the busiest to the least busy
    #[arg(long, value_name = "N", default_value_t = 2_000, value_parser = clap::value_parser!(u64).range(1..))]
    nodes: u64,

    /// Nodes to print
    #[arg(long, value_name = "N", default_value_t = 15)]
    top: usize,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Bound {
    /// Measures, writes the page, prints.
    pub fn run(&self) -> Result<()> {
        let folder = RunFolder::new(&self.run);
        let bar = progress::grid().with_prefix("measuring moves");
        let report = bound(&folder, self.nodes as usize, &|done, of| {
            bar.set_length(of);
            bar.set_position(done);
        });
        bar.finish_and_clear();
        let report = report?;
        let path = folder.file("bound.html");
        write_text(&path, &bound_page(&report))?;
        if self.json {
            return say(serde_json::to_string_pretty(&report)?);
        }
        self.show(&report)?;
        say(format!("The plot: {}", path.display()))
    }

    fn show(&self, report: &BoundReport) -> Result<()> {
        let filter = &report.filter;
        say(format!(
            "{} on {}: L {}, S {:.4} ({:.4} with the lemma's eigenvalues as printed), A {:.4}",
            report.model,
            report.dataset,
            filter.snapshots,
            filter.filter_sum,
            filter.filter_sum_as_printed,
            filter.weight_sum
        ))?;
        let mut table = Table::new([
            "node",
            "events",
            "steps",
            "mean move",
            "largest move",
            "direct",
            "bound",
            "bound/move",
            "holds",
        ]);
        for node in report.nodes.iter().take(self.top) {
            table.row(vec![
                node.node.clone(),
                node.events.to_string(),
                node.steps.to_string(),
                format!("{:.4}", node.mean_move),
                format!("{:.4}", node.largest_move),
                format!("{:.4}", node.direct_bound),
                format!("{:.2}", node.bound),
                if node.largest_move > 0.0 {
                    format!("{:.0}", node.bound / node.largest_move)
                } else {
                    "-".into()
                },
                if node.holds { "yes" } else { "no" }.into(),
            ]);
        }
        say(table.show().trim_end())?;
        say(format!(
            "{} of {} moves of {} nodes over {} steps are above the theorem's bound; a stored position changes by {:.1} % of its length \
             in the median step",
            report.above_bound,
            report.moves,
            report.nodes.len(),
            report.steps,
            100.0 * report.median_share
        ))
    }
}
