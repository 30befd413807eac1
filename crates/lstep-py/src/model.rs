//! A trained model in Python's hands: evaluated, asked by names, and following new events.

use crate::columns::HeldColumn;
use crate::error::{Raised, raise};
use crate::evaluate::{Told, told};
use crate::fork::refuse_child;
use crate::protocol::Asked;
use crate::stream::{self, Ids, Stream};
use crate::watch::Watch;
use lstep::Error;
use lstep::evaluation::EvalProgress;
use lstep::event::NodeId;
use lstep::read::{MemoryTable, ReadOptions, read_memory, read_memory_pairs};
use lstep::report::page_of_run;
use lstep::serving::{Bundle, Recommendation, Scorer, TopK};
use lstep::training::{RunFolder, TrainedRun};
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// A trained model. Threads may share it: one works at a time.
#[pyclass(frozen, module = "lstep._core")]
pub struct Model {
    inner: Mutex<Parts>,
}

struct Parts {
    /// The run it is from, with the questions of its protocol; a file has none.
    run: Option<TrainedRun>,
    /// The folder of the run, whose updates have happened since; absent for a stream in memory.
    folder: Option<RunFolder>,
    /// What answers for names, made when it is first needed.
    scorer: Option<Scorer>,
}

impl Parts {
    fn scorer(&mut self) -> lstep::Result<&mut Scorer> {
        if self.scorer.is_none() {
            let run = self.run.as_ref().expect("a model has a run or a scorer");
            self.scorer = Some(Scorer::from(match &self.folder {
                Some(folder) => Bundle::of_run(folder)?,
                None => Bundle::of_open(run)?,
            }));
        }
        Ok(self.scorer.as_mut().expect("it was made above"))
    }

    fn run(&self) -> lstep::Result<&TrainedRun> {
        self.run.as_ref().ok_or_else(|| {
            let remedy = "open the folder of its run, which has the questions of its protocol";
            Error::refused("model", "a file", "it has no test part", remedy)
        })
    }
}

impl Model {
    pub fn of_run(run: TrainedRun) -> Model {
        Model { inner: Mutex::new(Parts { run: Some(run), folder: None, scorer: None }) }
    }

    /// Works on the parts without the interpreter's lock, so that waiting blocks nobody.
    fn work<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut Parts) -> lstep::Result<T> + Send,
    ) -> PyResult<T> {
        refuse_child()?;
        let done = py.detach(|| {
            let mut parts = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
            work(&mut parts)
        });
        raise(py, done)
    }
}

#[pymethods]
impl Model {
    /// All settings as TOML.
    fn settings(&self, py: Python<'_>) -> PyResult<String> {
        self.work(py, |parts| match &parts.run {
            Some(run) => Ok(run.config().to_toml()),
            None => Ok(parts.scorer()?.bundle().about().settings.to_toml()),
        })
    }

    /// What the model is called.
    fn name(&self, py: Python<'_>) -> PyResult<String> {
        self.work(py, |parts| match &parts.run {
            Some(run) => Ok(run.config().model.to_string()),
            None => Ok(parts.scorer()?.bundle().about().settings.model.to_string()),
        })
    }

    /// How many events it has observed.
    fn events(&self, py: Python<'_>) -> PyResult<usize> {
        self.work(py, |parts| Ok(parts.scorer()?.bundle().events()))
    }

    /// How times are written, as for a stream.
    fn clock(&self, py: Python<'_>) -> PyResult<(String, i64)> {
        self.work(py, |parts| Ok(stream::clock(parts.scorer()?.bundle().clock())))
    }

