//! Why a destination is likely, in words and numbers that are counted from the log.
//!
//! The same for every model: how often source and destination have met and when last, how many
//! sources have met the destination lately, and whether those who met a recent partner of the
//! source met it, too. That is what a person can check; it is not what the model computed.

use super::bundle::Bundle;
use crate::event::{Clock, NodeId, Time, pair_key};
use crate::graph::{EventLog, Seed};
use rustc_hash::{FxHashMap, FxHashSet};
use serde::Serialize;

/// Recent partners of a source that are looked at, and visitors of each.
const PARTNERS: usize = 5;
const VISITORS: usize = 100;

/// What the log says of a pair.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Explanation {
    /// Times that the source met the destination.
    pub met: u32,
    /// When last, as the events write times.
    pub last_met: Option<String>,
    /// Times that the destination met the source.
    pub met_by: u32,
    /// Different sources that met the destination lately.
    pub recent_sources: u32,
    /// The recent partner of the source whose visitors met the destination most.
    pub partner: Option<SharedPartner>,
    /// All of it in a sentence.
    pub words: String,
}

/// A partner of the source, and how many of its last visitors met the destination, too.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SharedPartner {
    /// The partner's name.
    pub name: String,
    /// Its visitors that met the destination.
    pub met: u32,
    /// Its last visitors that were looked at.
    pub visitors: u32,
}

/// Tells why, for one time and one state of the log.
pub(super) struct Explainer<'a> {
    bundle: &'a Bundle,
    time: Time,
    /// How often each directed pair met, and when last.
    pairs: FxHashMap<u64, (u32, Time)>,
    /// Different sources of each destination within the window.
    recent_sources: Vec<u32>,
    /// The window in words: "in the last 7 days".
    window: String,
    unit: TimeUnit,
}

impl<'a> Explainer<'a> {
    /// Counts. O(events).
    pub fn new(bundle: &'a Bundle, time: Time) -> Explainer<'a> {
        let log = bundle.live.log();
        let mut pairs = FxHashMap::default();
        for event in log.events().iter() {
            let met = pairs
                .entry(pair_key(event.source, event.destination))
                .or_insert((0u32, Time::ZERO));
            *met = (met.0.saturating_add(1), event.time);
        }
        let unit = TimeUnit::of(bundle.clock(), log);
        let (since, window) = unit.window(log);
        let mut recent_sources = vec![0; bundle.names().len()];
        let mut seen = FxHashSet::default();
        let first = log.events().times().partition_point(|time| time.value() <= since);
        for number in first..log.len() {
            let event = log.events().at(number);
            if seen.insert(pair_key(event.source, event.destination)) {
                recent_sources[event.destination.index()] += 1;
            }
        }
        Explainer { bundle, time, pairs, recent_sources, window, unit }
    }

    /// What the log says of a pair.
    pub fn explain(&self, source: NodeId, destination: NodeId) -> Explanation {
        let count = |from, to| self.pairs.get(&pair_key(from, to)).copied();
        let met = count(source, destination);
        let met_by = count(destination, source).map_or(0, |(count, _)| count);
        let recent = self.recent_sources.get(destination.index()).copied().unwrap_or(0);
        let partner = self.partner(source, destination);
        let mut words = match met {
            Some((times, last)) => {
                let ago = self.unit.show(self.time.since(last));
                format!("met {}, last {ago} ago", times_word(times))
            }
            None if met_by > 0 => format!("never met, but was met by it {}", times_word(met_by)),
            None => "never met".to_string(),
        };
        let sources = if recent == 1 { "source" } else { "sources" };
        words.push_str(&format!("; met by {recent} {sources} {}", self.window));
        if let Some(SharedPartner { name, met, visitors }) = &partner {
            words.push_str(&format!("; {met} of the last {visitors} that met {name} met it, too"));
        }
        Explanation {
            met: met.map_or(0, |(count, _)| count),
            last_met: met.map(|(_, last)| self.bundle.clock().show(last)),
            met_by,
            recent_sources: recent,
            partner,
            words,
        }
    }

    /// The recent partner of the source whose visitors met the destination most, if at least two
    /// did.
    fn partner(&self, source: NodeId, destination: NodeId) -> Option<SharedPartner> {
        let mut best: Option<(u32, u32, NodeId)> = None;
        for partner in self.newest(source, PARTNERS, destination) {
            let visitors = self.newest(partner, VISITORS, source);
            let also = |&visitor: &NodeId| {
                visitor != destination && self.pairs.contains_key(&pair_key(visitor, destination))
            };
            let met = visitors.iter().filter(|visitor| also(visitor)).count() as u32;
            if met >= 2 && best.is_none_or(|(most, ..)| met > most) {
                best = Some((met, visitors.len() as u32, partner));
            }
        }
        best.map(|(met, visitors, partner)| {
            let name = self.bundle.names().name(partner).to_string();
            SharedPartner { name, met, visitors }
        })
    }

    /// The newest different partners of a node but one, the newest first.
    fn newest(&self, node: NodeId, most: usize, without: NodeId) -> Vec<NodeId> {
        let log = self.bundle.live.log();
        let history = log.past(log.len() as u32).history(Seed::new(node, self.time));
        let mut found: Vec<NodeId> = Vec::with_capacity(most.min(history.len()));
        // A node that met one partner very often has the others far behind: not looked for.
        for neighbour in history.iter().rev().take(8 * most) {
            let other = neighbour.node();
            if other != without && other != node && !found.contains(&other) {
                found.push(other);
                if found.len() == most {
                    break;
                }
            }
        }
        found
    }
}

fn times_word(count: u32) -> String {
    if count == 1 { "once".to_string() } else { format!("{count} times") }
}

/// How long a unit of the clock is, if that is known.
#[derive(Debug, Clone, Copy, PartialEq)]
enum TimeUnit {
    /// So many seconds.
    Seconds(f64),
    /// Nobody has said.
    Unknown,
}

impl TimeUnit {
    /// Dates say what they are. Numbers that are Unix seconds of the years 2000 to 2100 are taken
    /// as such.
    fn of(clock: &Clock, log: &EventLog) -> TimeUnit {
        if let Some(seconds) = clock.seconds_per_unit() {
            return TimeUnit::Seconds(seconds);
        }
        let unix = 946_684_800.0..4_102_444_800.0;
        let times = log.events().times();
        let origin = if let Clock::Integer { origin } = clock { *origin as f64 } else { 0.0 };
        let is_unix =
            |time: Option<&Time>| time.is_some_and(|time| unix.contains(&(time.value() + origin)));
        match is_unix(times.first()) && is_unix(times.last()) {
            true => TimeUnit::Seconds(1.0),
            false => TimeUnit::Unknown,
        }
    }

