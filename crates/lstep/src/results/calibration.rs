//! From scores to probabilities: a monotone curve that was fitted on validation, and how far it
//! holds on test.
//!
//! A score only orders. A [`Calibration`] says how likely a destination with such a score is to be
//! the one: the probability that the source's event at the time asked is with this destination,
//! among all destinations of the stream. It is the same whichever candidates are asked beside it,
//! so it can be told for a single pair, and the probabilities of a list add up to the chance that
//! the list holds the right one.

use serde::{Deserialize, Serialize};

/// From a model's scores to probabilities.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// Validation events that it was fitted on.
    pub questions: usize,
    /// The destinations that each of them chose among.
    pub destinations: usize,
    /// Places of the curve: a score and its probability, both in ascending order. Between two of
    /// them the curve is a straight line, outside it is flat.
    places: Vec<(f64, f64)>,
}

impl Calibration {
    /// Fits the curve by isotonic regression on scores with their labels and weights. Nothing
    /// without a true one.
    ///
    /// Half an event is added to both outcomes of each flat part, so that nothing is said to be
    /// certain or impossible.
    pub(crate) fn fit(
        mut scored: Vec<(f64, bool, f64)>,
        questions: usize,
        destinations: usize,
    ) -> Option<Calibration> {
        if !scored.iter().any(|row| row.1) {
            return None;
        }
        scored.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        let mut blocks: Vec<Block> = Vec::new();
        for (score, label, weight) in scored {
            let block = Block {
                low: score,
                high: score,
                came: if label { weight } else { 0.0 },
                all: weight,
            };
            match blocks.last_mut() {
                // Equal scores cannot be told apart.
                Some(last) if last.high == score => last.join(&block),
                _ => {
                    while_lower(&mut blocks);
                    blocks.push(block);
                }
            }
        }
        while_lower(&mut blocks);
        let mut places: Vec<(f64, f64)> = Vec::with_capacity(2 * blocks.len());
        let mut least = 0.0f64;
        for block in &blocks {
            // Smoothing may move a small block below its neighbour.
            least = least.max((block.came + 0.5) / (block.all + 1.0));
            places.push((block.low, least));
            if block.high > block.low {
                places.push((block.high, least));
            }
        }
        Some(Calibration { questions, destinations, places })
    }

    /// The probability of a score.
    pub fn probability(&self, score: f64) -> f64 {
        let after = self.places.partition_point(|place| place.0 < score);
        match (after.checked_sub(1).map(|before| self.places[before]), self.places.get(after)) {
            (None, Some(first)) => first.1,
            (Some(last), None) => last.1,
            (Some((from, low)), Some(&(to, high))) => {
                low + (high - low) * ((score - from) / (to - from))
            }
            (None, None) => f64::NAN,
        }
    }

    /// Whether it can be used: finite places in ascending order, and probabilities.
    pub(crate) fn is_sound(&self) -> bool {
        let finite = |place: &(f64, f64)| place.0.is_finite() && (0.0..=1.0).contains(&place.1);
        !self.places.is_empty()
            && self.places.iter().all(finite)
            && self.places.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1)
    }
}

/// A run of scores that has one probability.
struct Block {
    low: f64,
    high: f64,
    came: f64,
    all: f64,
}

impl Block {
    fn share(&self) -> f64 {
        self.came / self.all
    }

    fn join(&mut self, next: &Block) {
        self.high = next.high;
        self.came += next.came;
        self.all += next.all;
    }
}

/// Joins the last block with the one before it for as long as its share is not above that one's.
fn while_lower(blocks: &mut Vec<Block>) {
    while let [.., before, last] = &blocks[..]
        && last.share() <= before.share()
    {
        let last = blocks.pop().expect("there are two");
        blocks.last_mut().expect("there is one more").join(&last);
    }
}

/// How far probabilities hold on the ten likeliest destinations of every test event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reliability {
    /// Test events.
    pub questions: usize,
    /// Expected calibration error: the mean over answers of the distance between the probability
    /// said and the share that came true, in groups of equally many answers.
    pub ece: f64,
    /// The mean squared distance of the probability said to what came, 1 or 0.
    pub brier: f64,
    /// The same if every answer were given the mean share: what a probability has to be below.
    pub brier_of_mean: f64,
    /// How many of the lists of ten held the right one, by the probabilities said.
    pub hits_said: f64,
    /// How many did.
    pub hits_came: f64,
    /// The groups, from the least likely answers to the likeliest.
    pub groups: Vec<ReliabilityGroup>,
}

/// Answers that were said with about the same probability.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReliabilityGroup {
    /// The mean probability said.
    pub said: f64,
    /// The share that came true.
    pub came: f64,
    /// How many answers.
    pub answers: usize,
}

/// So many groups of answers.
const GROUPS: usize = 10;

