//! The sum of gradients over lanes, within a process or between several.
//!
//! Lanes are added along a fixed binary tree: neighbours first, then pairs of them, and so on. A
//! power of two of ranks splits the tree at one of its levels, so each rank adds a subtree of its
//! own, only one sum leaves it, and the upper levels are the same for any number of ranks. So the
//! number of lanes decides the bits, and neither threads nor ranks do. An [`Exchange`] moves bytes
//! between ranks and never adds: what others add in is their order.

use crate::error::{Error, InputFault, Result};
use lstep_tensor::Gradients;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// The order in which the gradients of lanes are added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LaneOrder {
    /// Along a binary tree: (0 + 1) + (2 + 3).
    #[default]
    Tree,
    /// One after the other: ((0 + 1) + 2) + 3, as runs of before the tree do. Up to three lanes
    /// both are the same.
    Sequence,
}

/// Adds up the gradients of lanes, and lets several processes that train one model agree.
pub trait Reduce: Send {
    /// Which process of [`Reduce::ranks`] this is, from 0. Only the first writes.
    fn rank(&self) -> usize {
        0
    }

    /// How many processes train the model together.
    fn ranks(&self) -> usize {
        1
    }

    /// Chooses the order of addition; the tree without it.
    ///
    /// # Errors
    ///
    /// If it cannot be had, as the old order between several processes.
    fn set_order(&mut self, order: LaneOrder) -> Result<()>;

    /// Which of a batch's lanes are computed here.
    fn lanes(&self, of: usize) -> Range<usize>;

    /// Leaves the sum over all `of` lanes of all processes in the first gradients, and of the
    /// losses in the return value, whoever computed them.
    fn sum(&mut self, gradients: &mut [Gradients], losses: &[f64], of: usize) -> Result<f64>;

    /// Whether any process wants to stop. All ask at the same moments, and so stop at the same one.
    fn agree_to_stop(&mut self, here: bool) -> Result<bool> {
        Ok(here)
    }

    /// Refuses to go on where the processes do not have the same; `what` says of what these are
    /// fingerprints.
    fn confirm_same(&mut self, _what: &str, _fingerprint: &[u8]) -> Result<()> {
        Ok(())
    }
}

/// All lanes are computed in this process.
#[derive(Debug, Clone, Copy, Default)]
pub struct Local {
    order: LaneOrder,
}

impl Reduce for Local {
    fn set_order(&mut self, order: LaneOrder) -> Result<()> {
        self.order = order;
        Ok(())
    }

    fn lanes(&self, of: usize) -> Range<usize> {
        0..of
    }

    fn sum(&mut self, gradients: &mut [Gradients], losses: &[f64], _: usize) -> Result<f64> {
        match self.order {
            LaneOrder::Tree => Ok(sum_subtree(gradients, losses)),
            LaneOrder::Sequence => {
                let (first, rest) = gradients.split_first_mut().expect("a batch has a lane");
                first.add(rest);
                Ok(losses.iter().sum())
            }
        }
    }
}

/// Moves bytes between processes that train one model. Every process makes the same calls in the
/// same order.
pub trait Exchange: Send {
    /// Which process this is, from 0.
    fn rank(&self) -> usize;

    /// How many there are.
    fn ranks(&self) -> usize;

    /// Sends to every process its part of `values`, which has as many equal parts as there are
    /// processes, and gives what they sent here, in their order.
    fn all_to_all(&mut self, values: Vec<f32>) -> Result<Vec<f32>>;

    /// Gives what every process sent, in their order. All send equally many.
    fn all_gather(&mut self, values: Vec<f32>) -> Result<Vec<f32>>;

    /// The same for bytes.
    fn all_gather_bytes(&mut self, bytes: Vec<u8>) -> Result<Vec<u8>>;
}

/// Lanes are shared between processes. Each adds its own subtree of lanes, then a slice of the
/// gradients over all processes, and gets the other slices from them.
#[derive(Debug)]
pub struct Ranks<E> {
    exchange: E,
}

impl<E: Exchange> Ranks<E> {
    /// Shares lanes through an exchange.
    ///
    /// # Errors
    ///
    /// If the number of processes is no power of two: only those split the tree.
    pub fn new(exchange: E) -> Result<Ranks<E>> {
        let ranks = exchange.ranks();
        if !ranks.is_power_of_two() {
            let below = 1 << ranks.checked_ilog2().unwrap_or(0);
            let remedy = format!(
                "gradients are added along a binary tree, which only a power of two splits: give \
                 {below} or {}",
                2 * below
            );
            return Err(Error::setting("ranks", ranks, remedy));
        }
        Ok(Ranks { exchange })
    }
}

/// How many lanes each of some ranks has at most, and how many ranks have any.
fn shares(of: usize, ranks: usize) -> (usize, usize) {
    let each = of.next_power_of_two().max(ranks) / ranks;
    (each, of.div_ceil(each))
}

