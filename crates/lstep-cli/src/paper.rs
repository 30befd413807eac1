//! `lstep paper`: the paper's experiments by name, the published figure beside the measured one.

use crate::table::Table;
use crate::{comparison, grid, say};
use anyhow::{Context, Result, bail};
use clap::Args;
use lstep::data::where_to_get;
use lstep::disk::write_text;
use lstep::experiments::paper::{
    LEAK_NOTE, QUICK_EPOCHS, QUICK_EVENTS, RECIPES, Recipe, find_events, recipe, thin,
};
use lstep::experiments::{Grid, PresetChoice};
use lstep::protocol::Strategy;
use lstep::read::{read, write_events};
use lstep::settings::DataConfig;
use std::path::{Path, PathBuf};

/// Run an experiment of the L-STEP paper and print the published figures beside the measured ones.
///
/// Recipes share their cells: with one --out, a model that several recipes need is trained once. A
/// dataset that is not on the machine is named with where to get it, and skipped.
#[derive(Args)]
#[command(after_help = "\
Without a name, lists the recipes.

Datasets are looked for as DATA/NAME/events.csv.gz and in the benchmarks' own layouts, DATA/NAME/ml_NAME.csv and
DATA/NAME/NAME_edgelist.csv.

Examples:
  lstep paper
  lstep paper transductive-random --data datasets --out paper
  lstep paper attention --quick                                  minutes instead of hours: shows that it runs
  lstep paper t-gap --data datasets --seeds 0..2 --set train.epochs=20")]
pub struct Paper {
    /// The recipe
    #[arg(value_name = "NAME")]
    name: Option<String>,

    /// List the recipes
    #[arg(long)]
    list: bool,

    /// Folder with the datasets [default: the folder that LSTEP_DATA names]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,

    /// Folder for the cells of all recipes, and a folder of tables for each [default: lstep-paper,
    /// or lstep-paper-quick]
    #[arg(long, value_name = "OUT")]
    out: Option<PathBuf>,

    /// Scale down to minutes: thinned streams, two epochs, one seed. The numbers then mean little
    #[arg(long)]
    quick: bool,

    /// Only these datasets of the recipe, separated by commas
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    datasets: Vec<String>,

    /// Seeds: 0..4 is 0 to 4; or separated by commas [default: the paper's 0..4; with --quick 0]
    #[arg(long, value_name = "SEEDS", value_parser = grid::seeds)]
    seeds: Option<grid::Seeds>,

    /// A single setting for all cells, for example train.epochs=20
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,

    #[command(flatten)]
    running: grid::Running,
}

