//! How long nodes are silent between events of training, for models that count time in units of
//! that.

use crate::event::{Event, NodeId, Time};
use rustc_hash::FxHashMap;

/// The mean of some numbers and their deviation from it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Moments {
    /// The mean.
    pub mean: f64,
    /// The deviation over all of them (ddof 0); 1 where they do not differ, so that it can divide.
    pub deviation: f64,
}

impl Default for Moments {
    /// Those of numbers that nothing is known about: they stay as they are.
    fn default() -> Moments {
        Moments { mean: 0.0, deviation: 1.0 }
    }
}

impl Moments {
    /// A number in deviations from the mean.
    pub fn standardised(self, value: f64) -> f64 {
        (value - self.mean) / self.deviation
    }

    /// Whether there are numbers that have these moments.
    pub fn are_possible(self) -> bool {
        self.mean.is_finite() && self.deviation.is_finite() && self.deviation > 0.0
    }
}

/// Times between an event of a node and the one before it, over events of training. A node's first
/// event counts from the first time of training, as JODIE and CTAN count it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Silence {
    /// Between events that have the node as their source.
    pub source: Moments,
    /// Between events that have the node as their destination.
    pub destination: Moments,
    /// Between any two events of the node.
    pub either: Moments,
}

impl Silence {
    /// Of events in order, counted from a start. O(events).
    pub fn of(start: Time, events: impl IntoIterator<Item = Event>) -> Silence {
        let mut tallies = [Tally::default(), Tally::default(), Tally::default()];
        for event in events {
            let [source, destination, either] = &mut tallies;
            source.add(event.source, event.time, start);
            destination.add(event.destination, event.time, start);
            either.add(event.source, event.time, start);
            either.add(event.destination, event.time, start);
        }
        let [source, destination, either] = tallies.map(Tally::moments);
        Silence { source, destination, either }
    }

    /// The numbers in the order of the fields, mean first.
    pub(crate) fn to_numbers(self) -> [f64; 6] {
        let Silence { source, destination, either } = self;
        let [a, b, c] = [source, destination, either].map(|part| [part.mean, part.deviation]);
        [a[0], a[1], b[0], b[1], c[0], c[1]]
    }

    /// What [`Silence::to_numbers`] gave; nothing if no events have these.
    pub(crate) fn from_numbers(numbers: &[f64]) -> Option<Silence> {
        let [a, b, c, d, e, f] = *numbers else { return None };
        let [source, destination, either] =
            [(a, b), (c, d), (e, f)].map(|(mean, deviation)| Moments { mean, deviation });
        let possible = [source, destination, either].into_iter().all(Moments::are_possible);
        possible.then_some(Silence { source, destination, either })
    }
}

/// Moments as they grow, by Welford's recurrence: a sum of squares of times would lose the digits.
#[derive(Default)]
struct Tally {
    last: FxHashMap<NodeId, Time>,
    count: f64,
    mean: f64,
    squares: f64,
}

impl Tally {
    fn add(&mut self, node: NodeId, time: Time, start: Time) {
        let gap = time.since(self.last.insert(node, time).unwrap_or(start));
        self.count += 1.0;
        let before = gap - self.mean;
        self.mean += before / self.count;
        self.squares += before * (gap - self.mean);
    }

    fn moments(self) -> Moments {
        if self.count == 0.0 {
            return Moments::default();
        }
        let deviation = (self.squares / self.count).sqrt();
        let mean = self.mean;
        Moments { mean, deviation: if deviation > 0.0 { deviation } else { 1.0 } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silences_are_counted_by_hand() {
        let events = lstep_testkit::stream![0 -> 1 @ 10.0, 0 -> 2 @ 14.0, 1 -> 2 @ 20.0];
        let silence = Silence::of(Time::new(10.0).expect("finite"), events.iter());
        // Sources: 0 at 10 and 14, 1 at 20. Destinations: 1 at 10, 2 at 14 and 20.
        let close = |found: Moments, gaps: &[f64]| {
            let count = gaps.len() as f64;
            let mean = gaps.iter().sum::<f64>() / count;
            let square = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / count;
            assert!((found.mean - mean).abs() < 1e-12, "{found:?}");
            assert!((found.deviation - square.sqrt()).abs() < 1e-12, "{found:?}");
        };
        close(silence.source, &[0.0, 4.0, 10.0]);
        close(silence.destination, &[0.0, 4.0, 6.0]);
        close(silence.either, &[0.0, 0.0, 4.0, 4.0, 10.0, 6.0]);
        assert_eq!(Silence::from_numbers(&silence.to_numbers()), Some(silence));
    }

    #[test]
    fn silences_that_do_not_differ_can_divide() {
        let events = lstep_testkit::stream![0 -> 1 @ 5.0, 2 -> 3 @ 5.0];
        let silence = Silence::of(Time::ZERO, events.iter());
        assert_eq!(silence.source, Moments { mean: 5.0, deviation: 1.0 });
        assert_eq!(silence.source.standardised(7.0), 2.0);
        assert_eq!(Silence::of(Time::ZERO, []), Silence::default());
    }

    #[test]
    fn numbers_that_no_events_have_are_no_silence() {
        let good = Silence::default().to_numbers();
        for (place, wrong) in [(0, f64::NAN), (1, 0.0), (3, -1.0), (5, f64::INFINITY)] {
            let mut numbers = good;
            numbers[place] = wrong;
            assert_eq!(Silence::from_numbers(&numbers), None, "{place} {wrong}");
        }
        assert_eq!(Silence::from_numbers(&good[..5]), None);
    }
}
