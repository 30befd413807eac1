//! `lstep sweep`: a search over settings, chosen on validation alone; the test part is asked about
//! the chosen one only.

use crate::args::{Reading, learned_names};
use crate::interrupt::{Stopped, go_on};
use crate::report::write_comparison_page;
use crate::table::Table;
use crate::{compare, comparison, grid, say};
use anyhow::{Context, Result, bail};
use clap::Args;
use lstep::disk::write_text;
use lstep::experiments::{
    Axis, CellResult, Comparison, Grid, Metric, ModelSpec, PresetChoice, Spread, search_points,
};
use lstep::protocol::{EvalScope, Part, Protocol, Setting, Strategy};
use lstep::results::ResultRow;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Search settings of a model, choose on validation, and ask about the test part once.
///
/// Every point is a cell as in `lstep compare`: runs below OUT/runs, finished ones not done again.
/// Points are compared by the mean over seeds of validation's AP (MRR under protocol tgb), over the
/// kinds of negatives in `train.select`; no point but the chosen one is ever asked about the test
/// part.
#[derive(Args)]
#[command(after_help = "\
A key is a path of a run's settings (model.recent, train.learning_rate, protocol.step). --set with one value holds for all points, with
several it is searched. With --random, key=low..high draws too: integers evenly, other numbers by their logarithm if above zero.

Examples:
  lstep sweep events.csv --set model.recent=10,20,30 --set train.learning_rate=1e-4,1e-3 --out sweep
  lstep sweep uci/events.csv.gz --model tgn --random 20 --set train.learning_rate=1e-5..1e-2 --set model.dropout=0..0.5 --out sweep
  lstep sweep --resume sweep
  lstep train events.csv --config sweep/chosen.toml --out run")]
pub struct Sweep {
    /// The events, as for `lstep inspect`, or a folder with them in it
    #[arg(value_name = "EVENTS", required_unless_present = "resume")]
    events: Option<PathBuf>,

    /// What is trained; variants as for `lstep compare`
    #[arg(long, value_name = "MODEL", default_value = "lstep")]
    model: String,

    /// A setting and its values: key=a,b,c, or key=low..high with --random
    #[arg(long, value_name = "KEY=VALUES", required_unless_present = "resume")]
    set: Vec<String>,

    /// Draw this many points instead of trying all combinations
    #[arg(long, value_name = "N")]
    random: Option<usize>,

    /// Seed of the drawn points
    #[arg(long, value_name = "SEED", default_value_t = 0, requires = "random")]
    random_seed: u64,

    /// Seeds every point is trained with: 0..2 is 0 to 2; or separated by commas
    #[arg(long, value_name = "SEEDS", default_value = "0", value_parser = grid::seeds)]
    seeds: grid::Seeds,

    /// Where settings come from: auto, none, or a preset's name
    #[arg(long, value_name = "NAME", default_value = "auto")]
    preset: String,

    /// How to split, step and ask, with that protocol's own settings [default: the preset's, else
    /// stream]
    #[arg(long, value_name = "NAME", value_parser = Protocol::NAMES)]
    protocol: Option<String>,

    /// Folder for the search
    #[arg(long, value_name = "OUT", required_unless_present = "resume")]
    out: Option<PathBuf>,

    /// Go on with the search in this folder
    #[arg(long, value_name = "OUT", conflicts_with_all = ["events", "out", "model", "set", "random", "random_seed", "seeds", "preset", "protocol"])]
    resume: Option<PathBuf>,

    #[command(flatten)]
    running: grid::Running,

    #[command(flatten)]
    reading: Reading,
}

/// What a search found: `sweep.json`.
#[derive(Serialize)]
struct Found {
    /// The dataset's name.
    dataset: String,
    /// What points are compared by, on validation.
    metric: Metric,
    /// The label of the chosen point.
    chosen: String,
    /// Its settings, laid over the preset.
    settings: Vec<String>,
    /// All points, best first.
    points: Vec<Point>,
    /// The chosen point on the test part, a result for each seed and kind of question.
    test: Vec<ResultRow>,
    version: &'static str,
}

/// A point of a search.
#[derive(Serialize)]
struct Point {
    label: String,
    validation: Spread,
}

