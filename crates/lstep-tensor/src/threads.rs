//! How many threads to share work between, where other programs want the processors, too.
//!
//! Threads that share a step meet after each of its operations. If one of them has to give its
//! processor to another program in between, all wait for it, and then fewer threads are faster: on
//! two cores with two other programs, one thread took two thirds of the time of two. Whether that is
//! so cannot be asked of the system, but it can be measured: results have the same bits on any
//! number of threads, so a few steps are made by half as many and timed beside the others.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::parallel::{awake, awake_in};

/// How many threads a kind of work is shared between: as many as were fastest lately, at most those
/// of the pool that it runs in.
///
/// The number is halved or doubled when that was faster in a trial: a few steps one way, a few the
/// other, and both again. A trial costs little, because a long rest follows it, and a longer one
/// where nothing has changed.
#[derive(Default)]
pub struct Threads {
    /// The pool with half the threads, with a quarter, and so on, once they were tried.
    fewer: Vec<Arc<rayon::ThreadPool>>,
    choice: Choice,
}

impl Threads {
    /// Runs a step of some size in the number of threads that was fastest, and notes how long it
    /// took.
    pub fn run<T: Send>(&mut self, size: usize, work: impl FnOnce() -> T + Send) -> T {
        let pool = self.pool();
        let began = Instant::now();
        let done = within(pool.as_deref(), work);
        self.took(size, began.elapsed());
        done
    }

    /// Runs something that belongs to a step and is not timed with it.
    pub fn run_beside<T: Send>(&mut self, work: impl FnOnce() -> T + Send) -> T {
        within(self.pool().as_deref(), work)
    }

    /// [`Threads::run`] for a kind of work that several threads may be at. Nobody waits for
    /// another one's step.
    pub fn run_shared<T: Send>(
        threads: &Mutex<Threads>,
        size: usize,
        work: impl FnOnce() -> T + Send,
    ) -> T {
        let lock = || threads.lock().unwrap_or_else(PoisonError::into_inner);
        let pool = lock().pool();
        let began = Instant::now();
        let done = within(pool.as_deref(), work);
        lock().took(size, began.elapsed());
        done
    }

    /// The pool for the next step, if it is not the one where this is called.
    fn pool(&mut self) -> Option<Arc<rayon::ThreadPool>> {
        let all = rayon::current_num_threads();
        let halvings = self.choice.halvings(all.ilog2());
        while self.fewer.len() < halvings as usize {
            let threads = all >> (self.fewer.len() + 1);
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
            // A system that gives no more threads has the fewest of all.
            self.fewer.push(Arc::new(pool.ok()?));
        }
        halvings.checked_sub(1).map(|place| Arc::clone(&self.fewer[place as usize]))
    }

    /// Notes how long a step of some size took in the pool that was given for it.
    fn took(&mut self, size: usize, time: Duration) {
        self.choice.took(size, time);
    }
}

fn within<T: Send>(pool: Option<&rayon::ThreadPool>, work: impl FnOnce() -> T + Send) -> T {
    match pool {
        Some(pool) => awake_in(pool, work),
        None => awake(work),
    }
}

/// A turn of a trial lasts so long, and a step at least.
const TURN: Duration = Duration::from_millis(20);

/// Turns of a trial: the usual number of threads, the other one, and both again.
const TURNS: usize = 4;

/// The rest after a trial is so many times as long as the trial, at least and at most.
const REST: [u32; 2] = [16, 64];

/// Another number of threads has to be so much faster.
const BETTER: f64 = 0.95;

/// The time of some steps, and their size.
#[derive(Clone, Copy, Default)]
struct Took {
    size: usize,
    time: Duration,
}

/// When to try what, and what came of it.
struct Choice {
    /// How often the number of threads is halved.
    halvings: u32,
    /// Until the next trial.
    rest: Duration,
    /// How many times as long as the last trial the last rest was.
    longer: u32,
    /// The turns of the trial that has begun.
    trial: Vec<Took>,
    /// Whether the trial is of more threads, or the next one is to be.
    more: bool,
}

impl Default for Choice {
    fn default() -> Choice {
        // What comes first, with empty histories and new memory, says little.
        let rest = TURN * TURNS as u32;
        Choice { halvings: 0, rest, longer: REST[0], trial: Vec::new(), more: false }
    }
}

