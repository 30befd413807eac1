//! Counts brought up to the moment that is asked about.
//!
//! [`Counts`] know whole steps, so within a step they are stale by up to its length. The past shows
//! every strictly earlier event: a node's few events since the last step are added here, exactly,
//! for the pair, for both nodes, and for what is told of their habits: how many partners a node has
//! had, since when it is there, and how many of its latest events were with somebody new.

use super::counts::{Counts, DECAYS, Role, Trace, logs, since, since_events};
use super::{Numbers, log_count, recency};
use crate::checkpoint::Checkpoint;
use crate::error::{Error, Result};
use crate::event::{Event, NodeId, Time, pair_key};
use crate::graph::{Neighbour, Past, Seed};

/// How many numbers a pair has.
pub const WIDTH: usize = 7 + 2 + 4 * 3 + 2 * DECAYS.len() + 4 + 2 + 4 * NOVELTY.len();
/// What an event adds to the running shares of events with somebody new.
const NOVELTY: [f32; 2] = [1.0 / 5.0, 1.0 / 20.0];

/// A node's habits in one role.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Habit {
    /// Different partners.
    distinct: u32,
    /// The first event.
    first: Time,
    /// Running shares of events with somebody new; one before the first event.
    novelty: [f32; NOVELTY.len()],
}

const NONE: Habit = Habit { distinct: 0, first: Time::ZERO, novelty: [1.0; NOVELTY.len()] };

impl Habit {
    fn take(&mut self, is_new: bool, time: Time) {
        if self.distinct == 0 {
            self.first = time;
        }
        self.distinct = self.distinct.saturating_add(u32::from(is_new));
        let is_new = f32::from(u8::from(is_new));
        for (share, rate) in self.novelty.iter_mut().zip(NOVELTY) {
            *share += (is_new - *share) * rate;
        }
    }
}

/// Habits of all nodes, as of the newest step.
#[derive(Debug, Clone, Default)]
pub struct Habits {
    /// The number of the first event that no step has brought yet.
    next: u32,
    sources: Vec<Habit>,
    destinations: Vec<Habit>,
}

/// A node as source and as destination, at a moment.
struct Node<'p> {
    roles: [Role; 2],
    habits: [Habit; 2],
    /// Its events since the newest step.
    fresh: &'p [Neighbour],
}

/// A source at a moment.
pub struct Side<'p> {
    seed: Seed,
    span: f64,
    /// How many events have been counted by then.
    now: u32,
    node: Node<'p>,
}

impl Habits {
    /// Takes in an event whose pair is new or not.
    pub fn observe(&mut self, event: &Event, is_new: bool) {
        for (habits, node) in
            [(&mut self.sources, event.source), (&mut self.destinations, event.destination)]
        {
            if node.index() >= habits.len() {
                habits.resize(node.index() + 1, NONE);
            }
            habits[node.index()].take(is_new, event.time);
        }
        self.next = event.number + 1;
    }