impl Sweep {
    /// Searches, chooses, asks about the test part, prints.
    pub fn run(&self) -> Result<()> {
        self.reading.refuse_on_resume(self.resume.is_some())?;
        let out = self.resume.as_ref().or(self.out.as_ref()).context("name a folder with --out")?;
        let grid = if self.resume.is_some() { compare::again(out)? } else { self.grid(out)? };
        if grid.asked.parts != [Part::Validation] {
            bail!("{} holds a comparison, not a search: choose another folder", out.display());
        }
        let _writing = grid::lock(out)?;
        let (runs, run_epoch) =
            (grid::runs(out), format!("lstep sweep --resume {}", out.display()));
        let mut searched = grid::run(&grid, out, &runs, self.running.jobs, &run_epoch)?;
        lstep::experiments::write_comparison(out, &searched)?;
        let (metric, points) = ranked(&searched);
        let Some(best) = points.first() else {
            return comparison::tell(&searched, out, self.running.json);
        };
        let found = self.chosen(&grid, out, metric, &best.label.clone(), points)?;
        write_text(out.join("sweep.json"), &serde_json::to_string_pretty(&found)?)?;
        // The tables are of validation; what came of the choice stands above them.
        searched.notes.insert(0, found.told());
        lstep::experiments::write_comparison(out, &searched)?;
        write_comparison_page(out, &searched)?;
        if self.running.json {
            say(serde_json::to_string_pretty(&found)?)?;
        } else {
            show(&found, out)?;
        }
        if searched.failed.is_empty() {
            return Ok(());
        }
        for cell in &searched.failed {
            crate::tell(format!("failed: {}: {}", cell.model, cell.error));
        }
        bail!(
            "{} of {} cells failed; the same command tries them again",
            searched.failed.len(),
            grid.cells(&runs)?.len()
        )
    }

    fn grid(&self, out: &Path) -> Result<Grid> {
        let before = Grid::read(&out.join("grid.toml"))?;
        let events = self.events.as_deref().context("name a file of events")?;
        let model: ModelSpec = self.model.parse()?;
        if !model.learns() {
            bail!("{model} learns nothing: choose one of {}", learned_names().join(", "));
        }
        let axes: lstep::Result<Vec<Axis>> = self.set.iter().map(|axis| axis.parse()).collect();
        let (fixed, searched): (Vec<Axis>, Vec<Axis>) =
            axes?.into_iter().partition(|axis| axis.fixed().is_some());
        let models =
            search_points(&model, &searched, self.random.map(|count| (count, self.random_seed)))?;
        let mut grid = Grid {
            title: format!("Search of {model}, validation"),
            seeds: self.seeds.0.clone(),
            preset: PresetChoice::from(self.preset.clone()),
            protocol: self.protocol.clone(),
            set: fixed.iter().filter_map(Axis::fixed).collect(),
            asked: EvalScope {
                parts: vec![Part::Validation],
                settings: vec![Setting::Transductive],
                strategies: vec![Strategy::Random],
            },
            models,
            datasets: grid::digest(
                vec![grid::lasting(self.reading.data(events))?],
                before.as_ref(),
            )?,
        };
        // Points are compared by what selects their epochs.
        let cells = grid.cells(&grid::runs(out))?;
        let mut selects: Vec<&[Strategy]> =
            cells.iter().map(|cell| cell.config.train.select.as_slice()).collect();
        selects.dedup();
        match selects[..] {
            [select] => grid.asked.strategies = select.to_vec(),
            _ => bail!(
                "train.select is searched, but it is what points are compared by: hold it with one value"
            ),
        }
        Ok(grid)
    }

