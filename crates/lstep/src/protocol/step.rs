//! Runs of events that are scored together and then revealed together, and what their questions may see.

use crate::event::Events;
use std::ops::Range;

/// What a question may see of the events near it. Reads of the graph are always strictly before the question's time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Visibility {
    /// All events strictly before its time, those of its own step included.
    Event,
    /// Nothing of its own step.
    Step,
    /// As `event`; and steps never part events of one time, so the state, too, comes from strictly earlier times.
    Strict,
}

/// Where one step ends and the next begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepRule {
    /// After this many events.
    Events(u32),
    /// After every distinct time: the paper's snapshots.
    DistinctTime,
}

/// Cuts a range of events into steps, in order, the last one perhaps shorter. O(events).
///
/// With [`Visibility::Strict`] a step goes on until the time changes.
///
/// # Panics
/// If the rule says zero events.
pub fn cut(events: &Events, range: Range<u32>, rule: StepRule, visibility: Visibility) -> Vec<Range<u32>> {
    let times = events.times();
    let mut steps = Vec::new();
    let mut start = range.start;
    while start < range.end {
        let (least, whole_times) = match rule {
            StepRule::Events(count) => {
                assert!(count > 0, "a step has at least one event");
                (count, visibility == Visibility::Strict)
            }
            StepRule::DistinctTime => (1, true),
        };
        let mut end = start.saturating_add(least).min(range.end);
        while whole_times && end < range.end && times[end as usize] == times[end as usize - 1] {
            end += 1;
        }
        steps.push(start..end);
        start = end;
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Features, NodeId, Time};

    fn stream(times: &[f64]) -> Events {
        let nodes = vec![NodeId(0); times.len()];
        let times = times.iter().map(|&time| Time::new(time).expect("finite")).collect();
        Events::new(nodes.clone(), nodes, times, Features::none()).expect("in order")
    }

    #[test]
    fn steps_by_count_keep_the_short_last_one() {
        let events = stream(&[0., 0., 0., 1., 1., 2., 3.]);
        assert_eq!(cut(&events, 1..7, StepRule::Events(4), Visibility::Event), [1..5, 5..7]);
    }

    #[test]
    fn strict_steps_never_part_events_of_one_time() {
        let events = stream(&[0., 0., 0., 1., 1., 2., 3.]);
        assert_eq!(cut(&events, 0..7, StepRule::Events(2), Visibility::Strict), [0..3, 3..5, 5..7]);
    }

    #[test]
    fn steps_by_time_are_snapshots() {
        let events = stream(&[0., 0., 0., 1., 1., 2., 3.]);
        assert_eq!(cut(&events, 0..7, StepRule::DistinctTime, Visibility::Event), [0..3, 3..5, 5..6, 6..7]);
    }
}
