//! Pictures of the data alone: when events come, how often pairs repeat, how unequal nodes are.

use super::chart::{Ink, Mark, Plot};
use super::scale::{Axis, counted, grouped, short};
use crate::event::{Clock, Events, Time};
use crate::protocol::Split;
use rustc_hash::FxHashSet;

/// Bins over time.
const BINS: usize = 60;

/// The clock by which times are shown: numbers that look like seconds since 1970 are dates to a
/// reader.
pub fn display_clock(clock: &Clock, events: &Events) -> Clock {
    let times = events.times();
    let span = times.first().zip(times.last());
    span.and_then(|(&first, &last)| clock.as_unix(first, last)).unwrap_or(*clock)
}

/// An axis of time, with ticks as the file writes times.
pub fn time_axis(clock: &Clock, from: f64, to: f64) -> Axis {
    let to = if to > from { to } else { from + 1.0 };
    match clock {
        Clock::Iso8601 { .. } => {
            let long = (to - from) * clock.seconds_per_unit().unwrap_or(1.0) > 3.0 * 86_400.0;
            let tick = |count: u32| {
                let at = from + (to - from) * f64::from(count) / 3.0;
                (at, date(clock, at, long))
            };
            Axis::between("time (UTC)", from, to).with_ticks((0..=3).map(tick).collect())
        }
        Clock::Integer { origin } if *origin != 0 => {
            let label = format!("time since {origin} (the file's unit)");
            Axis::between(&label, from, to)
        }
        _ => Axis::between("time (the file's unit)", from, to),
    }
}

/// A time in words.
pub fn say_time(clock: &Clock, value: f64) -> String {
    match clock {
        Clock::Iso8601 { .. } => date(clock, value, false),
        _ => Time::new(value.round()).map_or_else(|| short(value), |time| clock.show(time)),
    }
}

fn date(clock: &Clock, value: f64, day_only: bool) -> String {
    let text = Time::new(value.floor()).map_or_else(|| short(value), |time| clock.show(time));
    let letters = if day_only { 10 } else { 16 };
    text.chars().take(letters).collect::<String>().replace('T', " ")
}

/// Events in a bin of time: all of them, and those whose pair met before.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Bin {
    events: usize,
    repeats: usize,
    replies: usize,
}

/// Bins of equal time over the whole stream.
fn bins(events: &Events, count: usize) -> Vec<Bin> {
    let times = events.times();
    let (Some(first), Some(last)) = (times.first(), times.last()) else { return Vec::new() };
    let (from, width) =
        (first.value(), ((last.value() - first.value()) / count as f64).max(f64::MIN_POSITIVE));
    let mut bins = vec![Bin::default(); count];
    let mut met = FxHashSet::default();
    for event in events.iter() {
        let bin = &mut bins[(((event.time.value() - from) / width) as usize).min(count - 1)];
        bin.events += 1;
        bin.replies += usize::from(
            event.source != event.destination && met.contains(&(event.destination, event.source)),
        );
        bin.repeats += usize::from(!met.insert((event.source, event.destination)));
    }
    bins
}

