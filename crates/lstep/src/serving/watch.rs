//! Is a model as good on new events as it was? Its ranks on them, beside its ranks on the test part
//! of its run and beside models that only count, and how the stream itself has changed.
//!
//! Every question is a source against all destinations known by then, at the time of the event.
//! Events are asked about before they are observed, step by step as in an evaluation.

use super::scorer::NewEvents;
use super::{Bundle, Scorer};
use crate::error::{Error, Remedy, Result};
use crate::event::{Event, NodeId, NodeSet, Time, pair_key};
use crate::graph::EventLog;
use crate::metric::rank;
use crate::model::{ModelConfig, Session};
use crate::protocol::{Part, Visibility, cut, evenly};
use crate::query::Queries;
use crate::read::LeftOut;
use crate::results::Verdict;
use crate::training::{RunFolder, TrainedRun};
use rustc_hash::FxHashSet;
use serde::Serialize;
use std::ops::Range;
use std::path::Path;

/// How a model does on new events.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WatchReport {
    /// The model.
    pub model: String,
    /// On the new events.
    pub new: Watched,
    /// On the test part of its run; an exported model has none.
    pub reference: Option<Watched>,
    /// What the model's MRR on the new events has against the reference.
    pub against_reference: Option<Beside>,
    /// What it has against models that only count, on the same questions, the best one first.
    pub against_counting: Vec<Beside>,
    /// What has changed, in words.
    pub drift: Vec<String>,
    /// Whether it is worse than the reference or than counting, beyond chance.
    pub worse: bool,
    /// Rows of the file that were left out, as the run says.
    #[serde(skip_serializing_if = "LeftOut::is_empty")]
    pub left_out: LeftOut,
}

/// A part of a stream and how well it is foreseen.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Watched {
    /// Events.
    pub events: usize,
    /// Events that were asked about.
    pub questions: usize,
    /// Mean reciprocal rank of the true destination among all.
    pub mrr: f64,
    /// The lower end of its 95 % interval.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// Share of questions whose answer is among the first ten.
    pub hits_10: f64,
    /// Share of events whose pair has met before.
    pub repeats: f64,
    /// Share of events with a node that had no event before.
    pub new_nodes: f64,
    /// Events in a unit of time of the file.
    pub activity: f64,
}

/// A number beside another.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Beside {
    /// What the model is compared with.
    pub with: String,
    /// Its MRR.
    pub mrr: f64,
    /// The model's MRR minus that one.
    pub difference: f64,
    /// The lower end of the 95 % interval of the difference.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// What the interval says about the model.
    pub verdict: Verdict,
}

/// Asks a run or an exported model about the events of a file, at most so many of them, without
/// changing it.
///
/// # Errors
///
/// If an event is before the last one that the model has observed, or the columns are others.
pub fn watch(
    model: impl AsRef<Path>,
    events: impl AsRef<Path>,
    questions: usize,
) -> Result<WatchReport> {
    let model = model.as_ref();
    if questions == 0 {
        return Err(Error::setting("questions", 0, Remedy::text("ask at least one")));
    }
    let (reference, bundle) = if model.is_file() {
        (None, Bundle::read(model)?)
    } else {
        let folder = RunFolder::new(model);
        let trained = TrainedRun::open(&folder)?;
        let reference = reference(&trained, questions)?;
        (Some(reference), Bundle::of_trained(trained)?.updated(&folder)?)
    };
    let name = bundle.about().settings.model.to_string();
    let mut counting = counting_at_the_end(&bundle)?;
    let mut scorer = Scorer::from(bundle);
    let events = scorer.read_events(events.as_ref())?;
    let (new, others) = follow(&mut scorer, &mut counting, &events, questions)?;
    let against_reference = reference.as_ref().map(|reference| new.against(reference));
    let named = counting.into_iter().map(|(name, _)| name).zip(&others);
    let mut against_counting: Vec<Beside> =
        named.map(|(name, asked)| new.paired(name, &asked.reciprocals)).collect();
    against_counting.sort_by(|a, b| b.mrr.total_cmp(&a.mrr));
    let worse = against_reference.iter().chain(&against_counting);
    let worse = worse.into_iter().any(|beside| beside.verdict == Verdict::Worse);
    let reference = reference.map(|asked| asked.summary());
    let new = new.summary();
    let drift = reference.as_ref().map_or(Vec::new(), |reference| drift(reference, &new));
    Ok(WatchReport {
        model: name,
        new,
        reference,
        against_reference,
        against_counting,
        drift,
        worse,
        left_out: events.events.left_out,
    })
}

/// What was asked of a part, and what the part is like.
#[derive(Debug, Default)]
struct Asked {
    reciprocals: Vec<f64>,
    hits: usize,
    events: usize,
    repeats: usize,
    newcomers: usize,
    ends: Option<(Time, Time)>,
}

