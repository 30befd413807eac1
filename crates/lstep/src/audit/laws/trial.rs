//! One stream, one set of questions, their scores as they should be, and the scores under every
//! change that may not matter.

use super::example::{Example, smallest_context};
use super::questions::{Call, ProbedStep, Probes};
use super::world::{Renaming, altered_from};
use super::{Check, Law, LawReport, Open, Opening, Submission, Tolerance};
use crate::error::Result;
use crate::event::{Event, Events, NodeId, Time};
use crate::graph::EventLog;
use crate::model::Session;
use crate::query::Queries;
use crate::rng::KeyedRng;
use crate::serving::Live;
use std::ops::Range;
use std::time::Instant;

/// Rows for which the future is changed from their own time on, in a step.
const FUTURES: usize = 3;
/// Rows scored in every step by a session that must not be changed by it.
const SCORED_ALONG: usize = 20;

/// Scores of the calls of one step.
type StepScores = Vec<Vec<f64>>;

pub(super) struct Trial<'a> {
    submission: Submission<'a>,
    log: &'a EventLog,
    probes: &'a Probes,
    /// The scores of the first pass, in which nothing was asked twice.
    scores: Vec<StepScores>,
    /// The sessions of the first pass as they were at each step, and the session at its end, which
    /// lives on: what it knows must not reach the others.
    sessions: Vec<Box<dyn Session>>,
    _last: Box<dyn Session>,
    draw: KeyedRng,
    report: LawReport,
    reports: Vec<LawReport>,
    /// Where the first breach of the law was seen: step, call, row and place.
    first: Option<(usize, usize, usize, usize)>,
    /// The call that showed it, where the law asks other calls of the same session.
    asked: Option<Queries>,
}

