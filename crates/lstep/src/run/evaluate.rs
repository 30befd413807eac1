//! Runs a session through an exam and gives the numbers of its sheets.
//!
//! In every step: ask, score, then reveal. Whoever scores has not observed the step, and sees of the graph what the exam's
//! visibility allows. A session that can move with every moment does so, unless the exam holds the state still within steps.

use super::record::Record;
use crate::error::Result;
use crate::event::{Event, Time};
use crate::graph::EventLog;
use crate::metric::{Ranks, StepMeans, rank};
use crate::model::{Facts, Pace, Session};
use crate::protocol::{Exam, NodeSet, Part, Queries, Setting, Sheet, Split, StepRule, Strategy, Visibility, cut_list};
use std::ops::Range;
use std::time::{Duration, Instant};

/// The numbers of one sheet.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The part asked about.
    pub part: Part,
    /// Which of its events were asked.
    pub setting: Setting,
    /// The kind of negatives.
    pub strategy: Strategy,
    /// Average precision, the mean over steps.
    pub ap: f64,
    /// ROC-AUC, the mean over steps.
    pub auc: f64,
    /// Average precision over all scores together.
    pub ap_pooled: f64,
    /// ROC-AUC over all scores together.
    pub auc_pooled: f64,
    /// Mean reciprocal rank, ties in the middle, where an event has more than one negative.
    pub mrr: Option<f64>,
    /// Share of events whose true destination ranks tenth or better, where an event has more than ten negatives.
    pub hits_10: Option<f64>,
    /// How many events were asked.
    pub events: usize,
    /// In how many steps.
    pub steps: usize,
    /// How many candidates were scored.
    pub pairs: usize,
    /// How long scoring took, and letting the state follow.
    pub seconds: f64,
}

/// Gets told how much is done: candidates scored, of how many.
pub type Watch<'a> = dyn Fn(u64, u64) + 'a;

/// What a model may know before the first event.
pub fn facts(log: &EventLog, split: &Split) -> Facts {
    let times = log.events().times();
    let trained = log.events().iter().take(split.train.end as usize).filter(|event| split.trains(*event));
    let (mut ends, mut nodes): (Option<(Time, Time)>, _) = (None, NodeSet::default());
    for event in trained {
        ends = Some((ends.map_or(event.time, |(first, _)| first), event.time));
        nodes.insert(event.source);
        nodes.insert(event.destination);
    }
    Facts { nodes: nodes.len(), training: ends.unwrap_or((times[0], times[0])) }
}

/// Lets a session observe the events that may train, step by step, without learning.
pub fn train_observing(session: &mut dyn Session, log: &EventLog, split: &Split, rule: StepRule) -> Result<()> {
    let trained: Vec<u32> =
        split.train.clone().filter(|&number| split.trains(log.events().at(number as usize))).collect();
    for step in cut_list(log.events(), &trained, rule, Visibility::Event) {
        let known: Vec<Event> = trained[step].iter().map(|&number| log.events().at(number as usize)).collect();
        let horizon = known.last().map_or(0, |event| event.number + 1);
        session.observe(log.revealed(horizon), &known)?;
    }
    Ok(())
}

/// Runs a session, which has observed training, through an exam.
pub fn evaluate(session: &mut dyn Session, log: &EventLog, exam: &Exam, watch: &Watch<'_>) -> Result<Vec<Outcome>> {
    evaluate_recording(session, log, exam, watch, &mut [])
}

/// The same, and keeps the scores for figures: `records` are those of the exam, or none.
pub fn evaluate_recording(
    session: &mut dyn Session,
    log: &EventLog,
    exam: &Exam,
    watch: &Watch<'_>,
    records: &mut [Record],
) -> Result<Vec<Outcome>> {
    let by_moment = session.pace() == Pace::Moment
        && !exam.state_by_step
        && exam.visibility != Visibility::Step
        && exam.steps() > 0;
    let mut run = Run {
        log,
        exam,
        pending: exam.reveals_from(),
        ask: Queries::new(),
        tallies: exam.sheets.iter().map(Tally::new).collect(),
        observing: Duration::ZERO,
        scored: 0,
        records,
    };
    for step in 0..exam.steps() {
        if by_moment {
            run.step_by_moments(session, step)?;
        } else {
            run.whole_step(session, step)?;
        }
        run.tallies.iter_mut().try_for_each(Tally::close_step)?;
        watch(run.scored, exam.pairs());
    }
    let observing = run.observing;
    Ok(run.tallies.into_iter().map(|tally| tally.outcome(observing)).collect())
}

struct Run<'a> {
    log: &'a EventLog,
    exam: &'a Exam,
    /// Number of the first event not observed, when the state follows by moments.
    pending: u32,
    ask: Queries,
    tallies: Vec<Tally<'a>>,
    observing: Duration,
    scored: u64,
    records: &'a mut [Record],
}