    /// What "lately" means: since when, and how that is said. The longest of an hour, a day, a week
    /// and 30 days that is at most a quarter of the stream; or a twentieth of the stream.
    fn window(self, log: &EventLog) -> (f64, String) {
        let times = log.events().times();
        let (Some(first), Some(last)) = (times.first(), times.last()) else {
            return (f64::NEG_INFINITY, "in all".to_string());
        };
        let span = last.since(*first);
        if let TimeUnit::Seconds(unit) = self {
            let windows = [
                (2_592_000.0, "in the last 30 days"),
                (604_800.0, "in the last 7 days"),
                (86_400.0, "in the last 24 h"),
                (3_600.0, "in the last hour"),
            ];
            let fits = windows.iter().find(|(seconds, _)| seconds / unit <= span / 4.0);
            if let Some((seconds, words)) = fits {
                return (last.value() - seconds / unit, words.to_string());
            }
        }
        (last.value() - span / 20.0, "in the last twentieth of the stream".to_string())
    }

    fn show(self, span: f64) -> String {
        let TimeUnit::Seconds(unit) = self else { return format!("{} time units", round(span)) };
        let seconds = span * unit;
        let units = [(86_400.0, "days"), (3_600.0, "h"), (60.0, "min")];
        match units.iter().find(|(length, _)| seconds >= 2.0 * length) {
            Some((length, name)) => format!("{} {name}", round(seconds / length)),
            None => format!("{} s", round(seconds)),
        }
    }
}

/// Three digits are enough to know how long.
fn round(value: f64) -> String {
    if value >= 10.0 || value.fract() == 0.0 {
        format!("{value:.0}")
    } else {
        format!("{value:.1}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serving::fixture;

    #[test]
    fn an_explanation_counts_what_the_log_holds() {
        let bundle = fixture::bundle("lstep-pair");
        let log = bundle.live.log();
        let time = Time::new(700.0).expect("finite");
        let explainer = Explainer::new(&bundle, time);
        let nodes = || (0..30).map(NodeId);
        for (source, destination) in nodes().flat_map(|a| nodes().map(move |b| (a, b))) {
            let met: Vec<Time> = log
                .events()
                .iter()
                .filter(|event| event.source == source && event.destination == destination)
                .map(|event| event.time)
                .collect();
            let why = explainer.explain(source, destination);
            assert_eq!(why.met as usize, met.len());
            assert_eq!(why.last_met, met.last().map(|&last| bundle.clock().show(last)));
            let words = if met.is_empty() { "never met" } else { "met " };
            assert!(why.words.starts_with(words), "{}", why.words);
        }
    }

    #[test]
    fn spans_of_a_known_unit_are_said_in_hours_and_days() {
        let milliseconds = TimeUnit::Seconds(1e-3);
        assert_eq!(milliseconds.show(10_800_000.0), "3 h");
        assert_eq!(milliseconds.show(90_000.0), "90 s");
        assert_eq!(TimeUnit::Seconds(1.0).show(1_000_000.0), "12 days");
        assert_eq!(TimeUnit::Unknown.show(2.5), "2.5 time units");
    }
}
