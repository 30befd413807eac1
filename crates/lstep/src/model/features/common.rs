//! Whom two nodes have both met, ever: exact where the sums of codes are noisy.
//!
//! Every node keeps its different partners, the newest last and at most [`MOST`] of them, with the
//! event that they last met in. The source's are marked once, and each candidate's are looked up.
//! Partners of few weigh more than partners of all (Adamic and Adar). The lists follow steps; what
//! two nodes share of their newest events, up to the moment, is in `history.rs`.

use super::{Numbers, log, log_count};
use crate::checkpoint::Checkpoint;
use crate::error::{Error, Result};
use crate::event::{Event, NodeId};

/// How many numbers a pair has.
pub const WIDTH: usize = 9;
/// How many partners of a node are kept: the newest.
const MOST: usize = 256;
/// After how many events for each node a meeting counts half as much.
const HALF: f32 = 8.0;

/// Somebody whom a node has met, and the event in which it did so last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Partner {
    node: u32,
    event: u32,
}

/// The partners of one node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Partners {
    /// The newest last.
    kept: Vec<Partner>,
    /// How many different ones there were; a partner that was forgotten and came back counts
    /// again.
    distinct: u32,
}

impl Partners {
    fn meet(&mut self, node: NodeId, event: u32) {
        let known = self.kept.iter().rposition(|partner| partner.node == node.0);
        match known {
            Some(place) => {
                self.kept.remove(place);
            }
            None => {
                self.distinct = self.distinct.saturating_add(1);
                if self.kept.len() == MOST {
                    self.kept.remove(0);
                }
            }
        }
        self.kept.push(Partner { node: node.0, event });
    }
}

/// The partners of all nodes.
#[derive(Debug, Clone)]
pub struct Common {
    events: u32,
    nodes: f32,
    partners: Vec<Partners>,
}

/// A source's partners, marked.
pub struct Side {
    /// Open addressing: a power of two of places, at most half of them taken.
    places: Vec<Partner>,
    kept: usize,
    distinct: u32,
}

const NOBODY: u32 = u32::MAX;

impl Side {
    fn new(partners: Option<&Partners>) -> Side {
        let kept = partners.map_or(&[][..], |partners| &partners.kept);
        let empty = Partner { node: NOBODY, event: 0 };
        let mut side = Side {
            places: vec![empty; (2 * kept.len()).next_power_of_two()],
            kept: kept.len(),
            distinct: partners.map_or(0, |partners| partners.distinct),
        };
        for partner in kept {
            let place = side.place(partner.node);
            side.places[place] = *partner;
        }
        side
    }

    fn place(&self, node: u32) -> usize {
        let mask = self.places.len() - 1;
        let mut place = (node.wrapping_mul(0x9e37_79b1) >> 7) as usize & mask;
        while self.places[place].node != NOBODY && self.places[place].node != node {
            place = (place + 1) & mask;
        }
        place
    }
}

impl Common {
    pub fn new(nodes: usize) -> Common {
        Common { events: 0, nodes: nodes.max(2) as f32, partners: Vec::new() }
    }

    pub fn observe(&mut self, event: &Event) {
        let (u, v) = (event.source, event.destination);
        let most = u.index().max(v.index());
        if most >= self.partners.len() {
            self.partners.resize(most + 1, Partners::default());
        }
        self.partners[u.index()].meet(v, self.events);
        if u != v {
            self.partners[v.index()].meet(u, self.events);
        }
        self.events = self.events.saturating_add(1);
    }

    /// A source, whoever the candidate is.
    pub fn side(&self, source: NodeId) -> Side {
        Side::new(self.partners.get(source.index()))
    }

    /// All numbers of a pair.
    pub fn write_features(&self, side: &Side, candidate: NodeId, out: &mut Numbers<'_>) {
        let theirs = self.partners.get(candidate.index());
        let kept = theirs.map_or(&[][..], |partners| &partners.kept);
        let (mut shared, mut rare, mut rarest, mut late, mut latest) =
            (0u32, 0.0f32, 0.0f32, 0.0f32, 0.0f32);
        if side.kept > 0 {
            for partner in kept {
                let ours = side.places[side.place(partner.node)];
                if ours.node == NOBODY {
                    continue;
                }
                shared += 1;
                let degree = self.partners[partner.node as usize].distinct as f32;
                let weight = 1.0 / (1.0 + degree).ln().max(0.5);
                let since = (self.events - ours.event.min(partner.event)) as f32;
                let left = 1.0 / (1.0 + since / (HALF * self.nodes));
                rare += weight;
                rarest = rarest.max(weight);
                late += left * weight;
                latest = latest.max(left);
            }
        }
        let both = (side.kept as f32 * kept.len() as f32).sqrt().max(1.0);
        let fewer = side.kept.min(kept.len()).max(1) as f32;
        out.put(log_count(shared));
        out.put(log(f64::from(rare)));
        out.put(rarest);
        out.put(log(f64::from(late)));
        out.put(latest);
        out.put(shared as f32 / both);
        out.put(shared as f32 / fewer);
        out.put(log_count(side.distinct));
        out.put(log_count(theirs.map_or(0, |partners| partners.distinct)));
    }