impl Choice {
    /// How often to halve the number of threads for the next step.
    fn halvings(&mut self, most: u32) -> u32 {
        if self.halvings > most {
            // It runs in a smaller pool than before.
            *self = Choice::default();
        }
        if most == 0 {
            return 0;
        }
        if self.trial.is_empty() {
            if !self.rest.is_zero() {
                return self.halvings;
            }
            self.more = self.halvings == most || (self.more && self.halvings > 0);
            self.trial.push(Took::default());
        }
        match self.trial.len() % 2 {
            0 if self.more => self.halvings - 1,
            0 => self.halvings + 1,
            _ => self.halvings,
        }
    }

    fn took(&mut self, size: usize, time: Duration) {
        let Some(turn) = self.trial.last_mut() else {
            self.rest = self.rest.saturating_sub(time);
            return;
        };
        turn.size += size;
        turn.time += time;
        if turn.time < TURN {
            return;
        }
        if self.trial.len() < TURNS {
            self.trial.push(Took::default());
            return;
        }
        let cost = |first: usize| {
            let turns = || self.trial.iter().skip(first).step_by(2);
            let time: Duration = turns().map(|turn| turn.time).sum();
            time.as_secs_f64() / turns().map(|turn| turn.size).sum::<usize>().max(1) as f64
        };
        if cost(1) < BETTER * cost(0) {
            self.halvings = if self.more { self.halvings - 1 } else { self.halvings + 1 };
            self.longer = REST[0];
        } else {
            self.more = !self.more;
            self.longer = (2 * self.longer).min(REST[1]);
        }
        self.rest = self.longer * self.trial.iter().map(|turn| turn.time).sum::<Duration>();
        self.trial.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Steps of a size until so much time is over, where `cost` says how long one takes in so many
    /// halvings; gives the time, and how often each number of halvings was used.
    fn steps(choice: &mut Choice, most: u32, over: f64, cost: impl Fn(u32) -> f64) -> Vec<usize> {
        let (mut used, mut time) = (vec![0; most as usize + 1], 0.0);
        while time < over {
            let halvings = choice.halvings(most);
            used[halvings as usize] += 1;
            choice.took(400, Duration::from_secs_f64(cost(halvings)));
            time += cost(halvings);
        }
        used
    }

    #[test]
    fn all_threads_are_used_where_they_are_faster_and_trials_are_rare() {
        let mut choice = Choice::default();
        let used = steps(&mut choice, 6, 60.0, |halvings| 0.002 * 1.6f64.powi(halvings as i32));
        assert!(used[1] * 50 < used[0], "{used:?}");
        assert!(used[2..].iter().all(|&count| count == 0), "{used:?}");
    }

    #[test]
    fn fewer_threads_are_used_while_they_are_faster() {
        let mut choice = Choice::default();
        let busy = |halvings: u32| [0.008, 0.006, 0.005, 0.007][halvings as usize];
        let used = steps(&mut choice, 3, 60.0, busy);
        assert!(used[2] * 10 > 9 * used.iter().sum::<usize>(), "{used:?}");
        let calm = |halvings: u32| 0.001 * f64::from(1 << halvings);
        steps(&mut choice, 3, 30.0, calm);
        let used = steps(&mut choice, 3, 30.0, calm);
        assert!(used[0] * 10 > 9 * used.iter().sum::<usize>(), "{used:?}");
    }

    #[test]
    fn a_step_of_seconds_is_a_turn() {
        let mut choice = Choice::default();
        let used = steps(&mut choice, 1, 1_000.0, |halvings| 1.0 + f64::from(halvings));
        assert!(used[1] > 0 && used[1] * 30 < used[0], "{used:?}");
    }

    #[test]
    fn one_thread_is_never_left_alone_with_a_trial() {
        let mut choice = Choice::default();
        assert_eq!(steps(&mut choice, 0, 8.0, |_| 1.0 / 128.0), [1_024]);
        steps(&mut choice, 3, 60.0, |halvings| [0.008, 0.006, 0.005, 0.004][halvings as usize]);
        assert_eq!(choice.halvings(0), 0, "in a smaller pool it begins anew");
    }

    #[test]
    fn work_runs_in_the_pool_that_was_chosen() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(4).build().expect("a pool");
        pool.install(|| {
            let mut threads = Threads::default();
            assert_eq!(threads.run(1, rayon::current_num_threads), 4);
            threads.choice.halvings = 2;
            assert_eq!(threads.run(1, rayon::current_num_threads), 1);
            threads.choice.halvings = 1;
            assert_eq!(threads.run(1, rayon::current_num_threads), 2);
        });
    }
}
