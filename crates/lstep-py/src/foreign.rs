//! A Python object as a session of the library.
//!
//! It scores questions and observes events like any other model, so that evaluation and laws need
//! not know it. What it raises is kept and ends the work. `lstep._foreign` makes, copies and saves
//! the objects.

use crate::error::Raised;
use crate::train::Batches;
use crate::view::{Events, Lent, Queries};
use lstep::event::Event;
use lstep::graph::{EventLog, Past, Revealed};
use lstep::model::{Pace, Session};
use lstep::protocol::{Split, StepRule, Visibility};
use lstep::query::{Queries as Asked, Scores};
use lstep::rng::KeyedRng;
use lstep::settings::TrainConfig;
use lstep::training::TrainingStream;
use lstep::{Error, Result};
use numpy::PyReadonlyArray1;
use pyo3::prelude::*;
use std::sync::Arc;

/// A Python model, and how sessions of it come to be.
pub struct Foreign {
    /// What the user gave: an object, a class, or a function that makes an object.
    given: Py<PyAny>,
    raised: Raised,
    /// Whether rows and candidates are mixed, so that their order tells nothing. Laws need to see
    /// what a model makes of the order, so for them it stays.
    mixed: bool,
}

/// What a model does beside scoring.
#[derive(FromPyObject)]
pub struct Abilities {
    #[pyo3(item)]
    pub prepare: bool,
    #[pyo3(item)]
    pub train: bool,
    #[pyo3(item)]
    pub save: bool,
}

/// Which events train a model, and how much of them.
#[derive(Clone, Copy)]
pub struct Lesson<'a> {
    pub split: &'a Split,
    pub step: StepRule,
    pub visibility: Visibility,
    pub seed: u64,
    /// About so many events are enough to see what training depends on; all if absent.
    pub events: Option<usize>,
}

impl Foreign {
    pub fn new(given: Py<PyAny>, raised: Raised, mixed: bool) -> Foreign {
        Foreign { given, raised, mixed }
    }

    /// What it can do.
    pub fn abilities(&self) -> Result<Abilities> {
        self.python(|py| {
            let found = helper(py)?.call_method1("abilities", (&self.given,))?;
            found.extract()
        })
    }

    /// A session that has observed nothing. With a lesson, and if it has a hook for it, it has been
    /// trained. It gets the whole stream if it wants to prepare itself.
    pub fn open(&self, log: &EventLog, lesson: Option<Lesson<'_>>) -> Result<Box<dyn Session>> {
        let object =
            self.python(|py| Ok(helper(py)?.call_method1("fresh", (&self.given,))?.unbind()))?;
        self.begin(object, log, lesson)
    }

    /// The same from an object that `open` made before, with what it has learned.
    pub fn open_again(&self, session: &Py<PyAny>, log: &EventLog) -> Result<Box<dyn Session>> {
        let object =
            self.python(|py| Ok(helper(py)?.call_method1("fresh", (session,))?.unbind()))?;
        self.begin(object, log, None)
    }

    /// An object that was saved and loaded again.
    pub fn reopened(&self, object: &Py<PyAny>) -> Result<Py<PyAny>> {
        self.python(|py| Ok(helper(py)?.call_method1("reopened", (&self.given, object))?.unbind()))
    }

    /// An object as `open` would give it to a session.
    pub fn object(&self, log: &EventLog, lesson: Option<Lesson<'_>>) -> Result<Py<PyAny>> {
        let object =
            self.python(|py| Ok(helper(py)?.call_method1("fresh", (&self.given,))?.unbind()))?;
        self.prepare_and_train(&object, log, lesson)?;
        Ok(object)
    }

    fn begin(
        &self,
        object: Py<PyAny>,
        log: &EventLog,
        lesson: Option<Lesson<'_>>,
    ) -> Result<Box<dyn Session>> {
        self.prepare_and_train(&object, log, lesson)?;
        Ok(Box::new(ForeignSession {
            object: Some(object),
            raised: self.raised.clone(),
            mixed: self.mixed,
        }))
    }

    fn prepare_and_train(
        &self,
        object: &Py<PyAny>,
        log: &EventLog,
        lesson: Option<Lesson<'_>>,
    ) -> Result<()> {
        let abilities = self.abilities()?;
        if abilities.prepare {
            self.python(|py| {
                let all = Events::of_log(py, log)?;
                object.call_method1(py, "prepare", (all,)).map(drop)
            })?;
        }
        let Some(lesson) = lesson.filter(|_| abilities.train) else { return Ok(()) };
        let config = TrainConfig { seed: lesson.seed, ..TrainConfig::default() };
        let training =
            TrainingStream::new(log, lesson.split, lesson.step, lesson.visibility, &config)?;
        let batches = Batches::new(Arc::new(training), lesson.events);
        self.python(|py| {
            let past = batches.past();
            object.call_method1(py, "train", (past, batches))?;
            helper(py)?.call_method1("reset", (object,)).map(drop)
        })
    }