    /// Evaluates it under its own protocol, and gives the report.
    #[pyo3(signature = (asked, baselines, on_progress))]
    fn evaluate(
        &self,
        py: Python<'_>,
        asked: Asked,
        baselines: bool,
        on_progress: Option<Py<PyAny>>,
    ) -> PyResult<Told> {
        refuse_child()?;
        let raised = Raised::default();
        let mut watch = Watch::new(on_progress, raised.clone());
        let report = py.detach(|| {
            let parts = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
            let run = parts.run()?;
            let scope = asked.scope_of_run(run.config())?;
            if baselines {
                let all = run.evaluate_with_baselines(&scope, &mut |now| {
                    watch.tell(now.model, now.done, now.of)
                })?;
                return Ok(told(&all.report));
            }
            let name = run.config().model.name().to_string();
            let tell = &mut |done, of| watch.tell(&name, done, of);
            Ok(told(&run.evaluate_watching(&scope, tell)?))
        });
        raised.result(py, report)
    }

    /// Its report as a page, and the numbers in it. Questions that its stream cannot be
    /// asked are left out.
    #[pyo3(signature = (on_progress))]
    fn report(&self, py: Python<'_>, on_progress: Option<Py<PyAny>>) -> PyResult<(String, Told)> {
        refuse_child()?;
        let raised = Raised::default();
        let mut watch = Watch::new(on_progress, raised.clone());
        let report = py.detach(|| {
            let parts = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
            let run = parts.run()?;
            let scope = run.possible(&run.config().scope()).0;
            let tell = &mut |now: EvalProgress<'_>| watch.tell(now.model, now.done, now.of);
            let all = run.evaluate_with_baselines(&scope, tell)?;
            Ok((page_of_run(&run.epochs()?, run, &all)?, told(&all.report)))
        });
        raised.result(py, report)
    }

