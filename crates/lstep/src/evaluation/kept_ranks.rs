//! The ranks of a run's answers, kept in its folder: two runs that were asked the same questions can
//! then be compared question by question, without asking again.

use super::paired::{PairedDifference, bootstrap_ranks};
use super::{ScoreLog, metric_interval};
use crate::disk::{REPORT_LIMIT, read_text, write_text};
use crate::error::{InputFault, Result};
use crate::results::ResultRow;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The answers to the questions of one query set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KeptRanks {
    /// SHA-256 of the negatives: equal ones are equal questions.
    pub negatives_sha256: String,
    /// The interval of the headline metric that holds 95 % of its values over draws of events.
    pub interval: Option<(f64, f64)>,
    /// One over the rank of what happened, for each question; empty where rows are not ranked.
    reciprocal_ranks: Vec<f32>,
    /// How many questions there were at the end of each step.
    step_ends: Vec<usize>,
}

impl KeptRanks {
    /// Those of a result and the answers behind it.
    pub fn of(row: &ResultRow, record: &ScoreLog) -> KeptRanks {
        let (ranks, ends) = record.reciprocal_ranks();
        KeptRanks {
            negatives_sha256: row.negatives_sha256.clone(),
            interval: metric_interval(record),
            // They were rounded to 32 bits when they were made.
            reciprocal_ranks: ranks.iter().map(|&rank| rank as f32).collect(),
            step_ends: ends.to_vec(),
        }
    }

    /// Writes the answers of a run to a file.
    pub fn write(path: impl AsRef<Path>, kept: &[KeptRanks]) -> Result<()> {
        let text = serde_json::to_string(kept).expect("ranks are plain data");
        write_text(path, &text)
    }

    /// Reads what [`KeptRanks::write`] wrote; nothing if there is no such file.
    pub fn read(path: impl AsRef<Path>) -> Result<Vec<KeptRanks>> {
        let path = path.as_ref();
        if !path.exists() {
            return Ok(Vec::new());
        }
        let text = read_text(path, REPORT_LIMIT)?;
        serde_json::from_str(&text).map_err(|error| {
            let problem = format!("does not hold the ranks of a run ({error})");
            let remedy = "remove it, and compare without intervals of differences";
            InputFault::new(path.display().to_string(), problem, remedy).into()
        })
    }

    /// The mean reciprocal rank minus another's, with its interval over draws of questions. Nothing
    /// if the two were not asked the same, or were not ranked.
    pub fn minus(&self, other: &KeptRanks) -> Option<PairedDifference> {
        let sound = |kept: &KeptRanks| {
            kept.step_ends.is_sorted()
                && kept.step_ends.last() == Some(&kept.reciprocal_ranks.len())
        };
        let same = self.negatives_sha256 == other.negatives_sha256
            && self.step_ends == other.step_ends
            && sound(self)
            && sound(other);
        if !same || self.reciprocal_ranks.is_empty() {
            return None;
        }
        let pairs = self.reciprocal_ranks.iter().zip(&other.reciprocal_ranks);
        let differences: Vec<f64> =
            pairs.map(|(one, other)| f64::from(*one) - f64::from(*other)).collect();
        Some(bootstrap_ranks(&differences, &self.step_ends))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(hash: &str, ranks: &[f32]) -> KeptRanks {
        KeptRanks {
            negatives_sha256: hash.into(),
            interval: None,
            reciprocal_ranks: ranks.to_vec(),
            step_ends: vec![2, ranks.len()],
        }
    }

    #[test]
    fn equal_questions_are_compared_and_others_are_not() {
        let one = kept("a", &[1.0, 0.5, 1.0, 0.25]);
        let other = kept("a", &[0.5, 0.5, 0.5, 0.25]);
        let found = one.minus(&other).expect("the same questions");
        assert_eq!(found.difference, 0.25);
        assert!(found.low <= 0.25 && found.high >= 0.25);
        assert_eq!(one.minus(&one).map(|found| (found.low, found.high)), Some((0.0, 0.0)));
        assert_eq!(one.minus(&kept("b", &[1.0, 0.5, 1.0, 0.25])), None);
        assert_eq!(one.minus(&kept("a", &[1.0, 0.5, 1.0])), None);
    }

    #[test]
    fn ranks_come_back_from_their_file_and_a_broken_one_is_told() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("ranks.json");
        assert_eq!(KeptRanks::read(&path).expect("none yet"), []);
        let all = vec![kept("a", &[1.0, 0.333_333_34])];
        KeptRanks::write(&path, &all).expect("written");
        assert_eq!(KeptRanks::read(&path).expect("read"), all);
        std::fs::write(&path, "{").expect("written");
        assert!(KeptRanks::read(&path).expect_err("broken").to_string().contains("ranks.json"));
    }
}