    /// A source, whoever the candidate is.
    pub fn side<'p>(&self, counts: &Counts, past: Past<'p>, seed: Seed, span: f64) -> Side<'p> {
        let since_step = past.first_hidden(seed.time()).saturating_sub(self.next);
        let now = counts.events.saturating_add(since_step);
        Side { seed, span, now, node: self.node(counts, past, seed) }
    }

    fn node<'p>(&self, counts: &Counts, past: Past<'p>, seed: Seed) -> Node<'p> {
        let node = seed.node();
        let fresh = since_step(past, seed, self.next);
        let habit = |habits: &[Habit]| habits.get(node.index()).copied().unwrap_or(NONE);
        let mut habits = [habit(&self.sources), habit(&self.destinations)];
        let mut roles = counts.roles(node);
        for (place, met) in fresh.iter().enumerate() {
            let event = counts.events.saturating_add(met.event() - self.next);
            let (role, pair) = direction(past, node, fresh, place);
            let decayed = roles[role].decayed_at(event, counts.rates);
            roles[role] = Role {
                trace: Some(met_again(roles[role].trace, event, met.time())),
                decayed: decayed.map(|count| count + 1.0),
            };
            let is_new = !counts.pairs.contains_key(&pair)
                && (0..place).all(|before| direction(past, node, fresh, before) != (role, pair));
            habits[role].take(is_new, met.time());
        }
        Node { roles, habits, fresh }
    }

    /// All numbers of a pair.
    pub fn write_features(
        &self,
        counts: &Counts,
        past: Past<'_>,
        side: &Side<'_>,
        candidate: NodeId,
        out: &mut Numbers<'_>,
    ) {
        let &Side { seed, span, now, .. } = side;
        let pairs = [pair_key(seed.node(), candidate), pair_key(candidate, seed.node())];
        let mut met = pairs.map(|pair| counts.pairs.get(&pair).copied());
        let fresh = side.node.fresh;
        for place in (0..fresh.len()).filter(|&place| fresh[place].node() == candidate) {
            let (role, _) = direction(past, seed.node(), fresh, place);
            let event = counts.events.saturating_add(fresh[place].event() - self.next);
            met[role] = Some(met_again(met[role], event, fresh[place].time()));
        }
        let [forth, back] = met;
        let is = |trace: Option<Trace>| f32::from(u8::from(trace.is_some()));
        let count = |trace: Option<Trace>| trace.map_or(0, |trace| trace.count);
        out.put(is(forth));
        out.count(count(forth));
        out.put(since_events(forth.as_ref(), now));
        out.put(since(forth.as_ref(), seed.time(), span));
        out.put(is(back));
        out.count(count(back));
        out.put(since_events(back.as_ref(), now));

        let other = self.node(counts, past, seed.with_node(candidate));
        let share = |whole: &Role| count(forth) as f32 / whole.count().max(1) as f32;
        out.put(share(&side.node.roles[0]));
        out.put(share(&other.roles[1]));
        for role in side.node.roles.iter().chain(&other.roles) {
            out.count(role.count());
            out.put(since_events(role.trace.as_ref(), now));
            out.put(since(role.trace.as_ref(), seed.time(), span));
        }
        for role in [&side.node.roles[0], &other.roles[1]] {
            logs(role.decayed_at(now, counts.rates)).iter().for_each(|&count| out.put(count));
        }
        for node in [&side.node, &other] {
            node.habits.iter().for_each(|habit| out.put(log_count(habit.distinct)));
            out.put(node.youth(seed.time(), span));
            node.habits.iter().flat_map(|habit| habit.novelty).for_each(|share| out.put(share));
        }
    }

    /// Writes everything into a checkpoint.
    pub fn save<'a>(&'a self, checkpoint: &mut Checkpoint<'a>) {
        checkpoint.push_u32("habits.next", vec![self.next]);
        for (name, habits) in [("sources", &self.sources), ("destinations", &self.destinations)] {
            let distinct: Vec<u32> = habits.iter().map(|habit| habit.distinct).collect();
            checkpoint.push_u32(&format!("habits.{name}"), distinct);
            let first: Vec<u64> =
                habits.iter().map(|habit| habit.first.value().to_bits()).collect();
            checkpoint.push_u64(&format!("habits.{name}_first"), first);
            let novelty: Vec<f32> = habits.iter().flat_map(|habit| habit.novelty).collect();
            checkpoint.push_f32(&format!("habits.{name}_novelty"), novelty);
        }
    }

    /// Takes over what [`Habits::save`] wrote.
    pub fn load(&mut self, checkpoint: &mut Checkpoint<'_>) -> Result<()> {
        self.next = checkpoint.one_u32("habits.next")?;
        for (name, habits) in
            [("sources", &mut self.sources), ("destinations", &mut self.destinations)]
        {
            let distinct = checkpoint.u32(&format!("habits.{name}"))?;
            let first = checkpoint.u64(&format!("habits.{name}_first"))?;
            let (novelty, rest) = checkpoint.f32(&format!("habits.{name}_novelty"))?.as_chunks();
            let lengths = [first.len(), novelty.len(), novelty.len() + rest.len()];
            if let Some(&right) = lengths.iter().find(|&&length| length != distinct.len()) {
                let (what, left) = ("stored habits and their nodes", distinct.len());
                return Err(Error::LengthMismatch { what, left, right });
            }
            let habit = |((&distinct, &first), &novelty): ((&u32, &u64), &[f32; 2])| {
                let first = Time::new(f64::from_bits(first)).ok_or_else(|| {
                    let remedy = "the checkpoint is of another program: train anew";
                    Error::setting("a stored time", "not a number", remedy)
                })?;
                Ok(Habit { distinct, first, novelty })
            };
            *habits = distinct
                .iter()
                .zip(first)
                .zip(novelty)
                .map(habit)
                .collect::<Result<Vec<Habit>>>()?;
        }
        Ok(())
    }
}

/// A node's events since the newest step, whose last event is before the one numbered `next`.
pub(super) fn since_step(past: Past<'_>, seed: Seed, next: u32) -> &[Neighbour] {
    let history = past.history(seed);
    let fresh = history.iter().rev().take_while(|met| met.event() >= next).count();
    &history[history.len() - fresh..]
}

