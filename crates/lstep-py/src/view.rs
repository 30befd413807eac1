//! What a Python model sees: the past, questions and events, as arrays.
//!
//! A [`Past`] is open only while the model is called. It answers for nodes at times, like the
//! library's own, and refuses times after the latest that the call asks about.

use lstep::event::{Event, NodeId, Time};
use lstep::graph::{EventLog, Neighbour, Past as View, Seed};
use lstep::query::Queries as Asked;
use numpy::ndarray::{Array1, Array2, Array3};
use numpy::{IntoPyArray, PyArray1, PyArray2, PyArray3, PyArrayMethods, PyReadonlyArray1};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use std::sync::{Arc, Mutex};

/// What stands where there is no neighbour.
const NOBODY: i64 = -1;

/// The graph before a horizon.
#[pyclass(frozen, module = "lstep._core")]
pub struct Past {
    source: Source,
    /// The latest time that may be asked about.
    latest: f64,
}

enum Source {
    /// A view that lives as long as the call; then it is taken away.
    Lent(Mutex<Option<View<'static>>>),
    /// A log of its own, all of which may be seen.
    Owned(Arc<EventLog>),
}

/// Takes a lent view back when the call ends, however it ends.
pub struct Lent<'view, 'py> {
    pub past: Bound<'py, Past>,
    _view: std::marker::PhantomData<&'view ()>,
}

impl<'view, 'py> Lent<'view, 'py> {
    /// Lends a view to Python. Questions may be asked about times up to `latest`.
    pub fn new(py: Python<'py>, view: View<'view>, latest: f64) -> PyResult<Lent<'view, 'py>> {
        // SAFETY: the view is reached only through the mutex, while it is there, and `drop` takes
        // it out before `'view` ends: the lock makes a reader in another thread finish first.
        // The guard is never leaked, because it is made and dropped in this crate.
        let view: View<'static> =
            unsafe { std::mem::transmute::<View<'view>, View<'static>>(view) };
        let past = Past { source: Source::Lent(Mutex::new(Some(view))), latest };
        Ok(Lent { past: Bound::new(py, past)?, _view: std::marker::PhantomData })
    }
}

impl Drop for Lent<'_, '_> {
    fn drop(&mut self) {
        if let Source::Lent(view) = &self.past.get().source {
            match view.lock() {
                Ok(mut view) => *view = None,
                Err(poisoned) => *poisoned.into_inner() = None,
            }
        }
    }
}

impl Past {
    /// A past that owns its log, all of whose events are known.
    pub fn owned(log: Arc<EventLog>) -> Past {
        Past { source: Source::Owned(log), latest: f64::INFINITY }
    }

    /// Reads from the view. Nothing of Python is called meanwhile, so no other thread can wait for
    /// the interpreter while this one holds the view.
    fn read<T>(&self, read: impl FnOnce(View<'_>) -> T) -> PyResult<T> {
        match &self.source {
            Source::Owned(log) => Ok(read(log.past(log.len() as u32))),
            Source::Lent(view) => {
                let view = view.lock().map_err(|_| PyRuntimeError::new_err("a reader failed"))?;
                let view = view.as_ref().ok_or_else(|| {
                    PyRuntimeError::new_err(
                        "this past is closed: it can be asked only while the model is called; \
                         keep arrays, not the past",
                    )
                })?;
                Ok(read(*view))
            }
        }
    }

    fn seeds(
        &self,
        nodes: &PyReadonlyArray1<'_, i64>,
        times: &PyReadonlyArray1<'_, f64>,
    ) -> PyResult<Vec<Seed>> {
        let (nodes, times) = (nodes.as_array(), times.as_array());
        if nodes.len() != times.len() {
            return Err(PyValueError::new_err(format!(
                "nodes and times have different lengths: {} and {}",
                nodes.len(),
                times.len()
            )));
        }
        let mut asked = Asked::new();
        for (&node, &time) in nodes.iter().zip(times.iter()) {
            let known = Time::new(time).filter(|time| time.value() <= self.latest);
            let Some(time) = known else {
                return Err(PyValueError::new_err(format!(
                    "the past is asked about time {time}, but the latest question of this call is \
                     at {}: ask about times up to that",
                    self.latest
                )));
            };
            // Nobody has number 2^32 - 1, so whoever is no node has no history.
            let node = u32::try_from(node).unwrap_or(u32::MAX);
            asked.push(NodeId(node), time, []);
        }
        Ok(asked.rows().map(|row| row.seed()).collect())
    }
}

#[pymethods]
impl Past {
    /// The number of the first event that cannot be seen.
    #[getter]
    fn horizon(&self) -> PyResult<u32> {
        self.read(|view| view.horizon())
    }

