//! What a protocol asks, as arrays: parts of the stream and negatives. And the metrics, alone.

use crate::error::raise;
use crate::protocol::Asked;
use crate::stream::Stream;
use lstep::event::Event;
use lstep::metric::{Ranks, StepMeans, rank};
use lstep::protocol::{Subject, negatives_sha256};
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

/// The query sets of a protocol: which events are asked in which step, and their negatives. Nodes
/// are numbers of the stream as it was given.
#[pyfunction]
pub fn negatives<'py>(
    py: Python<'py>,
    stream: &Stream,
    asked: Asked,
) -> PyResult<Bound<'py, PyList>> {
    let inner = &stream.inner;
    let made = py.detach(|| {
        let protocol = asked.protocol(&inner.name)?;
        let scope = asked.scope(&protocol)?;
        let under = inner.under(&protocol)?;
        let subject = Subject { events: under.log.events(), names: &under.names };
        let passes = protocol.plan(subject)?.passes(subject, &scope)?;
        // The protocol may number nodes by its own rule: names lead back.
        let back: Vec<i64> = (0..under.names.len() as u32)
            .map(|node| {
                let node = lstep::event::NodeId(node);
                let side = under.names.side(node).unwrap_or(lstep::event::Side::Source);
                let found = inner.names.find_name(under.names.name(node), side);
                found.map_or(-1, |node| i64::from(node.0))
            })
            .collect();
        let mut sets = Vec::new();
        for pass in &passes {
            for set in &pass.query_sets {
                let (mut sources, mut destinations) = (Vec::new(), Vec::new());
                let (mut offsets, mut steps) = (vec![0], vec![0]);
                for (place, &number) in set.asked().iter().enumerate() {
                    let event = subject.events.at(number as usize);
                    let (own, negatives) = set.negatives().row(place);
                    for (at, node) in negatives.iter().enumerate() {
                        let source = own.map_or(event.source, |own| own[at]);
                        sources.push(back[source.index()]);
                        destinations.push(back[node.index()]);
                    }
                    offsets.push(sources.len() as i64);
                }
                steps.extend((0..pass.steps()).map(|step| set.step(step).end as i64));
                let events: Vec<i64> =
                    set.asked().iter().map(|&number| i64::from(number)).collect();
                let hash = negatives_sha256(set, subject.events, subject.names);
                sets.push((
                    set.part,
                    set.setting,
                    set.strategy,
                    events,
                    steps,
                    sources,
                    destinations,
                    offsets,
                    hash,
                ));
            }
        }
        Ok(sets)
    });
    let list = PyList::empty(py);
    for (part, setting, strategy, events, steps, sources, destinations, offsets, hash) in
        raise(py, made)?
    {
        let set = PyDict::new(py);
        set.set_item("part", part.to_string())?;
        set.set_item("setting", setting.to_string())?;
        set.set_item("negatives", strategy.to_string())?;
        set.set_item("events", events.into_pyarray(py))?;
        set.set_item("steps", steps.into_pyarray(py))?;
        set.set_item("sources", sources.into_pyarray(py))?;
        set.set_item("destinations", destinations.into_pyarray(py))?;
        set.set_item("offsets", offsets.into_pyarray(py))?;
        set.set_item("sha256", hash)?;
        list.append(set)?;
    }
    Ok(list)
}

/// The numbers of the events that train, and of those of validation and test; and of the events of
/// each of the two that have a node unknown to training.
#[pyfunction]
pub fn split<'py>(py: Python<'py>, stream: &Stream, asked: Asked) -> PyResult<Bound<'py, PyDict>> {
    let inner = &stream.inner;
    let parts = py.detach(|| {
        let protocol = asked.protocol(&inner.name)?;
        let under = inner.under(&protocol)?;
        let events = under.log.events();
        let plan = protocol.plan(Subject { events, names: &under.names })?;
        let split = plan.split();
        let numbers = |range: std::ops::Range<u32>, wanted: &dyn Fn(Event) -> bool| -> Vec<i64> {
            range.filter(|&number| wanted(events.at(number as usize))).map(i64::from).collect()
        };
        let new = |event: Event| split.has_new_node(event);
        Ok([
            ("train", numbers(split.train.clone(), &|event| split.trains(event))),
            ("validation", numbers(split.validation.clone(), &|_| true)),
            ("test", numbers(split.test.clone(), &|_| true)),
            ("new_node_validation", numbers(split.validation.clone(), &new)),
            ("new_node_test", numbers(split.test.clone(), &new)),
        ])
    });
    let dict = PyDict::new(py);
    for (name, numbers) in raise(py, parts)? {
        dict.set_item(name, numbers.into_pyarray(py))?;
    }
    Ok(dict)
}

/// Average precision and ROC-AUC of scores with labels, as scikit-learn computes them.
#[pyfunction]
pub fn areas(
    py: Python<'_>,
    scores: PyReadonlyArray1<'_, f64>,
    labels: PyReadonlyArray1<'_, bool>,
) -> PyResult<(f64, f64)> {
    let (scores, labels) = (scores.as_slice()?, labels.as_slice()?);
    let mut means = StepMeans::new();
    let areas = raise(py, means.add(scores, labels))?;
    Ok((areas.average_precision, areas.roc_auc))
}

/// The reciprocal rank of each row's first score among the others, ties in the middle.
#[pyfunction]
pub fn ranks<'py>(
    py: Python<'py>,
    positives: PyReadonlyArray1<'py, f64>,
    negatives: PyReadonlyArray2<'py, f64>,
) -> PyResult<(Bound<'py, PyArray1<f64>>, f64)> {
    let (mut all, mut found) = (Ranks::new(), Vec::new());
    let (positives, negatives) = (positives.as_array(), negatives.as_array());
    if positives.len() != negatives.nrows() {
        return Err(pyo3::exceptions::PyValueError::new_err(format!(
            "there are {} positives, but negatives for {}",
            positives.len(),
            negatives.nrows()
        )));
    }
    for (&positive, row) in positives.iter().zip(negatives.rows()) {
        let placed = raise(py, rank(positive, &row.to_vec()))?;
        all.add(placed);
        found.push(placed.reciprocal());
    }
    Ok((found.into_pyarray(py), all.mrr().unwrap_or(f64::NAN)))
}