    /// Asks the chosen point about the test part, and keeps its settings.
    fn chosen(
        &self,
        grid: &Grid,
        out: &Path,
        metric: Metric,
        label: &str,
        points: Vec<Point>,
    ) -> Result<Found> {
        let mut last = grid.clone();
        last.models.retain(|model| model.label == label);
        last.asked.parts = vec![Part::Validation, Part::Test];
        last.asked.strategies = vec![Strategy::Random, Strategy::Historical, Strategy::Inductive];
        let cells = last.cells(&grid::runs(out))?;
        let mut test = Vec::new();
        for cell in &cells {
            let busy =
                crate::progress::busy(&format!("asking {} about the test part", cell.name()));
            let result = cell.run(&|_| go_on().is_continue());
            busy.finish_and_clear();
            let Some(result) = result? else {
                bail!(Stopped(format!(
                    "Stopped and saved: the search is finished, its choice is not asked yet. Go on \
                     with: lstep sweep --resume {}",
                    out.display()
                )));
            };
            test.extend(result.results.into_iter().filter(|row| row.part == Part::Test));
        }
        let config = &cells.first().context("a grid has at least one seed")?.config;
        write_text(out.join("chosen.toml"), &config.to_toml())?;
        Ok(Found {
            dataset: grid.datasets[0].digest.name.clone(),
            metric,
            chosen: label.to_string(),
            settings: last
                .models
                .iter()
                .flat_map(|model| &model.settings)
                .chain(&grid.set)
                .cloned()
                .collect(),
            points,
            test,
            version: env!("CARGO_PKG_VERSION"),
        })
    }
}

impl Found {
    /// The kinds of negatives that the chosen point was asked about.
    fn kinds(&self) -> Vec<Strategy> {
        let mut kinds: Vec<Strategy> = Vec::new();
        for row in &self.test {
            if !kinds.contains(&row.negatives) {
                kinds.push(row.negatives);
            }
        }
        kinds
    }

    /// A metric of the chosen point on the test part, over seeds.
    fn over(&self, kind: Strategy, metric: Metric) -> String {
        let rows = self.test.iter().filter(|row| row.negatives == kind);
        let spread = Spread::of(&rows.filter_map(|row| metric.of(row)).collect::<Vec<_>>());
        spread.map_or("-".into(), |spread| metric.show(&spread))
    }

    /// The choice in a sentence.
    fn told(&self) -> String {
        let test: Vec<String> = (self.kinds().into_iter())
            .map(|kind| format!("{} {}", self.over(kind, self.metric), kind))
            .collect();
        format!(
            "Chosen on validation: {}. On the test part, {}: {}.",
            self.chosen,
            self.metric.title(),
            test.join(", ")
        )
    }
}

/// The points by their number on validation, best first; of equal ones the first stays first.
fn ranked(searched: &Comparison) -> (Metric, Vec<Point>) {
    let rows = || searched.cells.iter().flat_map(|cell| &cell.results);
    let metric = if rows().any(|row| row.mrr.is_some()) { Metric::Mrr } else { Metric::Ap };
    let of_cell = |cell: &CellResult| {
        let kinds: Vec<f64> = cell.results.iter().filter_map(|row| metric.of(row)).collect();
        Spread::of(&kinds).map(|over_kinds| over_kinds.mean)
    };
    let mut points: Vec<Point> = (searched.models.iter())
        .filter_map(|label| {
            let cells = searched.cells.iter().filter(|cell| cell.model == *label);
            let validation = Spread::of(&cells.filter_map(of_cell).collect::<Vec<f64>>())?;
            Some(Point { label: label.clone(), validation })
        })
        .collect();
    points.sort_by(|a, b| b.validation.mean.total_cmp(&a.validation.mean));
    (metric, points)
}

fn show(found: &Found, out: &Path) -> Result<()> {
    let mut table = Table::new(["settings", "validation", "seeds"]);
    for point in &found.points {
        let (validation, seeds) =
            (found.metric.show(&point.validation), point.validation.count.to_string());
        table.row(vec![point.label.clone(), validation, seeds]);
    }
    say(format!("{}: {} on validation, best first", found.dataset, found.metric.title()))?;
    say(table.show().trim_end())?;
    say(format!("\nChosen: {}. On the test part:", found.chosen))?;
    let mut table = Table::new(["negatives", "ap", "auc", "mrr"]);
    for kind in found.kinds() {
        let [ap, auc, mrr] =
            [Metric::Ap, Metric::Auc, Metric::Mrr].map(|metric| found.over(kind, metric));
        table.row(vec![kind.to_string(), ap, auc, mrr]);
    }
    say(table.show().trim_end())?;
    say(format!(
        "Train with it: lstep train EVENTS --config {} --out RUN",
        out.join("chosen.toml").display()
    ))
}