    /// The `k` newest neighbours of nodes strictly before times: their numbers, times and events,
    /// each an array with a row of `k`, the newest last, -1 where there is none.
    #[pyo3(signature = (nodes, times, k))]
    #[expect(clippy::type_complexity, reason = "three tables")]
    fn recent<'py>(
        &self,
        py: Python<'py>,
        nodes: PyReadonlyArray1<'py, i64>,
        times: PyReadonlyArray1<'py, f64>,
        k: usize,
    ) -> PyResult<(Bound<'py, PyArray2<i64>>, Bound<'py, PyArray2<f64>>, Bound<'py, PyArray2<i64>>)>
    {
        let seeds = self.seeds(&nodes, &times)?;
        let shape = (seeds.len(), k);
        let mut found = (
            Array2::from_elem(shape, NOBODY),
            Array2::from_elem(shape, 0.0),
            Array2::from_elem(shape, NOBODY),
        );
        self.read(|view| {
            for (row, seed) in seeds.iter().enumerate() {
                let recent = view.recent(*seed, k);
                for (place, neighbour) in (k - recent.len()..).zip(recent) {
                    found.0[[row, place]] = i64::from(neighbour.node().0);
                    found.1[[row, place]] = neighbour.time().value();
                    found.2[[row, place]] = i64::from(neighbour.event());
                }
            }
        })?;
        Ok((found.0.into_pyarray(py), found.1.into_pyarray(py), found.2.into_pyarray(py)))
    }

    /// The features of the events that [`Past::recent`] gives for the same arguments: rows, `k`
    /// places, features; zeros where there is no neighbour.
    fn recent_features<'py>(
        &self,
        py: Python<'py>,
        nodes: PyReadonlyArray1<'py, i64>,
        times: PyReadonlyArray1<'py, f64>,
        k: usize,
    ) -> PyResult<Bound<'py, PyArray3<f32>>> {
        let seeds = self.seeds(&nodes, &times)?;
        let found = self.read(|view| {
            let mut found = Array3::zeros((seeds.len(), k, view.event_feature_width()));
            for (row, seed) in seeds.iter().enumerate() {
                let recent = view.recent(*seed, k);
                for (place, neighbour) in (k - recent.len()..).zip(recent) {
                    for (column, value) in view.event_features(neighbour).iter().enumerate() {
                        found[[row, place, column]] = *value;
                    }
                }
            }
            found
        })?;
        Ok(found.into_pyarray(py))
    }

    /// In how many events nodes take part strictly before times.
    fn degree<'py>(
        &self,
        py: Python<'py>,
        nodes: PyReadonlyArray1<'py, i64>,
        times: PyReadonlyArray1<'py, f64>,
    ) -> PyResult<Bound<'py, PyArray1<i64>>> {
        let seeds = self.seeds(&nodes, &times)?;
        let count = |view: View<'_>| -> Array1<i64> {
            seeds.iter().map(|seed| view.history(*seed).len() as i64).collect()
        };
        Ok(self.read(count)?.into_pyarray(py))
    }

    /// How often two nodes have met strictly before times, in either direction, and when last: the
    /// second array has minus infinity where they have not.
    #[expect(clippy::type_complexity, reason = "two columns")]
    fn met<'py>(
        &self,
        py: Python<'py>,
        sources: PyReadonlyArray1<'py, i64>,
        destinations: PyReadonlyArray1<'py, i64>,
        times: PyReadonlyArray1<'py, f64>,
    ) -> PyResult<(Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<f64>>)> {
        let from = self.seeds(&sources, &times)?;
        let to = self.seeds(&destinations, &times)?;
        let meetings = |view: View<'_>| -> (Vec<i64>, Vec<f64>) {
            let pair = |(from, to): (&Seed, &Seed)| {
                let (mine, theirs) = (view.history(*from), view.history(*to));
                // The shorter history knows of every meeting, too.
                let (seen, other): (&[Neighbour], NodeId) = if mine.len() <= theirs.len() {
                    (mine, to.node())
                } else {
                    (theirs, from.node())
                };
                let meetings = || seen.iter().filter(|neighbour| neighbour.node() == other);
                let last =
                    meetings().next_back().map_or(f64::NEG_INFINITY, |one| one.time().value());
                (meetings().count() as i64, last)
            };
            from.iter().zip(&to).map(pair).unzip()
        };
        let (counts, last) = self.read(meetings)?;
        Ok((counts.into_pyarray(py), last.into_pyarray(py)))
    }

    /// The features of nodes; zeros for a node without any.
    fn node_features<'py>(
        &self,
        py: Python<'py>,
        nodes: PyReadonlyArray1<'py, i64>,
    ) -> PyResult<Bound<'py, PyArray2<f32>>> {
        let nodes = nodes.as_array();
        let found = self.read(|view| {
            let mut found = Array2::zeros((nodes.len(), view.node_feature_width()));
            for (row, &node) in nodes.iter().enumerate() {
                let features =
                    u32::try_from(node).map_or(&[][..], |node| view.node_features(NodeId(node)));
                for (column, value) in features.iter().enumerate() {
                    found[[row, column]] = *value;
                }
            }
            found
        })?;
        Ok(found.into_pyarray(py))
    }

    fn __repr__(&self) -> String {
        match self.read(|view| view.horizon()) {
            Ok(horizon) => format!("Past(horizon={horizon})"),
            Err(_) => "Past(closed)".into(),
        }
    }
}

