//! Runs a session through a pass and gives the numbers of its query sets.
//!
//! In every step: ask, score, then reveal. Whoever scores has not observed the step, and sees of
//! the graph what the pass's visibility allows. A session that can move with every moment does so,
//! unless the pass holds the state still within steps.

use crate::error::{Error, Result};
use crate::evaluation::ScoreLog;
use crate::event::Event;
use crate::graph::EventLog;
use crate::metric::{Ranks, StepMeans, rank};
use crate::model::{Pace, Session};
use crate::protocol::{EvalPass, QuerySet, Split, StepRule, Visibility, cut_list};
use crate::query::Queries;
use crate::results::Outcome;
use std::ops::{ControlFlow, Range};
use std::time::{Duration, Instant};

/// Called after every step with the candidates scored so far and those of the whole pass.
/// [`ControlFlow::Break`] ends the evaluation with [`Error::Interrupted`].
pub type Watch<'a> = dyn FnMut(u64, u64) -> ControlFlow<()> + 'a;

/// The [`Watch`] of those who want to know nothing.
pub fn unwatched(_done: u64, _of: u64) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// Lets a session observe the events that may train, step by step, without learning.
pub fn train_observing(
    session: &mut dyn Session,
    log: &EventLog,
    split: &Split,
    rule: StepRule,
) -> Result<()> {
    let trained: Vec<u32> = split
        .train
        .clone()
        .filter(|&number| split.trains(log.events().at(number as usize)))
        .collect();
    for step in cut_list(log.events(), &trained, rule, Visibility::Event) {
        let known: Vec<Event> =
            trained[step].iter().map(|&number| log.events().at(number as usize)).collect();
        let horizon = known.last().map_or(0, |event| event.number + 1);
        session.observe(log.revealed(horizon), &known)?;
    }
    Ok(())
}

/// Runs a session, which has observed training, through a pass.
pub fn evaluate(
    session: &mut dyn Session,
    log: &EventLog,
    pass: &EvalPass,
    watch: &mut Watch<'_>,
) -> Result<Vec<Outcome>> {
    evaluate_recording(session, log, pass, watch, &mut [])
}

/// The same, and keeps the scores for figures: `records` are those of the pass, or none.
pub fn evaluate_recording(
    session: &mut dyn Session,
    log: &EventLog,
    pass: &EvalPass,
    watch: &mut Watch<'_>,
    records: &mut [ScoreLog],
) -> Result<Vec<Outcome>> {
    let by_moment = session.pace() == Pace::Timestamp
        && !pass.state_by_step
        && pass.visibility != Visibility::Step
        && pass.steps() > 0;
    let mut run = Evaluator {
        log,
        pass,
        pending: pass.reveals_from(),
        held_back: Vec::new(),
        ask: Queries::new(),
        metrics: pass.query_sets.iter().map(SetMetrics::new).collect(),
        observing: Duration::ZERO,
        scored: 0,
        records,
    };
    for step in 0..pass.steps() {
        if by_moment {
            run.step_by_moments(session, step)?;
        } else {
            run.whole_step(session, step)?;
        }
        run.metrics.iter_mut().try_for_each(SetMetrics::close_step)?;
        run.records.iter_mut().for_each(ScoreLog::close_step);
        if watch(run.scored, pass.pairs()).is_break() {
            return Err(Error::Interrupted);
        }
    }
    let observing = run.observing;
    Ok(run.metrics.into_iter().map(|metrics_of| metrics_of.outcome(observing)).collect())
}

struct Evaluator<'a> {
    log: &'a EventLog,
    pass: &'a EvalPass,
    /// Number of the first event not observed, when the state follows by moments.
    pending: u32,
    /// Events of finished steps that are not observed before a later time comes.
    held_back: Vec<Event>,
    ask: Queries,
    metrics: Vec<SetMetrics<'a>>,
    observing: Duration,
    scored: u64,
    records: &'a mut [ScoreLog],
}