impl Asked {
    /// Counts an event that is about to happen.
    fn count(&mut self, event: &Event, met: &mut FxHashSet<u64>, seen: &mut NodeSet) {
        self.events += 1;
        self.ends = Some((self.ends.map_or(event.time, |(first, _)| first), event.time));
        self.repeats += usize::from(!met.insert(pair_key(event.source, event.destination)));
        let new = [seen.insert(event.source), seen.insert(event.destination)];
        self.newcomers += usize::from(new.contains(&true));
    }

    fn summary(&self) -> Watched {
        let of_events = |count: usize| count as f64 / self.events.max(1) as f64;
        let (mrr, error) = mean(&self.reciprocals);
        let span = self.ends.map_or(0.0, |(first, last)| last.since(first));
        Watched {
            events: self.events,
            questions: self.reciprocals.len(),
            mrr,
            low: mrr - Z * error,
            high: mrr + Z * error,
            hits_10: self.hits as f64 / self.reciprocals.len().max(1) as f64,
            repeats: of_events(self.repeats),
            new_nodes: of_events(self.newcomers),
            activity: if span > 0.0 { self.events as f64 / span } else { 0.0 },
        }
    }

    /// Beside other events.
    fn against(&self, reference: &Asked) -> Beside {
        let ((mrr, error), (other, others)) =
            (mean(&self.reciprocals), mean(&reference.reciprocals));
        let error = (error * error + others * others).sqrt();
        Beside::new("the test part of the run".to_string(), other, mrr - other, error)
    }

    /// Beside another model on the same questions.
    fn paired(&self, name: String, others: &[f64]) -> Beside {
        let pairs = self.reciprocals.iter().zip(others);
        let differences: Vec<f64> = pairs.map(|(one, other)| one - other).collect();
        let (difference, error) = mean(&differences);
        Beside::new(name, mean(others).0, difference, error)
    }
}

impl Beside {
    fn new(with: String, mrr: f64, difference: f64, error: f64) -> Beside {
        let (low, high) = (difference - Z * error, difference + Z * error);
        Beside { with, mrr, difference, low, high, verdict: Verdict::of(low, high) }
    }
}

/// Of a normal distribution 95 % is within so many deviations.
const Z: f64 = 1.96;

/// The mean of some numbers, and its standard error.
fn mean(values: &[f64]) -> (f64, f64) {
    let count = values.len().max(1) as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (mean, (squares / (count - 1.0).max(1.0) / count).sqrt())
}

/// The test part, asked from the state after training and validation.
fn reference(trained: &TrainedRun, questions: usize) -> Result<Asked> {
    let log = &trained.stream().log;
    let test = trained.split().range(Part::Test);
    let protocol = &trained.config().protocol;
    let mut session = trained.trainer()?;
    let mut asked = Asked::default();
    let (mut met, mut seen) = (FxHashSet::default(), NodeSet::default());
    let mut destinations = NodeSet::default();
    for event in log.events().iter().take(test.start as usize) {
        met.insert(pair_key(event.source, event.destination));
        seen.insert(event.source);
        seen.insert(event.destination);
        destinations.insert(event.destination);
    }
    let mut chosen = evenly(questions, test.len());
    trained.steps_after_training(|end, step| {
        if step.first().is_some_and(|event| event.number >= test.start) {
            let ask = questions_of(step, &mut chosen, &destinations);
            let horizon = horizon(protocol.visibility(), step, end);
            asked.rank(session.as_ref(), log, horizon, &ask)?;
            for event in step {
                asked.count(event, &mut met, &mut seen);
                destinations.insert(event.destination);
            }
        }
        session.observe(log.revealed(end), step)
    })?;
    Ok(asked)
}

/// New events, asked step by step and then observed. Gives the answers of the model and of
/// the counting models.
fn follow(
    scorer: &mut Scorer,
    counting: &mut [(String, Box<dyn Session>)],
    new: &NewEvents,
    questions: usize,
) -> Result<(Asked, Vec<Asked>)> {
    let steps: Vec<Range<u32>> = new.steps(scorer);
    let visibility = scorer.bundle().about().settings.protocol.visibility();
    let mut asked = Asked::default();
    let mut others: Vec<Asked> = counting.iter().map(|_| Asked::default()).collect();
    let (mut met, mut seen) = (FxHashSet::default(), NodeSet::default());
    for event in scorer.bundle().live.log().events().iter() {
        met.insert(pair_key(event.source, event.destination));
        seen.insert(event.source);
        seen.insert(event.destination);
    }
    let mut chosen = evenly(questions, new.events.events.len());
    for span in steps {
        let step = new.push(scorer, span)?;
        let bundle = scorer.bundle();
        let log = bundle.live.log();
        let end = log.len() as u32;
        let ask = questions_of(&step, &mut chosen, &bundle.destinations);
        let horizon = horizon(visibility, &step, end);
        asked.rank(bundle.live.session(), log, horizon, &ask)?;
        for ((_, session), others) in counting.iter_mut().zip(&mut others) {
            others.rank(session.as_ref(), log, horizon, &ask)?;
            session.observe(log.revealed(end), &step)?;
        }
        step.iter().for_each(|event| asked.count(event, &mut met, &mut seen));
        scorer.observe_pushed(&step)?;
    }
    Ok((asked, others))
}

