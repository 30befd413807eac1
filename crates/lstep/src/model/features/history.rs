//! Two recent histories compared: how often each node is among the other's partners, how
//! recently, and whom both have met.
//!
//! Everything is counted on integers. The source's side is made once and compared with all its
//! candidates.

use super::{Numbers, log_count, recency};
use crate::event::{NodeId, Time};
use crate::graph::{Neighbour, Past, Seed, newest};

/// How many numbers a pair has.
pub const WIDTH: usize = 13 + 2 * OWN;
/// How many numbers each side has of its own.
const OWN: usize = 3 + WINDOWS.len();
/// Shares of the training span in which a node's events are counted.
const WINDOWS: [f64; 4] = [1e-4, 1e-3, 1e-2, 1e-1];
/// Meetings that count as very recent.
const SHORT: u32 = 8;

/// What a partner has been to a node: neighbours, and how many of the node's newer ones there are
/// since the last.
#[derive(Debug, Clone, Copy)]
struct Partner {
    node: u32,
    count: u32,
    rank: u32,
    short: u32,
}

const NOBODY: u32 = u32::MAX;

/// A node's newest neighbours, by partner.
pub struct Side<'p> {
    pub seed: Seed,
    recent: &'p [Neighbour],
    span: f64,
    most: usize,
    /// Open addressing: a power of two of places, at most a quarter of them taken.
    places: Vec<Partner>,
    own: [f32; OWN],
    /// Sum of squared counts.
    square: f32,
}

impl<'p> Side<'p> {
    pub fn new(past: Past<'p>, seed: Seed, most: usize, span: f64) -> Side<'p> {
        let history = past.history(seed);
        let recent = newest(history, most);
        let empty = Partner { node: NOBODY, count: 0, rank: 0, short: 0 };
        let places = vec![empty; (4 * recent.len()).next_power_of_two()];
        let mut side = Side { seed, recent, span, most, places, own: [0.0; OWN], square: 0.0 };
        for (rank, neighbour) in (0..).zip(recent.iter().rev()) {
            let place = side.place(neighbour.node());
            let partner = &mut side.places[place];
            if partner.node == NOBODY {
                *partner = Partner { node: neighbour.node().0, count: 0, rank, short: 0 };
            }
            partner.count += 1;
            partner.short += u32::from(rank < SHORT);
        }
        side.square =
            side.places.iter().map(|partner| (partner.count * partner.count) as f32).sum();
        side.own = own(seed.time(), history, most, span);
        side
    }

    fn place(&self, node: NodeId) -> usize {
        let mask = self.places.len() - 1;
        let mut place = (node.0.wrapping_mul(0x9e37_79b1) >> 7) as usize & mask;
        while self.places[place].node != NOBODY && self.places[place].node != node.0 {
            place = (place + 1) & mask;
        }
        place
    }

    fn partner(&self, node: NodeId) -> Option<Partner> {
        Some(self.places[self.place(node)]).filter(|partner| partner.node != NOBODY)
    }

    /// All numbers of the source and a candidate.
    pub fn compare(&self, past: Past<'_>, candidate: Seed, out: &mut Numbers<'_>) {
        let met = self.partner(candidate.node());
        out.put(f32::from(u8::from(met.is_some())));
        out.count(met.map_or(0, |partner| partner.count));
        out.put(met.map_or(0.0, |partner| 1.0 / (1 + partner.rank) as f32));
        out.count(met.map_or(0, |partner| partner.short));
        // Of all neighbours with the candidate the one at `rank` from the end is the newest.
        let last = met.map(|partner| self.recent[self.recent.len() - 1 - partner.rank as usize]);
        out.put(
            last.map_or(0.0, |neighbour| recency(self.seed.time(), neighbour.time(), self.span)),
        );
        let forth = last.is_some_and(|neighbour| past.starts_at(self.seed.node(), &neighbour));
        out.put(f32::from(u8::from(forth)));

        let history = past.history(candidate);
        let theirs = newest(history, self.most);
        let (mut back, mut back_rank, mut back_short) = (0, None, 0);
        let (mut shared, mut product, mut late) = (0, 0.0, 0.0f32);
        for (rank, neighbour) in (0u32..).zip(theirs.iter().rev()) {
            if neighbour.node() == self.seed.node() {
                back += 1;
                back_rank = back_rank.or(Some(rank));
                back_short += u32::from(rank < SHORT);
            }
            if let Some(partner) = self.partner(neighbour.node()) {
                shared += 1;
                product += partner.count as f32;
                late = late.max(1.0 / (1 + rank.max(partner.rank)) as f32);
            }
        }
        out.count(back);
        out.put(back_rank.map_or(0.0, |rank| 1.0 / (1 + rank) as f32));
        out.count(back_short);
        out.count(shared);
        out.put(product / (self.square * theirs.len() as f32).max(1.0).sqrt());
        out.put(late);
        out.put(log_count(theirs.len().min(self.recent.len()) as u32));
        self.own.iter().for_each(|&number| out.put(number));
        own(candidate.time(), history, self.most, self.span)
            .iter()
            .for_each(|&number| out.put(number));
    }
}

/// Of one node alone: when it was last active, how often ever, how full its history is, and how
/// often it was active in windows of several lengths.
fn own(now: Time, history: &[Neighbour], most: usize, span: f64) -> [f32; OWN] {
    let mut numbers = [0.0; OWN];
    numbers[0] = history.last().map_or(0.0, |neighbour| recency(now, neighbour.time(), span));
    numbers[1] = log_count(history.len() as u32);
    numbers[2] = history.len().min(most) as f32 / most as f32;
    for (number, share) in numbers[3..].iter_mut().zip(WINDOWS) {
        *number = log_count(count_since(history, now.value() - share * span) as u32);
    }
    numbers
}

/// How many neighbours are not before a time. Looked for from the end in steps that double, since
/// mostly there are few. O(log result).
fn count_since(history: &[Neighbour], since: f64) -> usize {
    let before = |neighbour: &Neighbour| neighbour.time().value() < since;
    let mut reach = 8;
    while reach < history.len() && !before(&history[history.len() - reach]) {
        reach *= 2;
    }
    let last = newest(history, reach);
    last.len() - last.partition_point(before)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Events, Features};
    use crate::graph::EventLog;