impl<E: Exchange> Reduce for Ranks<E> {
    fn rank(&self) -> usize {
        self.exchange.rank()
    }

    fn ranks(&self) -> usize {
        self.exchange.ranks()
    }

    fn set_order(&mut self, order: LaneOrder) -> Result<()> {
        if order == LaneOrder::Sequence && self.ranks() > 1 {
            let problem = "adds the gradients of lanes one after the other, as runs of before the \
                           tree of lanes do, which only one process can";
            let remedy = "go on with one rank, or begin anew";
            return Err(Error::incompatible(InputFault::new("the run", problem, remedy)));
        }
        Ok(())
    }

    fn lanes(&self, of: usize) -> Range<usize> {
        let (each, _) = shares(of, self.ranks());
        let first = (self.rank() * each).min(of);
        first..(first + each).min(of)
    }

    fn sum(&mut self, gradients: &mut [Gradients], losses: &[f64], of: usize) -> Result<f64> {
        let loss = sum_subtree(gradients, losses);
        let ranks = self.ranks();
        if ranks == 1 {
            return Ok(loss);
        }
        let (_, active) = shares(of, ranks);
        let bytes = self.exchange.all_gather_bytes(loss.to_le_bytes().to_vec())?;
        let mut losses: Vec<f64> =
            bytes.as_chunks::<8>().0.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect();
        losses.truncate(active);
        let loss = add_losses(&mut losses);

        let mine = gradients.first_mut().expect("there is room for a lane").flat_mut();
        let slice = mine.len().div_ceil(ranks);
        let mut values = mine.to_vec();
        values.resize(slice * ranks, 0.0);
        let mut slices = self.exchange.all_to_all(values)?;
        // A process without a lane has sent zeros; they are not added, for -0 + 0 is another zero.
        slices.truncate(slice * active);
        let mut parts: Vec<&mut [f32]> = slices.chunks_mut(slice.max(1)).collect();
        add_tree(&mut parts, |sum, part| {
            sum.iter_mut().zip(part.iter()).for_each(|(sum, value)| *sum += value);
        });
        slices.truncate(slice);
        let all = self.exchange.all_gather(slices)?;
        mine.copy_from_slice(&all[..mine.len()]);
        Ok(loss)
    }

    fn agree_to_stop(&mut self, here: bool) -> Result<bool> {
        if self.ranks() == 1 {
            return Ok(here);
        }
        Ok(self.exchange.all_gather_bytes(vec![u8::from(here)])?.contains(&1))
    }

    fn confirm_same(&mut self, what: &str, fingerprint: &[u8]) -> Result<()> {
        let all = self.exchange.all_gather_bytes(fingerprint.to_vec())?;
        let other = all.chunks(fingerprint.len().max(1)).position(|found| found != fingerprint);
        let Some(other) = other else { return Ok(()) };
        let place = format!("rank {}", self.rank());
        let problem = format!("has another {what} than rank {other}");
        let remedy = "start all ranks alike: the same program, settings and events, on processors \
                      of one kind";
        Err(Error::incompatible(InputFault::new(place, problem, remedy)))
    }
}

/// Adds lanes along the tree; the sum of gradients is left in the first. Without lanes nothing is
/// added.
fn sum_subtree(gradients: &mut [Gradients], losses: &[f64]) -> f64 {
    let mut lanes: Vec<&mut Gradients> = gradients.iter_mut().collect();
    add_tree(&mut lanes, |sum, lane| sum.add(std::slice::from_ref(&**lane)));
    add_losses(&mut losses.to_vec())
}

fn add_losses(losses: &mut [f64]) -> f64 {
    add_tree(losses, |sum, loss| *sum += *loss);
    losses.first().copied().unwrap_or(0.0)
}

