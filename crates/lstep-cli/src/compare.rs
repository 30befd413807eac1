//! `lstep compare`: datasets, models and seeds as one grid that survives interruption, with tables
//! at its end.

use crate::args::{Reading, models_help, one_of};
use crate::comparison;
use crate::evaluate::once;
use crate::grid::{self, Seeds};
use crate::runs::compare_runs;
use crate::worker::Part as GridPart;
use anyhow::{Context, Result, bail};
use clap::Args;
use lstep::experiments::{Grid, ModelSpec, PresetChoice};
use lstep::protocol::{EvalScope, Part, Protocol, Setting, Strategy};
use lstep::training::RunFolder;
use std::path::{Path, PathBuf};

const HELP: &str = "\
Settings come from the preset with the dataset's name where there is one (its protocol is dyglib, or tgb), else from each model's
defaults (protocol stream). Deviations are those of the population, as numpy's std.

Examples:
  lstep compare events.csv --models lstep,tgn,edgebank,heuristics --seeds 0..2 --out grid
  lstep compare uci/events.csv.gz enron/events.csv.gz --models lstep,lstep:variant=no-position \\
      --seeds 0..4 --settings transductive,inductive --out grid
  lstep compare uci --models lstep:recent=10,lstep:recent=30 --set train.epochs=10 --negatives random --out grid
  lstep compare --resume grid
  lstep compare events.csv --models lstep,tgn --out grid --emit slurm > grid.sbatch
  lstep compare --resume grid --worker          one of several processes that fill a grid
  lstep compare --resume grid --collect         its tables
  lstep compare run-a run-b                     runs that exist, side by side";

/// Train and evaluate models on datasets over seeds, and print tables with mean, deviation, marks
/// and average ranks.
///
/// Every cell of a learned model (a dataset, a model, a seed) is an ordinary run below OUT/runs,
/// which `lstep evaluate`, `score` and `audit` open; a counting model's is a report. Finished cells
/// are not done again and unfinished ones go on exactly; a cell with other settings is refused. The
/// same command again, or --resume OUT, goes on; more models, seeds or datasets may be added.
#[derive(Args)]
#[command(after_help = format!("\
Models, learned ones once for each seed:
{}
  NAME:key=value[:key=value...] is a variant: keys of [model], or with a dot of any part. edgebank has its published memory where the
  dataset has one, else unlimited; edgebank:memory=NAME chooses another.

{HELP}", models_help(|_| true)))]
pub struct Compare {
    /// Files of events, as for `lstep inspect`, or folders with one in it; or folders of finished
    /// runs, whose numbers and settings are shown side by side
    #[arg(value_name = "EVENTS", required_unless_present = "resume")]
    events: Vec<PathBuf>,

    /// Models, separated by commas
    #[arg(long, value_name = "MODELS", value_delimiter = ',', default_values_t = ["lstep", "edgebank", "heuristics"].map(String::from))]
    models: Vec<String>,

    /// Seeds of learned models: 0..4 is 0 to 4; or separated by commas
    #[arg(long, value_name = "SEEDS", default_value = "0..4", value_parser = grid::seeds)]
    seeds: Seeds,

    /// Kinds of negatives, separated by commas; tgb has its own [default: all three]
    #[arg(long, value_name = "NEGATIVES", value_delimiter = ',', value_parser = one_of(Strategy::DRAWN))]
    negatives: Vec<Strategy>,

    /// Ask about all events, or those with a node that training does not know; both separated by a
    /// comma
    #[arg(long, value_name = "SETTINGS", value_delimiter = ',', value_parser = one_of(Setting::ALL), default_values_t = [Setting::Transductive])]
    settings: Vec<Setting>,

    /// Where settings come from: auto, none, or a preset's name for all datasets
    #[arg(long, value_name = "NAME", default_value = "auto")]
    preset: String,

    /// How to split, step and ask, with that protocol's own settings [default: the preset's, else
    /// stream]
    #[arg(long, value_name = "NAME", value_parser = Protocol::NAMES)]
    protocol: Option<String>,

    /// A single setting for all cells, for example train.epochs=10; those of `model.` are for
    /// learned models
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,

    /// Folder for the grid
    #[arg(long, value_name = "OUT")]
    out: Option<PathBuf>,

    /// Go on with the grid in this folder
    #[arg(long, value_name = "OUT", conflicts_with_all = ["events", "out", "models", "seeds", "negatives", "settings", "preset", "protocol", "set"])]
    resume: Option<PathBuf>,

    #[command(flatten)]
    running: grid::Running,

    #[command(flatten)]
    part: GridPart,

    #[command(flatten)]
    reading: Reading,
}

impl Compare {
    /// Runs the grid, or a part of it, and prints its tables; tells whether the answer is yes.
    pub fn run(&self) -> Result<bool> {
        self.reading.refuse_on_resume(self.resume.is_some())?;
        let is_run = |path: &PathBuf| RunFolder::new(path).holds_a_run();
        if !self.events.is_empty() && self.events.iter().all(is_run) {
            if self.out.is_some() || self.protocol.is_some() || !self.set.is_empty() {
                bail!(
                    "--out, --protocol and --set have no meaning for finished runs: leave them \
                     out, or name files of events to train on"
                );
            }
            return compare_runs(&self.events, self.running.json).map(|()| true);
        }
        let out = self.resume.as_ref().or(self.out.as_ref()).context("name a folder with --out")?;
        let grid = if self.resume.is_some() { again(out)? } else { self.grid(out)? };
        if self.part.is_given() {
            return self.part.run(&grid, out, self.running.json);
        }
        let _writing = grid::lock(out)?;
        let run_epoch = format!("lstep compare --resume {}", out.display());
        let comparison = grid::run(&grid, out, &grid::runs(out), self.running.jobs, &run_epoch)?;
        comparison::tell(&comparison, out, self.running.json)?;
        Ok(true)
    }

    fn grid(&self, out: &Path) -> Result<Grid> {
        let before = Grid::read(&out.join("grid.toml"))?;
        let models: lstep::Result<Vec<ModelSpec>> =
            self.models.iter().map(|model| model.parse()).collect();
        let files: Result<Vec<_>> =
            self.events.iter().map(|path| grid::lasting(self.reading.data(path))).collect();
        let models = models?;
        let negatives =
            if self.negatives.is_empty() { &Strategy::DRAWN[..] } else { &self.negatives };
        let labels: Vec<&str> = models.iter().map(|model| model.label.as_str()).collect();
        Ok(Grid {
            title: format!("Comparison of {}", labels.join(", ")),
            seeds: self.seeds.0.clone(),
            preset: PresetChoice::from(self.preset.clone()),
            protocol: self.protocol.clone(),
            set: self.set.clone(),
            asked: EvalScope {
                parts: vec![Part::Test],
                settings: once("--settings", self.settings.iter().copied())?,
                strategies: once("--negatives", negatives.iter().copied())?,
            },
            models,
            datasets: grid::digest(files?, before.as_ref())?,
        })
    }
}

/// The grid in a folder, its files looked at again.
pub fn again(out: &Path) -> Result<Grid> {
    let before = grid::kept(out)?;
    let mut grid = before.clone();
    for (dataset, now) in grid.datasets.iter_mut().zip(&before.datasets) {
        let name = dataset.digest.name.clone();
        dataset.digest = grid::digest(vec![now.data.clone()], Some(&before))?.swap_remove(0).digest;
        // A recipe calls a dataset by the name of the tables.
        dataset.digest.name = name;
    }
    Ok(grid)
}
