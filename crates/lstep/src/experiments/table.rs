//! Tables of a comparison: mean and deviation over seeds, the best and the second marked where they
//! are ahead beyond chance, average ranks as the field computes them.
//!
//! A model without a number for a dataset ranks last there, as in the published tables (a test
//! recomputes their row "Avg. Rank"); one without any number has no average rank. Equal means share the better place; there, one of the two is
//! put behind the other.

use super::lead::{BySeed, Lead, judge};
use crate::experiments::{CellResult, Comparison};
use crate::protocol::{Part, Setting, Strategy};
use crate::results::{ResultRow, TiesReport, TrainingSummary};
use serde::{Deserialize, Serialize};

/// A number of a result that tables can show. All are better when higher.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Metric {
    /// Average precision, the mean over steps.
    Ap,
    /// ROC-AUC, the mean over steps.
    Auc,
    /// Mean reciprocal rank.
    Mrr,
}

impl Metric {
    /// Its value in a result, where it has one.
    pub fn of(self, row: &ResultRow) -> Option<f64> {
        match self {
            Metric::Ap => Some(row.ap),
            Metric::Auc => Some(row.auc),
            Metric::Mrr => row.mrr,
        }
    }

    /// As tables write it.
    pub fn title(self) -> &'static str {
        match self {
            Metric::Ap => "AP",
            Metric::Auc => "ROC-AUC",
            Metric::Mrr => "MRR",
        }
    }

    /// As files write it.
    pub fn key(self) -> &'static str {
        match self {
            Metric::Ap => "ap",
            Metric::Auc => "auc",
            Metric::Mrr => "mrr",
        }
    }
}

/// How a number stands among those of its row, by paired 95 % intervals over seeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mark {
    /// Better than every other.
    Best,
    /// Better than every other but the best.
    Second,
}

/// A number over seeds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// The mean.
    pub mean: f64,
    /// The population deviation.
    pub deviation: f64,
    /// Over how many seeds.
    pub count: usize,
    /// Whether it is ahead of the others of its row.
    pub mark: Option<Mark>,
}

impl Spread {
    /// Mean and deviation of some values; nothing if there are none.
    pub fn of(values: &[f64]) -> Option<Spread> {
        let count = values.len();
        let mean = values.iter().sum::<f64>() / count as f64;
        let variance =
            values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count as f64;
        (count > 0).then_some(Spread { mean, deviation: variance.sqrt(), count, mark: None })
    }

    /// The 95 % interval of the mean over seeds, by Student's t; nothing for one seed, which tells
    /// nothing of others.
    pub fn interval(&self) -> Option<(f64, f64)> {
        // Two-sided 95 % quantiles for 1, 2, ... degrees of freedom.
        const QUANTILES: [f64; 10] =
            [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228];
        let free = self.count.checked_sub(1).filter(|&free| free > 0)?;
        let quantile = QUANTILES.get(free - 1).copied().unwrap_or(2.2);
        // The deviation kept is that of the population.
        let half = quantile * self.deviation / (free as f64).sqrt();
        Some((self.mean - half, self.mean + half))
    }
}

/// A row of a table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TableRow {
    /// The dataset.
    pub dataset: String,
    /// One for each model, where it has a number.
    pub cells: Vec<Option<Spread>>,
    /// How far the best mean is ahead of the next, where there are two.
    pub lead: Option<Lead>,
}

/// All models on all datasets for one kind of question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ComparisonTable {
    /// The part asked about.
    pub part: Part,
    /// Which of its events.
    pub setting: Setting,
    /// The kind of negatives.
    pub negatives: Strategy,
    /// What is shown.
    pub metric: Metric,
    /// The columns.
    pub models: Vec<String>,
    /// The rows.
    pub rows: Vec<TableRow>,
    /// Average rank of each model over the rows, if it has a number in one of them.
    pub average_ranks: Vec<Option<f64>>,
}

impl ComparisonTable {
    /// What it is about: `AP, transductive, random negatives, test`.
    pub fn title(&self) -> String {
        format!(
            "{}, {}, {} negatives, {}",
            self.metric.title(),
            self.setting,
            self.negatives,
            self.part
        )
    }

    /// The average ranks as text, `-` where a model has none.
    pub fn shown_ranks(&self) -> impl Iterator<Item = String> {
        self.average_ranks.iter().map(|rank| rank.map_or("-".into(), |rank| format!("{rank:.2}")))
    }
}

