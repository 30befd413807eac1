//! What is to be compared: datasets, models, seeds, questions, and what is set for all. A grid is
//! one TOML and becomes cells.

use super::spec::file_name;
use crate::disk::{SETTINGS_LIMIT, read_text, write_text};
use crate::error::{Error, InputFault, Remedy, Result};
use crate::evaluation::EvaluatedModel;
use crate::experiments::Cell;
use crate::experiments::ModelSpec;
use crate::experiments::{CellResult, ComparedDataset, Comparison, FailedCell};
use crate::fingerprint::Fingerprint;
use crate::model::FeatureWidths;
use crate::protocol::{EvalScope, StepRule};
use crate::read::{files_of, read};
use crate::settings::preset_names;
use crate::settings::{DataConfig, RunConfig};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::path::{Path, PathBuf};

/// What is to be compared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grid {
    /// What it is about, for headings.
    pub title: String,
    /// Seeds of learned models.
    pub seeds: Vec<u64>,
    /// Where settings come from.
    pub preset: PresetChoice,
    /// The protocol of all cells, where it is not that of their presets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
    /// Single settings for all cells, as `key=value`. Those of `model.` are for learned models
    /// alone.
    pub set: Vec<String>,
    /// What is asked; a dataset of TGB has settings and negatives of its own.
    pub asked: EvalScope,
    /// Who is asked.
    pub models: Vec<ModelSpec>,
    /// About what.
    pub datasets: Vec<GridData>,
}

/// A dataset of a grid.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GridData {
    /// What was found in it.
    pub digest: DatasetDigest,
    /// Where it is and how it is read.
    pub data: DataConfig,
}

/// What has to be known of a dataset before its cells run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DatasetDigest {
    /// Its name.
    pub name: String,
    /// Its nodes.
    pub nodes: usize,
    /// Its events.
    pub events: usize,
    /// Features of an event.
    pub features: usize,
    /// Features of a node.
    pub node_features: usize,
    /// Hash of the file of events and of the tables of features that belong to it.
    pub sha256: String,
}

/// Which preset a dataset's cells start from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum PresetChoice {
    /// The one with the dataset's name, where there is one.
    Auto,
    /// The defaults of each model.
    None,
    /// This one for all.
    Named(String),
}

impl From<String> for PresetChoice {
    fn from(text: String) -> PresetChoice {
        match text.as_str() {
            "auto" => PresetChoice::Auto,
            "none" => PresetChoice::None,
            _ => PresetChoice::Named(text),
        }
    }
}

impl From<PresetChoice> for String {
    fn from(choice: PresetChoice) -> String {
        match choice {
            PresetChoice::Auto => "auto".into(),
            PresetChoice::None => "none".into(),
            PresetChoice::Named(name) => name,
        }
    }
}

impl PresetChoice {
    /// The preset of a dataset.
    pub fn of(&self, dataset: &str) -> Option<String> {
        match self {
            // DGB writes `CanParl` where others write `canparl`.
            PresetChoice::Auto => {
                preset_names().into_iter().find(|name| name.eq_ignore_ascii_case(dataset))
            }
            PresetChoice::None => None,
            PresetChoice::Named(name) => Some(name.clone()),
        }
    }
}

impl DatasetDigest {
    /// Looks into a file. One that is as it was before is not read again.
    pub fn of(data: &DataConfig, before: Option<&GridData>) -> Result<DatasetDigest> {
        let mut hash = Fingerprint::default();
        let (path, options) = (&data.events, data.options());
        for path in files_of(path, &options) {
            let mut file = File::open(&path).map_err(|error| Error::io(&path, error))?;
            std::io::copy(&mut file, &mut hash).map_err(|error| Error::io(&path, error))?;
        }
        let sha256 = hash.hex();
        if let Some(before) =
            before.filter(|before| before.data == *data && before.digest.sha256 == sha256)
        {
            return Ok(before.digest.clone());
        }
        let dataset = read(path, &options)?;
        Ok(DatasetDigest {
            name: dataset.name,
            nodes: dataset.names.len(),
            events: dataset.events.len(),
            features: dataset.events.features().width(),
            node_features: dataset.node_features.width(),
            sha256,
        })
    }
}

