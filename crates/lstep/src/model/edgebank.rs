//! EdgeBank: a pair that is in memory meets again, any other does not.
//!
//! Poursafaei et al., "Towards Better Evaluation for Dynamic Link Prediction", NeurIPS 2022. Score
//! 1 for a pair in memory, else
//! 0. Five memories are known; the first four as DyGLib runs them, the last as TGB does. Pairs are
//!    directed. The state holds each pair's first and newest time and its count, and all memories
//!    are read off these in O(1) for a candidate.

mod kind;

pub use kind::{EdgeBankConfig, EdgeBankKind};

use super::counting::{
    Counting, PairTable, load_pairs, same_length, save_pairs, score_each, sorted,
};
use super::{Model, Pace, StreamInfo};
use crate::checkpoint::{Checkpoint, impossible};
use crate::error::Result;
use crate::event::{Event, Time, pair_key};
use crate::graph::{Past, Revealed};
use crate::metric::quantile;
use crate::query::{Queries, Scores};

/// What EdgeBank remembers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case", try_from = "String")]
pub enum Memory {
    /// Every pair that ever met.
    Unlimited,
    /// Pairs that met since the 0.85 quantile of all times seen.
    WindowProportion,
    /// Pairs that met within the mean repeat interval before the newest time: the sum, over pairs
    /// that met more than once, of their mean gap, divided by the number of all pairs.
    WindowRepeat,
    /// Pairs that met at least as often as the mean pair.
    RepeatThreshold,
    /// Pairs that met within the last 15 % of training's time span, counted back from the newest
    /// time: TGB's window.
    WindowTgb,
}

/// Share of the history, or of training's span, that a window covers.
const WINDOW: f64 = 0.15;

/// Score 1 for pairs in memory, else 0.
#[derive(Debug, Clone, Copy)]
pub struct EdgeBank {
    /// What it remembers.
    pub memory: Memory,
}

/// What passing events leave behind.
#[derive(Debug, Clone)]
pub struct Bank {
    pairs: PairTable<Met>,
    events: u64,
    newest: f64,
    /// Times in order, kept only for the window by proportion.
    times: Vec<Time>,
    /// Sum of the mean gaps of pairs that met more than once.
    mean_gaps: CompensatedSum,
    tgb_window: f64,
}

#[derive(Debug, Clone, Copy)]
struct Met {
    first: f64,
    newest: f64,
    count: u32,
}

impl Met {
    fn mean_gap(&self) -> f64 {
        if self.count > 1 { (self.newest - self.first) / f64::from(self.count - 1) } else { 0.0 }
    }
}

/// A running sum that keeps what rounding would lose, since terms are also taken away again.
#[derive(Debug, Clone, Copy, Default)]
struct CompensatedSum {
    sum: f64,
    lost: f64,
}

impl CompensatedSum {
    fn add(&mut self, term: f64) {
        let sum = self.sum + term;
        self.lost += if self.sum.abs() >= term.abs() {
            (self.sum - sum) + term
        } else {
            (term - sum) + self.sum
        };
        self.sum = sum;
    }

    fn value(&self) -> f64 {
        self.sum + self.lost
    }
}

impl Model for EdgeBank {
    type State = Bank;

    fn begin(&self, info: &StreamInfo) -> Bank {
        Bank {
            pairs: PairTable::default(),
            events: 0,
            newest: f64::NEG_INFINITY,
            times: Vec::new(),
            mean_gaps: CompensatedSum::default(),
            tgb_window: tgb_window(info.training),
        }
    }

    fn pace(&self) -> Pace {
        Pace::Timestamp
    }

    fn score(&self, _: Past<'_>, bank: &Bank, ask: &Queries) -> Result<Scores> {
        let since = match self.memory {
            Memory::Unlimited | Memory::RepeatThreshold => f64::NEG_INFINITY,
            Memory::WindowProportion if bank.times.is_empty() => f64::NEG_INFINITY,
            Memory::WindowProportion => quantile(&bank.times, 1.0 - WINDOW),
            Memory::WindowRepeat => {
                bank.newest - bank.mean_gaps.value() / bank.pairs.len().max(1) as f64
            }
            Memory::WindowTgb => bank.newest - bank.tgb_window,
        };
        let least = match self.memory {
            Memory::RepeatThreshold => bank.events as f64 / bank.pairs.len().max(1) as f64,
            _ => 0.0,
        };
        score_each(ask, |row, candidate| match bank.pairs.get(&pair_key(row.source, candidate)) {
            Some(met) if met.newest >= since && f64::from(met.count) >= least => 1.0,
            _ => 0.0,
        })
    }

    fn observe(&self, _: Revealed<'_>, bank: &mut Bank, step: &[Event]) -> Result<()> {
        for event in step {
            let time = event.time.value();
            let met = bank.pairs.entry(pair_key(event.source, event.destination)).or_insert(Met {
                first: time,
                newest: time,
                count: 0,
            });
            let before = met.mean_gap();
            met.newest = time;
            met.count = met.count.saturating_add(1);
            bank.mean_gaps.add(met.mean_gap() - before);
            bank.events += 1;
            bank.newest = bank.newest.max(time);
            if self.memory == Memory::WindowProportion {
                bank.times.push(event.time);
            }
        }
        Ok(())
    }
}

