//! Whether one model is ahead of another, by paired differences over seeds.
//!
//! The same seed gives two models the same negatives to learn from, so their difference is taken
//! seed by seed. A model without seeds is the same in each of them. A higher mean alone is no
//! verdict: the best of a row is marked only if its 95 % interval excludes zero against everybody
//! else.

use super::Mark;
use super::table::Spread;
use serde::{Deserialize, Serialize};

/// How far the best mean of a row is ahead of the next.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Lead {
    /// The model with the highest mean.
    pub best: String,
    /// The model with the next mean.
    pub over: String,
    /// Mean difference of the two over seeds.
    pub difference: f64,
    /// Its 95 % interval by Student's t; nothing for one seed, which tells nothing of others.
    pub interval: Option<(f64, f64)>,
}

/// A model's values by seed; a model that only counts has one value and no seed.
pub(super) type BySeed = Vec<(Option<u64>, f64)>;

/// Marks the best and the second where they are ahead of all that follow, and tells the lead of the
/// best over the next.
pub(super) fn judge(
    models: &[String],
    values: &[BySeed],
    cells: &mut [Option<Spread>],
) -> Option<Lead> {
    let mut order: Vec<(usize, f64)> = cells
        .iter()
        .enumerate()
        .filter_map(|(model, cell)| Some((model, cell.as_ref()?.mean)))
        .collect();
    order.sort_by(|a, b| b.1.total_cmp(&a.1));
    let ahead_of_all_behind = |place: usize| {
        let (model, _) = order[place];
        order[place + 1..].iter().all(|&(other, _)| {
            let difference = difference(&values[model], &values[other]);
            difference.and_then(|spread| spread.interval()).is_some_and(|(low, _)| low > 0.0)
        })
    };
    let [(best, best_mean), (next, next_mean), ..] = order[..] else { return None };
    if ahead_of_all_behind(0) {
        for (place, mark) in [(0, Mark::Best), (1, Mark::Second)] {
            if ahead_of_all_behind(place)
                && let Some(cell) = &mut cells[order[place].0]
            {
                cell.mark = Some(mark);
            }
        }
    }
    let paired = difference(&values[best], &values[next]);
    Some(Lead {
        best: models[best].clone(),
        over: models[next].clone(),
        difference: paired.as_ref().map_or(best_mean - next_mean, |spread| spread.mean),
        interval: paired.and_then(|spread| spread.interval()),
    })
}

/// Differences seed by seed; nothing where no seed is in both.
fn difference(left: &BySeed, right: &BySeed) -> Option<Spread> {
    let of = |values: &BySeed, seed: Option<u64>| {
        let found = values.iter().find(|(known, _)| known.is_none() || *known == seed);
        found.map(|(_, value)| *value)
    };
    let seeds = if left.iter().any(|(seed, _)| seed.is_some()) { left } else { right };
    let pairs = seeds.iter().filter_map(|&(seed, _)| Some(of(left, seed)? - of(right, seed)?));
    Spread::of(&pairs.collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seeds(values: &[f64]) -> BySeed {
        values.iter().enumerate().map(|(seed, &value)| (Some(seed as u64), value)).collect()
    }

    fn judged(values: &[BySeed]) -> (Option<Lead>, Vec<Option<Mark>>) {
        let models: Vec<String> = (0..values.len()).map(|model| format!("m{model}")).collect();
        let plain = |values: &BySeed| values.iter().map(|(_, value)| *value).collect::<Vec<_>>();
        let mut cells: Vec<Option<Spread>> =
            values.iter().map(|values| Spread::of(&plain(values))).collect();
        let lead = judge(&models, values, &mut cells);
        (lead, cells.into_iter().map(|cell| cell.and_then(|cell| cell.mark)).collect())
    }

    #[test]
    fn a_lead_in_every_seed_is_marked_although_the_models_themselves_vary() {
        let (lead, marks) = judged(&[
            seeds(&[0.70, 0.80, 0.90]),
            seeds(&[0.72, 0.821, 0.919]),
            vec![],
            vec![(None, 0.5)],
        ]);
        let lead = lead.expect("two models have numbers");
        assert_eq!((lead.best.as_str(), lead.over.as_str()), ("m1", "m0"));
        assert!((lead.difference - 0.02).abs() < 1e-9);
        assert!(lead.interval.expect("three seeds").0 > 0.0);
        assert_eq!(marks, [Some(Mark::Second), Some(Mark::Best), None, None]);
    }

    #[test]
    fn a_lead_that_changes_sides_with_the_seed_is_not_marked() {
        let (lead, marks) = judged(&[seeds(&[0.70, 0.80]), seeds(&[0.80, 0.72])]);
        let (low, high) = lead.expect("two models").interval.expect("two seeds");
        assert!(low < 0.0 && high > 0.0);
        assert_eq!(marks, [None, None]);
    }

    #[test]
    fn one_seed_marks_nothing_and_neither_do_two_counting_models() {
        let (lead, marks) = judged(&[seeds(&[0.9]), vec![(None, 0.5)]]);
        let lead = lead.expect("two models");
        assert_eq!((lead.interval, marks), (None, vec![None, None]));
        assert!((lead.difference - 0.4).abs() < 1e-12);
        assert_eq!(judged(&[vec![(None, 0.9)], vec![(None, 0.5)]]).1, [None, None]);
        assert_eq!(judged(&[seeds(&[0.9])]).0, None, "nothing to compare with");
    }

    #[test]
    fn seeds_that_only_one_model_has_are_left_out() {
        let left = vec![(Some(1), 0.9), (Some(2), 0.8)];
        let right = vec![(Some(2), 0.7), (Some(3), 0.1)];
        let spread = difference(&left, &right).expect("seed 2 is in both");
        assert!((spread.mean - 0.1).abs() < 1e-12 && spread.count == 1);
        assert_eq!(difference(&left, &vec![(Some(4), 0.1)]), None);
    }
}