impl<'a> Trial<'a> {
    pub fn new(
        submission: Submission<'a>,
        log: &'a EventLog,
        probes: &'a Probes,
        check: Check,
    ) -> Result<Trial<'a>> {
        let (mut scores, mut sessions) = (Vec::new(), Vec::new());
        let session = open(submission.open, log, probes)?;
        let last = walk(session, log, probes, &mut |session, asked| {
            sessions.push(session.fork());
            scores.push(score_all(session, log, asked)?);
            Ok(())
        })?;
        Ok(Trial {
            submission,
            log,
            probes,
            scores,
            sessions,
            _last: last,
            draw: KeyedRng::new(&[check.seed, 0x7a1a]),
            report: LawReport::new(Law::Again),
            reports: Vec::new(),
            first: None,
            asked: None,
        })
    }

    pub fn into_reports(self) -> Vec<LawReport> {
        self.reports
    }

    pub fn check(&mut self, law: Law) -> Result<()> {
        self.report = LawReport::new(law);
        let started = Instant::now();
        match law {
            Law::Again => self.compare_pass(self.submission.open)?,
            Law::Reopening => self.compare_pass(self.submission.reopen)?,
            Law::Threads => self.threads()?,
            Law::Place => self.places()?,
            Law::RowLength => self.row_lengths()?,
            Law::Split => self.calls()?,
            Law::OtherRows => self.other_rows()?,
            Law::Future => self.future()?,
            Law::AfterTraining => self.after_training()?,
            Law::Names => self.names()?,
            Law::Live => self.live()?,
            Law::Scoring => self.scoring()?,
            Law::OwnState => self.own_state()?,
            Law::Unseen => self.unseen(),
        }
        self.show_smallest();
        self.report.took(started.elapsed());
        let done = LawReport::new(law);
        self.reports.push(std::mem::replace(&mut self.report, done));
        Ok(())
    }

    /// Compares one score.
    fn expect(&mut self, (step, call, row, place): (usize, usize, usize, usize), found: f64) {
        let ask = &self.probes.asked[step].calls[call].ask;
        let expected = self.scores[step][call][ask.span(row).start + place];
        self.report.compared += 1;
        if expected.to_bits() == found.to_bits() {
            return;
        }
        let (call_scores, change) = (&self.scores[step][call], (found - expected).abs());
        let row_scores = &call_scores[ask.span(row)];
        self.report.changed_by(Tolerance::share(change, row_scores, call_scores));
        let tolerance = self.submission.tolerance;
        if tolerance != Tolerance::EXACT && change <= tolerance.allows(row_scores, call_scores) {
            self.report.rounded += 1;
            return;
        }
        self.report.changed += 1;
        if self.report.evidence.is_none() {
            let asked = ask.row(row);
            self.first = Some((step, call, row, place));
            self.report.example = Some(Example {
                source: asked.source.0,
                destination: asked.candidates[place].0,
                time: asked.time.value(),
                expected,
                found,
                context: None,
            });
            self.report.evidence = Some(format!(
                "node {} at {} with node {}, candidate {place} of {} in row {row} of {}, step {}: \
                 {expected} became {found}",
                asked.source.0,
                asked.time.value(),
                asked.candidates[place].0,
                asked.candidates.len(),
                ask.len(),
                self.probes.asked[step].step,
            ));
        }
    }

    /// Keeps the call that showed the first breach, if it is this one.
    fn keep_call(&mut self, ask: &Queries) {
        if self.first.is_some() && self.asked.is_none() {
            self.asked = Some(ask.clone());
        }
    }

    /// Finds the smallest call that shows the first breach of a law about calls.
    fn show_smallest(&mut self) {
        let (Some((step, call, row, place)), Some(other)) = (self.first.take(), self.asked.take())
        else {
            return;
        };
        let Some(example) = &mut self.report.example else { return };
        let made = &self.probes.asked[step].calls[call];
        let question = made.ask.row(row);
        let candidate = question.candidates[place];
        let scores = &self.scores[step][call];
        let allowed = self.submission.tolerance.allows(&scores[made.ask.span(row)], scores);
        let (session, past) = (&self.sessions[step], self.log.past(made.horizon));
        let score = |ask: &Queries| Some(session.score(past, ask).ok()?.values().to_vec());
        let in_other = other.rows().enumerate().find_map(|(row, asked)| {
            let same = asked.source == question.source && asked.time == question.time;
            let place = asked.candidates.iter().position(|&node| node == candidate)?;
            same.then_some((row, place))
        });
        example.context = in_other
            .and_then(|at| smallest_context(&other, at, allowed, &score))
            .or_else(|| smallest_context(&made.ask, (row, place), allowed, &score));
    }

    /// Compares the scores of a row.
    fn expect_row(&mut self, (step, call, row): (usize, usize, usize), found: &[f64]) {
        for (place, &found) in found.iter().enumerate() {
            self.expect((step, call, row, place), found);
        }
    }

    fn compare_pass(&mut self, opened: &Open<'_>) -> Result<()> {
        let session = open(opened, self.log, self.probes)?;
        self.expect_pass(&pass(session, self.log, self.probes)?);
        Ok(())
    }

    /// Compares all scores of a pass.
    fn expect_pass(&mut self, found: &[StepScores]) {
        for (step, found) in found.iter().enumerate() {
            for (call, found) in found.iter().enumerate() {
                self.expect_call((step, call), found);
            }
        }
    }

    /// The state, too, is made anew under each number of threads.
    fn threads(&mut self) -> Result<()> {
        for threads in [1, 3] {
            let pool = rayon::ThreadPoolBuilder::new()
                .num_threads(threads)
                .build()
                .expect("a small pool of threads");
            let (log, probes) = (self.log, self.probes);
            // The models of a submission may not be sent to other threads, sessions may.
            let session = open(self.submission.open, log, probes)?;
            let found = pool.install(|| pass(session, log, probes))?;
            self.expect_pass(&found);
        }
        Ok(())
    }

    /// Asks each call's rows with their candidates in another order.
    fn places(&mut self) -> Result<()> {
        self.each_call(|this, at, call| {
            let (mut ask, mut orders) = (Queries::new(), Vec::new());
            for row in call.ask.rows() {
                let order = shuffled(row.candidates.len(), &mut this.draw);
                ask.push(row.source, row.time, order.iter().map(|&place| row.candidates[place]));
                orders.push(order);
            }
            let found = this.score(at.0, &ask, call.horizon)?;
            for (row, order) in orders.iter().enumerate() {
                let found = &found[ask.span(row)];
                for (&place, &found) in order.iter().zip(found) {
                    this.expect((at.0, at.1, row, place), found);
                }
            }
            this.keep_call(&ask);
            Ok(())
        })
    }

    /// Asks short rows with further candidates, and long ones in pieces.
    fn row_lengths(&mut self) -> Result<()> {
        let nodes = self.log.events().node_bound() as u64;
        self.each_call(|this, at, call| {
            let (mut ask, mut whose) = (Queries::new(), Vec::new());
            for (row, asked) in call.ask.rows().enumerate() {
                let mut rest = 0..asked.candidates.len();
                while !rest.is_empty() {
                    let piece = [1, 2, 3, 11][this.draw.below(4) as usize].min(rest.len());
                    let piece = rest.start..rest.start + piece;
                    rest.start = piece.end;
                    let further = [0, 1, 8, 20][this.draw.below(4) as usize];
                    let mut candidates = asked.candidates[piece.clone()].to_vec();
                    let same = candidates.len() == asked.candidates.len();
                    for _ in 0..further.max(usize::from(same)) {
                        candidates.push(NodeId(this.draw.below(nodes) as u32));
                    }
                    ask.push(asked.source, asked.time, candidates);
                    whose.push((row, piece));
                }
            }
            let found = this.score(at.0, &ask, call.horizon)?;
            for (made, (row, piece)) in whose.into_iter().enumerate() {
                for (place, &found) in piece.zip(&found[ask.span(made)]) {
                    this.expect((at.0, at.1, row, place), found);
                }
            }
            this.keep_call(&ask);
            Ok(())
        })
    }

    /// Asks the rows of each call in another order, in calls of one, a few and many.
    fn calls(&mut self) -> Result<()> {
        self.each_call(|this, at, call| {
            let order = shuffled(call.ask.len(), &mut this.draw);
            let mut rest = &order[..];
            while !rest.is_empty() {
                let size = [1, 2, 7, 60][this.draw.below(4) as usize].min(rest.len());
                // A call that has just one piece is asked again row by row.
                let size = if size == order.len() { 1 } else { size };
                let (rows, later) = rest.split_at(size);
                rest = later;
                let mut ask = Queries::new();
                for &row in rows {
                    let row = call.ask.row(row);
                    ask.push(row.source, row.time, row.candidates.iter().copied());
                }
                let found = this.score(at.0, &ask, call.horizon)?;
                for (place, &row) in rows.iter().enumerate() {
                    this.expect_row((at.0, at.1, row), &found[ask.span(place)]);
                }
                this.keep_call(&ask);
            }
            Ok(())
        })
    }

    /// Replaces half of a call's rows by others of other lengths, then the other half. A third time
    /// all rows stay, and others come before, between and after them.
    fn other_rows(&mut self) -> Result<()> {
        let nodes = self.log.events().node_bound() as u64;
        self.each_call(|this, at, call| {
            let sides: Vec<bool> = (0..call.ask.len()).map(|_| this.draw.below(2) == 0).collect();
            for round in 0..3 {
                let (mut ask, mut kept) = (Queries::new(), Vec::new());
                for (row, asked) in call.ask.rows().enumerate() {
                    let keeps = round == 2 || sides[row] == (round == 0);
                    if !keeps || round == 2 {
                        let length = asked.candidates.len() as u64;
                        let any = |draw: &mut KeyedRng| NodeId(draw.below(nodes) as u32);
                        let source = any(&mut this.draw);
                        let others = 1 + this.draw.below(length + 1);
                        let others: Vec<NodeId> =
                            (0..others.min(12)).map(|_| any(&mut this.draw)).collect();
                        ask.push(source, asked.time, others);
                    }
                    if keeps {
                        kept.push((row, ask.len()));
                        ask.push(asked.source, asked.time, asked.candidates.iter().copied());
                    }
                }
                let found = this.score(at.0, &ask, call.horizon)?;
                for (row, place) in kept {
                    this.expect_row((at.0, at.1, row), &found[ask.span(place)]);
                }
                this.keep_call(&ask);
            }
            Ok(())
        })
    }

    /// Replaces all events from a step on, with a state made anew; then, for some rows of the step,
    /// all events from the row's own time on.
    fn future(&mut self) -> Result<()> {
        for step in 0..self.probes.asked.len() {
            let asked = &self.probes.asked[step];
            let dropped = self.draw.below(2) == 0;
            let world = altered_from(self.log, asked.numbers.start, dropped, &mut self.draw);
            let session = open(self.submission.open, &world, self.probes)?;
            let session = observed(session, &world, &self.probes.steps[..asked.step])?;
            let call = asked.calls.len() - 1;
            let found =
                session.score(world.past(asked.numbers.start), &asked.before_the_step().ask)?;
            self.expect_call((step, call), found.values());

            let rows = asked.calls[0].ask.len();
            for turn in 0..FUTURES.min(rows) {
                // Rows near the start, the middle and the end of the step.
                let row = (turn * rows / FUTURES) + self.draw.below(1 + rows as u64 / 4) as usize;
                let row = row.min(rows - 1);
                let time = asked.calls[0].ask.row(row).time;
                let from = self.log.first_at(time).max(asked.numbers.start);
                let world = altered_from(self.log, from, turn == 2, &mut self.draw);
                let horizon = asked.numbers.end.min(world.len() as u32);
                for (call, made) in asked.calls.iter().enumerate() {
                    if made.horizon == asked.numbers.start {
                        continue;
                    }
                    let found = self.sessions[step].score(world.past(horizon), &made.ask)?;
                    for row in 0..made.ask.len() {
                        if made.ask.row(row).time <= time {
                            let span = made.ask.span(row);
                            self.expect_row((step, call, row), &found.values()[span]);
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Learns from the stream, and from one that differs in everything after training.
    fn after_training(&mut self) -> Result<()> {
        let places = 0..self.probes.asked.len();
        let Some(step) = places
            .into_iter()
            .find(|&at| self.probes.asked[at].numbers.start == self.probes.training)
        else {
            return Ok(());
        };
        let asked = &self.probes.asked[step];
        let call = asked.calls.len() - 1;
        let mut worlds = vec![self.log.clone()];
        for dropped in [false, true] {
            worlds.push(altered_from(self.log, self.probes.training, dropped, &mut self.draw));
        }
        let mut found = Vec::new();
        for world in &worlds {
            let session = open(self.submission.learn, world, self.probes)?;
            let session = observed(session, world, &self.probes.steps[..asked.step])?;
            let scores =
                session.score(world.past(asked.numbers.start), &asked.before_the_step().ask)?;
            found.push(scores.values().to_vec());
        }
        // What is learned here need not be what the first pass had learned.
        let kept = std::mem::replace(&mut self.scores[step][call], found.remove(0));
        found.iter().for_each(|found| self.expect_call((step, call), found));
        self.scores[step][call] = kept;
        Ok(())
    }

    /// Gives every node another number, in the stream and in the questions.
    fn names(&mut self) -> Result<()> {
        let renaming = Renaming::new(self.log, &mut self.draw);
        let world = renaming.apply(self.log);
        let session = open(self.submission.open, &world, self.probes)?;
        let mut found = Vec::new();
        walk(session, &world, self.probes, &mut |session, asked| {
            let mut of_step = Vec::new();
            for call in &asked.calls {
                let mut ask = Queries::new();
                for row in call.ask.rows() {
                    let candidates = row.candidates.iter().map(|&node| renaming.of(node));
                    ask.push(renaming.of(row.source), row.time, candidates);
                }
                of_step.push(session.score(world.past(call.horizon), &ask)?.values().to_vec());
            }
            found.push(of_step);
            Ok(())
        })?;
        self.expect_pass(&found);
        Ok(())
    }

    /// A model opened anew gets each event when it happens and each question alone, on a log that
    /// holds nothing else.
    fn live(&mut self) -> Result<()> {
        let empty = EventLog::new(Events::empty(self.log.events().features().width()))
            .with_node_features(self.log.node_features().clone());
        let session = open(self.submission.open, self.log, self.probes)?;
        let mut live = Live::resume(empty, session);
        let (log, probes) = (self.log, self.probes);
        let mut next = 0;
        for (number, step) in probes.steps.iter().enumerate() {
            if let Some(place) = probes.asked.iter().position(|asked| asked.step == number) {
                next = self.ask_live(&mut live, place, step.start)?;
            }
            push_all(&mut live, log, next..step.end)?;
            next = step.end;
            live.observe()?;
            if probes.asked.last().is_some_and(|asked| asked.step == number) {
                break;
            }
        }
        Ok(())
    }

    /// Asks a step's questions in the order of their times; tells the first event not pushed yet.
    fn ask_live(&mut self, live: &mut Live, step: usize, start: u32) -> Result<u32> {
        let asked = &self.probes.asked[step];
        let mut questions = Vec::new();
        for (call, made) in asked.calls.iter().enumerate() {
            let sees_step = made.horizon > start;
            for row in 0..made.ask.len() {
                let time = made.ask.row(row).time;
                let until = if sees_step { self.log.first_at(time).max(start) } else { start };
                questions.push((until, call, row));
            }
        }
        questions.sort_unstable();
        let mut next = start;
        for (until, call, row) in questions {
            push_all(live, self.log, next..until.max(next))?;
            next = next.max(until);
            let row_asked = asked.calls[call].ask.row(row);
            let mut one = Queries::new();
            one.push(row_asked.source, row_asked.time, row_asked.candidates.iter().copied());
            let found = live.score(&one)?.values().to_vec();
            self.expect_row((step, call, row), &found);
        }
        Ok(next)
    }

    /// A session that scores in every step, true events and others, ends as one that does not.
    fn scoring(&mut self) -> Result<()> {
        let (log, probes) = (self.log, self.probes);
        let mut session = open(self.submission.open, log, probes)?;
        for (number, step) in probes.steps.iter().enumerate() {
            if let Some(place) = probes.asked.iter().position(|asked| asked.step == number) {
                // The same events against other candidates, and then the questions, twice.
                for call in &probes.asked[place].calls {
                    let mut ask = Queries::new();
                    for row in call.ask.rows() {
                        ask.push(row.source, row.time, [row.candidates[0], row.source]);
                    }
                    session.score(log.past(call.horizon), &ask)?;
                }
                for _ in 0..2 {
                    let found = score_all(session.as_ref(), log, &probes.asked[place])?;
                    for (call, found) in found.iter().enumerate() {
                        self.expect_call((place, call), found);
                    }
                }
            } else {
                let mut ask = Queries::new();
                for event in events_of(log, step.clone()).iter().take(SCORED_ALONG) {
                    ask.push(event.source, event.time, [event.destination, NodeId(0)]);
                }
                session.score(log.past(step.end), &ask)?;
            }
            session.observe(log.revealed(step.end), &events_of(log, step.clone()))?;
        }
        Ok(())
    }

    /// Asks the sessions of the first pass again, the last one first. By now their siblings have
    /// observed the whole stream, and thousands of other questions were asked.
    fn own_state(&mut self) -> Result<()> {
        for step in (0..self.probes.asked.len()).rev() {
            let asked = &self.probes.asked[step];
            for (call, made) in asked.calls.iter().enumerate().rev() {
                let found = self.score(step, &made.ask, made.horizon)?;
                self.expect_call((step, call), &found);
            }
        }
        Ok(())
    }

    fn unseen(&mut self) {
        let stranger = NodeId(self.log.events().node_bound() as u32 + 1000);
        for (step, session) in self.sessions.iter().enumerate() {
            let asked = &self.probes.asked[step];
            let row = asked.calls[0].ask.row(0);
            let later = Time::new(row.time.value() + 1.0).expect("finite");
            let mut ask = Queries::new();
            ask.push(stranger, later, [row.source, stranger]);
            ask.push(row.source, later, [stranger]);
            self.report.compared += 3;
            if let Err(error) = session.score(self.log.past(asked.numbers.end), &ask) {
                self.report.changed += 1;
                self.report.evidence.get_or_insert(error.to_string());
            }
        }
    }

    /// Compares all scores of a call.
    fn expect_call(&mut self, (step, call): (usize, usize), found: &[f64]) {
        for row in 0..self.probes.asked[step].calls[call].ask.len() {
            let span = self.probes.asked[step].calls[call].ask.span(row);
            self.expect_row((step, call, row), &found[span]);
        }
    }

    /// Does something with every call of every step.
    fn each_call(
        &mut self,
        mut f: impl FnMut(&mut Self, (usize, usize), &Call) -> Result<()>,
    ) -> Result<()> {
        let probes = self.probes;
        for (step, asked) in probes.asked.iter().enumerate() {
            for (call, made) in asked.calls.iter().enumerate() {
                f(self, (step, call), made)?;
            }
        }
        Ok(())
    }

    /// Scores of other questions by the session of the first pass as it was at a step.
    fn score(&self, step: usize, ask: &Queries, horizon: u32) -> Result<Vec<f64>> {
        Ok(self.sessions[step].score(self.log.past(horizon), ask)?.values().to_vec())
    }
}

fn open(opened: &Open<'_>, log: &EventLog, probes: &Probes) -> Result<Box<dyn Session>> {
    opened(&Opening { log, training: probes.training, info: &probes.info })
}

/// The scores of a pass over the stream.
fn pass(session: Box<dyn Session>, log: &EventLog, probes: &Probes) -> Result<Vec<StepScores>> {
    let mut found = Vec::new();
    walk(session, log, probes, &mut |session, asked| {
        found.push(score_all(session, log, asked)?);
        Ok(())
    })?;
    Ok(found)
}

/// Leads a session through the stream; `visit` gets it before it observes a step that is asked
/// about.
fn walk(
    mut session: Box<dyn Session>,
    log: &EventLog,
    probes: &Probes,
    visit: &mut dyn FnMut(&dyn Session, &ProbedStep) -> Result<()>,
) -> Result<Box<dyn Session>> {
    let mut asked = probes.asked.iter().peekable();
    for (number, step) in probes.steps.iter().enumerate() {
        if let Some(here) = asked.next_if(|asked| asked.step == number) {
            visit(session.as_ref(), here)?;
        }
        session.observe(log.revealed(step.end), &events_of(log, step.clone()))?;
    }
    Ok(session)
}

/// A session that has observed some steps.
fn observed(
    mut session: Box<dyn Session>,
    log: &EventLog,
    steps: &[Range<u32>],
) -> Result<Box<dyn Session>> {
    for step in steps {
        session.observe(log.revealed(step.end), &events_of(log, step.clone()))?;
    }
    Ok(session)
}

fn score_all(session: &dyn Session, log: &EventLog, asked: &ProbedStep) -> Result<StepScores> {
    let score =
        |call: &Call| Ok(session.score(log.past(call.horizon), &call.ask)?.values().to_vec());
    asked.calls.iter().map(score).collect()
}

fn push_all(live: &mut Live, log: &EventLog, numbers: Range<u32>) -> Result<()> {
    for event in events_of(log, numbers) {
        let features = log.events().features().row(event.number as usize);
        live.push(event.source, event.destination, event.time, features)?;
    }
    Ok(())
}

fn events_of(log: &EventLog, numbers: Range<u32>) -> Vec<Event> {
    numbers.map(|number| log.events().at(number as usize)).collect()
}

/// The places 0 to `count`, in a random order.
fn shuffled(count: usize, draw: &mut KeyedRng) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    draw.shuffle(&mut order);
    order
}
