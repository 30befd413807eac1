//! TGB's chronological split: time quantiles at 70 % and 85 %, and no node is hidden.

use crate::error::{Error, Result};
use crate::protocol::dyglib::quantile;
use std::ops::Range;

/// Which rows are for training, validation and test.
#[derive(Debug, Clone, PartialEq)]
pub struct Split {
    /// Training ends with this time, inclusively.
    pub val_time: f64,
    /// Validation ends with this time, inclusively.
    pub test_time: f64,
    /// Rows up to `val_time`.
    pub train: Range<usize>,
    /// Rows after `val_time`, up to `test_time`.
    pub val: Range<usize>,
    /// Rows after `test_time`.
    pub test: Range<usize>,
}

impl Split {
    /// Splits a column of times, which are integers in TGB and never decrease.
    ///
    /// Refuses times that decrease, and a column without any.
    pub fn new(times: &[i64]) -> Result<Split> {
        if let Some(place) = times.windows(2).position(|pair| pair[1] < pair[0]) {
            let (time, previous_time) = (times[place + 1] as f64, times[place] as f64);
            return Err(Error::OutOfOrder { event: place as u64 + 1, time, previous_time });
        }
        // numpy compares integers with a quantile as doubles.
        let times: Vec<f64> = times.iter().map(|&time| time as f64).collect();
        let (Some(val_time), Some(test_time)) = (quantile(&times, 0.7), quantile(&times, 0.85)) else {
            return Err(Error::EmptyPart {
                part: "whole",
                reason: "there are no events".to_string(),
                remedy: "give at least one".to_string(),
            });
        };
        let val = times.partition_point(|&time| time <= val_time);
        let test = times.partition_point(|&time| time <= test_time);
        Ok(Split { val_time, test_time, train: 0..val, val: val..test, test: test..times.len() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_split_at_the_quantiles_of_their_times() {
        let split = Split::new(&(0..=100).collect::<Vec<i64>>()).expect("in order");
        assert_eq!((split.val_time, split.test_time), (70.0, 85.0));
        assert_eq!((split.train, split.val, split.test), (0..71, 71..86, 86..101));
    }

    #[test]
    fn equal_times_stay_together() {
        let split = Split::new(&[1, 1, 1, 2, 2, 2, 2, 2, 3, 3]).expect("in order");
        assert_eq!((split.train, split.val, split.test), (0..8, 8..8, 8..10));
    }

    #[test]
    fn times_that_decrease_are_refused_and_so_is_nothing() {
        assert!(matches!(Split::new(&[1, 3, 2]), Err(Error::OutOfOrder { event: 2, .. })));
        assert!(matches!(Split::new(&[]), Err(Error::EmptyPart { .. })));
    }
}