impl Reliability {
    /// What became of answers: the probability said of each, and whether it came true. Nothing
    /// without answers.
    pub(crate) fn of(mut answers: Vec<(f64, bool)>, questions: usize) -> Option<Reliability> {
        if answers.is_empty() || questions == 0 {
            return None;
        }
        // Of equal probabilities none comes first; true ones last would part them from the others.
        answers.sort_by(|a, b| a.0.total_cmp(&b.0));
        let came = |part: &[(f64, bool)]| part.iter().filter(|answer| answer.1).count() as f64;
        let said = |part: &[(f64, bool)]| part.iter().map(|answer| answer.0).sum::<f64>();
        let all = answers.len() as f64;
        let mean = came(&answers) / all;
        let groups: Vec<ReliabilityGroup> = answers
            .chunks(answers.len().div_ceil(GROUPS))
            .map(|part| ReliabilityGroup {
                said: said(part) / part.len() as f64,
                came: came(part) / part.len() as f64,
                answers: part.len(),
            })
            .collect();
        let off = |group: &ReliabilityGroup| group.answers as f64 * (group.said - group.came).abs();
        let square = |answer: &(f64, bool)| (answer.0 - f64::from(u8::from(answer.1))).powi(2);
        Some(Reliability {
            questions,
            ece: groups.iter().map(off).sum::<f64>() / all,
            brier: answers.iter().map(square).sum::<f64>() / all,
            brier_of_mean: mean * (1.0 - mean),
            hits_said: said(&answers) / questions as f64,
            hits_came: came(&answers) / questions as f64,
            groups,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::KeyedRng;

    #[test]
    fn a_curve_of_a_hand_drawn_case_is_the_isotonic_one() {
        let scored = vec![
            (1.0, false, 10.0),
            (2.0, true, 1.0),
            (2.0, false, 9.0),
            (3.0, false, 10.0),
            (4.0, true, 3.0),
            (4.0, false, 1.0),
        ];
        let curve = Calibration::fit(scored, 4, 40).expect("some came true");
        // Scores of 2 and 3 are one block: one of twenty came true.
        assert_eq!(curve.probability(0.0), 0.5 / 11.0);
        assert_eq!(curve.probability(2.0), 1.5 / 21.0);
        assert_eq!(curve.probability(2.5), 1.5 / 21.0);
        assert_eq!(curve.probability(9.0), 3.5 / 5.0);
        let middle = (1.5 / 21.0 + 3.5 / 5.0) / 2.0;
        assert!((curve.probability(3.5) - middle).abs() < 1e-12);
        assert!(curve.is_sound());
        assert_eq!(Calibration::fit(vec![(1.0, false, 1.0)], 1, 2), None);
    }

    #[test]
    fn probabilities_never_fall_with_the_score_and_hold_on_other_events() {
        // A score says the odds only up to a bend; the curve has to find it.
        let drawn = |seed: u64| {
            let mut draw = KeyedRng::new(&[seed]);
            (0..40_000).map(move |_| {
                let score = 8.0 * draw.unit() - 4.0;
                let truth = 0.6 / (1.0 + (-score.powi(3)).exp());
                (score, draw.unit() < truth)
            })
        };
        let scored = drawn(1).map(|(score, label)| (score, label, 1.0)).collect();
        let curve = Calibration::fit(scored, 40_000, 2).expect("some came true");
        let said: Vec<f64> = (-50..50).map(|n| curve.probability(f64::from(n) / 10.0)).collect();
        assert!(said.is_sorted(), "{said:?}");
        let answers = drawn(2).map(|(score, label)| (curve.probability(score), label)).collect();
        let held = Reliability::of(answers, 4_000).expect("answers");
        assert!(held.ece < 0.02 && held.brier < held.brier_of_mean, "{held:?}");
        assert!((held.hits_said / held.hits_came - 1.0).abs() < 0.03, "{held:?}");
        // Probabilities of another model do not.
        let answers = drawn(2).map(|(score, label)| (1.0 - curve.probability(score), label));
        let lost = Reliability::of(answers.collect(), 4_000).expect("answers");
        assert!(lost.ece > 0.3 && lost.brier > lost.brier_of_mean, "{lost:?}");
    }

    #[test]
    fn a_curve_comes_back_from_json_and_a_broken_one_is_noticed() {
        let curve = Calibration::fit(vec![(0.1, false, 3.0), (0.3, true, 1.0)], 1, 4);
        let curve = curve.expect("one came true");
        let text = serde_json::to_string(&curve).expect("plain data");
        assert_eq!(serde_json::from_str::<Calibration>(&text).expect("read"), curve);
        for broken in ["[[1.0,0.5],[0.0,0.6]]", "[[0.0,0.5],[1.0,0.4]]", "[[0.0,1.5]]", "[]"] {
            let text = format!("{{\"questions\":1,\"destinations\":2,\"places\":{broken}}}");
            let read: Calibration = serde_json::from_str(&text).expect("its shape is right");
            assert!(!read.is_sound(), "{broken}");
        }
    }
}