/// Adds along the tree: neighbours, then pairs of neighbours. The sum is left in the first.
fn add_tree<T>(parts: &mut [T], add: impl Fn(&mut T, &mut T)) {
    let mut stride = 1;
    while stride < parts.len() {
        for first in (0..parts.len() - stride).step_by(2 * stride) {
            let (left, right) = parts.split_at_mut(first + stride);
            add(&mut left[first], &mut right[0]);
        }
        stride *= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ranks_fixture::on_ranks;
    use crate::rng::KeyedRng;
    use lstep_tensor::{Init, Parameters};

    fn lanes(count: usize, parameters: &Parameters) -> (Vec<Gradients>, Vec<f64>) {
        let mut draw = KeyedRng::new(&[7, count as u64]);
        let mut number = || (draw.unit() - 0.5) * 10f64.powi(draw.below(9) as i32 - 4);
        let lane = |_| {
            let mut gradients = Gradients::of(parameters);
            gradients.flat_mut().iter_mut().for_each(|value| *value = number() as f32);
            gradients
        };
        let gradients = (0..count).map(lane).collect();
        (gradients, (0..count).map(|_| number()).collect())
    }

    fn bits(gradients: &Gradients, loss: f64) -> (Vec<u32>, u64) {
        (gradients.flat().iter().map(|value| value.to_bits()).collect(), loss.to_bits())
    }

    #[test]
    fn the_tree_adds_neighbours_first_and_leaves_out_who_is_not_there() {
        let sum = |count: usize| {
            let mut parts: Vec<String> = (0..count).map(|lane| lane.to_string()).collect();
            add_tree(&mut parts, |sum, part| *sum = format!("({sum}+{part})"));
            parts.swap_remove(0)
        };
        assert_eq!(sum(1), "0");
        assert_eq!(sum(3), "((0+1)+2)");
        assert_eq!(sum(4), "((0+1)+(2+3))");
        assert_eq!(sum(7), "(((0+1)+(2+3))+((4+5)+6))");
    }

    #[test]
    fn every_power_of_two_of_ranks_gives_the_bits_of_one_process() {
        let mut parameters = Parameters::new(0);
        parameters.add("a", 13, 7, Init::Zeros);
        for count in [1, 2, 3, 4, 5, 6, 8, 11, 16] {
            let (mut all, losses) = lanes(count, &parameters);
            let loss = Local::default().sum(&mut all, &losses, count).expect("in one process");
            let expected = bits(&all[0], loss);
            for ranks in [1, 2, 4, 8] {
                let sums = on_ranks(ranks, |exchange| {
                    let mut reduce = Ranks::new(exchange).expect("a power of two");
                    let own = reduce.lanes(count);
                    let (all, losses) = lanes(count, &parameters);
                    let mut mine = all[own.clone()].to_vec();
                    mine.resize_with(own.len().max(1), || Gradients::of(&parameters));
                    let loss = reduce.sum(&mut mine, &losses[own], count).expect("summed");
                    bits(&mine[0], loss)
                });
                assert!(sums.iter().all(|sum| *sum == expected), "{count} lanes, {ranks} ranks");
            }
        }
    }

    #[test]
    fn each_lane_is_computed_by_one_rank() {
        for (count, ranks) in [(1, 4), (5, 4), (8, 8), (64, 8), (3, 1)] {
            let shared = on_ranks(ranks, |exchange| {
                Ranks::new(exchange).expect("a power of two").lanes(count).collect::<Vec<_>>()
            });
            assert_eq!(shared.concat(), (0..count).collect::<Vec<_>>(), "{count} on {ranks}");
        }
    }

    #[test]
    fn the_old_order_is_another_from_four_lanes_on() {
        let mut parameters = Parameters::new(0);
        parameters.add("a", 40, 40, Init::Zeros);
        let sum = |order: LaneOrder, count: usize| {
            let (mut all, losses) = lanes(count, &parameters);
            let mut local = Local::default();
            local.set_order(order).expect("one process has any order");
            let loss = local.sum(&mut all, &losses, count).expect("summed");
            bits(&all[0], loss)
        };
        assert_eq!(sum(LaneOrder::Tree, 3), sum(LaneOrder::Sequence, 3));
        assert_ne!(sum(LaneOrder::Tree, 4), sum(LaneOrder::Sequence, 4));
    }

    #[test]
    fn ranks_stop_together_and_notice_who_is_different() {
        let stops = on_ranks(4, |exchange| {
            let mut reduce = Ranks::new(exchange).expect("a power of two");
            let third = reduce.rank() == 2;
            (reduce.agree_to_stop(false), reduce.agree_to_stop(third))
        });
        for (nobody, third) in stops {
            assert!(!nobody.expect("exchanged") && third.expect("exchanged"));
        }
        let same = on_ranks(4, |exchange| {
            let mut reduce = Ranks::new(exchange).expect("a power of two");
            let other = u8::from(reduce.rank() == 2);
            reduce.confirm_same("seed", &[1, 2]).expect("all have these");
            reduce.confirm_same("seed", &[1, other])
        });
        let error = same[0].as_ref().expect_err("rank 2 differs").to_string();
        assert!(error.contains("rank 0") && error.contains("seed than rank 2"), "{error}");
    }

    #[test]
    fn ranks_are_a_power_of_two_and_old_runs_have_one() {
        let refused = on_ranks(3, |exchange| Ranks::new(exchange).err().map(|e| e.to_string()));
        let text = refused[0].as_ref().expect("three do not split a tree");
        assert!(text.contains("2 or 4"), "{text}");
        let refused = on_ranks(2, |exchange| {
            let mut reduce = Ranks::new(exchange).expect("a power of two");
            reduce.set_order(LaneOrder::Sequence).is_err()
        });
        assert_eq!(refused, [true, true]);
    }
}
