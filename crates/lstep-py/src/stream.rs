//! A stream of events, as Python holds it.

use crate::columns::HeldColumn;
use crate::error::raise;
use crate::fork::refuse_child;
use lstep::event::{Clock, Name, Names, NodeId, Side, Time};
use lstep::read::{
    Dataset, LeftOut, MemoryNodeTable, MemoryTable, ReadOptions, read, read_memory,
    read_memory_node_features,
};
use lstep::settings::DataConfig;
use lstep::stream::inspect;
use numpy::{IntoPyArray, PyArray1, PyArray2, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::{PyIndexError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

/// A stream and where it was read from.
#[pyclass(frozen, module = "lstep._core")]
pub struct Stream {
    pub inner: Arc<lstep::stream::Stream>,
    pub data: DataConfig,
    ignored: Vec<String>,
    unused_node_rows: usize,
    left_out: LeftOut,
}

impl Stream {
    fn of(dataset: Dataset, data: DataConfig) -> Stream {
        let ignored = dataset.ignored_columns.clone();
        let (unused_node_rows, left_out) = (dataset.unused_node_rows, dataset.left_out.clone());
        let inner = Arc::new(lstep::stream::Stream::from(dataset));
        Stream { inner, data, ignored, unused_node_rows, left_out }
    }
}

#[pymethods]
impl Stream {
    /// From columns in the forms of `lstep._columns`, each with its name. Features of nodes are a
    /// column of ids, whether each of them is a destination, and a table.
    #[staticmethod]
    #[pyo3(signature = (name, src, dst, time, features, node_features, bipartite, sort))]
    fn from_columns<'py>(
        py: Python<'py>,
        name: &str,
        src: (String, Bound<'py, PyAny>),
        dst: (String, Bound<'py, PyAny>),
        time: (String, Bound<'py, PyAny>),
        features: Option<PyReadonlyArray2<'py, f64>>,
        node_features: Option<NodeFeatures<'py>>,
        bipartite: bool,
        sort: bool,
    ) -> PyResult<Stream> {
        let held = [HeldColumn::new(&src.1)?, HeldColumn::new(&dst.1)?, HeldColumn::new(&time.1)?];
        let width = features.as_ref().map_or(0, |table| table.as_array().ncols());
        let values = features.as_ref().map_or(Ok(&[][..]), |table| table.as_slice())?;
        let table = MemoryTable {
            name,
            source: (&src.0, held[0].column()?),
            destination: (&dst.0, held[1].column()?),
            time: (&time.0, held[2].column()?),
            feature_width: width,
            features: values,
        };
        let options = ReadOptions { bipartite, sort, ..ReadOptions::default() };
        let nodes = node_features.as_ref().map(HeldNodes::new).transpose()?;
        let nodes = nodes.as_ref().map(HeldNodes::table).transpose()?;
        let dataset = py.detach(|| {
            let mut dataset = read_memory(&table, &options)?;
            if let Some(nodes) = &nodes {
                let (features, unused) = read_memory_node_features(nodes, &dataset.names)?;
                dataset.node_features = features;
                dataset.unused_node_rows = unused;
            }
            Ok(dataset)
        });
        // A model in a folder is opened again with its stream, so the file has no name.
        Ok(Stream::of(raise(py, dataset)?, DataConfig { bipartite, sort, ..Default::default() }))
    }

    /// Reads a file, as the command does. Options are the settings of `data`, as JSON.
    #[staticmethod]
    #[pyo3(signature = (path, options))]
    fn read(py: Python<'_>, path: PathBuf, options: &str) -> PyResult<Stream> {
        refuse_child()?;
        let data: DataConfig = serde_json::from_str(options).map_err(|error| {
            let said = error.to_string();
            PyTypeError::new_err(said.split(" at line ").next().unwrap_or_default().to_string())
        })?;
        let data = DataConfig { events: path, ..data };
        let dataset = py.detach(|| read(&data.events, &data.options()));
        Ok(Stream::of(raise(py, dataset)?, data))
    }

    #[getter]
    fn name(&self) -> &str {
        &self.inner.name
    }

    #[getter]
    fn ignored_columns(&self) -> Vec<String> {
        self.ignored.clone()
    }

    #[getter]
    fn nodes(&self) -> usize {
        self.inner.names.len()
    }

    #[getter]
    fn bipartite(&self) -> bool {
        self.inner.names.separated()
    }

    fn __len__(&self) -> usize {
        self.inner.log.len()
    }

    /// What the command's inspection says, as JSON.
    fn inspect(&self, py: Python<'_>) -> String {
        py.detach(|| {
            let dataset = Dataset {
                name: self.inner.name.clone(),
                events: self.inner.log.events().clone(),
                names: self.inner.names.clone(),
                clock: self.inner.clock,
                node_features: self.inner.log.node_features().clone(),
                ignored_columns: self.ignored.clone(),
                unused_node_rows: self.unused_node_rows,
                left_out: self.left_out.clone(),
            };
            serde_json::to_string(&inspect(&dataset)).expect("a report is plain data")
        })
    }

    /// The numbers of the sources, of the destinations, and the times as numbers.
    #[expect(clippy::type_complexity, reason = "three columns")]
    fn columns<'py>(
        &self,
        py: Python<'py>,
    ) -> (Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<f64>>) {
        let events = self.inner.log.events();
        let numbers =
            |nodes: &[NodeId]| -> Vec<i64> { nodes.iter().map(|node| i64::from(node.0)).collect() };
        (
            numbers(events.sources()).into_pyarray(py),
            numbers(events.destinations()).into_pyarray(py),
            events.times().iter().map(|time| time.value()).collect::<Vec<_>>().into_pyarray(py),
        )
    }

    /// A row of features for each event; no columns where there are none.
    fn features<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f32>>> {
        table(py, self.inner.log.events().features(), self.inner.log.len())
    }

    /// A row of features for each node; no columns where there are none.
    fn node_features<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f32>>> {
        table(py, self.inner.log.node_features(), self.inner.names.len())
    }

    /// The ids of all nodes in the order of their numbers: an array of integers, or a list of text.
    fn ids<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        ids(py, &self.inner.names)
    }

    /// On which side each node stands, where the sides are separated: 0 for sources.
    fn sides<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyArray1<i64>>> {
        let names = &self.inner.names;
        names.separated().then(|| {
            let sides = (0..names.len()).map(|node| match names.side(NodeId(node as u32)) {
                Some(Side::Destination) => 1,
                _ => 0,
            });
            sides.collect::<Vec<i64>>().into_pyarray(py)
        })
    }

    /// How times are written: `integer`, `float`, or the unit of dates; and what is added to the
    /// numbers.
    fn clock(&self) -> (String, i64) {
        clock(&self.inner.clock)
    }

    /// Times as the file writes them.
    fn show_times(
        &self,
        py: Python<'_>,
        times: PyReadonlyArray1<'_, f64>,
    ) -> PyResult<Vec<String>> {
        let shown = times.as_slice()?.iter().map(|&time| {
            let time = raise(py, Time::try_from(time))?;
            Ok(self.inner.clock.show(time))
        });
        shown.collect()
    }

    /// The numbers of nodes by their ids as text; an unknown id is -1.
    fn find(&self, ids: Vec<String>, destination: bool) -> Vec<i64> {
        let side = if destination { Side::Destination } else { Side::Source };
        let number = |id: &String| self.inner.names.find(id, side);
        ids.iter().map(|id| number(id).map_or(-1, |node| i64::from(node.0))).collect()
    }
}

/// Ids of nodes with their column's name, which of them are destinations, and their features.
type NodeFeatures<'py> =
    ((String, Bound<'py, PyAny>), Option<PyReadonlyArray1<'py, bool>>, PyReadonlyArray2<'py, f64>);

/// Features of nodes that are held while they are read.
struct HeldNodes<'a, 'py> {
    column: &'a str,
    ids: HeldColumn<'py>,
    sides: Option<Vec<Side>>,
    features: &'a PyReadonlyArray2<'py, f64>,
}

impl<'a, 'py> HeldNodes<'a, 'py> {
    fn new(given: &'a NodeFeatures<'py>) -> PyResult<HeldNodes<'a, 'py>> {
        let ((column, ids), sides, features) = given;
        let side = |destination: &bool| if *destination { Side::Destination } else { Side::Source };
        let sides = sides.as_ref().map(|sides| sides.as_array().iter().map(side).collect());
        Ok(HeldNodes { column, ids: HeldColumn::new(ids)?, sides, features })
    }

    fn table(&self) -> PyResult<MemoryNodeTable<'_>> {
        Ok(MemoryNodeTable {
            name: "node_features",
            id: (self.column, self.ids.column()?),
            sides: self.sides.as_deref(),
            feature_width: self.features.as_array().ncols(),
            features: self.features.as_slice()?,
        })
    }
}

/// Ids of some nodes.
pub enum Ids {
    Integers(Vec<i64>),
    /// Distinct texts, and which of them each node has.
    Texts(Vec<String>, Vec<usize>),
}

impl Ids {
    pub fn of(names: &Names, nodes: &[NodeId]) -> Ids {
        if names.are_integers() {
            let number = |&node: &NodeId| match names.name(node) {
                Name::Integer(number) => number,
                Name::Text(_) => unreachable!("all ids are integers"),
            };
            return Ids::Integers(nodes.iter().map(number).collect());
        }
        let (mut places, mut texts) = (HashMap::new(), Vec::new());
        let place = |&node: &NodeId| {
            *places.entry(node).or_insert_with(|| {
                texts.push(names.name(node).to_string());
                texts.len() - 1
            })
        };
        let rows = nodes.iter().map(place).collect();
        Ids::Texts(texts, rows)
    }

    /// An array of integers, or a list of text. Equal text is one object.
    pub fn into_python(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        match self {
            Ids::Integers(numbers) => Ok(numbers.into_pyarray(py).into_any()),
            Ids::Texts(texts, rows) => {
                let texts: Vec<_> = texts.iter().map(|text| PyString::new(py, text)).collect();
                Ok(PyList::new(py, rows.iter().map(|&row| &texts[row]))?.into_any())
            }
        }
    }
}

/// The ids of all nodes: an array of integers, or a list of text.
fn ids<'py>(py: Python<'py>, names: &Names) -> PyResult<Bound<'py, PyAny>> {
    let all: Vec<NodeId> = (0..names.len() as u32).map(NodeId).collect();
    Ids::of(names, &all).into_python(py)
}

/// A clock in two words.
pub fn clock(clock: &Clock) -> (String, i64) {
    use lstep::event::Unit;
    match clock {
        Clock::Integer { origin } => ("integer".into(), *origin),
        Clock::Float => ("float".into(), 0),
        Clock::Iso8601 { unit, origin } => {
            let unit = match unit {
                Unit::Second => "s",
                Unit::Millisecond => "ms",
                Unit::Microsecond => "us",
                Unit::Nanosecond => "ns",
            };
            (unit.into(), *origin)
        }
    }
}

fn table<'py>(
    py: Python<'py>,
    features: &lstep::event::Features,
    rows: usize,
) -> PyResult<Bound<'py, PyArray2<f32>>> {
    let width = features.width();
    let mut values = features.values().to_vec();
    values.resize(rows * width, 0.0);
    let flat = numpy::ndarray::Array2::from_shape_vec((rows, width), values)
        .map_err(|error| PyIndexError::new_err(error.to_string()))?;
    Ok(flat.into_pyarray(py))
}
