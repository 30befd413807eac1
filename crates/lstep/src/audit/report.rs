//! The laws checked for a trained run on its own events.

use crate::audit::laws::{
    Breach, Check, Findings, LawReport, Opening, Questions, Submission, check_model, questions,
};
use crate::error::{Error, Remedy, Result};
use crate::evaluation::unwatched;
use crate::event::Event;
use crate::graph::EventLog;
use crate::model::Session;
use crate::protocol::{Split, StepRule, Visibility};
use crate::query::Queries;
use crate::results::TiesReport;
use crate::stream::info;
use crate::training::{RunFolder, TrainedRun, TrainingStream};
use serde::Serialize;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// Training that is done again to see what it depends on takes about so many events.
const LEARNING_EVENTS: usize = 1_000;

/// Below this share of tied events nothing hangs on their order.
const FEW_TIES: f64 = 0.05;

/// How long an audit may take, by estimate, before it asks less.
const LONG: Duration = Duration::from_secs(120);

/// How often all laws together ask every question.
const PASSES: f64 = 22.0;

/// How many questions a round has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AuditSize {
    /// As many as fit into about two minutes: full, or light for a slow model.
    #[default]
    Auto,
    /// [`Check::default`].
    Full,
    /// [`Check::light`].
    Light,
}

/// How much an audit asks.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct AuditOptions {
    /// On how many of the first events.
    pub events: usize,
    /// At least so many rounds. Each asks about other steps with other candidates.
    pub rounds: u64,
    /// Further rounds until this much time has passed.
    pub time: Duration,
    /// The seed of the first round; the next round has the next seed.
    pub seed: u64,
    /// How many questions a round has.
    pub size: AuditSize,
}

impl Default for AuditOptions {
    fn default() -> AuditOptions {
        AuditOptions {
            events: 10_000,
            rounds: 1,
            time: Duration::ZERO,
            seed: 0,
            size: AuditSize::Auto,
        }
    }
}

/// What an audit found.
#[derive(Debug, Clone, Serialize)]
pub struct AuditReport {
    /// The model.
    pub model: String,
    /// How many events it was checked on.
    pub events: usize,
    /// Rounds of questions.
    pub rounds: u64,
    /// The seed of the first round.
    pub seed: u64,
    /// How many questions a round had: full or light.
    pub size: AuditSize,
    /// What was asked.
    pub questions: Questions,
    /// How each law fared.
    pub laws: Vec<LawReport>,
    /// The laws that were broken, with evidence.
    pub breaches: Vec<Breach>,
    /// What the order of rows that share a time is worth, where many do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ties: Option<TiesReport>,
}

/// Checks the laws for a trained model on the first events of its own stream. `watch` is called
/// after every round; [`ControlFlow::Break`] ends the audit with the rounds it has.
pub fn audit(
    folder: &RunFolder,
    options: AuditOptions,
    watch: &mut dyn FnMut(u64) -> ControlFlow<()>,
) -> Result<AuditReport> {
    let started = Instant::now();
    let trained = TrainedRun::open(folder)?;
    let all = trained.stream().log.events();
    let log = EventLog::new(all.first(options.events))
        .with_node_features(trained.stream().log.node_features().clone());
    let step = match trained.config().protocol.step() {
        StepRule::Events(events) => events,
        StepRule::DistinctTime => Check::default().step,
    };
    let too_few = |remedy: &'static str| Error::TooFew {
        what: "events",
        found: log.len().to_string(),
        remedy: Remedy::text(remedy),
    };
    if log.len() < 2 * step as usize {
        return Err(too_few("an audit needs at least two steps of events"));
    }
    let visibility = match trained.config().protocol.visibility() {
        Visibility::Strict => Visibility::Strict,
        Visibility::Event | Visibility::Step => Visibility::Event,
    };
    let full = Check { step, seed: options.seed, visibility, ..Check::default() };
    let size = match options.size {
        AuditSize::Auto => fitting_size(&trained, &log, full)?,
        chosen => chosen,
    };
    let check = match size {
        AuditSize::Light => Check { step, seed: options.seed, visibility, ..Check::light() },
        _ => full,
    };
    if questions(&log, check).with_history == 0 && log.len() < all.len() {
        return Err(too_few(
            "nobody asked about has met anybody before, so laws would be kept easily: give more \
             events",
        ));
    }
    let reopened = TrainedRun::open(folder)?;
    let open = |_: &Opening<'_>| trained.before_the_first_event();
    let reopen = |_: &Opening<'_>| reopened.before_the_first_event();
    let learn = |opening: &Opening<'_>| learn(&trained, opening);
    let submission = Submission::new(&open).reopened_by(&reopen).learned_by(&learn);
    let mut findings: Option<Findings> = None;
    let mut rounds = 0;
    while rounds < options.rounds.max(1) || started.elapsed() < options.time {
        let seed = options.seed + rounds;
        let found = check_model(&submission, &log, Check { seed, ..check })?;
        match &mut findings {
            None => findings = Some(found),
            Some(findings) => findings.add(&found),
        }
        rounds += 1;
        if watch(rounds).is_break() {
            break;
        }
    }
    let findings = findings.expect("there was a round");
    let breaches = findings.breaches();
    Ok(AuditReport {
        model: trained.config().model.to_string(),
        events: log.len(),
        rounds,
        seed: options.seed,
        size,
        questions: findings.questions,
        laws: findings.laws,
        breaches,
        ties: trained.ties(FEW_TIES, &mut unwatched)?.pop(),
    })
}

/// Light if all questions of a full round would take longer than an audit should.
fn fitting_size(trained: &TrainedRun, log: &EventLog, full: Check) -> Result<AuditSize> {
    const ROWS: usize = 20;
    let mut session = trained.before_the_first_event()?;
    let events: Vec<Event> = log.events().iter().collect();
    let (known, rest) = events.split_at(events.len() - full.step as usize);
    for step in known.chunks(full.step as usize) {
        session.observe(log.revealed(step[step.len() - 1].number + 1), step)?;
    }
    let mut ask = Queries::new();
    for (event, other) in rest.iter().take(ROWS).zip(rest.iter().rev()) {
        ask.push(event.source, event.time, [event.destination, other.destination]);
    }
    // The first call fills what is kept between calls.
    session.score(log.past(rest[0].number), &ask)?;
    let started = Instant::now();
    session.score(log.past(rest[0].number), &ask)?;
    let pairs = questions(log, full).pairs as f64;
    let estimate = started.elapsed().as_secs_f64() / ask.pairs() as f64 * pairs * PASSES;
    Ok(if estimate > LONG.as_secs_f64() { AuditSize::Light } else { AuditSize::Full })
}

/// Trains the run's model anew on the first batches of a stream's training part, by the library's
/// own training: it gets the whole stream and may take only what trains.
fn learn(trained: &TrainedRun, opening: &Opening<'_>) -> Result<Box<dyn Session>> {
    let config = trained.config();
    let split = Split::at(opening.log.events(), opening.training);
    let (rule, visibility) = (config.protocol.step(), config.protocol.visibility());
    let training = TrainingStream::new(opening.log, &split, rule, visibility, &config.train)?;
    let info = info(opening.log, &split);
    let mut trainer = config.model.trainer(&info, config.train.seed, config.train.optimizer())?;
    let mut events = 0;
    for step in 0..training.steps() {
        training.train_step(trainer.as_mut(), 1, step)?;
        events += training.step_events(step);
        if events >= LEARNING_EVENTS {
            break;
        }
    }
    trainer.reset_state();
    Ok(trainer)
}