    #[test]
    fn two_histories_are_compared_up_to_the_moment_asked() {
        let time = |value: u32| Time::new(f64::from(value)).expect("finite");
        // 1 wrote to 2 twice and to 3; 2 wrote back to 1 and to 3; at time 9, which is asked about,
        // 1 writes to 2 once more.
        let rows = [(1, 2, 1), (1, 3, 2), (2, 1, 3), (1, 2, 4), (2, 3, 5), (1, 2, 9)];
        let events = Events::new(
            rows.iter().map(|row| NodeId(row.0)).collect(),
            rows.iter().map(|row| NodeId(row.1)).collect(),
            rows.iter().map(|row| time(row.2)).collect(),
            Features::none(),
        );
        let log = EventLog::new(events.expect("sorted"));
        let seed = |node: u32| Seed::new(NodeId(node), time(9));
        let side = Side::new(log.past(6), seed(1), 4, 8.0);
        let told = |candidate: u32| {
            let mut row = vec![0.0; WIDTH];
            side.compare(log.past(6), seed(candidate), &mut Numbers { row: &mut row });
            row
        };
        let two = told(2);
        // Met, three times, the newest neighbour first, all of them lately, and the last
        // time 1 wrote.
        assert_eq!(two[..4], [1.0, log_count(3), 1.0, log_count(3)]);
        assert_eq!((two[4], two[5]), (recency(time(9), time(4), 8.0), 1.0));
        // Seen from 2: three neighbours, the newest is the last but one; one shared neighbour, with
        // 3.
        assert_eq!(two[6..10], [log_count(3), 0.5, log_count(3), log_count(1)]);
        let nobody = told(8);
        assert_eq!(nobody[..12], [0.0; 12], "8 has met nobody");
        assert_eq!(
            two[13..13 + OWN],
            nobody[13..13 + OWN],
            "the source's own numbers are the same for all candidates"
        );
    }
}
