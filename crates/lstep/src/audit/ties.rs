//! How much of a score hangs on the order of rows that share a time.
//!
//! Nobody could have known that order when the events happened, but a state that follows in steps
//! reads it. So the model is evaluated with the rows as the file has them, and with rows of one
//! time shuffled. Beside it stands an oracle that knows every pair of the test part and nothing of
//! its order: a number above the oracle's is not knowledge of who meets whom.

use crate::error::Result;
use crate::evaluation::{evaluate, train_observing, unwatched};
use crate::event::{Event, pair_key};
use crate::graph::{Past, Revealed};
use crate::model::{Model, Session, StreamInfo, open};
use crate::protocol::{EvalScope, Part, Plan, Protocol, StreamProtocol, Subject, Ties, Visibility};
use crate::query::{Queries, Scores};
use crate::stream::{Stream, info, tied_events};
use crate::training::TrainedRun;
use rustc_hash::FxHashSet;
use serde::Serialize;

/// Below this share of tied events nothing hangs on their order.
const FEW: f64 = 0.05;

/// What the order of tied rows is worth.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TiesReport {
    /// Share of events that share their time with another.
    pub tied_share: f64,
    /// Test AP with rows of one time in the order of the file.
    pub file_ap: f64,
    /// The same with those rows shuffled.
    pub shuffled_ap: f64,
    /// The same with steps that never separate events of one time, where the protocol allows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strict_ap: Option<f64>,
    /// What an oracle reaches that knows all pairs of the test part, but not when they meet.
    pub oracle_ap: f64,
}

/// Measures it for a trained run; nothing where few events are tied.
pub(super) fn ties(trained: &TrainedRun) -> Result<Option<TiesReport>> {
    let events = trained.stream().log.events();
    let tied_share = tied_events(events) as f64 / events.len().max(1) as f64;
    if tied_share < FEW {
        return Ok(None);
    }
    let protocol = trained.config().protocol.clone().with_ties(Ties::File);
    let opened = |_: &StreamInfo| trained.before_the_first_event();
    let in_file = Laid::new(trained.stream(), &protocol)?;
    let shuffled = trained.stream().with_ties(Ties::Shuffled);
    let strict_ap = match &protocol {
        Protocol::Stream(stream) => {
            let strict = StreamProtocol { visibility: Visibility::Strict, ..stream.clone() };
            let laid = Laid::new(trained.stream(), &Protocol::from(strict))?;
            Some(laid.average_precision(&opened)?)
        }
        _ => None,
    };
    let pairs = in_file.plan.split().test.clone().map(|number| {
        let event = events.at(number as usize);
        pair_key(event.source, event.destination)
    });
    let oracle = GraphOracle { pairs: pairs.collect() };
    Ok(Some(TiesReport {
        tied_share,
        file_ap: in_file.average_precision(&opened)?,
        shuffled_ap: Laid::new(&shuffled, &protocol)?.average_precision(&opened)?,
        strict_ap,
        oracle_ap: in_file.average_precision(&|info| Ok(open(oracle.clone(), info)))?,
    }))
}

/// A protocol laid over a stream.
struct Laid<'a> {
    stream: &'a Stream,
    plan: Plan,
}

impl<'a> Laid<'a> {
    fn new(stream: &'a Stream, protocol: &Protocol) -> Result<Laid<'a>> {
        let subject = Subject { events: stream.log.events(), names: &stream.names };
        Ok(Laid { stream, plan: protocol.plan(subject)? })
    }

    /// AP on the test part against the protocol's usual negatives, by a model that observes the
    /// stream from its first event on.
    fn average_precision(
        &self,
        opened: &dyn Fn(&StreamInfo) -> Result<Box<dyn Session>>,
    ) -> Result<f64> {
        let (Stream { log, names, .. }, protocol) = (self.stream, self.plan.protocol());
        let mut scope = protocol.scope(&EvalScope::default());
        scope.parts = vec![Part::Test];
        let mut session = opened(&info(log, self.plan.split()))?;
        train_observing(session.as_mut(), log, self.plan.split(), protocol.step())?;
        let passes = self.plan.passes(Subject { events: log.events(), names }, &scope)?;
        let outcomes = evaluate(session.as_mut(), log, &passes[0], &mut unwatched)?;
        Ok(outcomes[0].ap)
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
    use super::*;
    use crate::training::Training;

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
        let found = ties(&trained).expect("measured").expect("all events are tied");
        assert_eq!(found.tied_share, 1.0);
        assert!(found.oracle_ap > 0.6, "{found:?}");
        assert!(found.strict_ap.is_some());
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
        assert_eq!(ties(&trained).expect("measured"), None);
    }
}
