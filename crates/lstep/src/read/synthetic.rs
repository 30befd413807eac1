//! A stream made from a seed, with structure planted in it, so that a learner has something true to
//! find.
//!
//! Six things are planted, each with a switch: sources **repeat** earlier partners, the more
//! **recent** ones rather; new partners come from the source's own **community** and from its
//! **popular** members, who change as popularity **drifts**; some nodes have a **habit**, a
//! favourite partner met at a fixed period; some nodes **arrive late**. The same settings give the
//! same stream on every machine. Cost is linear in events.

use super::{Dataset, LeftOut};
use crate::error::{Error, Result};
use crate::event::{Clock, Events, Features, Names, NodeId, Side, Time};
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Partners that a source can repeat.
const REMEMBERED: usize = 8;

/// How often a node is drawn again because it has not arrived yet, before one that was there from
/// the beginning is taken.
const TRIES: usize = 16;

/// What the stream is like. The default is the stream that the program carries along.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SyntheticConfig {
    /// Decides all that is left to chance.
    pub seed: u64,
    /// How many nodes; their ids are integers from 1. Those that never act nor are chosen do not
    /// appear.
    pub nodes: u32,
    /// If given, the first so many nodes only act and the others are only acted upon.
    pub sources: Option<u32>,
    /// How many events.
    pub events: u32,
    /// Seconds from the first possible event to about the last.
    pub span: u64,
    /// Probability that an event repeats one of the source's last 8 partners. 0 switches repeats
    /// off.
    pub repeat: f64,
    /// Probability that a repeat takes the latest partner, else the one before with the same
    /// probability, and so on; 0 takes any.
    pub recency: f64,
    /// Communities: node `id` belongs to `(id - 1) % communities`, counted anew from the first
    /// destination. 1 switches them off.
    pub communities: u32,
    /// Probability that a new partner comes from the source's own community.
    pub within: f64,
    /// How uneven activity and popularity are: the most popular share `q` of nodes gets the share
    /// `q^(1/skew)` of choices. 1 is even; between whole numbers it is a mixture of the two.
    pub skew: f64,
    /// Seconds in which popularity moves once through all members of a community; none if it stays.
    pub drift: Option<u64>,
    /// Share of sources with a habit.
    pub habits: f64,
    /// Seconds between two occurrences of a habit, give or take 1 %.
    pub habit_period: u64,
    /// Share of nodes that arrive after the beginning, evenly over the first nine tenths of the
    /// span.
    pub late: f64,
    /// Numbers in the features of an event: a vector of the destination's community with noise. 0
    /// for none.
    pub features: u32,
}

impl Default for SyntheticConfig {
    fn default() -> SyntheticConfig {
        SyntheticConfig {
            seed: 0,
            nodes: 1_000,
            sources: None,
            events: 20_000,
            span: 30 * 86_400,
            repeat: 0.5,
            recency: 0.4,
            communities: 10,
            within: 0.8,
            skew: 2.5,
            drift: Some(20 * 86_400),
            habits: 0.1,
            habit_period: 86_400,
            late: 0.2,
            features: 0,
        }
    }
}

impl SyntheticConfig {
    /// The community of a node.
    pub fn community(&self, node: u32) -> u32 {
        let first = self.sources.filter(|&sources| node >= sources).unwrap_or(0);
        (node - first) % self.communities
    }

    /// The nodes that can act, and those that can be acted upon.
    fn sides(&self) -> [std::ops::Range<u32>; 2] {
        match self.sources {
            Some(sources) => [0..sources, sources..self.nodes],
            None => [0..self.nodes, 0..self.nodes],
        }
    }

    fn check(&self) -> Result<()> {
        for (setting, value) in [
            ("repeat", self.repeat),
            ("recency", self.recency),
            ("within", self.within),
            ("habits", self.habits),
            ("late", self.late),
        ] {
            if !(0.0..=1.0).contains(&value) {
                return Err(Error::setting(setting, value, "it has to be between 0 and 1"));
            }
        }
        if !(1.0..=100.0).contains(&self.skew) {
            return Err(Error::setting("skew", self.skew, "it has to be between 1 and 100"));
        }
        if self.communities == 0 {
            return Err(Error::setting("communities", 0, "1 switches communities off"));
        }
        for (setting, value) in [
            ("events", u64::from(self.events)),
            ("span", self.span),
            ("habit_period", self.habit_period),
            ("drift", self.drift.unwrap_or(1)),
            ("nodes", u64::from(self.nodes)),
        ] {
            if value == 0 {
                return Err(Error::setting(setting, 0, "it has to be at least 1"));
            }
        }
        if self.span > crate::event::EXACT as u64 / 4 {
            return Err(Error::setting(
                "span",
                self.span,
                "times beyond 2^53 are not exact: make it shorter",
            ));
        }
        if let Some(sources) = self.sources.filter(|sources| *sources > self.nodes) {
            return Err(Error::setting(
                "sources",
                sources,
                format!("there are {} nodes in all", self.nodes),
            ));
        }
        if self.sides().iter().any(|side| u64::from(self.communities) * 2 > side.len() as u64) {
            let remedy = "every community needs two nodes on each side: make fewer communities or more nodes";
            return Err(Error::setting("communities", self.communities, remedy));
        }
        if self.expected_habits() >= f64::from(self.events) {
            let remedy =
                format!("habits alone would fill {} events: make them fewer or rarer", self.events);
            return Err(Error::setting("habits", self.habits, remedy));
        }
        Ok(())
    }