    /// Writes everything into a checkpoint.
    pub fn save<'a>(&'a self, checkpoint: &mut Checkpoint<'a>) {
        checkpoint.push_u32("common.events", vec![self.events]);
        let nodes = || self.partners.iter();
        let counts: Vec<u32> =
            nodes().flat_map(|node| [node.kept.len() as u32, node.distinct]).collect();
        checkpoint.push_u32("common.counts", counts);
        let kept: Vec<u32> = nodes()
            .flat_map(|node| &node.kept)
            .flat_map(|partner| [partner.node, partner.event])
            .collect();
        checkpoint.push_u32("common.partners", kept);
    }

    /// Takes over what [`Common::save`] wrote.
    pub fn load(&mut self, checkpoint: &mut Checkpoint<'_>) -> Result<()> {
        self.events = checkpoint.one_u32("common.events")?;
        let (counts, odd) = checkpoint.u32("common.counts")?.as_chunks::<2>();
        let (kept, rest) = checkpoint.u32("common.partners")?.as_chunks::<2>();
        let expected: usize =
            counts.iter().fold(0, |sum, [kept, _]| sum.saturating_add(*kept as usize));
        if expected != kept.len() || !odd.is_empty() || !rest.is_empty() {
            let (left, right) = (kept.len(), expected);
            return Err(Error::LengthMismatch {
                what: "stored partners and their nodes",
                left,
                right,
            });
        }
        let refused = |what, value: u32| {
            Error::setting(what, value, "the checkpoint is of another program: train anew")
        };
        let mut kept = kept.iter();
        self.partners = Vec::with_capacity(counts.len());
        for &[count, distinct] in counts {
            if count as usize > MOST || count > distinct {
                return Err(refused("the number of stored partners", count));
            }
            let kept: Vec<Partner> = kept
                .by_ref()
                .take(count as usize)
                .map(|&[node, event]| Partner { node, event })
                .collect();
            let wrong = |partner: &&Partner| {
                partner.node as usize >= counts.len() || partner.event >= self.events
            };
            if let Some(partner) = kept.iter().find(wrong) {
                return Err(refused("a stored partner", partner.node));
            }
            self.partners.push(Partners { kept, distinct });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Time;

    fn met(pairs: impl IntoIterator<Item = (u32, u32)>) -> Common {
        let mut common = Common::new(10);
        for (number, (source, destination)) in (0..).zip(pairs) {
            let (source, destination) = (NodeId(source), NodeId(destination));
            common.observe(&Event { number, source, destination, time: Time::ZERO });
        }
        common
    }

    fn told(common: &Common, source: u32, candidate: u32) -> Vec<f32> {
        let mut row = vec![0.0; WIDTH];
        let side = common.side(NodeId(source));
        common.write_features(&side, NodeId(candidate), &mut Numbers { row: &mut row });
        row
    }

    #[test]
    fn shared_partners_are_counted_once_each_and_rare_ones_weigh_more() {
        // 1 and 2 share 5 and 6; 6 has met many. 3 and 4 share 7, which has met nobody else.
        let many = (20..60).map(|n| (n, 6));
        let common =
            met([(1, 5), (5, 2), (1, 6), (1, 6), (6, 2), (3, 7), (7, 4)].into_iter().chain(many));
        let (two, one, none) = (told(&common, 1, 2), told(&common, 3, 4), told(&common, 1, 4));
        assert_eq!((two[0], one[0], none[0]), (log_count(2), log_count(1), 0.0));
        assert!(one[2] > told(&common, 20, 21)[2], "7 is rarer than 6");
        assert_eq!((two[5], two[6]), (1.0, 1.0), "they share all their partners");
        assert_eq!((two[7], none[8]), (log_count(2), log_count(1)));
        assert_eq!(told(&common, 99, 1)[..7], [0.0; 7], "nobody has met 99");
        assert_eq!(told(&common, 1, 2)[..7], told(&common, 2, 1)[..7], "both ways alike");
    }

    #[test]
    fn only_the_newest_partners_are_kept() {
        let many = MOST as u32 + 10;
        let common = met((0..many).map(|n| (1000, n)).chain([(1000, 3)]));
        let kept = &common.partners[1000].kept;
        assert_eq!((kept.len(), common.partners[1000].distinct), (MOST, many + 1));
        assert_eq!(kept[0].node, 11, "3 was forgotten, came back, and sent 10 away");
        assert_eq!(kept[MOST - 1].node, 3);
    }

    #[test]
    fn partners_come_back_from_a_checkpoint_to_the_bit() {
        let common = met((0..50).map(|n| (n % 7, n * n % 11)));
        let mut checkpoint = Checkpoint::default();
        common.save(&mut checkpoint);
        let mut back = Common::new(10);
        back.load(&mut checkpoint.clone()).expect("just saved");
        assert_eq!((back.events, &back.partners), (common.events, &common.partners));
    }

    #[test]
    fn a_partner_that_cannot_be_is_refused() {
        let mut common = met([(0, 1), (2, 1)]);
        common.partners[0].kept[0].event = 9;
        let mut checkpoint = Checkpoint::default();
        common.save(&mut checkpoint);
        assert!(Common::new(10).load(&mut checkpoint).is_err());
    }
}
