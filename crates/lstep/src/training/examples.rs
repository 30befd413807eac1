//! Questions of the test part with what a model answered and what happened: a spread of them, and
//! those that it got most wrong.

use crate::evaluation::ScoreLog;
use crate::event::{NodeId, Time};
use crate::graph::{EventLog, Seed};
use crate::metric::rank;
use crate::protocol::QuerySet;

/// So many examples of each kind.
const EXAMPLES: usize = 10;
/// So many of the likeliest destinations are shown.
const SHOWN: usize = 5;

/// A question with what was answered and what happened.
#[derive(Debug, Clone, PartialEq)]
pub struct Example {
    /// Who acted.
    pub source: NodeId,
    /// When.
    pub time: Time,
    /// The likeliest destinations with their scores, as the model ranked them.
    pub shown: Vec<(NodeId, f64)>,
    /// With whom it was.
    pub happened: NodeId,
    /// Its score.
    pub score: f64,
    /// Its rank among all candidates; ties share the middle.
    pub rank: f64,
    /// How many candidates there were.
    pub candidates: usize,
    /// Earlier events of the source.
    pub source_events: usize,
    /// How often the two had met before.
    pub met: usize,
    /// Earlier events of what happened.
    pub happened_events: usize,
}

/// Examples of both kinds.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Examples {
    /// Questions spread evenly over the test part.
    pub spread: Vec<Example>,
    /// Questions whose true destination was ranked lowest, the worst first.
    pub misses: Vec<Example>,
    /// Of how many questions they are taken.
    pub questions: usize,
}

impl Examples {
    /// Takes examples from the answers to a query set; nothing where rows are not ranked.
    pub(super) fn of(log: &EventLog, asked: &QuerySet, record: &ScoreLog) -> Examples {
        if !record.is_ranked() || record.is_empty() {
            return Examples::default();
        }
        let rows = record.len();
        let example = |row: usize| example(log, asked, record, row);
        let step = rows.div_ceil(EXAMPLES).max(1);
        let mut ranks: Vec<(f64, usize)> = (0..rows)
            .filter_map(|row| {
                let answer = record.answer(row);
                Some((rank(answer.positive, answer.negatives).ok()?.value(), row))
            })
            .collect();
        ranks.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        let missed = ranks.iter().filter(|(rank, _)| *rank > 1.0).take(EXAMPLES);
        Examples {
            spread: (0..rows).step_by(step).filter_map(example).collect(),
            misses: missed.filter_map(|&(_, row)| example(row)).collect(),
            questions: rows,
        }
    }
}

/// The question of a row that was kept.
fn example(log: &EventLog, asked: &QuerySet, record: &ScoreLog, row: usize) -> Option<Example> {
    let answer = record.answer(row);
    let event = log.events().at(answer.event as usize);
    // One of so many rows is kept, from the first on.
    let (sources, negatives) = asked.negatives().row(row * record.every);
    if sources.is_some() || negatives.len() != answer.negatives.len() {
        return None;
    }
    let mut all: Vec<(NodeId, f64)> =
        negatives.iter().copied().zip(answer.negatives.iter().copied()).collect();
    all.push((event.destination, answer.positive));
    let count = SHOWN.min(all.len());
    let better = |a: &(NodeId, f64), b: &(NodeId, f64)| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0));
    all.select_nth_unstable_by(count - 1, better);
    all.truncate(count);
    all.sort_by(better);
    let past = log.past(answer.event);
    let earlier = past.history(Seed::new(event.source, event.time));
    Some(Example {
        source: event.source,
        time: event.time,
        shown: all,
        happened: event.destination,
        score: answer.positive,
        rank: rank(answer.positive, answer.negatives).ok()?.value(),
        candidates: negatives.len() + 1,
        source_events: earlier.len(),
        met: earlier.iter().filter(|other| other.node() == event.destination).count(),
        happened_events: past.history(Seed::new(event.destination, event.time)).len(),
    })
}