impl Evaluator<'_> {
    fn whole_step(&mut self, session: &mut dyn Session, step: usize) -> Result<()> {
        let reveals = self.pass.reveals(step);
        let (Some(&first), Some(&last)) = (reveals.first(), reveals.last()) else {
            return Ok(());
        };
        let horizon = if self.pass.visibility == Visibility::Step { first } else { last + 1 };
        self.observe_held_back(session, self.log.events().at(first as usize))?;
        for query_set in 0..self.metrics.len() {
            let places = self.pass.query_sets[query_set].step(step);
            self.answer(session, query_set, places, horizon)?;
        }
        let started = Instant::now();
        let events: Vec<Event> =
            reveals.iter().map(|&number| self.log.events().at(number as usize)).collect();
        if self.pass.ties_held_back {
            self.held_back.extend(events);
        } else {
            session.observe(self.log.revealed(last + 1), &events)?;
        }
        self.observing += started.elapsed();
        Ok(())
    }

    /// Observes what was held back and is earlier than the event with which a step begins.
    fn observe_held_back(&mut self, session: &mut dyn Session, next: Event) -> Result<()> {
        let earlier = self.held_back.partition_point(|event| event.time < next.time);
        let events: Vec<Event> = self.held_back.drain(..earlier).collect();
        match events.last() {
            Some(last) => session.observe(self.log.revealed(last.number + 1), &events),
            None => Ok(()),
        }
    }

    /// Before each moment of the step, the state follows to all events strictly before it.
    fn step_by_moments(&mut self, session: &mut dyn Session, step: usize) -> Result<()> {
        let events = self.log.events();
        let mut asked: Vec<Range<usize>> =
            self.pass.query_sets.iter().map(|query_set| query_set.step(step)).collect();
        // The next moment is the earliest that any query set still asks about.
        while let Some(time) = (asked.iter().zip(&self.pass.query_sets))
            .filter(|(places, _)| !places.is_empty())
            .map(|(places, query_set)| events.times()[query_set.asked()[places.start] as usize])
            .min()
        {
            let horizon = self.log.first_at(time);
            let started = Instant::now();
            if horizon > self.pending {
                let known: Vec<Event> =
                    (self.pending..horizon).map(|number| events.at(number as usize)).collect();
                session.observe(self.log.revealed(horizon), &known)?;
                self.pending = horizon;
            }
            self.observing += started.elapsed();
            for (query_set, places) in asked.iter_mut().enumerate() {
                let numbers = &self.pass.query_sets[query_set].asked()[places.clone()];
                let count =
                    numbers.partition_point(|&number| events.times()[number as usize] <= time);
                self.answer(session, query_set, places.start..places.start + count, horizon)?;
                places.start += count;
            }
        }
        Ok(())
    }

    fn answer(
        &mut self,
        session: &dyn Session,
        query_set: usize,
        places: Range<usize>,
        horizon: u32,
    ) -> Result<()> {
        if places.is_empty() {
            return Ok(());
        }
        let started = Instant::now();
        self.ask.clear();
        self.pass.query_sets[query_set].ask(self.log.events(), places.clone(), &mut self.ask);
        let scores = session.score(self.log.past(horizon), &self.ask)?;
        let metrics_of = &mut self.metrics[query_set];
        metrics_of.add(places, scores.values(), self.records.get_mut(query_set))?;
        metrics_of.scoring += started.elapsed();
        self.scored += self.ask.pairs() as u64;
        Ok(())
    }
}

/// Collects the scores of one query set.
struct SetMetrics<'a> {
    query_set: &'a QuerySet,
    ranked: bool,
    scores: Vec<f64>,
    labels: Vec<bool>,
    means: StepMeans,
    ranks: Ranks,
    least_negatives: usize,
    scoring: Duration,
}

impl<'a> SetMetrics<'a> {
    fn new(query_set: &'a QuerySet) -> SetMetrics<'a> {
        SetMetrics {
            query_set,
            ranked: !query_set.negatives().one_each(),
            scores: Vec::new(),
            labels: Vec::new(),
            means: StepMeans::new(),
            ranks: Ranks::new(),
            least_negatives: usize::MAX,
            scoring: Duration::ZERO,
        }
    }

    /// Scores come as they were asked: the true destination, then its negatives.
    fn add(
        &mut self,
        places: Range<usize>,
        mut scores: &[f64],
        mut record: Option<&mut ScoreLog>,
    ) -> Result<()> {
        self.scores.extend_from_slice(scores);
        for place in places {
            let count = self.query_set.negatives().row(place).1.len();
            let (row, later) = scores.split_at(1 + count);
            scores = later;
            let rank = if self.ranked { Some(rank(row[0], &row[1..])?) } else { None };
            if let Some(record) = &mut record {
                record.take(place, self.query_set.asked()[place], row, rank);
            }
            self.labels.push(true);
            self.labels.extend(std::iter::repeat_n(false, count));
            if let Some(rank) = rank {
                self.ranks.add(rank);
                self.least_negatives = self.least_negatives.min(count);
            }
        }
        Ok(())
    }

    fn close_step(&mut self) -> Result<()> {
        if !self.labels.is_empty() {
            let started = Instant::now();
            self.means.add(&self.scores, &self.labels)?;
            self.scores.clear();
            self.labels.clear();
            self.scoring += started.elapsed();
        }
        Ok(())
    }

    fn outcome(self, observing: Duration) -> Outcome {
        let mean = self.means.mean().expect("a query set asks about at least one event");
        let pooled = self.means.pooled().expect("a query set asks about at least one event");
        let asked = self.query_set.asked().len();
        let beyond_ten = self.ranked && self.least_negatives > 10;
        Outcome {
            part: self.query_set.part,
            setting: self.query_set.setting,
            negatives: self.query_set.strategy,
            ap: mean.average_precision,
            auc: mean.roc_auc,
            ap_pooled: pooled.average_precision,
            auc_pooled: pooled.roc_auc,
            mrr: if self.ranked { self.ranks.mrr() } else { None },
            hits_10: if beyond_ten { self.ranks.hits(10) } else { None },
            hits_1: if self.ranked { self.ranks.hits(1) } else { None },
            ndcg_10: if beyond_ten { self.ranks.ndcg(10) } else { None },
            events: asked,
            steps: self.means.steps(),
            pairs: asked + self.query_set.negatives().pairs(),
            seconds: (self.scoring + observing).as_secs_f64(),
        }
    }
}
