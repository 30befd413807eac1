//! The library's errors as Python exceptions.
//!
//! An exception is made by `lstep.errors`, from the sentence that Python users should read and the
//! fields behind it. An exception that Python code raised on the way is handed on as it was.

use lstep::Error;
use lstep::error::{Argument, ErrorKind, Front, Remedy};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::{Arc, Mutex};

/// Keyword arguments of the Python package.
pub struct Python3;

impl Front for Python3 {
    fn argument(&self, argument: Argument) -> String {
        match argument {
            Argument::Source => "src=".into(),
            Argument::Destination => "dst=".into(),
            Argument::Sort => "sort=True".into(),
            Argument::Bipartite => "bipartite=True".into(),
            other => format!("{}=", other.name()),
        }
    }

    fn assigned(&self, argument: Argument, value: &str) -> String {
        let name = self.argument(argument);
        match value.parse::<f64>() {
            Ok(_) => format!("{name}{value}"),
            Err(_) => format!("{name}{value:?}"),
        }
    }

    fn setting(&self, key: &str, value: &str) -> String {
        format!("settings={{\"{key}\": {value}}}")
    }

    fn remedy(&self, remedy: &Remedy) -> Option<String> {
        Some(match remedy {
            Remedy::Sort => "sort the events by time or pass sort=True".into(),
            Remedy::EvaluateInstead => "call lstep.evaluate with it instead".into(),
            Remedy::NameRun => "name a folder that lstep.train(out=...) made".into(),
            Remedy::ResumeRun(folder) => {
                format!("go on with the same call of lstep.train(out={folder:?})")
            }
            Remedy::AddEvents => "check the id, or let the model observe its events".into(),
            _ => return None,
        })
    }
}

/// What Python code raised while the library was calling it.
#[derive(Clone, Default)]
pub struct Raised(Arc<Mutex<Option<PyErr>>>);

impl Raised {
    /// Keeps the first exception, and gives the error that ends the library's work.
    pub fn keep(&self, py: Python<'_>, raised: PyErr) -> Error {
        let value = raised.value(py);
        let reason = match value.get_type().name() {
            Ok(name) => format!("{name}: {value}"),
            Err(_) => value.to_string(),
        };
        let mut kept = self.0.lock().expect("nobody fails while holding it");
        kept.get_or_insert(raised);
        Error::Model { reason }
    }

    /// The result for Python: an error is the exception that caused it, if there is one.
    pub fn result<T>(&self, py: Python<'_>, result: lstep::Result<T>) -> PyResult<T> {
        result.map_err(|error| {
            let raised = self.0.lock().expect("nobody fails while holding it").take();
            raised.unwrap_or_else(|| exception(py, &error))
        })
    }
}

/// The result for Python.
pub fn raise<T>(py: Python<'_>, result: lstep::Result<T>) -> PyResult<T> {
    result.map_err(|error| exception(py, &error))
}

fn exception(py: Python<'_>, error: &Error) -> PyErr {
    make(py, error).unwrap_or_else(|failed| failed)
}

fn make(py: Python<'_>, error: &Error) -> PyResult<PyErr> {
    let kind = match error.kind() {
        ErrorKind::Setting => "setting",
        ErrorKind::Input => "input",
        ErrorKind::NotFound => "not_found",
        ErrorKind::Conflict => "conflict",
        ErrorKind::Numeric => "numeric",
        ErrorKind::Io => "io",
        ErrorKind::Interrupted => "interrupted",
        _ => "other",
    };
    let fields = PyDict::new(py);
    let message = match error {
        Error::Input(fault) | Error::Incompatible(fault) => {
            let remedy = fault.remedy.render(&Python3);
            fields.set_item("file", &fault.file)?;
            fields.set_item("row", fault.line.map(|line| line.saturating_sub(1)))?;
            fields.set_item("column", &fault.column)?;
            fields.set_item("value", &fault.value)?;
            fields.set_item("problem", &fault.problem)?;
            fields.set_item("remedy", &remedy)?;
            error.display_with(&Python3).to_string()
        }
        Error::Setting { setting, value, problem, remedy } => {
            fields.set_item("setting", setting.as_ref())?;
            fields.set_item("value", value)?;
            fields.set_item("problem", problem)?;
            fields.set_item("remedy", remedy.render(&Python3))?;
            error.display_with(&Python3).to_string()
        }
        _ => error.display_with(&Python3).to_string(),
    };
    let made = py.import("lstep.errors")?.call_method1("_make", (kind, message, fields))?;
    Ok(PyErr::from_value(made))
}