/// A dataset's name and its file.
type Located = (&'static str, PathBuf);

impl Paper {
    /// Runs a recipe, or lists them.
    pub fn run(&self) -> Result<()> {
        let Some(name) = self.name.as_deref().filter(|_| !self.list) else { return self.list() };
        let recipe = recipe(name)?;
        let default = if self.quick { "lstep-paper-quick" } else { "lstep-paper" };
        let root = self.out.clone().unwrap_or_else(|| default.into());
        let out = root.join(recipe.name);
        let (found, missing) = self.find(recipe)?;
        for line in &missing {
            crate::tell(format!("skipped: {line}"));
        }
        if found.is_empty() {
            bail!(
                "none of the datasets of {} is there; fetch one, or name their folder with --data",
                recipe.name
            );
        }
        let grid = self.grid(recipe, found, &root, &out)?;
        // Times count only where no other cell ran beside: such a recipe shares its cells with
        // none.
        let (jobs, runs) = match recipe.timed {
            true => (grid::AtOnce(Some(1)), grid::runs(&out)),
            false => (self.running.jobs, grid::runs(&root)),
        };
        let _writing = grid::lock(&out)?;
        let run_epoch = "the same command again";
        let mut comparison = grid::run(&grid, &out, &runs, jobs, run_epoch)?;
        comparison.published = recipe.published();
        comparison.notes.extend(self.notes(recipe, missing));
        comparison::tell(&comparison, &out, self.running.json)
    }

    fn list(&self) -> Result<()> {
        if self.running.json {
            let list: Vec<serde_json::Value> = (RECIPES.iter())
                .map(|recipe| {
                    let models: Vec<&str> = recipe.models.iter().map(|model| model.0).collect();
                    serde_json::json!({
                        "name": recipe.name, "about": recipe.about, "tables": recipe.tables,
                        "datasets": recipe.datasets, "models": models,
                    })
                })
                .collect();
            return say(serde_json::to_string_pretty(&list)?);
        }
        let mut table = Table::new(["recipe", "datasets", "what it shows"]);
        for recipe in RECIPES {
            let datasets = if recipe.datasets.len() > 4 {
                "all 13".into()
            } else {
                recipe.datasets.join(", ")
            };
            table.row(vec![recipe.name.into(), datasets, recipe.about.into()]);
        }
        say(table.show().trim_end())?;
        say("\nRun one with: lstep paper NAME --data DIR; --quick takes minutes.")
    }

    /// The files of the recipe's datasets, and what to say about those that are not there.
    fn find(&self, recipe: &Recipe) -> Result<(Vec<Located>, Vec<String>)> {
        for name in &self.datasets {
            if !recipe.datasets.contains(&name.as_str()) {
                bail!(
                    "{} has no dataset {name}: choose from {}",
                    recipe.name,
                    recipe.datasets.join(", ")
                );
            }
        }
        let data = self.data.clone().or_else(|| std::env::var_os("LSTEP_DATA").map(PathBuf::from));
        if let Some(data) = data.as_ref().filter(|data| !data.is_dir()) {
            bail!("{} is not a folder: name the one with the datasets with --data", data.display());
        }
        let (mut found, mut missing) = (Vec::new(), Vec::new());
        for &name in recipe.datasets {
            if !self.datasets.is_empty() && !self.datasets.iter().any(|wanted| wanted == name) {
                continue;
            }
            match data.as_deref().and_then(|data| find_events(data, name)) {
                Some(path) => found.push((name, path)),
                None => {
                    let place = data
                        .as_ref()
                        .map_or("no folder is named with --data or LSTEP_DATA".into(), |data| {
                            format!("not in {}", data.display())
                        });
                    let source = where_to_get(name).map_or("ask its authors".into(), |entry| {
                        format!(
                            "lstep data fetch {} downloads it from {} (licence: {})",
                            entry.name, entry.source, entry.licence
                        )
                    });
                    missing.push(format!("{name}: {place}; {source}"));
                }
            }
        }
        Ok((found, missing))
    }

    fn grid(&self, recipe: &Recipe, found: Vec<Located>, root: &Path, out: &Path) -> Result<Grid> {
        let before = Grid::read(&out.join("grid.toml"))?;
        let mut datasets = Vec::new();
        for (name, path) in found {
            let data = DataConfig { events: path, ..DataConfig::default() };
            let data = if self.quick { thinned(name, &data, &root.join("quick"))? } else { data };
            let mut dataset =
                grid::digest(vec![grid::lasting(data)?], before.as_ref())?.swap_remove(0);
            dataset.digest.name = name.to_string();
            datasets.push(dataset);
        }
        let mut set =
            if self.quick { vec![format!("train.epochs={QUICK_EPOCHS}")] } else { Vec::new() };
        set.extend(self.set.iter().cloned());
        let last = if self.quick { 0 } else { 4 };
        Ok(Grid {
            title: format!("{}: {} ({})", recipe.name, recipe.about, recipe.tables.join(", ")),
            seeds: self
                .seeds
                .as_ref()
                .map_or_else(|| (0..=last).collect(), |seeds| seeds.0.clone()),
            protocol: None,
            preset: PresetChoice::Auto,
            set,
            asked: recipe.asked(),
            models: recipe.models()?,
            datasets,
        })
    }

    /// What a reader of the table has to know.
    fn notes(&self, recipe: &Recipe, missing: Vec<String>) -> Vec<String> {
        let protocol = if recipe.asked().strategies == [Strategy::Tgb] {
            "Protocol tgb: its split and negatives, nothing of the own step is seen; MRR with ties in the middle."
        } else {
            "Protocol dyglib: the split, steps and negatives behind the published tables; AP and ROC-AUC are means over steps. \
             Settings and steps are those of the presets, the epoch is chosen on validation."
        };
        let mut notes = vec![
            protocol.to_string(),
            format!(
                "{LEAK_NOTE} lstep audit RUN --show-released-leak shows what the leak is worth."
            ),
        ];
        if !recipe.remark.is_empty() {
            notes.push(recipe.remark.to_string());
        }
        if self.quick {
            notes.push(format!(
                "--quick: every stream thinned to {QUICK_EVENTS} events, {QUICK_EPOCHS} epochs: these numbers show that the recipe \
                 runs, and cannot be held against published ones."
            ));
        }
        notes.extend(missing.into_iter().map(|line| format!("Skipped {line}.")));
        notes
    }
}

/// A thinned copy of a dataset, made once.
fn thinned(name: &str, data: &DataConfig, folder: &Path) -> Result<DataConfig> {
    let folder = folder.join(name);
    let path = folder.join("events.csv.gz");
    let apart = folder.join("bipartite");
    if !path.exists() {
        let busy = crate::progress::busy(&format!("thinning {name}"));
        let dataset = read(&data.events, &data.options()).context("cannot read the events")?;
        std::fs::create_dir_all(&folder)
            .with_context(|| format!("cannot make {}", folder.display()))?;
        // A CSV cannot say that the two sides are apart; a mark beside it does.
        if dataset.bipartite() {
            write_text(&apart, "")?;
        }
        write_events(&path, &thin(dataset, QUICK_EVENTS)?)?;
        busy.finish_and_clear();
    }
    Ok(DataConfig { events: path, bipartite: apart.exists(), ..DataConfig::default() })
}