/// How long a model trained on a dataset, over seeds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrainingRow {
    /// The dataset.
    pub dataset: String,
    /// The model's label.
    pub model: String,
    /// Epochs until training stopped.
    pub epochs: Spread,
    /// Time of all epochs, validation included.
    pub seconds: Spread,
    /// Time of an epoch's training pass.
    pub seconds_per_epoch: Spread,
    /// Training events in a second.
    pub events_per_second: Spread,
}

/// What the order of events that share a time is worth to a model on a dataset, over seeds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TiesRow {
    /// The dataset.
    pub dataset: String,
    /// The model's label.
    pub model: String,
    /// Share of the dataset's events that share their time with another.
    pub tied_share: f64,
    /// Test AP with ties in the order of the file.
    pub file: Spread,
    /// With ties shuffled.
    pub shuffled: Spread,
    /// With a state of strictly earlier events.
    pub strict: Spread,
    /// An oracle's that knows all pairs of the test part.
    pub oracle: f64,
}

impl TiesRow {
    /// What the columns are called.
    pub const COLUMNS: [&'static str; 7] =
        ["dataset", "model", "tied", "file order", "shuffled", "strict", "graph oracle"];

    /// The row as tables write it, under [`TiesRow::COLUMNS`].
    pub fn shown(&self) -> [String; 7] {
        let show = |spread: &Spread| Metric::Ap.show(spread);
        [
            self.dataset.clone(),
            self.model.clone(),
            format!("{:.0} %", 100.0 * self.tied_share),
            show(&self.file),
            show(&self.shuffled),
            show(&self.strict),
            Metric::Ap.show_figure(self.oracle, None),
        ]
    }
}

impl Comparison {
    /// What the order of ties is worth to every model, on datasets where most events are tied.
    pub fn ties_rows(&self) -> Vec<TiesRow> {
        let mut rows = Vec::new();
        for dataset in &self.datasets {
            for model in &self.models {
                let of_it =
                    |cell: &&CellResult| cell.dataset == dataset.name && cell.model == *model;
                let reports: Vec<&TiesReport> =
                    self.cells.iter().filter(of_it).filter_map(|cell| cell.ties.as_ref()).collect();
                let over = |number: &dyn Fn(&TiesReport) -> f64| {
                    Spread::of(&reports.iter().map(|report| number(report)).collect::<Vec<_>>())
                };
                let (Some(first), Some(file), Some(shuffled), Some(strict)) = (
                    reports.first(),
                    over(&|report| report.file_ap),
                    over(&|report| report.shuffled_ap),
                    over(&|report| report.strict_ap),
                ) else {
                    continue;
                };
                rows.push(TiesRow {
                    dataset: dataset.name.clone(),
                    model: model.clone(),
                    tied_share: first.tied_share,
                    file,
                    shuffled,
                    strict,
                    oracle: first.oracle_ap,
                });
            }
        }
        rows
    }

    /// How long every model trained on every dataset.
    pub fn training_rows(&self) -> Vec<TrainingRow> {
        let pairs = self
            .datasets
            .iter()
            .flat_map(|dataset| self.models.iter().map(move |model| (&dataset.name, model)));
        let row = |(dataset, model): (&String, &String)| {
            let of = |cell: &&CellResult| cell.dataset == *dataset && cell.model == *model;
            let trainings: Vec<&TrainingSummary> =
                self.cells.iter().filter(of).filter_map(|cell| cell.training.as_ref()).collect();
            let over = |number: &dyn Fn(&TrainingSummary) -> f64| {
                Spread::of(&trainings.iter().map(|training| number(training)).collect::<Vec<_>>())
            };
            Some(TrainingRow {
                dataset: dataset.clone(),
                model: model.clone(),
                epochs: over(&|training| f64::from(training.epochs))?,
                seconds: over(&|training| training.seconds)?,
                seconds_per_epoch: over(&|training| training.seconds_per_epoch)?,
                events_per_second: over(&|training| training.events_per_second)?,
            })
        };
        pairs.filter_map(row).collect()
    }

    /// One table for each part, setting, kind of negatives and metric that was measured.
    pub fn tables(&self) -> Vec<ComparisonTable> {
        let mut tables = Vec::new();
        for (question, ranked) in self.questions() {
            for metric in if ranked { &[Metric::Mrr][..] } else { &[Metric::Ap, Metric::Auc] } {
                tables.push(self.table(question, *metric));
            }
        }
        tables
    }

    /// Every kind of question with whether it is one of ranks, in the order of the first dataset's
    /// results.
    fn questions(&self) -> Vec<(Question, bool)> {
        let mut questions: Vec<(Question, bool)> = Vec::new();
        for row in self.cells.iter().flat_map(|cell| &cell.results) {
            let asked = (row.part, row.setting, row.negatives);
            match questions.iter_mut().find(|known| known.0 == asked) {
                Some(known) => known.1 |= row.mrr.is_some(),
                None => questions.push((asked, row.mrr.is_some())),
            }
        }
        questions
    }

