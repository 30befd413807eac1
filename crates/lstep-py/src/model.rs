//! A trained model in Python's hands.

use crate::error::{Raised, raise};
use crate::protocol::Asked;
use crate::watch::Watch;
use lstep::training::{RunFolder, TrainedRun};
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::Mutex;

/// A trained run. Threads may share it: one works at a time.
#[pyclass(frozen, module = "lstep._core")]
pub struct Model {
    run: Mutex<Option<TrainedRun>>,
}

impl Model {
    pub fn of_run(run: TrainedRun) -> Model {
        Model { run: Mutex::new(Some(run)) }
    }

    fn with_run<T>(
        &self,
        use_it: impl FnOnce(&TrainedRun) -> lstep::Result<T>,
    ) -> lstep::Result<T> {
        let run = self.run.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        use_it(run.as_ref().expect("a model has its run"))
    }
}

#[pymethods]
impl Model {
    /// All settings as TOML.
    fn settings(&self, py: Python<'_>) -> PyResult<String> {
        raise(py, py.detach(|| self.with_run(|run| Ok(run.config().to_toml()))))
    }

    /// Evaluates it under its own protocol, and gives the report as JSON.
    #[pyo3(signature = (asked, baselines, on_progress))]
    fn evaluate(
        &self,
        py: Python<'_>,
        asked: Asked,
        baselines: bool,
        on_progress: Option<Py<PyAny>>,
    ) -> PyResult<String> {
        let raised = Raised::default();
        let mut watch = Watch::new(on_progress, raised.clone());
        let report = py.detach(|| {
            self.with_run(|run| {
                let scope = asked.scope(&run.config().protocol)?;
                if baselines {
                    let all = run.evaluate_with_baselines(&scope, &mut |now| {
                        watch.tell(now.model, now.done, now.of)
                    })?;
                    return Ok(all.report.to_json());
                }
                let name = run.config().model.name().to_string();
                let report =
                    run.evaluate_watching(&scope, &mut |done, of| watch.tell(&name, done, of))?;
                Ok(report.to_json())
            })
        });
        raised.result(py, report)
    }
}

/// Opens the folder of a run.
#[pyfunction]
pub fn load(py: Python<'_>, path: PathBuf) -> PyResult<Model> {
    let opened = py.detach(|| TrainedRun::open(&RunFolder::new(path)));
    Ok(Model::of_run(raise(py, opened)?))
}
