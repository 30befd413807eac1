//! Training: of the library's models as a job, and of Python models by batches.

use crate::error::Raised;
use crate::fork::refuse_child;
use crate::model::Model;
use crate::protocol::Asked;
use crate::stream::Stream;
use crate::view::Past;
use crate::watch::Watch;
use lstep::event::Event;
use lstep::model::registry;
use lstep::training::{TrainEvent, Training, TrainingStream};
use numpy::ndarray::Array2;
use numpy::{IntoPyArray, PyArray1, PyArray2};
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// The training events of a stream in batches, each with negatives. Every iteration is an epoch,
/// with negatives of its own.
#[pyclass(frozen, module = "lstep._core")]
pub struct Batches {
    training: Arc<TrainingStream>,
    steps: usize,
    epochs: AtomicU32,
}

/// One epoch on its way.
#[pyclass(module = "lstep._core")]
pub struct Epoch {
    training: Arc<TrainingStream>,
    epoch: u32,
    steps: std::ops::Range<usize>,
}

/// What a step teaches.
#[pyclass(frozen, get_all, module = "lstep._core")]
pub struct Batch {
    /// Who acts.
    sources: Py<PyArray1<i64>>,
    /// With whom.
    destinations: Py<PyArray1<i64>>,
    /// When.
    times: Py<PyArray1<f64>>,
    /// Their numbers among the training events.
    numbers: Py<PyArray1<i64>>,
    /// A row of features for each.
    features: Py<PyArray2<f32>>,
    /// The source of each event's negative.
    negative_sources: Py<PyArray1<i64>>,
    /// Its destination. The two did not meet then.
    negative_destinations: Py<PyArray1<i64>>,
}

#[pymethods]
impl Batch {
    /// How many events.
    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        self.sources.bind(py).len()
    }
}

impl Batches {
    /// Whole steps, as many as hold so many events.
    pub fn new(training: Arc<TrainingStream>, events: Option<usize>) -> Batches {
        let mut steps = training.steps();
        if let Some(most) = events {
            let mut held = 0;
            steps = (0..steps)
                .find(|&step| {
                    held += training.step_events(step);
                    held >= most
                })
                .map_or(steps, |step| step + 1);
        }
        Batches { training, steps, epochs: AtomicU32::new(0) }
    }

    /// The graph of all training events.
    pub fn past(&self) -> Past {
        Past::owned(Arc::new(self.training.log().clone()))
    }
}

#[pymethods]
impl Batches {
    /// How many batches an epoch has.
    fn __len__(&self) -> usize {
        self.steps
    }

    /// Begins the next epoch.
    fn __iter__(&self) -> Epoch {
        let epoch = self.epochs.fetch_add(1, Ordering::Relaxed) + 1;
        Epoch { training: Arc::clone(&self.training), epoch, steps: 0..self.steps }
    }
}

#[pymethods]
impl Epoch {
    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__(&mut self, py: Python<'_>) -> Option<Batch> {
        let step = self.steps.next()?;
        let (events, negatives) = self.training.batch(self.epoch, step);
        let column = |value: &dyn Fn(&Event) -> u32| {
            let values: Vec<i64> = events.iter().map(|event| i64::from(value(event))).collect();
            values.into_pyarray(py).unbind()
        };
        let table = self.training.log().events().features();
        let mut features = Array2::zeros((events.len(), table.width()));
        for (row, event) in events.iter().enumerate() {
            for (column, value) in table.row(event.number as usize).iter().enumerate() {
                features[[row, column]] = *value;
            }
        }
        let of = |nodes: Vec<i64>| nodes.into_pyarray(py).unbind();
        let times: Vec<f64> = events.iter().map(|event| event.time.value()).collect();
        Some(Batch {
            sources: column(&|event| event.source.0),
            destinations: column(&|event| event.destination.0),
            times: times.into_pyarray(py).unbind(),
            numbers: column(&|event| event.number),
            features: features.into_pyarray(py).unbind(),
            negative_sources: of(negatives.iter().map(|one| i64::from(one.source.0)).collect()),
            negative_destinations: of(negatives
                .iter()
                .map(|one| i64::from(one.destination.0))
                .collect()),
        })
    }
}

/// The names of the models: those that learn, and those that only count.
#[pyfunction]
pub fn models() -> (Vec<String>, Vec<String>) {
    let names = |learns: bool| {
        let kinds = registry::MODELS.iter().filter(|kind| kind.learns() == learns);
        kinds.map(|kind| kind.name().to_string()).collect()
    };
    (names(true), names(false))
}

/// Trains a model of the library. `on_progress` gets a kind of event and its numbers.
#[pyfunction]
#[pyo3(signature = (stream, model, purpose, asked, preset, keys, out, on_progress))]
pub fn train(
    py: Python<'_>,
    stream: &Stream,
    model: Option<&str>,
    purpose: &str,
    asked: Option<Asked>,
    preset: Option<String>,
    keys: Vec<(String, String)>,
    out: Option<PathBuf>,
    on_progress: Option<Py<PyAny>>,
) -> PyResult<Model> {
    refuse_child()?;
    let raised = Raised::default();
    let mut watch = Watch::new(on_progress, raised.clone());
    let inner = Arc::clone(&stream.inner);
    let trained = py.detach(|| {
        let mut training =
            Training::new(inner.as_ref()).purpose(purpose.parse()?).data(stream.data.clone());
        if let Some(model) = model {
            training = training.model(model)?;
        }
        if let Some(preset) = preset {
            training = training.preset(preset);
        }
        if let Some(asked) = &asked {
            let usual = training.config()?.protocol;
            training = training.protocol(asked.protocol_over(usual, &inner.name)?);
        }
        for (path, value) in &keys {
            training = training.set(path, value);
        }
        if let Some(folder) = &out {
            training = training.folder(folder);
        }
        let mut trained = training
            .on_progress(|event| match event {
                TrainEvent::Step { progress, done, of } => {
                    watch.tell(&format!("epoch {}", progress.epoch), done, of)
                }
                TrainEvent::Validation { epoch, done, of } => {
                    watch.tell(&format!("validation {epoch}"), done, of)
                }
                TrainEvent::Epoch(report) => {
                    let report = serde_json::to_string(report).expect("a report is plain data");
                    watch.call(|py, function| {
                        function.call1(py, ("epoch", report, py.None())).map(drop)
                    })
                }
                _ => std::ops::ControlFlow::Continue(()),
            })
            .run()?;
        let tell = &mut |done, of| watch.tell("calibration on validation", done, of);
        trained.keep_calibration(tell)?;
        Ok(trained)
    });
    Ok(Model::of_run(raised.result(py, trained)?))
}