    fn python<T>(&self, call: impl FnOnce(Python<'_>) -> PyResult<T>) -> Result<T> {
        Python::attach(|py| call(py).map_err(|raised| self.raised.keep(py, raised)))
    }
}

struct ForeignSession {
    /// Absent if it could not be copied, of which `raised` tells.
    object: Option<Py<PyAny>>,
    raised: Raised,
    mixed: bool,
}

impl Session for ForeignSession {
    fn pace(&self) -> Pace {
        Pace::Step
    }

    fn score(&self, past: Past<'_>, ask: &Asked) -> Result<Scores> {
        if !self.mixed {
            return Scores::new(ask, self.asked(past, ask)?);
        }
        let mixed = Mixed::new(ask, past.horizon());
        let scores = self.asked(past, &mixed.ask)?;
        // A wrong number of scores is said as it is.
        let scores = Scores::new(&mixed.ask, scores)?;
        Scores::new(ask, mixed.in_order(ask, scores.values()))
    }

    fn observe(&mut self, known: Revealed<'_>, step: &[Event]) -> Result<()> {
        Python::attach(|py| {
            let called = || {
                let lent = Lent::new(py, known.past(), f64::INFINITY)?;
                let width = known.past().event_feature_width();
                let past = Some(lent.past.clone().unbind());
                let features = |event: &Event| known.event_features(event);
                let events = Events::new(py, step, features, width, past)?;
                self.object(py)?.call_method1("observe", (events,)).map(drop)
            };
            called().map_err(|raised| self.raised.keep(py, raised))
        })
    }

    fn fork(&self) -> Box<dyn Session> {
        let copied = Python::attach(|py| {
            let copy = self
                .object(py)
                .and_then(|object| helper(py)?.call_method1("fork", (object,)))
                .map(Bound::unbind);
            copy.map_err(|raised| self.raised.keep(py, raised)).ok()
        });
        Box::new(ForeignSession { object: copied, raised: self.raised.clone(), mixed: self.mixed })
    }
}

impl ForeignSession {
    fn object<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.object.as_ref().map(|object| object.bind(py).clone()).ok_or_else(|| {
            pyo3::exceptions::PyRuntimeError::new_err("the model could not be copied")
        })
    }

    fn asked(&self, past: Past<'_>, ask: &Asked) -> Result<Vec<f64>> {
        let latest = ask.rows().map(|row| row.time.value()).fold(f64::NEG_INFINITY, f64::max);
        Python::attach(|py| {
            let called = || {
                let lent = Lent::new(py, past, latest)?;
                let queries = Queries::new(py, ask)?;
                let given = self.object(py)?.call_method1("score", (&lent.past, queries))?;
                scores(py, &given)
            };
            called().map_err(|raised| self.raised.keep(py, raised))
        })
    }
}

/// Scores as the library takes them. Arrays of doubles are read as they are.
fn scores(py: Python<'_>, given: &Bound<'_, PyAny>) -> PyResult<Vec<f64>> {
    if let Ok(array) = given.extract::<PyReadonlyArray1<'_, f64>>() {
        return Ok(array.as_array().to_vec());
    }
    let array = helper(py)?.call_method1("as_scores", (given,))?;
    let array: PyReadonlyArray1<'_, f64> = array.extract()?;
    Ok(array.as_array().to_vec())
}

fn helper(py: Python<'_>) -> PyResult<Bound<'_, PyModule>> {
    py.import("lstep._foreign")
}

/// The same questions with their rows, and the candidates of each, in another order.
struct Mixed {
    ask: Asked,
    /// For each row asked, which it was, and which candidate stands at each place.
    rows: Vec<(usize, Vec<usize>)>,
}

impl Mixed {
    fn new(ask: &Asked, horizon: u32) -> Mixed {
        let mut draw = KeyedRng::new(&[0x3143, u64::from(horizon), ask.pairs() as u64]);
        let mut order: Vec<usize> = (0..ask.len()).collect();
        draw.shuffle(&mut order);
        let (mut mixed, mut rows) = (Asked::new(), Vec::with_capacity(order.len()));
        for row in order {
            let asked = ask.row(row);
            let mut places: Vec<usize> = (0..asked.candidates.len()).collect();
            draw.shuffle(&mut places);
            mixed.push(asked.source, asked.time, places.iter().map(|&at| asked.candidates[at]));
            rows.push((row, places));
        }
        Mixed { ask: mixed, rows }
    }

    /// Scores as the first questions ask for them.
    fn in_order(&self, ask: &Asked, scores: &[f64]) -> Vec<f64> {
        let mut found = vec![0.0; scores.len()];
        for (place, (row, places)) in self.rows.iter().enumerate() {
            let start = ask.span(*row).start;
            for (&at, &score) in places.iter().zip(&scores[self.ask.span(place)]) {
                found[start + at] = score;
            }
        }
        found
    }
}

/// An error that says what a model has to have.
pub fn no_model(what: &str) -> Error {
    Error::setting("model", what.to_string(), "give a name, or an object with score and observe")
}
