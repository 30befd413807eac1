//! TGB's negatives: for each event, destinations its source might have met instead.
//!
//! The rule is called "hist_rnd" there. Up to half of the list are destinations the source had in
//! training, the rest are destinations it never had; none was true at the same moment. One stream
//! of draws runs through validation and then test, so the parts have to be made in that order to be
//! TGB's own.

use crate::error::{Error, Result};
use crate::numpy::RandomState;
use crate::read::pickle::{NegativeLists, Positive};
use rustc_hash::FxHashMap;
use std::ops::RangeInclusive;

/// Events as columns of TGB's integers.
#[derive(Debug, Clone, Copy)]
pub struct TgbColumns<'a> {
    /// Who acts.
    pub sources: &'a [i64],
    /// With whom.
    pub destinations: &'a [i64],
    /// When.
    pub times: &'a [i64],
}

impl<'a> TgbColumns<'a> {
    fn iter(self) -> impl Iterator<Item = Positive> + 'a {
        let pairs = self.sources.iter().zip(self.destinations);
        pairs.zip(self.times).map(|((&source, &destination), &time)| (source, destination, time))
    }

    fn check(self) -> Result<()> {
        let left = self.sources.len();
        for (what, right) in [
            ("sources and destinations", self.destinations.len()),
            ("sources and times", self.times.len()),
        ] {
            if left != right {
                return Err(Error::LengthMismatch { what, left, right });
            }
        }
        Ok(())
    }
}

/// Makes negatives by TGB's rule.
#[derive(Clone)]
pub struct Generator {
    state: RandomState,
    destinations: RangeInclusive<i64>,
    count: usize,
    /// Each source's destinations in training, distinct and ascending.
    history: FxHashMap<i64, Vec<i64>>,
}

impl Generator {
    /// The seed TGB made its files with.
    const SEED: u32 = 42;

    /// A generator that knows the training events. Destinations are all integers of a range,
    /// whether they occur or not; `count` is the length of a list, if there are that many.
    ///
    /// Refuses columns of different lengths and an empty range.
    pub fn new(
        train: TgbColumns<'_>,
        destinations: RangeInclusive<i64>,
        count: usize,
    ) -> Result<Generator> {
        train.check()?;
        let width = destinations.end().checked_sub(*destinations.start());
        if !width.is_some_and(|width| (0..i64::from(u32::MAX)).contains(&width)) {
            let value = format!("{}..={}", destinations.start(), destinations.end());
            return Err(Error::setting(
                "destinations",
                value,
                "give the smallest and the largest destination id",
            ));
        }
        let mut history: FxHashMap<i64, Vec<i64>> = FxHashMap::default();
        for (source, destination, _) in train.iter() {
            history.entry(source).or_default().push(destination);
        }
        history.values_mut().for_each(ascending);
        Ok(Generator { state: RandomState::new(Generator::SEED), destinations, count, history })
    }

    /// The lists of one part: give validation first, then test.
    ///
    /// An event that occurs twice is drawn for twice and keeps the second list, as in TGB.
    pub fn next_part(&mut self, part: TgbColumns<'_>) -> Result<NegativeLists> {
        part.check()?;
        let mut at_once: FxHashMap<(i64, i64), Vec<i64>> = FxHashMap::default();
        for (source, destination, time) in part.iter() {
            at_once.entry((source, time)).or_default().push(destination);
        }
        at_once.values_mut().for_each(ascending);
        let mut negatives = NegativeLists::default();
        for (source, destination, time) in part.iter() {
            let list = self.list(source, &at_once[&(source, time)]);
            negatives.insert((source, destination, time), list);
        }
        Ok(negatives)
    }

    /// One list; `truths` are the source's true destinations at that moment, ascending.
    fn list(&mut self, source: i64, truths: &[i64]) -> Vec<i64> {
        let known = self.history.get(&source).map_or(&[][..], |known| known);
        let absent = |from: &[i64], id: i64| from.binary_search(&id).is_err();
        let past: Vec<i64> = known.iter().copied().filter(|&id| absent(truths, id)).collect();
        let mut list = Vec::new();
        if !known.is_empty() {
            let size = (self.count / 2).min(past.len());
            list.extend(
                self.state.choice(past.len(), size, false).into_iter().map(|place| past[place]),
            );
        }
        let others: Vec<i64> = self
            .destinations
            .clone()
            .filter(|&id| absent(truths, id) && absent(known, id))
            .collect();
        let size = self.count - list.len();
        if size > others.len() {
            list.extend(others);
        } else {
            list.extend(
                self.state.choice(others.len(), size, false).into_iter().map(|place| others[place]),
            );
        }
        list
    }
}

fn ascending(ids: &mut Vec<i64>) {
    ids.sort_unstable();
    ids.dedup();
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRAIN: TgbColumns<'static> = TgbColumns {
        sources: &[1, 1, 1, 2],
        destinations: &[10, 11, 10, 12],
        times: &[0, 1, 2, 3],
    };

    #[test]
    fn half_a_list_is_known_and_none_of_it_is_true_at_the_moment() {
        let mut generator = Generator::new(TRAIN, 10..=19, 4).expect("a range");
        let part =
            TgbColumns { sources: &[1, 1, 3], destinations: &[10, 15, 19], times: &[7, 7, 8] };
        let negatives = generator.next_part(part).expect("columns");
        let list = negatives.of(1, 10, 7).expect("it was asked for");
        assert_eq!(list[0], 11);
        assert_eq!(list.len(), 4);
        assert!(!list.contains(&10) && !list.contains(&15));
        assert_eq!(negatives.of(3, 19, 8).expect("it was asked for").len(), 4);
        assert_eq!(negatives.of(3, 19, 9), None);
    }

    #[test]
    fn when_too_few_are_left_all_are_taken_in_order() {
        let mut generator = Generator::new(TRAIN, 10..=14, 100).expect("a range");
        let part = TgbColumns { sources: &[2], destinations: &[13], times: &[9] };
        assert_eq!(
            generator.next_part(part).expect("columns").of(2, 13, 9),
            Some(&[12, 10, 11, 14][..])
        );
    }

    #[test]
    fn a_later_list_takes_the_place_of_an_earlier_one() {
        let mut negatives = NegativeLists::default();
        negatives.insert((1, 2, 3), vec![4]);
        negatives.insert((5, 6, 7), vec![8]);
        negatives.insert((1, 2, 3), vec![9]);
        assert_eq!(
            negatives.iter().collect::<Vec<_>>(),
            [((1, 2, 3), &[9][..]), ((5, 6, 7), &[8][..])]
        );
    }

    #[test]
    fn an_impossible_range_is_refused() {
        assert!(Generator::new(TRAIN, RangeInclusive::new(5, 4), 4).is_err());
        assert!(Generator::new(TRAIN, i64::MIN..=i64::MAX, 4).is_err());
    }
}
