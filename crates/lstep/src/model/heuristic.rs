//! Recency and popularity, of the pair and of the candidate, compared one after the other.
//!
//! Cornell et al., "On the Power of Heuristics in Temporal Graphs", 2025. Four signals, each of
//! events strictly before the question as far as the protocol lets the state see: when the pair met
//! last (local recency), how often it met (local popularity), when the candidate was last a
//! destination (global recency), how often it was (global popularity). A list of signals is
//! compared lexicographically: later ones only part what earlier ones leave equal.

mod kind;

pub use kind::{HeuristicConfig, HeuristicKind};

use super::counting::{
    Counting, PairTable, load_pairs, same_length, save_pairs, score_each, sorted, within_the_stream,
};
use super::{Model, Pace, StreamInfo};
use crate::checkpoint::{Checkpoint, impossible};
use crate::error::{Error, Result};
use crate::event::{Event, Time, pair_key};
use crate::graph::{Past, Revealed};
use crate::query::{Queries, Scores};

/// Something simple that is known of a pair or a candidate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Signal {
    /// When the pair met last.
    LocalRecency,
    /// How often the pair met.
    LocalPopularity,
    /// When the candidate was last a destination.
    GlobalRecency,
    /// How often the candidate was a destination.
    GlobalPopularity,
}

/// Compares candidates by a list of signals.
#[derive(Debug, Clone)]
pub struct Heuristic {
    signals: Vec<Signal>,
}

impl Heuristic {
    /// Refuses an empty list and a signal named twice.
    pub fn new(signals: &[Signal]) -> Result<Heuristic> {
        let twice =
            signals.iter().enumerate().any(|(place, signal)| signals[..place].contains(signal));
        if signals.is_empty() || twice {
            return Err(Error::setting(
                "signals",
                format!("{signals:?}"),
                "name at least one signal, and each only once",
            ));
        }
        Ok(Heuristic { signals: signals.to_vec() })
    }
}

/// What passing events leave behind.
#[derive(Debug, Clone)]
pub struct Seen {
    pairs: PairTable<Trace>,
    destinations: Vec<Trace>,
    /// How many distinct times have passed, the newest included; recency is counted in these, so
    /// zero means never.
    moments: u32,
    newest: Option<Time>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Trace {
    count: u32,
    moment: u32,
}

impl Trace {
    fn leave(&mut self, moment: u32) {
        self.count = self.count.saturating_add(1);
        self.moment = moment;
    }
}

/// Counts above this are taken as equal, so that a recency (32 bits) and a count fit into a double
/// exactly.
const MOST: u32 = (1 << 20) - 1;

impl Model for Heuristic {
    type State = Seen;

    fn begin(&self, info: &StreamInfo) -> Seen {
        Seen {
            pairs: PairTable::default(),
            destinations: vec![Trace::default(); info.nodes],
            moments: 0,
            newest: None,
        }
    }

    fn pace(&self) -> Pace {
        Pace::Timestamp
    }

    fn score(&self, _: Past<'_>, seen: &Seen, ask: &Queries) -> Result<Scores> {
        let local = self
            .signals
            .iter()
            .any(|s| matches!(s, Signal::LocalRecency | Signal::LocalPopularity));
        score_each(ask, |row, candidate| {
            let pair = if local {
                seen.pairs.get(&pair_key(row.source, candidate)).copied()
            } else {
                None
            };
            let pair = pair.unwrap_or_default();
            let node = seen.destinations.get(candidate.index()).copied().unwrap_or_default();
            // One number whose digits are the signals. Going to a double keeps the 53 bits from the
            // first signal that is not zero: that one exactly, later ones as far as the bits reach.
            // Two recencies are told apart exactly up to two million distinct times.
            let digits = self.signals.iter().fold(0u128, |digits, signal| match signal {
                Signal::LocalRecency => digits << 32 | u128::from(pair.moment),
                Signal::GlobalRecency => digits << 32 | u128::from(node.moment),
                Signal::LocalPopularity => digits << 20 | u128::from(pair.count.min(MOST)),
                Signal::GlobalPopularity => digits << 20 | u128::from(node.count.min(MOST)),
            });
            digits as f64
        })
    }

