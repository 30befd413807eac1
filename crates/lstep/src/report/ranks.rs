//! Average ranks and what difference between them is more than chance: Demšar, "Statistical
//! Comparisons of Classifiers over Multiple Data Sets", JMLR 2006.
//!
//! Models are ranked on each dataset, ties share the mean of their places. Two models differ if
//! their average ranks are further apart than Nemenyi's critical difference. Models that do not
//! differ are bracketed together.

use super::chart::{Ink, WIDTH, escape, figure, svg};
use super::scale::short;
use std::fmt::Write;

/// Quantiles of the studentised range at 0.05 for infinitely many degrees of freedom, over the root
/// of 2, for 2 models and more.
const QUANTILES: [f64; 19] = [
    1.960, 2.343, 2.569, 2.728, 2.850, 2.949, 3.031, 3.102, 3.164, 3.219, 3.268, 3.313, 3.354,
    3.391, 3.426, 3.458, 3.489, 3.517, 3.544,
];

/// Average ranks over datasets.
#[derive(Debug, Clone, PartialEq)]
pub struct Ranks {
    /// The models with their average ranks, the best first.
    pub models: Vec<(String, f64)>,
    /// Over how many datasets.
    pub datasets: usize,
    /// How far apart two average ranks have to be at a level of 0.05; none for fewer than two
    /// datasets, or for too many models.
    pub critical: Option<f64>,
}

impl Ranks {
    /// Ranks models by their values, higher is better; a row is a dataset. Rows where a model has
    /// no value are left out.
    pub fn of(models: &[String], rows: &[Vec<Option<f64>>]) -> Ranks {
        let complete: Vec<Vec<f64>> =
            rows.iter().filter_map(|row| row.iter().copied().collect()).collect();
        let mut sums = vec![0.0; models.len()];
        for row in &complete {
            for (sum, value) in sums.iter_mut().zip(row) {
                let better = row.iter().filter(|other| *other > value).count();
                let equal = row.iter().filter(|other| *other == value).count();
                *sum += better as f64 + (equal as f64 + 1.0) / 2.0;
            }
        }
        let datasets = complete.len();
        let mut models: Vec<(String, f64)> = models
            .iter()
            .cloned()
            .zip(sums.iter().map(|sum| sum / datasets.max(1) as f64))
            .collect();
        models.sort_by(|a, b| a.1.total_cmp(&b.1));
        let critical =
            (datasets >= 2).then(|| critical_difference(models.len(), datasets)).flatten();
        Ranks { models, datasets, critical }
    }

    /// Runs of models, from place to place, that do not differ; none within another.
    pub fn groups(&self) -> Vec<(usize, usize)> {
        let Some(critical) = self.critical else { return Vec::new() };
        let mut groups: Vec<(usize, usize)> = Vec::new();
        for start in 0..self.models.len() {
            let reach = self.models[start].1 + critical;
            let end = self.models.partition_point(|model| model.1 <= reach) - 1;
            if end > start && groups.last().is_none_or(|group| end > group.1) {
                groups.push((start, end));
            }
        }
        groups
    }
}

/// Nemenyi's critical difference at 0.05: q sqrt(k (k + 1) / (6 N)).
fn critical_difference(models: usize, datasets: usize) -> Option<f64> {
    let quantile = QUANTILES.get(models.checked_sub(2)?)?;
    Some(quantile * ((models * (models + 1)) as f64 / (6.0 * datasets as f64)).sqrt())
}

const LEFT: f64 = 168.0;
const RIGHT: f64 = 372.0;
const TOP: f64 = 62.0;
const ROW: f64 = 24.0;
/// Letters of a name that have room.
const LETTERS: usize = 23;