impl Grid {
    /// Reads a grid's file, if there is one.
    pub fn read(path: &Path) -> Result<Option<Grid>> {
        if !path.exists() {
            return Ok(None);
        }
        let text = read_text(path, SETTINGS_LIMIT)?;
        let refused = |error: toml::de::Error| {
            let problem = format!("is no grid ({})", error.message());
            let file = path.display().to_string();
            Error::from(InputFault::new(file, problem, "remove it, or choose another folder"))
        };
        toml::from_str(&text).map(Some).map_err(refused)
    }

    /// Refuses to take the place of what a folder's file holds if a dataset is not what it was, or
    /// if that is another kind of grid: a sweep asks about validation, a comparison about the test
    /// part.
    pub fn fits(&self, path: &Path) -> Result<()> {
        let Some(before) = Grid::read(path)? else { return Ok(()) };
        if before.asked.parts != self.asked.parts {
            let problem = format!("holds another kind of grid ({})", before.title);
            let file = path.display().to_string();
            let fault = InputFault::new(file, problem, "choose another folder");
            return Err(Error::incompatible(fault));
        }
        for dataset in &self.datasets {
            let known = before.datasets.iter().find(|known| known.data == dataset.data);
            if known.is_some_and(|known| known.digest.sha256 != dataset.digest.sha256) {
                return Err(Error::incompatible(InputFault::new(
                    dataset.data.events.display().to_string(),
                    "the file or its features have changed since the grid began",
                    "put the old files back, or choose another folder",
                )));
            }
        }
        Ok(())
    }

    /// Writes it, so that it can be gone on with.
    pub fn keep(&self, path: &Path) -> Result<()> {
        write_text(path, &toml::to_string_pretty(self).expect("a grid is plain data"))
    }

    /// Its cells, in the order datasets, models, seeds. Their folders are below `runs`.
    pub fn cells(&self, runs: &Path) -> Result<Vec<Cell>> {
        self.refuse_doubles()?;
        let mut cells = Vec::new();
        for dataset in &self.datasets {
            for spec in &self.models {
                let below = PathBuf::from(file_name(&dataset.digest.name)).join(spec.folder());
                if spec.learns() {
                    for &seed in &self.seeds {
                        let below = below.join(format!("seed-{seed}"));
                        let config = self.config(dataset, spec, Some(seed))?;
                        cells.push(self.cell(
                            dataset,
                            spec,
                            Some(seed),
                            config,
                            None,
                            (runs, below),
                        ));
                    }
                } else {
                    let mut config = self.config(dataset, spec, None)?;
                    let asked = config.protocol.scope(&self.asked);
                    let model = spec.model(&dataset.digest.name, &asked.strategies)?;
                    if let EvaluatedModel::Fixed(model) = &model {
                        config.model = model.clone();
                    }
                    cells.push(self.cell(dataset, spec, None, config, Some(model), (runs, below)));
                }
            }
        }
        Ok(cells)
    }

    fn cell(
        &self,
        dataset: &GridData,
        spec: &ModelSpec,
        seed: Option<u64>,
        config: RunConfig,
        counting: Option<EvaluatedModel>,
        (runs, below): (&Path, PathBuf),
    ) -> Cell {
        Cell {
            dataset: dataset.digest.name.clone(),
            model: spec.label.clone(),
            seed,
            asked: config.protocol.scope(&self.asked),
            folder: runs.join(&below),
            below,
            memory: super::memory::estimate(&dataset.digest, &config.model),
            events: dataset.digest.events,
            sha256: dataset.digest.sha256.clone(),
            config,
            counting,
        }
    }

    fn config(&self, dataset: &GridData, spec: &ModelSpec, seed: Option<u64>) -> Result<RunConfig> {
        let mut keys: Vec<String> = self.set.clone();
        match seed {
            Some(seed) => {
                keys.extend(spec.keys());
                keys.push(format!("train.seed={seed}"));
            }
            None => keys.retain(|key| !key.starts_with("model.")),
        }
        let preset = self.preset.of(&dataset.digest.name);
        let mut config = RunConfig::builder(dataset.data.clone())
            .model_config(spec.base()?)
            .preset(preset.as_deref())
            .protocol(self.protocol.as_deref())
            .set(&keys)
            .build()?;
        // As the run itself will: its folder holds the widths it has.
        let features =
            FeatureWidths { node: dataset.digest.node_features, edge: dataset.digest.features };
        config.model = config.model.widened_for(features);
        config.train.check()?;
        config.model.check()?;
        Ok(config)
    }