    fn observe(&self, _: Revealed<'_>, seen: &mut Seen, step: &[Event]) -> Result<()> {
        for event in step {
            if seen.newest != Some(event.time) {
                seen.newest = Some(event.time);
                seen.moments = seen.moments.saturating_add(1);
            }
            seen.pairs
                .entry(pair_key(event.source, event.destination))
                .or_default()
                .leave(seen.moments);
            let node = event.destination.index();
            if node >= seen.destinations.len() {
                seen.destinations.resize(node + 1, Trace::default());
            }
            seen.destinations[node].leave(seen.moments);
        }
        Ok(())
    }
}

impl Counting for Heuristic {
    fn save_state<'a>(&self, seen: &'a Seen, checkpoint: &mut Checkpoint<'a>) {
        let pairs = sorted(&seen.pairs);
        save_pairs(&pairs, checkpoint);
        let column = |value: fn(&Trace) -> u32| -> Vec<u32> {
            pairs.iter().map(|(_, trace)| value(trace)).collect()
        };
        checkpoint.push_u32("pairs.counts", column(|trace| trace.count));
        checkpoint.push_u32("pairs.moments", column(|trace| trace.moment));
        let column = |value: fn(&Trace) -> u32| -> Vec<u32> {
            seen.destinations.iter().map(value).collect()
        };
        checkpoint.push_u32("destinations.counts", column(|trace| trace.count));
        checkpoint.push_u32("destinations.moments", column(|trace| trace.moment));
        checkpoint.push_u32("moments", vec![seen.moments]);
        let newest: Vec<f64> = seen.newest.iter().map(|time| time.value()).collect();
        checkpoint.push_f64("newest", newest);
    }

    fn load_state(&self, info: &StreamInfo, checkpoint: &Checkpoint<'_>) -> Result<Seen> {
        let moments = checkpoint.one_u32("moments")?;
        let traces = |counts: &str, moment_of: &str| -> Result<Vec<Trace>> {
            let (counts, found) = (checkpoint.u32(counts)?, checkpoint.u32(moment_of)?);
            same_length(moment_of, found.len(), counts.len())?;
            if found.iter().any(|&moment| moment > moments) {
                return Err(impossible(format!("has {moment_of:?} beyond the last moment")));
            }
            let both = counts.iter().zip(found);
            Ok(both.map(|(&count, &moment)| Trace { count, moment }).collect())
        };
        let met = traces("pairs.counts", "pairs.moments")?;
        same_length("pairs.sources", checkpoint.u32("pairs.sources")?.len(), met.len())?;
        let destinations = traces("destinations.counts", "destinations.moments")?;
        within_the_stream("destinations.counts", destinations.len(), info, checkpoint)?;
        let newest = match checkpoint.f64("newest")? {
            [] => None,
            [time] => Some(Time::new(*time).ok_or_else(|| impossible("has no time as newest"))?),
            _ => return Err(impossible("has several times as newest")),
        };
        let pairs = load_pairs(checkpoint, |place| met[place])?;
        Ok(Seen { pairs, destinations, moments, newest })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::NodeId;
    use crate::graph::EventLog;
    use crate::model::open;

    /// How the candidates 1, 2, 3, 4 of source 0 rank after (0, 1) twice, (0, 2) once, then (5, 3)
    /// three times.
    fn order(signals: &[Signal]) -> Vec<f64> {
        let mut log = EventLog::default();
        for (at, (source, destination)) in
            [(0, 1), (0, 1), (0, 2), (5, 3), (5, 3), (5, 3)].into_iter().enumerate()
        {
            let time = Time::new(at as f64).expect("finite");
            log.push(NodeId(source), NodeId(destination), time, &[]).expect("in order");
        }
        let info = StreamInfo::new(2, (Time::ZERO, Time::ZERO));
        let mut session = open(Heuristic::new(signals).expect("signals"), &info);
        let events: Vec<Event> = log.events().iter().collect();
        session.observe(log.revealed(6), &events).expect("observed");
        let mut ask = Queries::new();
        ask.push(NodeId(0), Time::new(9.0).expect("finite"), (1..=4).map(NodeId));
        let scores = session.score(log.past(6), &ask).expect("scored");
        let rank =
            |score: f64| scores.values().iter().filter(|&&other| other > score).count() as f64;
        scores.values().iter().map(|&score| rank(score)).collect()
    }

    #[test]
    fn each_signal_orders_by_what_it_says() {
        assert_eq!(order(&[Signal::LocalRecency]), [1.0, 0.0, 2.0, 2.0]);
        assert_eq!(order(&[Signal::LocalPopularity]), [0.0, 1.0, 2.0, 2.0]);
        assert_eq!(order(&[Signal::GlobalRecency]), [2.0, 1.0, 0.0, 3.0]);
        assert_eq!(order(&[Signal::GlobalPopularity]), [1.0, 2.0, 0.0, 3.0]);
    }

    #[test]
    fn a_later_signal_parts_only_what_earlier_ones_leave_equal() {
        assert_eq!(order(&[Signal::LocalRecency, Signal::GlobalPopularity]), [1.0, 0.0, 2.0, 3.0]);
        let all = [
            Signal::LocalRecency,
            Signal::LocalPopularity,
            Signal::GlobalRecency,
            Signal::GlobalPopularity,
        ];
        assert_eq!(order(&all), [1.0, 0.0, 2.0, 3.0]);
    }

    #[test]
    fn a_signal_named_twice_is_refused() {
        assert!(Heuristic::new(&[]).is_err());
        assert!(Heuristic::new(&[Signal::GlobalRecency, Signal::GlobalRecency]).is_err());
    }
}