    fn table(&self, question: Question, metric: Metric) -> ComparisonTable {
        let value = |cell: &CellResult| {
            let row =
                cell.results.iter().find(|row| (row.part, row.setting, row.negatives) == question);
            row.and_then(|row| metric.of(row))
        };
        let rows: Vec<TableRow> = (self.datasets.iter())
            .map(|dataset| {
                let by_seed = |model: &String| -> BySeed {
                    let of =
                        |cell: &&CellResult| cell.dataset == dataset.name && cell.model == *model;
                    let cells = self.cells.iter().filter(of);
                    cells.filter_map(|cell| Some((cell.seed, value(cell)?))).collect()
                };
                let values: Vec<BySeed> = self.models.iter().map(by_seed).collect();
                let spread = |values: &BySeed| {
                    Spread::of(&values.iter().map(|(_, value)| *value).collect::<Vec<_>>())
                };
                let mut cells: Vec<Option<Spread>> = values.iter().map(spread).collect();
                let lead = judge(&self.models, &values, &mut cells);
                TableRow { dataset: dataset.name.clone(), cells, lead }
            })
            .filter(|row| row.cells.iter().any(Option::is_some))
            .collect();
        let means: Vec<Vec<Option<f64>>> = rows
            .iter()
            .map(|row| row.cells.iter().map(|cell| cell.as_ref().map(|cell| cell.mean)).collect())
            .collect();
        ComparisonTable {
            part: question.0,
            setting: question.1,
            negatives: question.2,
            metric,
            models: self.models.clone(),
            rows,
            average_ranks: average_ranks(&means),
        }
    }
}

/// A part, a setting, a kind of negatives.
type Question = (Part, Setting, Strategy);

/// The place of every value, from 1 for the highest. Equal values share the better place; a missing
/// one is last.
pub fn places(values: &[Option<f64>]) -> Vec<usize> {
    let place = |value: &Option<f64>| match value {
        Some(value) => 1 + values.iter().flatten().filter(|other| *other > value).count(),
        None => values.len(),
    };
    values.iter().map(place).collect()
}

/// The mean place of every column over all rows; `None` for a column without any value.
pub fn average_ranks(rows: &[Vec<Option<f64>>]) -> Vec<Option<f64>> {
    let columns = rows.first().map_or(0, Vec::len);
    let mut sums = vec![0; columns];
    for row in rows {
        sums.iter_mut().zip(places(row)).for_each(|(sum, place)| *sum += place);
    }
    let has_values = |column: usize| rows.iter().any(|row| row[column].is_some());
    let mean = |(column, sum)| has_values(column).then(|| sum as f64 / rows.len() as f64);
    sums.into_iter().enumerate().map(mean).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_of_a_mean_is_students() {
        // The standard error is 0.02 / sqrt(3), and t of two degrees of freedom 4.303.
        let (low, high) = Spread::of(&[0.70, 0.72, 0.74]).expect("three").interval().expect("two");
        assert!((low - 0.670_317).abs() < 1e-4 && (high - 0.769_683).abs() < 1e-4, "{low} {high}");
        assert_eq!(Spread::of(&[0.5]).expect("one").interval(), None);
    }

    #[test]
    fn the_deviation_is_that_of_the_population() {
        let spread = Spread::of(&[0.90, 0.92, 0.94]).expect("three values");
        assert!((spread.mean - 0.92).abs() < 1e-12);
        // numpy.std([0.90, 0.92, 0.94])
        assert!(
            (spread.deviation - 0.016_329_931_618_554_536).abs() < 1e-12,
            "{}",
            spread.deviation
        );
        assert_eq!(Spread::of(&[0.5]).expect("one").deviation, 0.0);
        assert_eq!(Spread::of(&[]), None);
    }

    #[test]
    fn equal_values_share_the_better_place_and_a_missing_one_is_last() {
        assert_eq!(places(&[Some(0.5), Some(0.9), Some(0.9), None, Some(0.1)]), [3, 1, 1, 5, 4]);
        let rows =
            [vec![Some(0.9), Some(0.8), None, None], vec![Some(0.7), Some(0.8), Some(0.9), None]];
        assert_eq!(average_ranks(&rows), [Some(2.0), Some(2.0), Some(2.5), None]);
        assert!(average_ranks(&[]).is_empty());
    }
}
