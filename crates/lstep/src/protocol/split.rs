//! The chronological split, and who is new after training.
//!
//! Boundaries are time quantiles, so events of one time are never on two sides; on coarse clocks
//! the shares can be far from those asked for, and a part can come out empty, which is an error
//! here and not a metric of nothing.

use super::eval_pass::Part;
use crate::error::{Error, Remedy, Result};
use crate::event::{Event, Events, NodeId, NodeSet};
use crate::metric::quantile;
use crate::rng::KeyedRng;
use std::ops::Range;

/// Time quantiles at which validation and test begin where nothing else is said: the field's
/// 70/15/15.
pub const DEFAULT_SPLIT: (f64, f64) = (0.7, 0.85);

/// Which events train, which select, which test, and which nodes training does not know.
#[derive(Debug, Clone, PartialEq)]
pub struct Split {
    /// Events up to the first boundary, those of held-out nodes included.
    pub train: Range<u32>,
    /// Events after it, up to the second boundary.
    pub validation: Range<u32>,
    /// Events after that.
    pub test: Range<u32>,
    /// The last time that belongs to training's side.
    pub train_until: f64,
    /// The last time that belongs to validation's side.
    pub validation_until: f64,
    held_out: NodeSet,
    new_nodes: NodeSet,
}

impl Split {
    /// Splits at two time quantiles, without held-out nodes.
    pub fn chronological(events: &Events, validation_from: f64, test_from: f64) -> Result<Split> {
        if !(0.0 < validation_from && validation_from < test_from && test_from < 1.0) {
            return Err(Error::setting(
                "split",
                format!("{validation_from}, {test_from}"),
                "give two increasing shares between 0 and 1, for example 0.7 and 0.85",
            ));
        }
        if events.is_empty() {
            return Err(empty_part("train", events));
        }
        let train_until = quantile(events.times(), validation_from);
        let validation_until = quantile(events.times(), test_from);
        let after =
            |boundary: f64| events.times().partition_point(|time| time.value() <= boundary) as u32;
        let (first, second, end) =
            (after(train_until), after(validation_until), events.len() as u32);
        for (part, range) in
            [("train", 0..first), ("validation", first..second), ("test", second..end)]
        {
            if range.is_empty() {
                return Err(empty_part(part, events));
            }
        }
        let mut split = Split {
            train: 0..first,
            validation: first..second,
            test: second..end,
            train_until,
            validation_until,
            held_out: NodeSet::default(),
            new_nodes: NodeSet::default(),
        };
        split.hold_out(events, NodeSet::default());
        Ok(split)
    }

    /// Everything before event `validation_from` trains, the rest is validation, and there is no
    /// test: a split at a number, whatever the times are. There has to be an event.
    pub fn at(events: &Events, validation_from: u32) -> Split {
        let end = events.len() as u32;
        let last = validation_from.saturating_sub(1);
        let mut split = Split {
            train: 0..validation_from,
            validation: validation_from..end,
            test: end..end,
            train_until: events.times()[last as usize].value(),
            validation_until: events.times()[end as usize - 1].value(),
            held_out: NodeSet::default(),
            new_nodes: NodeSet::default(),
        };
        split.hold_out(events, NodeSet::default());
        split
    }

    /// Holds out `share` of all nodes, drawn by `seed` from those that occur after training:
    /// training sees no event of theirs.
    pub fn hold_out_share(&mut self, events: &Events, share: f64, seed: u64) -> Result<()> {
        if !(0.0..1.0).contains(&share) {
            return Err(Error::setting("held-out", share, "give a share of the nodes in [0, 1)"));
        }
        let all: NodeSet = endpoints(events, 0..events.len() as u32).collect();
        let mut pool =
            events.by_appearance(endpoints(events, self.validation.start..self.test.end));
        let count = ((share * all.len() as f64) as usize).min(pool.len());
        let mut draw = KeyedRng::new(&[seed, 0x4e01]);
        for place in 0..count {
            let other = place + draw.below((pool.len() - place) as u64) as usize;
            pool.swap(place, other);
        }
        self.hold_out(events, pool[..count].iter().copied().collect());
        Ok(())
    }

    /// Holds out exactly these nodes.
    pub fn hold_out(&mut self, events: &Events, held_out: NodeSet) {
        self.held_out = held_out;
        let trained: NodeSet = self
            .train
            .clone()
            .map(|number| events.at(number as usize))
            .filter(|event| self.trains(*event))
            .flat_map(|event| [event.source, event.destination])
            .collect();
        let every = endpoints(events, 0..events.len() as u32);
        self.new_nodes = every.filter(|node| !trained.contains(*node)).collect();
    }

