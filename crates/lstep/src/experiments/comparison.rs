//! A [`Comparison`]: everything that the tables, files and reports of a grid need.

use super::{Lead, Metric};
use crate::disk::path_text;
use crate::fingerprint::Fingerprint;
use crate::model::ModelConfig;
use crate::protocol::{EvalScope, Part, Protocol, Setting, Strategy};
use crate::results::ResultRow;
use crate::results::{TiesReport, TrainingSummary};
use crate::settings::TrainConfig;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// What a grid gave: `comparison.json`.
///
/// Deviations over seeds are population deviations (divided by the number of seeds, as numpy's
/// `std` does and the field's tables do).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// What was compared, for headings.
    pub title: String,
    /// The datasets, in the order of the rows.
    pub datasets: Vec<ComparedDataset>,
    /// The models' labels, in the order of the columns.
    pub models: Vec<String>,
    /// The seeds of learned models.
    pub seeds: Vec<u64>,
    /// What was asked, where a dataset's protocol has no negatives of its own.
    pub asked: EvalScope,
    /// Single settings that were laid over all cells, as `key=value`.
    pub set: Vec<String>,
    /// What was measured, in the order datasets, models, seeds.
    pub cells: Vec<CellResult>,
    /// Cells that ended with an error.
    pub failed: Vec<FailedCell>,
    /// Cells that are not finished yet.
    pub unfinished: usize,
    /// How far the best model of every table's row is ahead of the next, with its interval.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leads: Vec<LeadRow>,
    /// Figures that others published for the same questions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub published: Vec<Published>,
    /// What a reader has to know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// The version of this library.
    pub version: String,
}

/// The lead of a row of a table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LeadRow {
    /// The part asked about.
    pub part: Part,
    /// Which of its events.
    pub setting: Setting,
    /// The kind of negatives.
    pub negatives: Strategy,
    /// The metric.
    pub metric: Metric,
    /// The dataset.
    pub dataset: String,
    /// Who leads, over whom, by how much.
    #[serde(flatten)]
    pub lead: Lead,
}

/// A dataset of a comparison.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ComparedDataset {
    /// Its name.
    pub name: String,
    /// Its nodes.
    pub nodes: usize,
    /// Its events.
    pub events: usize,
    /// The preset its settings come from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preset: Option<String>,
}

/// What one cell gave.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CellResult {
    /// The dataset's name.
    pub dataset: String,
    /// The model's label.
    pub model: String,
    /// The seed, for a model that learns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Its folder, below that of the grid. A learned model's is an ordinary run.
    #[serde(with = "path_text")]
    pub folder: PathBuf,
    /// The protocol with all its settings.
    pub protocol: Protocol,
    /// The model with all its settings. Where EdgeBank's memory follows the negatives, that of the
    /// first result: each result has its own.
    pub config: ModelConfig,
    /// How it was trained.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub train: Option<TrainConfig>,
    /// How training went.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub training: Option<TrainingSummary>,
    /// What the order of events that share a time is worth to it, where most do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ties: Option<TiesReport>,
    /// The numbers, one entry for each part, setting and kind of negatives.
    pub results: Vec<ResultRow>,
}

/// A cell that ended with an error.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FailedCell {
    /// The dataset's name.
    pub dataset: String,
    /// The model's label.
    pub model: String,
    /// The seed, for a model that learns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// What went wrong.
    pub error: String,
}

/// A figure that somebody published, as a share of 1 where it is a metric, in seconds where it is a
/// time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Published {
    /// The LaTeX label of the table.
    pub table: String,
    /// Which events were asked: `transductive` or `inductive`.
    pub setting: String,
    /// The kind of negatives: `random`, `historical`, `inductive` or `tgb`.
    pub negatives: String,
    /// The metric: `ap`, `auc`, `mrr`, `validation-mrr`, `seconds`, `epochs`, `average-rank-ap` or
    /// `average-rank-auc`.
    pub metric: String,
    /// The dataset's name as here; `all` for an average rank.
    pub dataset: String,
    /// The model's label as here.
    pub model: String,
    /// The figure.
    pub mean: f64,
    /// Its deviation, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deviation: Option<f64>,
}

impl Comparison {
    /// The same without what a clock said: times and rates are 0. Two grids with the same cells are
    /// equal in everything else, whoever ran them, in which order and on how many machines.
    #[must_use]
    pub fn without_times(&self) -> Comparison {
        let mut same = self.clone();
        for cell in &mut same.cells {
            for row in &mut cell.results {
                (row.outcome.seconds, row.events_per_second) = (0.0, 0.0);
            }
            let Some(training) = &mut cell.training else { continue };
            training.seconds = 0.0;
            training.seconds_per_epoch = 0.0;
            training.events_per_second = 0.0;
            for epoch in &mut training.curve {
                (epoch.train_seconds, epoch.train_events_per_second) = (0.0, 0.0);
                (epoch.validation_seconds, epoch.validation_pairs_per_second) = (0.0, 0.0);
            }
        }
        same
    }

    /// The SHA-256 of everything but what a clock said, as JSON.
    pub fn numbers_sha256(&self) -> String {
        let mut hash = Fingerprint::default();
        hash.take(serde_json::to_string(&self.without_times()).expect("it is plain data"));
        hash.hex()
    }

    /// The leads of all tables.
    pub(super) fn find_leads(&self) -> Vec<LeadRow> {
        let mut leads = Vec::new();
        for table in self.tables() {
            for row in &table.rows {
                let Some(lead) = &row.lead else { continue };
                leads.push(LeadRow {
                    part: table.part,
                    setting: table.setting,
                    negatives: table.negatives,
                    metric: table.metric,
                    dataset: row.dataset.clone(),
                    lead: lead.clone(),
                });
            }
        }
        leads
    }

    /// Datasets and models with fewer seeds than asked for, and how many they have: others failed
    /// or are not finished.
    pub fn short_of_seeds(&self) -> Vec<(&str, &str, usize)> {
        let mut short = Vec::new();
        for dataset in &self.datasets {
            for model in &self.models {
                let of_it =
                    |cell: &&CellResult| cell.dataset == dataset.name && cell.model == *model;
                let seeds =
                    self.cells.iter().filter(of_it).filter(|cell| cell.seed.is_some()).count();
                if seeds > 0 && seeds < self.seeds.len() {
                    short.push((dataset.name.as_str(), model.as_str(), seeds));
                }
            }
        }
        short
    }
}