/// Charts of the stream.
pub fn charts(events: &Events, clock: &Clock, split: &Split) -> Vec<String> {
    let times = events.times();
    let (Some(first), Some(last)) = (times.first(), times.last()) else { return Vec::new() };
    let (from, to) = (first.value(), last.value());
    let width = (to - from).max(1.0) / BINS as f64;
    let bins = bins(events, BINS);
    let middle = |bin: usize| from + (bin as f64 + 0.5) * width;
    let when = |bin: usize| format!("around {}", say_time(clock, middle(bin)));
    let highest = bins.iter().map(|bin| bin.events).max().unwrap_or(1) as f64 * 1.05;
    let marks = |what: &dyn Fn(&Bin) -> f64, says: &dyn Fn(&Bin) -> String| -> Vec<Mark> {
        let full = bins.iter().enumerate().filter(|(_, bin)| bin.events > 0);
        full.map(|(place, bin)| {
            Mark::new(middle(place), what(bin), format!("{}\n{}", when(place), says(bin)))
        })
        .collect()
    };
    let over_time = Plot::new(
        "Events over time",
        "How many events come when. Dashed lines part training, validation and test.",
        time_axis(clock, from, to.max(from + 1.0)),
        Axis::between(&format!("events in 1/{BINS} of the span"), 0.0, highest),
    )
    .columns(
        "events",
        Ink::Kind(0),
        width / 2.0,
        marks(&|bin| bin.events as f64, &|bin| counted(bin.events, "event")),
    )
    .rule(
        Some("end of training, end of validation"),
        (split.train_until, 0.0),
        (split.train_until, highest),
    )
    .rule(None, (split.validation_until, 0.0), (split.validation_until, highest));
    let share = |part: usize, bin: &Bin| part as f64 / bin.events as f64;
    let say = |name: &str, part: usize, bin: &Bin| {
        format!("{name}: {:.1} % of {}", 100.0 * share(part, bin), counted(bin.events, "event"))
    };
    let repeats = Plot::new(
        "Repeats, replies and new pairs",
        "Share of events whose pair met before in the same direction, in the other direction, and of pairs never seen. The more \
         repeats, the further plain memory gets.",
        time_axis(clock, from, to.max(from + 1.0)),
        Axis::between("share of events", 0.0, 1.0),
    )
    .line("repeated pair", Ink::Kind(0), marks(&|bin| share(bin.repeats, bin), &|bin| say("repeated", bin.repeats, bin)))
    .line("new pair", Ink::Kind(1), marks(&|bin| share(bin.events - bin.repeats, bin), &|bin| {
        say("new", bin.events - bin.repeats, bin)
    }))
    .line("reply", Ink::Kind(2), marks(&|bin| share(bin.replies, bin), &|bin| say("reply", bin.replies, bin)));
    vec![over_time.draw(), repeats.draw(), activity(events)]
}

/// How many nodes take part in at least so many events.
fn activity(events: &Events) -> String {
    let mut counts: Vec<usize> =
        events.participation().into_iter().map(|count| count as usize).collect();
    counts.retain(|count| *count > 0);
    counts.sort_unstable();
    let nodes = counts.len();
    let mut marks = Vec::new();
    let mut least = 1.0f64;
    while least <= counts.last().copied().unwrap_or(0) as f64 {
        let bound = least.round() as usize;
        let many = nodes - counts.partition_point(|count| *count < bound);
        let says = format!(
            "{} nodes ({:.1} %)\nhave at least {} events",
            grouped(many),
            100.0 * many as f64 / nodes as f64,
            grouped(bound)
        );
        marks.push(Mark::new(bound as f64, many as f64, says));
        least = (least * 1.5).max(least + 1.0);
    }
    Plot::new(
        "How unequal nodes are",
        "Nodes that take part in at least so many events of the whole stream; both axes are logarithmic.",
        Axis::logarithmic("events of a node, at least"),
        Axis::logarithmic("nodes"),
    )
    .line("nodes", Ink::Kind(0), marks)
    .draw()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream() -> Events {
        lstep_testkit::stream![0 -> 1 @ 0.0, 1 -> 0 @ 1.0, 0 -> 1 @ 8.0, 0 -> 2 @ 10.0]
    }

    #[test]
    fn repeats_and_replies_are_counted_in_their_bins() {
        let bins = bins(&stream(), 2);
        assert_eq!(bins[0], Bin { events: 2, repeats: 0, replies: 1 });
        assert_eq!(bins[1], Bin { events: 2, repeats: 1, replies: 1 });
    }

    #[test]
    fn times_are_shown_as_the_file_writes_them() {
        let clock = Clock::Iso8601 { unit: crate::event::Unit::Second, origin: 1_767_225_600 };
        assert_eq!(say_time(&clock, 3600.0), "2026-01-01 01:00");
        let axis = time_axis(&clock, 0.0, 30.0 * 86_400.0);
        assert_eq!(axis.ticks.expect("dates")[0].1, "2026-01-01");
        assert_eq!(say_time(&Clock::Integer { origin: 100 }, 7.0), "107");
    }
}
