//! Numbers in fields: features and rows of feature tables, checked.

use crate::error::Remedy;

/// Why a value was refused: the problem and the remedy of an input fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    pub problem: &'static str,
    pub remedy: Remedy,
}

impl Refusal {
    /// A refusal with a remedy that is the same in every front end.
    pub(super) const fn new(problem: &'static str, remedy: &'static str) -> Refusal {
        Refusal { problem, remedy: Remedy::text(remedy) }
    }

    pub(super) const fn with(problem: &'static str, remedy: Remedy) -> Refusal {
        Refusal { problem, remedy }
    }
}

const NOT_A_NUMBER: Refusal = Refusal::with(
    "is not a number, so it cannot be a feature",
    Remedy::OtherFeatures(Some("correct it")),
);
const EMPTY: Refusal =
    Refusal::with("is empty, but a feature needs a number", Remedy::OtherFeatures(Some("fill it")));
const NOT_FINITE: Refusal = Refusal::new("is not a finite feature", "correct it or drop the row");
const TOO_LARGE: Refusal =
    Refusal::new("is too large for a feature of 32 bits", "scale the column down");
const NOT_A_ROW: Refusal = Refusal::new(
    "is not the number of a feature row",
    "number the rows of the feature table from 1 in the column idx",
);

/// A feature.
#[inline]
pub(super) fn feature(text: &str) -> Result<f32, Refusal> {
    let value: f32 =
        text.parse().map_err(|_| if text.is_empty() { EMPTY } else { NOT_A_NUMBER })?;
    if value.is_finite() { Ok(value) } else { Err(not_finite(text)) }
}

/// A number that becomes a feature after some arithmetic.
pub(super) fn wide(text: &str) -> Result<f64, Refusal> {
    let value: f64 =
        text.parse().map_err(|_| if text.is_empty() { EMPTY } else { NOT_A_NUMBER })?;
    if value.is_finite() { Ok(value) } else { Err(not_finite(text)) }
}

/// A number of 64 bits as a feature.
pub(super) fn narrow(value: f64) -> Result<f32, Refusal> {
    let narrow = value as f32;
    match (value.is_finite(), narrow.is_finite()) {
        (true, true) => Ok(narrow),
        (true, false) => Err(TOO_LARGE),
        (false, _) => Err(NOT_FINITE),
    }
}

/// The number of a row in a feature table. Tools that keep all columns as floats write it as
/// `17.0`.
pub(super) fn row(text: &str) -> Result<u32, Refusal> {
    let value: f64 = text.parse().map_err(|_| NOT_A_ROW)?;
    if value.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(&value) {
        Ok(value as u32)
    } else {
        Err(NOT_A_ROW)
    }
}

#[cold]
fn not_finite(text: &str) -> Refusal {
    // Digits that overflow are another mistake than a written infinity.
    if text.bytes().any(|byte| byte.is_ascii_digit()) { TOO_LARGE } else { NOT_FINITE }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_are_finite_numbers() {
        assert_eq!(feature("-2.5"), Ok(-2.5));
        assert_eq!(feature("0.1").expect("a number"), 0.1f32);
        assert_eq!(feature("many"), Err(NOT_A_NUMBER));
        assert_eq!(feature(""), Err(EMPTY));
        assert_eq!(feature("nan"), Err(NOT_FINITE));
        assert_eq!(feature("-inf"), Err(NOT_FINITE));
        assert_eq!(feature("1e300"), Err(TOO_LARGE));
        assert_eq!(narrow(1e300), Err(TOO_LARGE));
        assert_eq!(narrow(f64::NAN), Err(NOT_FINITE));
    }

    #[test]
    fn rows_are_whole_numbers() {
        assert_eq!(row("17"), Ok(17));
        assert_eq!(row("17.0"), Ok(17));
        for text in ["-1", "0.5", "x", "", "1e12", "nan"] {
            assert_eq!(row(text), Err(NOT_A_ROW), "{text}");
        }
    }
}