/// Rows for the chosen events of a step: the true destination first, then all others that were
/// known before the step.
fn questions_of(
    step: &[Event],
    chosen: &mut impl FnMut() -> bool,
    destinations: &NodeSet,
) -> Queries {
    let row = |event: &Event| {
        let (truth, time) = (event.destination, event.time);
        let others = destinations.iter().filter(move |&node| node != truth);
        let candidates: Vec<NodeId> = std::iter::once(truth).chain(others).collect();
        (event.source, time, candidates)
    };
    step.iter().filter(|_| chosen()).map(row).collect()
}

/// What questions of a step may see.
fn horizon(visibility: Visibility, step: &[Event], end: u32) -> u32 {
    match visibility {
        Visibility::Step => step.first().map_or(end, |event| event.number),
        _ => end,
    }
}

impl Asked {
    /// Adds the ranks of the true destinations.
    fn rank(
        &mut self,
        session: &(impl Session + ?Sized),
        log: &EventLog,
        horizon: u32,
        ask: &Queries,
    ) -> Result<()> {
        if ask.is_empty() {
            return Ok(());
        }
        let scores = session.score(log.past(horizon), ask)?;
        for row in 0..ask.len() {
            let scores = &scores.values()[ask.span(row)];
            let rank = rank(scores[0], &scores[1..])?;
            self.reciprocals.push(rank.reciprocal_exact());
            self.hits += usize::from(rank.within(10));
        }
        Ok(())
    }
}

/// The counting models after everything that a bundle has observed.
fn counting_at_the_end(bundle: &Bundle) -> Result<Vec<(String, Box<dyn Session>)>> {
    let log = bundle.live.log();
    let protocol = &bundle.about().settings.protocol;
    let steps = cut(log.events(), 0..log.len() as u32, protocol.step(), protocol.visibility());
    let observed = |name: &&str| {
        let model: ModelConfig = ModelConfig::counting(name)?;
        let mut session = model.open(bundle.info())?;
        for span in &steps {
            let step: Vec<Event> =
                span.clone().map(|number| log.events().at(number as usize)).collect();
            session.observe(log.revealed(span.end), &step)?;
        }
        Ok((name.to_string(), session))
    };
    [
        "heuristics",
        "local-recency+global-popularity",
        "local-popularity+global-popularity",
        "poptrack",
    ]
    .iter()
    .map(observed)
    .collect()
}

/// What has changed since the reference, where it has changed much.
fn drift(reference: &Watched, new: &Watched) -> Vec<String> {
    let mut drift = Vec::new();
    let shares = [
        ("events of pairs that have met before", reference.repeats, new.repeats),
        ("events with a new node", reference.new_nodes, new.new_nodes),
    ];
    for (what, before, now) in shares {
        if (now - before).abs() > 0.1 {
            let [before, now] = [before, now].map(|share| 100.0 * share);
            drift.push(format!("{what}: {now:.0} %, {before:.0} % in the test part"));
        }
    }
    let ratio = new.activity / reference.activity;
    if ratio.is_finite() && !(0.5..=2.0).contains(&ratio) {
        drift.push(format!("activity: {ratio:.2} times that of the test part"));
    }
    drift
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_are_spread_evenly() {
        let mut chosen = evenly(4, 10);
        let asked: Vec<usize> = (0..10).filter(|_| chosen()).collect();
        assert_eq!(asked, [2, 4, 7, 9]);
        let mut all = evenly(2000, 3);
        assert_eq!((0..3).filter(|_| all()).count(), 3);
    }

    #[test]
    fn a_difference_within_chance_is_not_worse() {
        let asked = |values: &[f64]| Asked { reciprocals: values.to_vec(), ..Asked::default() };
        let (low, high) = (asked(&[0.1, 0.2, 0.1, 0.2]), asked(&[0.9, 1.0, 0.9, 1.0]));
        assert_eq!(low.against(&high).verdict, Verdict::Worse);
        assert_eq!(high.against(&low).verdict, Verdict::Better);
        assert_eq!(asked(&[0.0, 1.0]).against(&asked(&[1.0, 0.5])).verdict, Verdict::NotToldApart);
        assert_eq!(low.paired("x".into(), &[0.3, 0.4, 0.3, 0.4]).verdict, Verdict::Worse);
    }
}
