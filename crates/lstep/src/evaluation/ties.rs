//! How much of a score hangs on the order of rows that share a time.
//!
//! Nobody could have known that order when the events happened, but a state that follows in steps
//! reads it. So a model is evaluated with the rows as the file has them, with rows of one time
//! shuffled, and with a state that holds strictly earlier events alone. Beside them stands an
//! oracle that knows every pair of the test part and nothing of its order: a number above the
//! oracle's is not knowledge of who meets whom.

use super::{Watch, evaluate, train_observing};
use crate::error::Result;
use crate::event::{Event, pair_key};
use crate::graph::{Past, Revealed};
use crate::model::{Model, Session, StreamInfo, open};
use crate::protocol::{EvalPass, EvalScope, Part, Plan, Protocol, Subject, Ties};
use crate::query::{Queries, Scores};
use crate::results::TiesReport;
use crate::stream::{Stream, info, tied_events};
use rustc_hash::FxHashSet;

/// Opens a model that has observed nothing.
pub(crate) type OpenSession<'a> = dyn Fn(&StreamInfo) -> Result<Box<dyn Session>> + 'a;

/// What the order of ties is worth to models, on the test part against the protocol's usual
/// negatives. Nothing where fewer than `least` of the events are tied, or where their order is not
/// the file's. The stream is as the protocol hands it to models.
pub(crate) fn ties(
    stream: &Stream,
    protocol: &Protocol,
    models: &[(String, &OpenSession<'_>)],
    least: f64,
    watch: &mut Watch<'_>,
) -> Result<Vec<TiesReport>> {
    let events = stream.log.events();
    let tied_share = tied_events(events) as f64 / events.len().max(1) as f64;
    if tied_share < least || !protocol.ties().is_file() {
        return Ok(Vec::new());
    }
    let shuffled = stream.with_ties(Ties::Shuffled);
    let (in_file, shuffled) =
        (TestPass::new(stream, protocol)?, TestPass::new(&shuffled, protocol)?);
    let test = in_file.plan.split().test.clone();
    let pairs = test.map(|number| {
        let event = events.at(number as usize);
        pair_key(event.source, event.destination)
    });
    let oracle = GraphOracle { pairs: pairs.collect() };
    let known = |info: &StreamInfo| Ok(open(oracle.clone(), info));
    let oracle_ap = in_file.average_precision(in_file.trained(&known)?.as_mut(), watch)?;
    let strict = in_file.holding_back_ties();
    let report = |(model, opened): &(String, &OpenSession<'_>)| {
        let mut session = in_file.trained(opened)?;
        Ok(TiesReport {
            model: model.clone(),
            tied_share,
            file_ap: in_file.average_precision(session.fork().as_mut(), watch)?,
            shuffled_ap: shuffled.average_precision(shuffled.trained(opened)?.as_mut(), watch)?,
            strict_ap: strict.average_precision(session.as_mut(), watch)?,
            oracle_ap,
        })
    };
    models.iter().map(report).collect()
}

/// The test part of a stream, as a protocol asks about it.
struct TestPass<'a> {
    stream: &'a Stream,
    plan: Plan,
    pass: EvalPass,
}

impl<'a> TestPass<'a> {
    fn new(stream: &'a Stream, protocol: &Protocol) -> Result<TestPass<'a>> {
        let subject = Subject { events: stream.log.events(), names: &stream.names };
        let plan = protocol.plan(subject)?;
        let mut scope = plan.protocol().scope(&EvalScope::default());
        scope.parts = vec![Part::Test];
        let pass = plan.passes(subject, &scope)?.swap_remove(0);
        Ok(TestPass { stream, plan, pass })
    }

    /// The same questions to a state without events of the question's own time.
    fn holding_back_ties(&self) -> TestPass<'a> {
        let pass = self.pass.holding_back_ties();
        TestPass { stream: self.stream, plan: self.plan.clone(), pass }
    }

    /// A model that has observed training.
    fn trained(&self, opened: &OpenSession<'_>) -> Result<Box<dyn Session>> {
        let log = &self.stream.log;
        let mut session = opened(&info(log, self.plan.split()))?;
        train_observing(session.as_mut(), log, self.plan.split(), self.plan.protocol().step())?;
        Ok(session)
    }

    /// AP of a model that has observed training.
    fn average_precision(&self, session: &mut dyn Session, watch: &mut Watch<'_>) -> Result<f64> {
        Ok(evaluate(session, &self.stream.log, &self.pass, watch)?[0].ap)
    }
}

/// Knows which pairs meet at all in a part of the stream. No model: it has seen the future.
#[derive(Clone)]
struct GraphOracle {
    pairs: FxHashSet<u64>,
}

impl Model for GraphOracle {
    type State = ();

    fn begin(&self, _: &StreamInfo) {}

    fn score(&self, _: Past<'_>, (): &(), ask: &Queries) -> Result<Scores> {
        let known = |source, candidate| self.pairs.contains(&pair_key(source, candidate));
        let values = ask.rows().flat_map(|row| {
            row.candidates
                .iter()
                .map(move |&candidate| f64::from(u8::from(known(row.source, candidate))))
        });
        Scores::new(ask, values.collect())
    }

    fn observe(&self, _: Revealed<'_>, (): &mut (), _: &[Event]) -> Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::unwatched;
    use super::*;
    use crate::protocol::{StepRule, StreamProtocol};
    use crate::results::MANY_TIES;
    use crate::training::{TrainedRun, Training};

    /// Sources of one time are listed in blocks, and each block repeats its partner.
    fn listed_by_source(times: u32) -> Stream {
        let rows = (0..times * 400).map(|n| {
            let (time, within) = (n / 400, n % 400);
            let source = within / 20;
            // Whom a source meets changes with the time, and is repeated within it.
            let partner = 20 + (source * 7 + time * 13) % 60;
            (source, partner, f64::from(time))
        });
        Stream::new("blocks", lstep_testkit::stream!(rows)).expect("numbers are names")
    }

    fn ties_of(trained: &TrainedRun) -> Option<TiesReport> {
        trained.ties(0.05, &mut unwatched).expect("measured").pop()
    }

    /// Has met the pair, and the times of the newest event it has observed.
    #[derive(Clone)]
    struct Repeats;

    impl Model for Repeats {
        type State = FxHashSet<u64>;

        fn begin(&self, _: &StreamInfo) -> FxHashSet<u64> {
            FxHashSet::default()
        }

        fn score(&self, _: Past<'_>, met: &FxHashSet<u64>, ask: &Queries) -> Result<Scores> {
            let values = ask.rows().flat_map(|row| {
                row.candidates.iter().map(move |&candidate| {
                    f64::from(u8::from(met.contains(&pair_key(row.source, candidate))))
                })
            });
            Scores::new(ask, values.collect())
        }

        fn observe(&self, _: Revealed<'_>, met: &mut FxHashSet<u64>, step: &[Event]) -> Result<()> {
            // Only the newest time is remembered: what is known of the question's own time shows.
            met.clear();
            met.extend(step.iter().map(|event| pair_key(event.source, event.destination)));
            Ok(())
        }
    }

    #[test]
    fn a_state_that_reads_the_own_time_loses_it_when_ties_are_held_back() {
        let stream = listed_by_source(20);
        let protocol = Protocol::from(StreamProtocol {
            step: StepRule::Events(10),
            ..StreamProtocol::default()
        });
        let opened = |info: &StreamInfo| Ok(open(Repeats, info));
        let found =
            ties(&stream, &protocol, &[("repeats".into(), &opened)], MANY_TIES, &mut unwatched)
                .expect("measured");
        let [found] = &found[..] else { panic!("one model: {found:?}") };
        // Every other step of ten repeats the pair of the step before it.
        assert!(found.file_ap > 0.7, "{found:?}");
        assert!((found.strict_ap - 0.5).abs() < 0.1, "{found:?}");
        let nothing = ties(&stream, &protocol.with_ties(Ties::Shuffled), &[], 0.0, &mut unwatched);
        assert_eq!(nothing.expect("measured"), []);
    }

    #[test]
    fn a_score_that_hangs_on_the_order_of_rows_is_told_from_one_that_does_not() {
        let stream = listed_by_source(20);
        let trained = Training::new(&stream)
            .model("tgn")
            .expect("known")
            .set("protocol.step", 20)
            .set("train.epochs", 1)
            .run()
            .expect("trained");
        let found = ties_of(&trained).expect("all events are tied");
        assert_eq!(found.tied_share, 1.0);
        assert!(found.oracle_ap > 0.6, "{found:?}");
        // Nothing is tied in a stream of distinct times.
        let rows = (0..800u32).map(|n| (n % 20, 20 + n % 7, f64::from(n)));
        let stream = Stream::new("apart", lstep_testkit::stream!(rows)).expect("numbers are names");
        let trained = Training::new(&stream)
            .model("tgn")
            .expect("known")
            .set("protocol.step", 50)
            .set("train.epochs", 1)
            .run()
            .expect("trained");
        assert_eq!(ties_of(&trained), None);
    }
}