    /// About how many events come from habits.
    fn expected_habits(&self) -> f64 {
        let [sources, _] = self.sides();
        self.habits * sources.len() as f64 * self.span as f64 / self.habit_period as f64
    }
}

/// Makes the stream.
pub fn generate(config: &SyntheticConfig) -> Result<Dataset> {
    config.check()?;
    let mut world = World::new(config);
    let count = config.events as usize;
    let mut numbers = Numbers::new(config.nodes);
    let (mut sources, mut destinations) = (Vec::with_capacity(count), Vec::with_capacity(count));
    let mut times = Vec::with_capacity(count);
    let width = config.features as usize;
    let mut features = Vec::with_capacity(count * width);
    for _ in 0..count {
        let (source, destination, time) = world.next();
        sources.push(numbers.number(source));
        destinations.push(numbers.number(destination));
        times.push(Time::new(time.floor()).expect("the span is finite"));
        world.features(destination, &mut features);
    }
    let features = if width == 0 { Features::none() } else { Features::new(width, features)? };
    Ok(Dataset {
        name: "synthetic".into(),
        events: Events::new(sources, destinations, times, features)?,
        names: numbers.names()?,
        clock: Clock::Integer { origin: 0 },
        node_features: Features::none(),
        ignored_columns: Vec::new(),
        unused_node_rows: 0,
        left_out: LeftOut::default(),
    })
}

/// Dense numbers by first appearance.
struct Numbers {
    numbers: Vec<Option<NodeId>>,
    order: Vec<u32>,
}

impl Numbers {
    fn new(nodes: u32) -> Numbers {
        Numbers { numbers: vec![None; nodes as usize], order: Vec::new() }
    }

    fn number(&mut self, node: u32) -> NodeId {
        *self.numbers[node as usize].get_or_insert_with(|| {
            self.order.push(node);
            NodeId(self.order.len() as u32 - 1)
        })
    }

    fn names(&self) -> Result<Names> {
        let mut names = Names::new(false);
        for &node in &self.order {
            names.intern_integer(i64::from(node) + 1, Side::Source)?;
        }
        Ok(names)
    }
}

/// The last partners of a node in a ring; the latest is at `met - 1`.
#[derive(Clone, Default)]
struct Remembered {
    partners: [u32; REMEMBERED],
    met: u32,
}

/// A habit's next occurrence. Ordered by time, then node; times are never negative, so their bits
/// are in order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Habit {
    time_bits: u64,
    node: u32,
    favourite: u32,
}

/// Everything that the next event depends on.
struct World<'a> {
    config: &'a SyntheticConfig,
    random: ChaCha8Rng,
    arrivals: Vec<f64>,
    remembered: Vec<Remembered>,
    habits: BinaryHeap<Reverse<Habit>>,
    /// A feature vector for each community.
    vectors: Vec<f32>,
    /// When the next event without a habit happens.
    time: f64,
    /// Seconds between two such events, on average.
    gap: f64,
}