/// The ranks as a figure.
pub fn rank_chart(title: &str, ranks: &Ranks) -> String {
    let count = ranks.models.len();
    let place = |rank: f64| LEFT + (rank - 1.0) / (count.max(2) - 1) as f64 * (RIGHT - LEFT);
    let bottom = TOP + count as f64 * ROW;
    let mut drawing = format!(
        "<text class=\"label across\" x=\"{:.1}\" y=\"46\" text-anchor=\"middle\">average rank (1 is best)</text>\
         <text class=\"label up\" x=\"4\" y=\"46\">model</text>",
        (LEFT + RIGHT) / 2.0
    );
    let every = count.div_ceil(8).max(1);
    for rank in (1..=count).step_by(every) {
        let x = place(rank as f64);
        let _ = write!(
            drawing,
            "<path class=\"grid\" d=\"M{x:.1} {TOP}V{bottom}\"/><text class=\"tick\" x=\"{x:.1}\" y=\"{:.1}\" \
             text-anchor=\"middle\">{rank}</text>",
            bottom + 15.0
        );
    }
    if let Some(critical) = ranks.critical {
        let length =
            (critical / (count.max(2) - 1) as f64 * (RIGHT - LEFT)).min(WIDTH - 10.0 - LEFT);
        let _ = write!(
            drawing,
            "<path class=\"axis\" d=\"M{LEFT} 20h{length:.1}m0 -4v8M{LEFT} 16v8\"/><text x=\"4\" y=\"24\">critical difference {}</text>",
            short(critical)
        );
    }
    for (row, (name, rank)) in ranks.models.iter().enumerate() {
        let y = TOP + (row as f64 + 0.5) * ROW;
        let shown: String = if name.chars().count() > LETTERS {
            name.chars().take(LETTERS - 1).chain(['…']).collect()
        } else {
            name.clone()
        };
        let _ = write!(
            drawing,
            "<text x=\"4\" y=\"{:.1}\">{}</text><path class=\"grid\" d=\"M{LEFT} {y:.1}H{RIGHT}\"/><circle class=\"mark\" \
             cx=\"{:.1}\" cy=\"{y:.1}\" r=\"5\" style=\"fill:{}\"><title>{}</title></circle>",
            y + 4.0,
            escape(&shown),
            place(*rank),
            Ink::Kind(0).variable(),
            escape(&format!("{name}\naverage rank {}", short(*rank)))
        );
    }
    for (number, (from, to)) in ranks.groups().into_iter().enumerate() {
        let x = RIGHT + 12.0 + (number % 5) as f64 * 7.0;
        let (top, end) = (TOP + (from as f64 + 0.2) * ROW, TOP + (to as f64 + 0.8) * ROW);
        let _ = write!(drawing, "<path class=\"bracket\" d=\"M{x:.1} {top:.1}V{end:.1}\"/>");
    }
    let about = match ranks.critical {
        Some(_) => format!(
            "Over {} datasets. Models under one bracket at the right differ by less than Nemenyi's critical difference (level 0.05): \
             this comparison cannot tell them apart.",
            ranks.datasets
        ),
        None if ranks.datasets < 2 => format!(
            "Over {} dataset with numbers of all models: there is no critical difference, and the order may be chance.",
            ranks.datasets
        ),
        None => format!(
            "Over {} datasets. For so many models no critical difference is tabulated.",
            ranks.datasets
        ),
    };
    figure(title, &about, "", &svg(title, bottom + 24.0, &drawing))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_share_places_and_leave_incomplete_datasets_out() {
        let models = ["a", "b", "c"].map(String::from);
        let rows = vec![
            vec![Some(0.9), Some(0.8), Some(0.8)],
            vec![Some(0.7), Some(0.9), Some(0.1)],
            vec![Some(0.7), None, Some(0.1)],
        ];
        let ranks = Ranks::of(&models, &rows);
        assert_eq!(ranks.datasets, 2);
        assert_eq!(ranks.models, [("a".into(), 1.5), ("b".into(), 1.75), ("c".into(), 2.75)]);
    }

    #[test]
    fn the_critical_difference_is_that_of_demsars_example() {
        // Four classifiers on 14 datasets: 2.569 sqrt(4 * 5 / (6 * 14)) = 1.25.
        assert!((critical_difference(4, 14).expect("tabulated") - 1.25).abs() < 0.01);
        assert_eq!(critical_difference(1, 14), None);
    }

    #[test]
    fn groups_hold_models_that_do_not_differ() {
        let model = |name: &str, rank| (name.to_string(), rank);
        let models = vec![model("a", 1.0), model("b", 1.5), model("c", 2.4), model("d", 4.0)];
        let ranks = Ranks { models, datasets: 9, critical: Some(1.0) };
        assert_eq!(ranks.groups(), [(0, 1), (1, 2)]);
        assert!(Ranks { critical: None, ..ranks }.groups().is_empty());
    }

    #[test]
    fn a_model_with_markup_in_its_name_is_escaped() {
        let models = ["<script>", "b"].map(String::from);
        let drawn = rank_chart("Ranks", &Ranks::of(&models, &[vec![Some(1.0), Some(0.0)]]));
        assert!(!drawn.contains("<script>") && drawn.contains("&lt;script&gt;"));
    }
}
