//! Models that cheat, and the law that finds each. Every one has the same honest twin: it counts
//! how often source and candidate have met before.

use lstep::audit::laws::{
    Breach, Check, Law, LawReport, Opening, Submission, Tolerance, check_model,
};
use lstep::event::{Event, NodeId, Time};
use lstep::graph::{EventLog, Past, Revealed};
use lstep::model::{Model, Session, StreamInfo, open};
use lstep::query::{Queries, Row, Scores};
use lstep::read::synthetic::{SyntheticConfig, generate};
use std::collections::{HashMap, HashSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// What a cheat may use besides what it is asked.
struct Asked<'a> {
    past: Past<'a>,
    known: &'a State,
    ask: &'a Queries,
    row: Row<'a>,
    row_number: usize,
    place: usize,
    candidate: NodeId,
    model: &'a Cheat,
}

/// What the honest part of the state is: events seen, and the nodes in them.
#[derive(Clone, Default)]
struct State {
    events: u64,
    nodes: HashSet<u32>,
}

type Trick = fn(&Asked<'_>) -> f64;

struct Cheat {
    trick: Trick,
    calls: AtomicU64,
    /// How often each question was asked: source, time and candidate.
    memory: Mutex<HashMap<(u32, u64, u32), u32>>,
    observed: Mutex<HashSet<(u32, u32)>>,
    /// How often each node occurs in the stream that it was opened for.
    counts: Vec<u32>,
    /// How many nodes that stream has.
    nodes: usize,
    reopened: bool,
}

impl Cheat {
    fn open(trick: Trick, opening: &Opening<'_>, reopened: bool) -> Box<dyn Session> {
        let events = opening.log.events();
        let cheat = Cheat {
            trick,
            calls: AtomicU64::new(0),
            memory: Mutex::default(),
            observed: Mutex::default(),
            counts: events.participation(),
            nodes: events.node_bound(),
            reopened,
        };
        open(cheat, opening.info)
    }
}

fn met(asked: &Asked<'_>) -> f64 {
    let history = asked.past.history(asked.row.seed());
    history.iter().filter(|neighbour| neighbour.node() == asked.candidate).count() as f64
}

impl Model for Cheat {
    type State = State;

    fn begin(&self, _: &StreamInfo) -> State {
        State::default()
    }

    fn score(&self, past: Past<'_>, known: &State, ask: &Queries) -> lstep::Result<Scores> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let mut values = Vec::new();
        for (row_number, row) in ask.rows().enumerate() {
            for (place, &candidate) in row.candidates.iter().enumerate() {
                let asked =
                    Asked { past, known, ask, row, row_number, place, candidate, model: self };
                values.push((self.trick)(&asked));
            }
        }
        Scores::new(ask, values)
    }

    fn observe(&self, _: Revealed<'_>, state: &mut State, step: &[Event]) -> lstep::Result<()> {
        state.events += step.len() as u64;
        for event in step {
            state.nodes.extend([event.source.0, event.destination.0]);
            let mut observed = self.observed.lock().expect("nobody fails");
            observed.insert((event.source.0, event.destination.0));
        }
        Ok(())
    }
}

/// What a node would be asked about much later.
fn foreseen(asked: &Asked<'_>) -> f64 {
    let mut later = Queries::new();
    let far = Time::new(asked.row.time.value() + 1e6).expect("finite");
    later.push(asked.row.source, far, [asked.candidate]);
    let history = asked.past.history(later.row(0).seed());
    history.iter().filter(|neighbour| neighbour.node() == asked.candidate).count() as f64
}

/// The first candidate, which is the true one in evaluation, if the condition holds.
fn first_if(asked: &Asked<'_>, condition: bool) -> f64 {
    met(asked) + f64::from(u8::from(condition && asked.place == 0))
}

/// Cheats by what they do, and the laws that have to find them.
const CHEATS: &[(&str, Trick, &[Law])] = &[
    ("the first candidate is the true one", |asked| first_if(asked, true), &[Law::Place]),
    (
        "the first of exactly two candidates is the true one",
        |asked| first_if(asked, asked.row.candidates.len() == 2),
        &[Law::Place, Law::RowLength],
    ),
    (
        "the first of more than a hundred candidates is the true one",
        |asked| first_if(asked, asked.row.candidates.len() > 100),
        &[Law::Place, Law::RowLength],
    ),
    (
        "the first candidate of a full call is the true one",
        |asked| first_if(asked, asked.ask.len() > 100),
        &[Law::Place, Law::Split],
    ),
    (
        "the size of the call is part of the score",
        |asked| met(asked) + asked.ask.len() as f64,
        &[Law::Split],
    ),
    (
        "the length of the row is part of the score",
        |asked| met(asked) + asked.row.candidates.len() as f64,
        &[Law::RowLength],
    ),
    (
        "one source in fifty is answered by place",
        |asked| first_if(asked, asked.row.source.0 % 50 == 7),
        &[Law::Place],
    ),
    (
        "a node without a history is answered by place",
        |asked| first_if(asked, asked.past.history(asked.row.seed()).is_empty()),
        &[Law::Place],
    ),
    (
        "late in the stream rows are answered by place",
        |asked| first_if(asked, asked.known.events > 5_000),
        &[Law::Place],
    ),
    (
        "the row before tells the next",
        |asked| {
            let other = asked.row_number.checked_sub(1).map(|before| asked.ask.row(before));
            met(asked) + other.map_or(0.0, |row| f64::from(row.source.0))
        },
        &[Law::OtherRows],
    ),
    (
        "a candidate that is a source elsewhere in the call is true",
        |asked| {
            let elsewhere = asked.ask.rows().any(|row| row.candidates[0] == asked.candidate);
            met(asked) + f64::from(u8::from(elsewhere))
        },
        &[Law::OtherRows],
    ),
    ("it looks ahead in its own step", foreseen, &[Law::Future]),
    (
        "it looks ahead to when nodes meet next",
        |asked| {
            let mut later = Queries::new();
            let far = Time::new(asked.row.time.value() + 1e6).expect("finite");
            later.push(asked.row.source, far, [asked.candidate]);
            let history = asked.past.history(later.row(0).seed());
            history.last().map_or(0.0, |neighbour| neighbour.time().value())
        },
        &[Law::Future],
    ),
    (
        "how often a node occurs in the whole stream",
        |asked| f64::from(asked.model.counts[asked.candidate.index().min(asked.model.nodes - 1)]),
        &[Law::AfterTraining, Law::Future],
    ),
    (
        "a node whose number comes next is the newcomer",
        |asked| {
            let next = asked.known.nodes.iter().max().map_or(0, |last| last + 1);
            met(asked) + f64::from(u8::from(asked.candidate.0 == next))
        },
        &[Law::Names],
    ),
    (
        "nodes with lower numbers are likelier",
        |asked| met(asked) - f64::from(asked.candidate.0),
        &[Law::Names],
    ),
    (
        "a candidate asked about more often than others is the true one",
        |asked| {
            let key = (asked.row.source.0, asked.row.time.value().to_bits(), asked.candidate.0);
            let mut memory = asked.model.memory.lock().expect("nobody fails");
            let times = memory.entry(key).or_insert(0);
            *times += 1;
            met(asked) + f64::from(*times)
        },
        &[Law::Scoring, Law::OwnState],
    ),
    (
        "a pair that any session has observed is true",
        |asked| {
            let observed = asked.model.observed.lock().expect("nobody fails");
            let pair = (asked.row.source.0, asked.candidate.0);
            met(asked) + f64::from(u8::from(observed.contains(&pair)))
        },
        &[Law::OwnState],
    ),
    (
        "the number of calls so far is part of the score",
        |asked| asked.model.calls.load(Ordering::Relaxed) as f64,
        &[Law::Scoring],
    ),
    (
        "the clock on the wall",
        |asked| {
            let now = std::time::SystemTime::now();
            let since = now.duration_since(std::time::UNIX_EPOCH).expect("after 1970");
            met(asked) + since.as_secs_f64()
        },
        &[Law::Again],
    ),
    (
        "the number of threads",
        |asked| met(asked) + rayon::current_num_threads() as f64,
        &[Law::Threads],
    ),
    (
        "a horizon that only evaluation has",
        |asked| met(asked) + f64::from(asked.past.horizon()),
        &[Law::Live],
    ),
    (
        "a view that prints what it does not show",
        |asked| {
            let printed = format!("{:?}", asked.past);
            met(asked) + (printed.len() > 200 && printed.contains("destination")) as u8 as f64
        },
        // The view prints its horizon alone, so that there is nothing to find.
        &[],
    ),
    (
        "it is another model after it was saved",
        |asked| met(asked) + f64::from(u8::from(asked.model.reopened)),
        &[Law::Reopening],
    ),
    (
        "a node that nobody knows has no score",
        |asked| if asked.candidate.0 > 900 { f64::NAN } else { met(asked) },
        &[Law::Unseen],
    ),
];

/// A static memory: every model of the program shares it.
static EVERYBODY: Mutex<Option<HashSet<(u32, u32)>>> = Mutex::new(None);

/// Counts like the others, and remembers in a static what any model has observed.
struct Shared;

impl Model for Shared {
    type State = ();

    fn begin(&self, _: &StreamInfo) {}

    fn score(&self, _: Past<'_>, (): &(), ask: &Queries) -> lstep::Result<Scores> {
        let known = EVERYBODY.lock().expect("nobody fails");
        let known = known.as_ref();
        let values = ask.rows().flat_map(|row| {
            row.candidates.iter().map(move |candidate| {
                let pair = (row.source.0, candidate.0);
                f64::from(u8::from(known.is_some_and(|known| known.contains(&pair))))
            })
        });
        Scores::new(ask, values.collect())
    }

    fn observe(&self, _: Revealed<'_>, (): &mut (), step: &[Event]) -> lstep::Result<()> {
        let mut known = EVERYBODY.lock().expect("nobody fails");
        let known = known.get_or_insert_default();
        known.extend(step.iter().map(|event| (event.source.0, event.destination.0)));
        Ok(())
    }
}

fn check() -> Check {
    Check { step: 200, steps: 4, candidates: 101, ..Check::default() }
}

fn broken(trick: Trick, log: &EventLog) -> Vec<Breach> {
    let open = |opening: &Opening<'_>| Ok(Cheat::open(trick, opening, false));
    let reopen = |opening: &Opening<'_>| Ok(Cheat::open(trick, opening, true));
    let submission = Submission::new(&open).reopened_by(&reopen);
    check_model(&submission, log, check()).expect("checked").breaches()
}

fn all_are_caught(log: &EventLog) {
    assert_eq!(broken(met, log), [], "the honest twin");
    for (name, trick, laws) in CHEATS {
        let found = broken(*trick, log);
        for law in *laws {
            assert!(found.iter().any(|breach| breach.law == *law), "{name}: {law}: {found:?}");
        }
        if laws.is_empty() {
            assert_eq!(found, [], "{name}");
        }
    }
    let shared = |opening: &Opening<'_>| Ok(open(Shared, opening.info));
    let found = check_model(&Submission::new(&shared), log, check()).expect("checked").breaches();
    for law in [Law::Again, Law::OwnState] {
        assert!(found.iter().any(|breach| breach.law == law), "static memory: {law}: {found:?}");
    }
}

#[test]
fn every_cheat_is_caught_by_its_law_and_the_honest_twin_by_none() {
    let settings = SyntheticConfig { events: 7_000, nodes: 800, ..SyntheticConfig::default() };
    all_are_caught(&EventLog::new(generate(&settings).expect("a stream").events));
}

mod real_data {
    use super::*;
    use lstep::read::{ReadOptions, read};
    use lstep_testkit::real_data::events;

    #[test]
    #[ignore = "needs LSTEP_DATA"]
    fn every_cheat_is_caught() {
        for name in ["uci", "mathoverflow"] {
            let dataset = read(events(name), &ReadOptions::default()).expect("a stream");
            all_are_caught(&EventLog::new(dataset.events.first(8_000)));
        }
    }
}

/// How a model fares with a law if its scores may round.
fn rounding(trick: Trick, log: &EventLog, law: Law) -> LawReport {
    let open = |opening: &Opening<'_>| Ok(Cheat::open(trick, opening, false));
    let submission = Submission::new(&open).within(Tolerance::ROUNDING);
    let found = check_model(&submission, log, check()).expect("checked");
    found.laws.into_iter().find(|report| report.law == law).expect("every law is reported")
}

#[test]
fn rounding_is_told_from_a_leak_and_a_leak_has_a_small_example() {
    let settings = SyntheticConfig { events: 2_000, nodes: 200, ..SyntheticConfig::default() };
    let log = EventLog::new(generate(&settings).expect("a stream").events);
    // As a sum over a batch does whose order depends on the batch.
    let rounds: Trick = |asked| met(asked) + 1e-7 * asked.ask.len() as f64;
    let found = rounding(rounds, &log, Law::Split);
    assert_eq!((found.changed, found.evidence), (0, None));
    let largest = found.largest_change.expect("scores have other bits");
    assert!(found.rounded > 0 && largest < Tolerance::ROUNDING.of_row, "{largest}");
    assert!(broken(rounds, &log).iter().any(|breach| breach.law == Law::Split));

    // Whether somebody else is asked about the same candidate.
    let peeks: Trick = |asked| {
        let others = asked.ask.rows().filter(|row| row.candidates.contains(&asked.candidate));
        met(asked) + others.count() as f64
    };
    let found = rounding(peeks, &log, Law::OtherRows);
    let example = found.example.expect("it is broken");
    let context = example.context.expect("another call shows it");
    assert_eq!(context.together - context.alone, 1.0, "{context:?}");
    assert_eq!(context.call.len(), 2, "one other row is enough: {context:?}");
    for row in &context.call {
        assert_eq!(row.candidates, [example.destination], "{context:?}");
    }
}
