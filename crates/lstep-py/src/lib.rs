//! The Rust half of the Python package `lstep`: streams, evaluation, audit and training.
//!
//! Results leave it as JSON and arrays; what Python users see is built from them in
//! `python/lstep`. The interpreter's lock is released while the library works.

mod arrow;
mod audit;
mod columns;
mod error;
mod evaluate;
mod foreign;
mod fork;
mod model;
mod negatives;
mod protocol;
mod stream;
mod train;
mod view;
mod watch;

use pyo3::prelude::*;

#[pymodule]
fn _core(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add("__version__", env!("CARGO_PKG_VERSION"))?;
    m.add_class::<arrow::ArrowTable>()?;
    m.add_class::<stream::Stream>()?;
    m.add_class::<model::Model>()?;
    m.add_class::<view::Past>()?;
    m.add_class::<view::Queries>()?;
    m.add_class::<view::Events>()?;
    m.add_class::<train::Batches>()?;
    m.add_class::<train::Batch>()?;
    m.add_function(wrap_pyfunction!(evaluate::evaluate, m)?)?;
    m.add_function(wrap_pyfunction!(audit::audit, m)?)?;
    m.add_function(wrap_pyfunction!(negatives::negatives, m)?)?;
    m.add_function(wrap_pyfunction!(negatives::split, m)?)?;
    m.add_function(wrap_pyfunction!(negatives::areas, m)?)?;
    m.add_function(wrap_pyfunction!(negatives::ranks, m)?)?;
    m.add_function(wrap_pyfunction!(train::train, m)?)?;
    m.add_function(wrap_pyfunction!(train::models, m)?)?;
    m.add_function(wrap_pyfunction!(model::load, m)?)?;
    m.add_function(wrap_pyfunction!(arrow::arrow_stream, m)?)?;
    Ok(())
}
