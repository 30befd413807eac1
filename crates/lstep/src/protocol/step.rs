//! Runs of events that are scored together and then revealed together, and what their questions may
//! see.

use crate::event::{Events, Time};
use serde::Deserialize;
use std::ops::Range;

/// Events in a step where nothing else is said: DyGLib's and TGB's.
pub const DEFAULT_STEP: u32 = 200;

/// What a question may see of the events near it. Reads of the graph are always strictly before the
/// question's time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Visibility {
    /// All events strictly before its time, those of its own step included.
    Event,
    /// Nothing of its own step.
    Step,
    /// As `event`; and steps never part events of one time, so the state, too, comes from strictly
    /// earlier times.
    Strict,
}

/// Where one step ends and the next begins. In settings a number of events, or `time`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StepRule {
    /// After this many events.
    Events(u32),
    /// After every distinct time: the paper's snapshots.
    DistinctTime,
}

impl<'de> serde::Deserialize<'de> for StepRule {
    /// What serialising writes, `{ events = 200 }` or `distinct_time`, and what people write: `200`
    /// or `time`.
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<StepRule, D::Error> {
        deserializer.deserialize_any(StepRuleVisitor)
    }
}

/// The steps of a protocol that knows no other than by a number of events.
pub(super) fn by_events<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<u32, D::Error> {
    match StepRule::deserialize(deserializer)? {
        StepRule::Events(events) => Ok(events),
        StepRule::DistinctTime => Err(serde::de::Error::custom(
            "this protocol has steps of a number of events; a step at every time is for protocol `stream`",
        )),
    }
}

struct StepRuleVisitor;

impl<'de> serde::de::Visitor<'de> for StepRuleVisitor {
    type Value = StepRule;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a number of events, at least 1, or `time` for a step at every distinct time")
    }

    fn visit_u64<E: serde::de::Error>(self, events: u64) -> Result<StepRule, E> {
        let fits = u32::try_from(events).ok().filter(|events| *events > 0);
        fits.map(StepRule::Events)
            .ok_or_else(|| E::invalid_value(serde::de::Unexpected::Unsigned(events), &self))
    }

    fn visit_i64<E: serde::de::Error>(self, events: i64) -> Result<StepRule, E> {
        let count = u64::try_from(events);
        count
            .map_err(|_| E::invalid_value(serde::de::Unexpected::Signed(events), &self))
            .and_then(|n| self.visit_u64(n))
    }

    fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<StepRule, E> {
        match name {
            "time" | "distinct_time" => Ok(StepRule::DistinctTime),
            _ => Err(E::invalid_value(serde::de::Unexpected::Str(name), &self)),
        }
    }

    fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<StepRule, A::Error> {
        use serde::de::Error;
        match map.next_key::<String>()?.as_deref() {
            Some("events") => self.visit_u64(map.next_value()?),
            Some(other) => Err(A::Error::unknown_field(other, &["events"])),
            None => Err(A::Error::missing_field("events")),
        }
    }
}

/// Cuts a range of events into steps, in order, the last one perhaps shorter. O(events).
///
/// With [`Visibility::Strict`] a step goes on until the time changes.
///
/// # Panics
/// If the rule says zero events.
pub fn cut(
    events: &Events,
    range: Range<u32>,
    rule: StepRule,
    visibility: Visibility,
) -> Vec<Range<u32>> {
    let shift = range.start;
    let steps =
        cut_by(range.len(), |place| events.times()[shift as usize + place], rule, visibility);
    steps.into_iter().map(|step| shift + step.start as u32..shift + step.end as u32).collect()
}

/// Cuts a list of event numbers into steps, given as places in the list; otherwise as [`cut`].
///
/// # Panics
/// If the rule says zero events.
pub fn cut_list(
    events: &Events,
    numbers: &[u32],
    rule: StepRule,
    visibility: Visibility,
) -> Vec<Range<usize>> {
    cut_by(numbers.len(), |place| events.times()[numbers[place] as usize], rule, visibility)
}

fn cut_by(
    count: usize,
    time: impl Fn(usize) -> Time,
    rule: StepRule,
    visibility: Visibility,
) -> Vec<Range<usize>> {
    let (least, whole_times) = match rule {
        StepRule::Events(0) => panic!("a step has at least one event"),
        StepRule::Events(events) => (events as usize, visibility == Visibility::Strict),
        StepRule::DistinctTime => (1, true),
    };
    let mut steps = Vec::new();
    let mut start = 0;
    while start < count {
        let mut end = (start + least).min(count);
        while whole_times && end < count && time(end) == time(end - 1) {
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

    fn stream(times: &[f64]) -> Events {
        lstep_testkit::stream!(times.iter().map(|&time| (0, 0, time)))
    }

    #[test]
    fn a_rule_is_read_as_it_is_written_and_as_people_write_it() {
        for rule in [StepRule::Events(7), StepRule::DistinctTime] {
            let text = serde_json::to_string(&rule).expect("plain data");
            assert_eq!(serde_json::from_str::<StepRule>(&text).expect("read back"), rule);
        }
        let read = |text: &str| serde_json::from_str::<StepRule>(text);
        assert_eq!(read("7").expect("a number"), StepRule::Events(7));
        assert_eq!(read("\"time\"").expect("a name"), StepRule::DistinctTime);
        for text in ["0", "-1", "\"day\"", "{\"hours\": 3}", "{}", "4294967296", "{\"events\": 0}"]
        {
            assert!(read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_protocol_by_events_takes_counts_alone() {
        use crate::protocol::dyglib::DyglibProtocol;
        for text in [r#"{"step": 20}"#, r#"{"step": {"events": 20}}"#] {
            assert_eq!(serde_json::from_str::<DyglibProtocol>(text).expect("a count").step, 20);
        }
        let error = serde_json::from_str::<DyglibProtocol>(r#"{"step": "time"}"#)
            .expect_err("no count")
            .to_string();
        assert!(error.contains("protocol `stream`"), "{error}");
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
    fn a_list_with_gaps_is_cut_like_a_range() {
        let events = stream(&[0., 0., 0., 1., 1., 2., 3.]);
        assert_eq!(
            cut_list(&events, &[0, 2, 3, 6], StepRule::Events(3), Visibility::Event),
            [0..3, 3..4]
        );
        assert_eq!(
            cut_list(&events, &[0, 2, 3, 6], StepRule::DistinctTime, Visibility::Event),
            [0..2, 2..3, 3..4]
        );
    }

    #[test]
    fn steps_by_time_are_snapshots() {
        let events = stream(&[0., 0., 0., 1., 1., 2., 3.]);
        assert_eq!(
            cut(&events, 0..7, StepRule::DistinctTime, Visibility::Event),
            [0..3, 3..5, 5..6, 6..7]
        );
    }
}