    /// The numbers of a part's events.
    pub fn range(&self, part: Part) -> Range<u32> {
        match part {
            Part::Validation => self.validation.clone(),
            Part::Test => self.test.clone(),
        }
    }

    /// Whether training may learn from this event: it is on training's side and neither of its
    /// nodes is held out.
    #[inline]
    pub fn trains(&self, event: Event) -> bool {
        event.number < self.train.end
            && !self.held_out.contains(event.source)
            && !self.held_out.contains(event.destination)
    }

    /// Whether the event has a node that training does not know.
    #[inline]
    pub fn has_new_node(&self, event: Event) -> bool {
        self.new_nodes.contains(event.source) || self.new_nodes.contains(event.destination)
    }

    /// The nodes kept out of training on purpose.
    pub fn held_out(&self) -> &NodeSet {
        &self.held_out
    }

    /// All nodes that training does not know, held out or simply later.
    pub fn new_nodes(&self) -> &NodeSet {
        &self.new_nodes
    }
}

fn endpoints(events: &Events, numbers: Range<u32>) -> impl Iterator<Item = NodeId> + '_ {
    numbers.flat_map(|number| {
        let event = events.at(number as usize);
        [event.source, event.destination]
    })
}

fn empty_part(part: &'static str, events: &Events) -> Error {
    let distinct = 1 + events.times().windows(2).filter(|pair| pair[0] != pair[1]).count();
    let distinct = if events.is_empty() { 0 } else { distinct };
    Error::EmptyPart {
        part,
        reason: format!("{} events at {distinct} distinct times", events.len()),
        remedy: Remedy::OtherSplit,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Time;

    fn times(values: &[f64]) -> Vec<Time> {
        values.iter().map(|&value| Time::new(value).expect("finite")).collect()
    }

    fn stream(times: &[f64]) -> Events {
        lstep_testkit::stream!((0..).zip(times).map(|(n, &time)| (n / 2, n / 2 + 1, time)))
    }

    #[test]
    fn quantiles_are_numpys() {
        // numpy.quantile([0, 1, 10, 11, 50], [0.7, 0.85, 0.5, 0.1]) = [10.8, 26.6, 10.0, 0.4]
        let sorted = times(&[0.0, 1.0, 10.0, 11.0, 50.0]);
        for (share, expected) in [(0.7, 10.8), (0.85, 26.6), (0.5, 10.0), (0.1, 0.4)] {
            assert!((quantile(&sorted, share) - expected).abs() < 1e-12, "{share}");
        }
        assert_eq!(quantile(&[1.0, 2.0, 4.0], 1.0), 4.0);
        assert_eq!(quantile(&[3.0], 0.7), 3.0);
        // From the far side this would be 0.7000000000000001.
        assert_eq!(quantile(&[0.1, 1.1], 0.6), 1.1 - (1.1 - 0.1) * (1.0 - 0.6));
    }

    #[test]
    fn events_of_one_time_are_never_on_two_sides() {
        let split =
            Split::chronological(&stream(&[0., 1., 1., 1., 2., 2., 3., 3., 3., 4.]), 0.5, 0.8)
                .expect("parts");
        assert_eq!((split.train, split.validation, split.test), (0..6, 6..9, 9..10));
    }

    #[test]
    fn a_part_without_events_is_an_error_that_says_why() {
        let error =
            Split::chronological(&stream(&[1.0; 10]), 0.7, 0.85).expect_err("one time only");
        assert!(error.to_string().contains("10 events at 1 distinct times"), "{error}");
    }

    #[test]
    fn training_sees_no_event_of_a_held_out_node() {
        let events = stream(&(0..200).map(f64::from).collect::<Vec<_>>());
        let mut split = Split::chronological(&events, 0.7, 0.85).expect("parts");
        let later = split.new_nodes().len();
        split.hold_out_share(&events, 0.1, 7).expect("a share");
        assert_eq!(split.held_out().len(), 10);
        assert!(split.new_nodes().len() >= later);
        let trained = events.iter().filter(|event| split.trains(*event));
        for event in trained {
            assert!(
                !split.held_out().contains(event.source)
                    && !split.held_out().contains(event.destination)
            );
            assert!(!split.has_new_node(event));
        }
    }
}