    /// Two of a name would share folders or columns.
    fn refuse_doubles(&self) -> Result<()> {
        let names: Vec<&str> =
            self.datasets.iter().map(|dataset| dataset.digest.name.as_str()).collect();
        if let Some(name) = double(&names) {
            let remedy = "put them into folders with names of their own";
            return Err(Error::duplicate("datasets", name, remedy));
        }
        let labels: Vec<&str> = self.models.iter().map(|model| model.label.as_str()).collect();
        if let Some(label) = double(&labels) {
            return Err(Error::duplicate("models", label, "name every model once"));
        }
        let mut keys = self.set.iter().cloned().chain(self.models.iter().flat_map(ModelSpec::keys));
        if let Some(seed) = keys.find_map(|key| key.strip_prefix("train.seed=").map(String::from)) {
            let problem = "a grid has its own seeds";
            return Err(Error::refused("train.seed", seed, problem, Remedy::NameSeeds));
        }
        if let Some(seed) = double(&self.seeds) {
            return Err(Error::duplicate("seeds", seed, "name every seed once"));
        }
        if self.datasets.is_empty() || self.models.is_empty() || self.seeds.is_empty() {
            return Err(Error::setting(
                "grid",
                "empty",
                "name at least one dataset, one model and one seed",
            ));
        }
        Ok(())
    }

    /// What is known when cells have run.
    pub fn comparison(
        &self,
        mut cells: Vec<CellResult>,
        failed: Vec<FailedCell>,
        of: usize,
    ) -> Comparison {
        let place = |cell: &CellResult| {
            let dataset =
                self.datasets.iter().position(|dataset| dataset.digest.name == cell.dataset);
            (dataset, self.models.iter().position(|model| model.label == cell.model), cell.seed)
        };
        cells.sort_by_key(place);
        let dataset = |dataset: &GridData| ComparedDataset {
            name: dataset.digest.name.clone(),
            nodes: dataset.digest.nodes,
            events: dataset.digest.events,
            preset: self.preset.of(&dataset.digest.name),
        };
        let notes = self
            .datasets
            .iter()
            .filter_map(|dataset| other_questions(&dataset.digest.name, &cells))
            .collect();
        let mut comparison = Comparison {
            title: self.title.clone(),
            datasets: self.datasets.iter().map(dataset).collect(),
            models: self.models.iter().map(|model| model.label.clone()).collect(),
            seeds: self.seeds.clone(),
            asked: self.asked.clone(),
            set: self.set.clone(),
            unfinished: of - cells.len() - failed.len(),
            cells,
            failed,
            leads: Vec::new(),
            published: Vec::new(),
            notes,
            version: env!("CARGO_PKG_VERSION").to_string(),
        };
        comparison.leads = comparison.find_leads();
        comparison
    }
}

fn double<T: PartialEq + Copy>(names: &[T]) -> Option<T> {
    names
        .iter()
        .enumerate()
        .find(|(place, name)| names[..*place].contains(name))
        .map(|(_, name)| *name)
}

/// What a reader has to know where models were not asked the same questions about a dataset:
/// presets may cut a stream into other steps for other models, and negatives are drawn by step.
fn other_questions(dataset: &str, cells: &[CellResult]) -> Option<String> {
    let mut kinds: Vec<(&str, u32, Vec<&str>)> = Vec::new();
    for cell in cells.iter().filter(|cell| cell.dataset == dataset) {
        let Some(row) = cell.results.first() else { continue };
        let StepRule::Events(step) = cell.protocol.step() else { return None };
        match kinds
            .iter_mut()
            .find(|kind| (kind.0, kind.1) == (row.negatives_sha256.as_str(), step))
        {
            Some((_, _, models)) if models.contains(&cell.model.as_str()) => {}
            Some((_, _, models)) => models.push(&cell.model),
            None => kinds.push((&row.negatives_sha256, step, vec![&cell.model])),
        }
    }
    let told: Vec<String> = kinds
        .iter()
        .map(|(_, step, models)| format!("{} in steps of {step}", models.join(", ")))
        .collect();
    (told.len() > 1).then(|| {
        format!(
            "{dataset}: not all models are asked the same questions ({}). AP is a mean over steps, and negatives may be drawn by \
             step, so small differences between these groups say little; one protocol.step for all asks them alike",
            told.join("; ")
        )
    })
}