/// The role that a node has in one of its fresh events, 0 as source and 1 as destination, and the
/// directed pair. A node that met itself has the event twice, once in each role.
pub(super) fn direction(
    past: Past<'_>,
    node: NodeId,
    fresh: &[Neighbour],
    place: usize,
) -> (usize, u64) {
    let met = &fresh[place];
    let again = met.node() == node
        && place.checked_sub(1).is_some_and(|last| fresh[last].event() == met.event());
    if past.starts_at(node, met) && !again {
        (0, pair_key(node, met.node()))
    } else {
        (1, pair_key(met.node(), node))
    }
}

fn met_again(before: Option<Trace>, event: u32, time: Time) -> Trace {
    Trace { count: before.map_or(0, |trace| trace.count).saturating_add(1), event, time }
}

impl Node<'_> {
    /// How recent the first event of a node is; one before it.
    fn youth(&self, now: Time, span: f64) -> f32 {
        let first = |habit: &&Habit| habit.distinct > 0;
        let first = self.habits.iter().filter(first).map(|habit| habit.first).reduce(Time::min);
        first.map_or(1.0, |first| recency(now, first.min(now), span))
    }
}

/// Few nodes that meet each other, and themselves, often.
#[cfg(test)]
pub(super) fn busy(events: u32) -> crate::graph::EventLog {
    let node = |n: u32| NodeId(n % 7);
    let numbers = || 0..events;
    let events = crate::event::Events::new(
        numbers().map(|n| node(n * n + n / 5)).collect(),
        numbers().map(|n| node(n / 3 + n * 5 % 11)).collect(),
        numbers().map(|n| Time::new(f64::from(n * 2)).expect("finite")).collect(),
        crate::event::Features::none(),
    );
    crate::graph::EventLog::new(events.expect("sorted"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::EventLog;

    fn state(log: &EventLog, observed: u32) -> (Counts, Habits) {
        let (mut counts, mut habits) = (Counts::new(7), Habits::default());
        for event in log.events().iter().take(observed as usize) {
            let is_new = counts.observe(&event);
            habits.observe(&event, is_new);
        }
        (counts, habits)
    }

    fn told(
        (counts, habits): &(Counts, Habits),
        past: Past<'_>,
        seed: Seed,
        candidate: NodeId,
    ) -> Vec<f32> {
        let mut row = vec![0.0; WIDTH];
        let side = habits.side(counts, past, seed, 100.0);
        habits.write_features(counts, past, &side, candidate, &mut Numbers { row: &mut row });
        row
    }

    #[test]
    fn a_stale_state_and_the_past_tell_what_a_state_of_the_moment_tells() {
        let log = busy(120);
        let asked = |at: u32| Time::new(f64::from(at) * 2.0 - 1.0).expect("finite");
        for (stale, at) in [(100, 100), (90, 120), (40, 75), (0, 9)] {
            let (before, now) = (state(&log, stale), state(&log, at));
            // Later events are in the log, and behind the question's time.
            let past = log.past(120);
            for (source, candidate) in (0..64).map(|n| (NodeId(n % 8), NodeId(n / 8))) {
                let seed = Seed::new(source, asked(at));
                let (fresh, exact) =
                    (told(&before, past, seed, candidate), told(&now, past, seed, candidate));
                for (place, (fresh, exact)) in fresh.iter().zip(&exact).enumerate() {
                    assert!(
                        (fresh - exact).abs() < 1e-5,
                        "{stale} of {at} events, {source:?} and {candidate:?}, number {place}: \
                         {fresh} is not {exact}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_view_that_ends_at_the_step_tells_what_the_step_left() {
        let log = busy(60);
        let of_step = state(&log, 40);
        let newest = log.events().at(39);
        let later = Seed::new(newest.source, Time::new(200.0).expect("finite"));
        let hidden = told(&of_step, log.past(40), later, newest.destination);
        let shown = told(&of_step, log.past(60), later, newest.destination);
        let met = of_step.0.pairs[&pair_key(newest.source, newest.destination)];
        assert_eq!(hidden[1], log_count(met.count));
        assert_ne!(hidden, shown);
    }

    #[test]
    fn habits_come_back_from_a_checkpoint_to_the_bit() {
        let (_, habits) = state(&busy(50), 50);
        let mut checkpoint = Checkpoint::default();
        habits.save(&mut checkpoint);
        let mut back = Habits::default();
        back.load(&mut checkpoint.clone()).expect("just saved");
        assert_eq!((back.next, &back.sources), (habits.next, &habits.sources));
        assert_eq!(back.destinations, habits.destinations);
    }
}