impl Counting for EdgeBank {
    fn save_state<'a>(&self, bank: &'a Bank, checkpoint: &mut Checkpoint<'a>) {
        let pairs = sorted(&bank.pairs);
        save_pairs(&pairs, checkpoint);
        let times = |value: fn(&Met) -> f64| -> Vec<f64> {
            pairs.iter().map(|(_, met)| value(met)).collect()
        };
        checkpoint.push_f64("pairs.first", times(|met| met.first));
        checkpoint.push_f64("pairs.newest", times(|met| met.newest));
        let counts: Vec<u32> = pairs.iter().map(|(_, met)| met.count).collect();
        checkpoint.push_u32("pairs.counts", counts);
        checkpoint.push_u64("events", vec![bank.events]);
        let newest = if bank.events > 0 { vec![bank.newest] } else { Vec::new() };
        checkpoint.push_f64("newest", newest);
        checkpoint.push_f64("gaps", vec![bank.mean_gaps.sum, bank.mean_gaps.lost]);
        let times: Vec<f64> = bank.times.iter().map(|time| time.value()).collect();
        checkpoint.push_f64("times", times);
    }

    fn load_state(&self, info: &StreamInfo, checkpoint: &Checkpoint<'_>) -> Result<Bank> {
        let (first, newest) = (checkpoint.f64("pairs.first")?, checkpoint.f64("pairs.newest")?);
        let counts = checkpoint.u32("pairs.counts")?;
        same_length("pairs.newest", newest.len(), first.len())?;
        same_length("pairs.counts", counts.len(), first.len())?;
        same_length("pairs.sources", checkpoint.u32("pairs.sources")?.len(), first.len())?;
        let finite = |times: &[f64]| times.iter().all(|time| time.is_finite());
        if !finite(first) || !finite(newest) || !finite(checkpoint.f64("gaps")?) {
            return Err(impossible("has times of pairs that are no times"));
        }
        let pairs = load_pairs(checkpoint, |place| Met {
            first: first[place],
            newest: newest[place],
            count: counts[place],
        })?;
        let time =
            |&time: &f64| Time::new(time).ok_or_else(|| impossible("has a time that is none"));
        let times: Vec<Time> = checkpoint.f64("times")?.iter().map(time).collect::<Result<_>>()?;
        if !times.is_sorted() {
            return Err(impossible("has times that are not in order"));
        }
        let newest = match checkpoint.f64("newest")? {
            [] => f64::NEG_INFINITY,
            [newest] if newest.is_finite() => *newest,
            _ => return Err(impossible("has no time as newest")),
        };
        let [sum, lost] = *checkpoint.f64("gaps")? else {
            return Err(impossible("has no sum of gaps"));
        };
        let events = checkpoint.one_u64("events")?;
        if events > 1 << 53 {
            return Err(impossible(format!("has counted {events} events, more than can be")));
        }
        Ok(Bank {
            pairs,
            events,
            newest,
            times,
            mean_gaps: CompensatedSum { sum, lost },
            tgb_window: tgb_window(info.training),
        })
    }
}

/// The length of TGB's window, rounded as the benchmark rounds it: last time - (first time + span
/// (1 - 0.15)).
fn tgb_window((first, last): (Time, Time)) -> f64 {
    last.value() - (first.value() + last.since(first) * (1.0 - WINDOW))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::NodeId;
    use crate::graph::EventLog;
    use crate::model::open;

    /// Scores of the pairs (0, d) after the events (0, d) at t.
    fn scores(memory: Memory, events: &[(u32, f64)], asked: &[u32]) -> Vec<f64> {
        let mut log = EventLog::default();
        let time = |value| Time::new(value).expect("finite");
        for &(destination, at) in events {
            log.push(NodeId(0), NodeId(destination), time(at), &[]).expect("in order");
        }
        let training = (time(events[0].1), time(events[events.len() - 1].1));
        let mut session = open(EdgeBank { memory }, &StreamInfo::new(9, training));
        let step: Vec<Event> = log.events().iter().collect();
        session.observe(log.revealed(u32::MAX), &step).expect("observed");
        let mut ask = Queries::new();
        ask.push(NodeId(0), time(1e9), asked.iter().map(|&node| NodeId(node)));
        session.score(log.past(u32::MAX), &ask).expect("scored").values().to_vec()
    }

    #[test]
    fn unlimited_memory_forgets_nothing() {
        assert_eq!(scores(Memory::Unlimited, &[(1, 0.0), (2, 500.0)], &[1, 2, 3]), [1.0, 1.0, 0.0]);
    }

    #[test]
    fn the_window_by_proportion_starts_at_a_quantile_of_the_times() {
        // Quantile 0.85 of 0, 10, 20, 30, 40 is 34.
        let events = [(1, 0.0), (2, 10.0), (3, 20.0), (4, 30.0), (5, 40.0)];
        assert_eq!(scores(Memory::WindowProportion, &events, &[3, 4, 5]), [0.0, 0.0, 1.0]);
    }

    #[test]
    fn the_window_by_repeats_divides_by_all_pairs() {
        // Pair 1 repeats after 6 and 10: mean gap 8; pairs 2 and 3 do not repeat. The window is 8 /
        // 3 before 19.
        let events = [(1, 0.0), (1, 6.0), (1, 16.0), (2, 16.5), (3, 19.0)];
        assert_eq!(scores(Memory::WindowRepeat, &events, &[1, 2, 3]), [0.0, 1.0, 1.0]);
    }

    #[test]
    fn the_threshold_is_the_mean_count() {
        let events = [(1, 0.0), (1, 1.0), (1, 2.0), (2, 3.0), (2, 4.0), (3, 5.0)];
        assert_eq!(scores(Memory::RepeatThreshold, &events, &[1, 2, 3]), [1.0, 1.0, 0.0]);
    }

    #[test]
    fn tgbs_window_is_a_share_of_trainings_span() {
        let events = [(1, 0.0), (2, 84.0), (3, 86.0), (4, 100.0)];
        assert_eq!(scores(Memory::WindowTgb, &events, &[1, 2, 3, 4]), [0.0, 0.0, 1.0, 1.0]);
    }
}
