//! Checks of settings that several models have.

use crate::error::{Error, Result};

/// No model of the field comes near it, and a weight of that many rows and columns takes a
/// gigabyte.
const LARGEST: usize = 16_384;

/// Refuses a number below its least value, or beyond what memory holds; each is given as name,
/// value, least value.
pub(super) fn within(settings: &[(&'static str, usize, usize)]) -> Result<()> {
    match settings.iter().find(|(_, value, least)| value < least || *value > LARGEST) {
        Some((setting, value, least)) => Err(Error::setting(
            setting,
            value,
            format!("it has to be at least {least} and at most {LARGEST}"),
        )),
        None => Ok(()),
    }
}

/// Refuses heads that do not divide the node and time width that they share.
pub(super) fn check_heads(heads: usize, shared: usize) -> Result<()> {
    if shared.is_multiple_of(heads) {
        return Ok(());
    }
    let problem = format!("node_width + time_width, {shared}, is no multiple");
    Err(Error::setting("model.heads", heads, problem))
}

/// Refuses a dropout that is no probability below 1.
pub(super) fn check_dropout(dropout: f64) -> Result<()> {
    if (0.0..1.0).contains(&dropout) {
        return Ok(());
    }
    Err(Error::setting("model.dropout", dropout, "it has to be at least 0 and below 1"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_neither_below_its_least_value_nor_beyond_memory() {
        assert!(
            within(&[
                ("model.recent", 1, 1),
                ("model.edge_width", 0, 0),
                ("model.heads", LARGEST, 1)
            ])
            .is_ok()
        );
        for value in [0, LARGEST + 1] {
            let error =
                within(&[("model.recent", value, 1)]).expect_err("no such width").to_string();
            assert!(
                error.contains("model.recent") && error.contains(&value.to_string()),
                "{error}"
            );
        }
    }
}
