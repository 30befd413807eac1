//! How like the source's latest partners a candidate is, partner by partner.
//!
//! The walk sums add up what all partners of a source have in common with a candidate. Here each of
//! the latest partners is compared alone, so that the newest can count most and a single close one
//! is not lost among many: the cosine of the company that the two have kept (w1 of `walks.rs`; of
//! two shop items, who bought both), and how much of the candidate's company was that partner. This
//! is TPNet's relative encoding for the neighbours of a node. Partners are read from the past,
//! exact up to the query's time; sums follow steps. O(PARTNERS d) for a pair.

use super::Numbers;
use super::walks::{self, DECAYS, Walks};
use crate::event::NodeId;
use crate::graph::{Past, Seed};
use lstep_tensor::row_products;

/// How many numbers a pair has.
pub const WIDTH: usize = DECAYS.len() * (LAGS + 4);
/// How many of a source's latest partners are compared.
const PARTNERS: usize = 20;
/// How many of them have a number of their own.
const LAGS: usize = 5;
/// How many of a source's newest events are searched for them.
const SEARCHED: usize = 64;

/// A source's latest partners, the newest first.
pub struct Side {
    nodes: Vec<NodeId>,
    width: usize,
    /// For each decay their w1 at length one, a row each.
    company: [Vec<f32>; DECAYS.len()],
    /// Their codes at length one, a row each.
    codes: Vec<f32>,
}

impl Side {
    pub fn new(walks: &Walks, past: Past<'_>, seed: Seed) -> Side {
        let mut nodes = Vec::with_capacity(PARTNERS);
        for met in past.recent(seed, SEARCHED).iter().rev() {
            if !nodes.contains(&met.node()) && nodes.len() < PARTNERS {
                nodes.push(met.node());
            }
        }
        let width = walks.width();
        let mut side = Side { nodes, width, company: Default::default(), codes: Vec::new() };
        let code_scale = 1.0 / (width as f32).sqrt();
        for &node in &side.nodes {
            let partner = walks.side(node);
            for (decay, rows) in side.company.iter_mut().enumerate() {
                let (sum, scale) = unit(&partner, decay);
                match sum {
                    [] => rows.extend(std::iter::repeat_n(0.0, width)),
                    sum => rows.extend(sum.iter().map(|number| number * scale)),
                }
            }
            side.codes.extend(partner.signs().iter().map(|sign| sign * code_scale));
        }
        side
    }

    /// All numbers of a pair.
    pub fn write_features(&self, node: NodeId, candidate: &walks::Side<'_>, out: &mut Numbers<'_>) {
        for (decay, company) in self.company.iter().enumerate() {
            let (sum, scale) = unit(candidate, decay);
            let (mut alike, mut met) = ([0.0; PARTNERS], [0.0; PARTNERS]);
            row_products(company, sum, self.width, &mut alike);
            row_products(&self.codes, sum, self.width, &mut met);
            // A candidate that is a partner is as like itself as can be, which tells nothing of the
            // others.
            let others = || self.nodes.iter().map(|&partner| partner != node);
            for &number in &alike[..LAGS] {
                out.put(number * scale);
            }
            for numbers in [&alike, &met] {
                let (mut total, mut most, mut count) = (0.0, 0.0f32, 0u32);
                for (number, _) in numbers.iter().zip(others()).filter(|(_, other)| *other) {
                    total += number * scale;
                    most = most.max(number * scale);
                    count += 1;
                }
                out.put(total / count.max(1) as f32);
                out.put(most);
            }
        }
    }
}

/// w1 of a node and what brings it to length one. Nothing has no direction.
fn unit<'a>(side: &walks::Side<'a>, decay: usize) -> (&'a [f32], f32) {
    let (sum, length) = side.company(decay);
    (sum, if length > 0.0 { 1.0 / length } else { 0.0 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Events, Features, Time};
    use crate::graph::EventLog;

    #[test]
    fn items_bought_by_the_same_people_are_alike_and_an_item_is_not_compared_with_itself() {
        // 10 and 11 are bought by the same three, 12 by another; 0 has just bought 11, before it 12.
        let rows =
            [(1, 10), (1, 11), (2, 10), (2, 11), (3, 11), (3, 10), (4, 12), (0, 12), (0, 11)];
        let time = |n: usize| Time::new(n as f64).expect("finite");
        let events = Events::new(
            rows.iter().map(|row| NodeId(row.0)).collect(),
            rows.iter().map(|row| NodeId(row.1)).collect(),
            (0..rows.len()).map(time).collect(),
            Features::none(),
        );
        let log = EventLog::new(events.expect("sorted"));
        let mut walks = Walks::new(256, 1_000_000, None);
        log.events().iter().for_each(|event| walks.observe(&event));
        let side = Side::new(&walks, log.past(rows.len() as u32), Seed::new(NodeId(0), time(100)));
        let told = |candidate: u32| {
            let mut row = vec![0.0; WIDTH];
            let node = NodeId(candidate);
            side.write_features(node, &walks.side(node), &mut Numbers { row: &mut row });
            row
        };
        let (like, partner, nobody) = (told(10), told(11), told(99));
        // With a million nodes nothing decays: {1, 2, 3} and {1, 2, 3, 0} share three.
        assert!((like[0] - 3.0 / 12f32.sqrt()).abs() < 0.15, "{like:?}");
        assert!(like[1].abs() < 0.25, "{like:?}");
        assert!((like[LAGS + 1] - like[0]).abs() < 1e-6, "the most of all: {like:?}");
        assert!((partner[0] - 1.0).abs() < 1e-5, "{partner:?}");
        assert!(partner[LAGS + 1] < 0.5, "only the other partner counts: {partner:?}");
        assert!(nobody.iter().all(|&number| number == 0.0), "{nobody:?}");
    }
}