/// Rows of a source at a time against candidates. There are no labels.
#[pyclass(frozen, get_all, module = "lstep._core")]
pub struct Queries {
    /// Who would act, a number for each row.
    sources: Py<PyArray1<i64>>,
    /// When, for each row.
    times: Py<PyArray1<f64>>,
    /// With whom, row after row.
    candidates: Py<PyArray1<i64>>,
    /// Where each row begins among the candidates, and where the last one ends.
    offsets: Py<PyArray1<i64>>,
}

impl Queries {
    pub fn new(py: Python<'_>, ask: &Asked) -> PyResult<Queries> {
        let (mut sources, mut times) =
            (Vec::with_capacity(ask.len()), Vec::with_capacity(ask.len()));
        let mut candidates = Vec::with_capacity(ask.pairs());
        let mut offsets = Vec::with_capacity(ask.len() + 1);
        offsets.push(0);
        for row in ask.rows() {
            sources.push(i64::from(row.source.0));
            times.push(row.time.value());
            candidates.extend(row.candidates.iter().map(|node| i64::from(node.0)));
            offsets.push(candidates.len() as i64);
        }
        Ok(Queries {
            sources: sources.into_pyarray(py).unbind(),
            times: times.into_pyarray(py).unbind(),
            candidates: candidates.into_pyarray(py).unbind(),
            offsets: offsets.into_pyarray(py).unbind(),
        })
    }
}

#[pymethods]
impl Queries {
    /// How many rows.
    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        self.sources.bind(py).len()
    }

    /// A source, a candidate and a time for each score that is wanted.
    #[expect(clippy::type_complexity, reason = "three columns")]
    fn pairs<'py>(
        &self,
        py: Python<'py>,
    ) -> (Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<f64>>) {
        let (sources, times) = (self.sources.bind(py).readonly(), self.times.bind(py).readonly());
        let offsets = self.offsets.bind(py).readonly();
        let (mut long_sources, mut long_times) = (Vec::new(), Vec::new());
        let rows = sources.as_array().len();
        for row in 0..rows {
            let count = (offsets.as_array()[row + 1] - offsets.as_array()[row]) as usize;
            long_sources.extend(std::iter::repeat_n(sources.as_array()[row], count));
            long_times.extend(std::iter::repeat_n(times.as_array()[row], count));
        }
        (
            long_sources.into_pyarray(py),
            self.candidates.bind(py).clone(),
            long_times.into_pyarray(py),
        )
    }
}

/// Events in columns.
#[pyclass(frozen, get_all, module = "lstep._core")]
pub struct Events {
    /// Who acts.
    sources: Py<PyArray1<i64>>,
    /// With whom.
    destinations: Py<PyArray1<i64>>,
    /// When.
    times: Py<PyArray1<f64>>,
    /// Their numbers in the stream.
    numbers: Py<PyArray1<i64>>,
    /// A row of features for each; no columns where there are none.
    features: Py<PyArray2<f32>>,
    /// The graph with these events in it; absent where all of a stream is given.
    past: Option<Py<Past>>,
}

impl Events {
    pub fn new<'a>(
        py: Python<'_>,
        events: &[Event],
        features: impl Fn(&Event) -> &'a [f32],
        width: usize,
        past: Option<Py<Past>>,
    ) -> PyResult<Events> {
        let column = |value: &dyn Fn(&Event) -> u32| -> Vec<i64> {
            events.iter().map(|event| i64::from(value(event))).collect()
        };
        let mut table = Array2::zeros((events.len(), width));
        for (row, event) in events.iter().enumerate() {
            for (column, value) in features(event).iter().enumerate() {
                table[[row, column]] = *value;
            }
        }
        let times: Vec<f64> = events.iter().map(|event| event.time.value()).collect();
        Ok(Events {
            sources: column(&|event| event.source.0).into_pyarray(py).unbind(),
            destinations: column(&|event| event.destination.0).into_pyarray(py).unbind(),
            times: times.into_pyarray(py).unbind(),
            numbers: column(&|event| event.number).into_pyarray(py).unbind(),
            features: table.into_pyarray(py).unbind(),
            past,
        })
    }

    /// All events of a log.
    pub fn of_log(py: Python<'_>, log: &EventLog) -> PyResult<Events> {
        let events: Vec<Event> = log.events().iter().collect();
        let table = log.events().features();
        let row = |event: &Event| table.row(event.number as usize);
        Events::new(py, &events, row, table.width(), None)
    }
}

#[pymethods]
impl Events {
    /// How many events.
    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        self.sources.bind(py).len()
    }
}