    /// A score for each pair, in order. Without times it is asked just after the last event.
    #[pyo3(signature = (src, dst, time))]
    fn score<'py>(
        &self,
        py: Python<'py>,
        src: (String, Bound<'py, PyAny>),
        dst: (String, Bound<'py, PyAny>),
        time: Option<(String, Bound<'py, PyAny>)>,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let held = [HeldColumn::new(&src.1)?, HeldColumn::new(&dst.1)?];
        let moments = time.as_ref().map(|time| HeldColumn::new(&time.1)).transpose()?;
        let (sources, destinations) = (held[0].column()?, held[1].column()?);
        let times = moments.as_ref().map(HeldColumn::column).transpose()?;
        let name = time.as_ref().map_or("time", |time| &time.0);
        let scores = self.work(py, |parts| {
            let scorer = parts.scorer()?;
            let bipartite = scorer.bundle().names().separated();
            let times = times.map(|times| (name, times));
            let pairs = read_memory_pairs(
                "pairs",
                (&src.0, sources),
                (&dst.0, destinations),
                times,
                bipartite,
            )?;
            scorer.score_memory(&pairs)
        })?;
        Ok(scores.into_pyarray(py))
    }

    /// The likeliest destinations of sources, as columns.
    #[pyo3(signature = (sources, k, at, candidates, exclude_known, explain, on_progress))]
    fn top_k<'py>(
        &self,
        py: Python<'py>,
        sources: Option<Vec<String>>,
        k: usize,
        at: Option<String>,
        candidates: Option<Vec<String>>,
        exclude_known: bool,
        explain: bool,
        on_progress: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        refuse_child()?;
        let raised = Raised::default();
        let mut watch = Watch::new(on_progress, raised.clone());
        let wanted = TopK { k, sources, candidates, at, exclude_known, explain };
        let told = py.detach(|| {
            let mut parts = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
            let scorer = parts.scorer()?;
            let calibrated = scorer.bundle().about().calibration.is_some();
            let recommender = scorer.recommender(&wanted)?;
            let (mut found, mut done) = (Vec::<Recommendation>::new(), 0);
            let of = recommender.sources().len() as u64;
            recommender.run(|sources, rows| {
                found.extend(rows);
                done += sources as u64;
                match watch.tell("sources", done, of) {
                    ControlFlow::Continue(()) => Ok(()),
                    ControlFlow::Break(()) => Err(Error::Interrupted),
                }
            })?;
            let nodes = |side: fn(&Recommendation) -> NodeId| {
                let nodes: Vec<NodeId> = found.iter().map(side).collect();
                Ids::of(recommender.names(), &nodes)
            };
            let ids = (nodes(|row| row.source), nodes(|row| row.destination));
            Ok((ids, found, recommender.at(), calibrated))
        });
        let ((sources, destinations), found, at, calibrated) = raised.result(py, told)?;
        let dict = PyDict::new(py);
        dict.set_item("source", sources.into_python(py)?)?;
        let ranks: Vec<i64> = found.iter().map(|row| i64::from(row.rank)).collect();
        dict.set_item("rank", ranks.into_pyarray(py))?;
        dict.set_item("destination", destinations.into_python(py)?)?;
        let scores: Vec<f64> = found.iter().map(|row| row.score).collect();
        dict.set_item("score", scores.into_pyarray(py))?;
        let likely: Option<Vec<f64>> = found.iter().map(|row| row.probability).collect();
        if let Some(likely) = likely.filter(|_| calibrated) {
            dict.set_item("probability", likely.into_pyarray(py))?;
        }
        let known: Vec<bool> = found.iter().map(|row| row.known).collect();
        dict.set_item("known", known.into_pyarray(py))?;
        if explain {
            let why = found.iter().map(|row| row.why.as_ref().map(|why| why.words.clone()));
            dict.set_item("why", why.collect::<Vec<_>>())?;
        }
        dict.set_item("at", at)?;
        Ok(dict)
    }

    /// Takes in events that have happened since, in the steps of its protocol.
    #[pyo3(signature = (src, dst, time, features))]
    fn observe<'py>(
        &self,
        py: Python<'py>,
        src: (String, Bound<'py, PyAny>),
        dst: (String, Bound<'py, PyAny>),
        time: (String, Bound<'py, PyAny>),
        features: Option<PyReadonlyArray2<'py, f64>>,
    ) -> PyResult<()> {
        let held = [HeldColumn::new(&src.1)?, HeldColumn::new(&dst.1)?, HeldColumn::new(&time.1)?];
        let table = MemoryTable {
            name: "events",
            source: (&src.0, held[0].column()?),
            destination: (&dst.0, held[1].column()?),
            time: (&time.0, held[2].column()?),
            feature_width: features.as_ref().map_or(0, |table| table.as_array().ncols()),
            features: features.as_ref().map_or(Ok(&[][..]), |table| table.as_slice())?,
        };
        self.work(py, |parts| {
            let scorer = parts.scorer()?;
            let bipartite = scorer.bundle().names().separated();
            let options = ReadOptions { bipartite, sort: true, ..ReadOptions::default() };
            scorer.observe_memory(read_memory(&table, &options)?)
        })
    }

    /// Writes it to one file, with everything that it has observed.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        self.work(py, |parts| parts.scorer()?.bundle().write(path))
    }
}

/// Opens the folder of a run, or a file that `save` or the command wrote. A run that was trained on
/// a stream in memory needs that stream.
#[pyfunction]
#[pyo3(signature = (path, stream))]
pub fn load(py: Python<'_>, path: PathBuf, stream: Option<&Stream>) -> PyResult<Model> {
    let given = stream.map(|stream| std::sync::Arc::clone(&stream.inner));
    let opened = py.detach(|| {
        if path.is_file() {
            let scorer = Scorer::from(Bundle::read(&path)?);
            return Ok(Model {
                inner: Mutex::new(Parts { run: None, folder: None, scorer: Some(scorer) }),
            });
        }
        let folder = RunFolder::new(path);
        Ok(match given {
            Some(given) => Model::of_run(TrainedRun::open_with(&folder, given.as_ref().clone())?),
            None => {
                let run = Some(TrainedRun::open(&folder)?);
                Model { inner: Mutex::new(Parts { run, folder: Some(folder), scorer: None }) }
            }
        })
    });
    raise(py, opened)
}