impl Run<'_> {
    fn whole_step(&mut self, session: &mut dyn Session, step: usize) -> Result<()> {
        let reveals = self.exam.reveals(step);
        let (Some(&first), Some(&last)) = (reveals.first(), reveals.last()) else {
            return Ok(());
        };
        let horizon = if self.exam.visibility == Visibility::Step { first } else { last + 1 };
        for sheet in 0..self.tallies.len() {
            let places = self.exam.sheets[sheet].step(step);
            self.answer(session, sheet, places, horizon)?;
        }
        let started = Instant::now();
        let events: Vec<Event> = reveals.iter().map(|&number| self.log.events().at(number as usize)).collect();
        session.observe(self.log.revealed(last + 1), &events)?;
        self.observing += started.elapsed();
        Ok(())
    }

    /// Before each moment of the step, the state follows to all events strictly before it.
    fn step_by_moments(&mut self, session: &mut dyn Session, step: usize) -> Result<()> {
        let events = self.log.events();
        let mut asked: Vec<Range<usize>> = self.exam.sheets.iter().map(|sheet| sheet.step(step)).collect();
        // The next moment is the earliest that any sheet still asks about.
        while let Some(time) = (asked.iter().zip(&self.exam.sheets))
            .filter(|(places, _)| !places.is_empty())
            .map(|(places, sheet)| events.times()[sheet.asked()[places.start] as usize])
            .min()
        {
            let horizon = self.log.first_at(time);
            let started = Instant::now();
            if horizon > self.pending {
                let known: Vec<Event> = (self.pending..horizon).map(|number| events.at(number as usize)).collect();
                session.observe(self.log.revealed(horizon), &known)?;
                self.pending = horizon;
            }
            self.observing += started.elapsed();
            for (sheet, places) in asked.iter_mut().enumerate() {
                let numbers = &self.exam.sheets[sheet].asked()[places.clone()];
                let count = numbers.partition_point(|&number| events.times()[number as usize] <= time);
                self.answer(session, sheet, places.start..places.start + count, horizon)?;
                places.start += count;
            }
        }
        Ok(())
    }

    fn answer(&mut self, session: &dyn Session, sheet: usize, places: Range<usize>, horizon: u32) -> Result<()> {
        if places.is_empty() {
            return Ok(());
        }
        let started = Instant::now();
        self.ask.clear();
        self.exam.sheets[sheet].ask(self.log.events(), places.clone(), &mut self.ask);
        let scores = session.score(self.log.past(horizon), &self.ask)?;
        let tally = &mut self.tallies[sheet];
        tally.add(places, scores.values(), self.records.get_mut(sheet))?;
        tally.scoring += started.elapsed();
        self.scored += self.ask.pairs() as u64;
        Ok(())
    }
}

/// Collects the scores of one sheet.
struct Tally<'a> {
    sheet: &'a Sheet,
    ranked: bool,
    scores: Vec<f64>,
    labels: Vec<bool>,
    means: StepMeans,
    ranks: Ranks,
    least_negatives: usize,
    scoring: Duration,
}

impl<'a> Tally<'a> {
    fn new(sheet: &'a Sheet) -> Tally<'a> {
        Tally {
            sheet,
            ranked: !sheet.negatives().one_each(),
            scores: Vec::new(),
            labels: Vec::new(),
            means: StepMeans::new(),
            ranks: Ranks::new(),
            least_negatives: usize::MAX,
            scoring: Duration::ZERO,
        }
    }

    /// Scores come as they were asked: the true destination, then its negatives.
    fn add(&mut self, places: Range<usize>, mut scores: &[f64], mut record: Option<&mut Record>) -> Result<()> {
        self.scores.extend_from_slice(scores);
        for place in places {
            let count = self.sheet.negatives().row(place).1.len();
            let (row, later) = scores.split_at(1 + count);
            scores = later;
            if let Some(record) = &mut record {
                record.take(place, self.sheet.asked()[place], row);
            }
            self.labels.push(true);
            self.labels.extend(std::iter::repeat_n(false, count));
            if self.ranked {
                self.ranks.add(rank(row[0], &row[1..])?);
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
        let mean = self.means.mean().expect("a sheet asks about at least one event");
        let pooled = self.means.pooled().expect("a sheet asks about at least one event");
        let asked = self.sheet.asked().len();
        Outcome {
            part: self.sheet.part,
            setting: self.sheet.setting,
            strategy: self.sheet.strategy,
            ap: mean.average_precision,
            auc: mean.roc_auc,
            ap_pooled: pooled.average_precision,
            auc_pooled: pooled.roc_auc,
            mrr: if self.ranked { self.ranks.mrr() } else { None },
            hits_10: if self.ranked && self.least_negatives > 10 { self.ranks.hits(10) } else { None },
            events: asked,
            steps: self.means.steps(),
            pairs: asked + self.sheet.negatives().pairs(),
            seconds: (self.scoring + observing).as_secs_f64(),
        }
    }
}