impl<'a> World<'a> {
    fn new(config: &'a SyntheticConfig) -> World<'a> {
        let [acting, _] = config.sides();
        let mut world = World {
            config,
            random: ChaCha8Rng::seed_from_u64(config.seed),
            arrivals: vec![0.0; config.nodes as usize],
            remembered: vec![Remembered::default(); acting.len()],
            habits: BinaryHeap::new(),
            vectors: Vec::new(),
            time: 0.0,
            gap: config.span as f64 / (f64::from(config.events) - config.expected_habits()),
        };
        let kinds = if config.sources.is_some() { 2 } else { 1 };
        for side in config.sides().into_iter().take(kinds) {
            // Two founders of each community are there from the beginning: everybody can find a
            // partner.
            for node in side.skip(2 * config.communities as usize) {
                if world.random.random::<f64>() < config.late {
                    world.arrivals[node as usize] =
                        world.random.random::<f64>() * 0.9 * config.span as f64;
                }
            }
        }
        for node in acting {
            if world.random.random::<f64>() < config.habits {
                let arrival = world.arrivals[node as usize];
                let first = arrival + world.random.random::<f64>() * config.habit_period as f64;
                let favourite = world.new_partner(node, arrival);
                world.habits.push(Reverse(Habit { time_bits: first.to_bits(), node, favourite }));
            }
        }
        let values = config.features as usize * config.communities as usize;
        world.vectors = (0..values).map(|_| world.random.random::<f32>() * 2.0 - 1.0).collect();
        world.pass();
        world
    }

    /// The next event: source, destination, time.
    fn next(&mut self) -> (u32, u32, f64) {
        if let Some(&Reverse(habit)) = self.habits.peek()
            && f64::from_bits(habit.time_bits) <= self.time
        {
            let time = f64::from_bits(habit.time_bits);
            let wait =
                self.config.habit_period as f64 * (0.99 + 0.02 * self.random.random::<f64>());
            self.habits.pop();
            self.habits.push(Reverse(Habit { time_bits: (time + wait).to_bits(), ..habit }));
            return (habit.node, habit.favourite, time);
        }
        let time = self.time;
        let source = self.source(time);
        let repeated = self.random.random::<f64>() < self.config.repeat;
        let destination = match repeated.then(|| self.old_partner(source)).flatten() {
            Some(partner) => partner,
            None => self.new_partner(source, time),
        };
        let remembered = &mut self.remembered[source as usize];
        remembered.partners[remembered.met as usize % REMEMBERED] = destination;
        remembered.met += 1;
        self.pass();
        (source, destination, time)
    }

    /// Lets time pass until the next event without a habit. An exponential gap would need a
    /// logarithm, which differs between machines.
    fn pass(&mut self) {
        self.time += self.gap * 2.0 * self.random.random::<f64>();
    }

    /// Who acts: the active ones rather, and only those who have arrived.
    fn source(&mut self, time: f64) -> u32 {
        let [acting, _] = self.config.sides();
        for _ in 0..TRIES {
            let node = skewed(&mut self.random, acting.len() as u32, self.config.skew);
            if self.arrivals[node as usize] <= time {
                return node;
            }
        }
        self.random.random_range(0..self.config.communities)
    }

    /// One of the last partners, the recent ones rather; nobody if there has been none.
    fn old_partner(&mut self, source: u32) -> Option<u32> {
        let Remembered { partners, met } = self.remembered[source as usize].clone();
        let known = (met as usize).min(REMEMBERED);
        if known == 0 {
            return None;
        }
        let back = (0..known).find(|_| self.random.random::<f64>() < self.config.recency);
        let back = back.unwrap_or_else(|| self.random.random_range(0..known));
        Some(partners[(met as usize - 1 - back) % REMEMBERED])
    }

    /// Somebody of the own community rather, the popular ones rather, and only those who have
    /// arrived.
    fn new_partner(&mut self, source: u32, time: f64) -> u32 {
        let [_, chosen] = self.config.sides();
        let communities = self.config.communities;
        let own = self.random.random::<f64>() < self.config.within;
        let community = if own {
            self.config.community(source)
        } else {
            self.random.random_range(0..communities)
        };
        let members = (chosen.len() as u32 - community).div_ceil(communities);
        let shift =
            self.config.drift.map_or(0.0, |period| time / period as f64 * f64::from(members))
                as u64;
        for attempt in 0..TRIES + 2 {
            let member = match attempt.checked_sub(TRIES) {
                None => {
                    let rank = skewed(&mut self.random, members, self.config.skew);
                    ((u64::from(rank) + shift) % u64::from(members)) as u32
                }
                Some(founder) => founder as u32,
            };
            let node = chosen.start + community + member * communities;
            if node != source && self.arrivals[node as usize] <= time {
                return node;
            }
        }
        unreachable!("one of the two founders of a community is not the source")
    }

    /// Appends the features of an event with this destination.
    fn features(&mut self, destination: u32, features: &mut Vec<f32>) {
        let width = self.config.features as usize;
        let community = self.config.community(destination) as usize;
        for place in community * width..(community + 1) * width {
            features.push(self.vectors[place] + self.random.random::<f32>() * 0.5 - 0.25);
        }
    }
}

/// A number below `bound`, small ones rather: a chance to the power of `skew`.
///
/// Only whole powers, in a mixture for a skew between two: unlike `powf`, products are the same on
/// every machine.
fn skewed(random: &mut impl Rng, bound: u32, skew: f64) -> u32 {
    let power = skew as i32 + i32::from(random.random::<f64>() < skew.fract());
    let chance = random.random::<f64>();
    let share = (1..power).fold(chance, |product, _| product * chance);
    ((f64::from(bound) * share) as u32).min(bound - 1)
}

#[cfg(test)]
mod tests;
