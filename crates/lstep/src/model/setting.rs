//! Checks of settings that several models have.

use crate::error::{Error, Result};

/// Refuses a number below its least value; each is given as name, value, least value.
pub(super) fn at_least(settings: &[(&'static str, usize, usize)]) -> Result<()> {
    match settings.iter().find(|(_, value, least)| value < least) {
        Some((setting, value, least)) => Err(Error::setting(setting, value, format!("it has to be at least {least}"))),
        None => Ok(()),
    }
}

/// Refuses a dropout that is no probability below 1.
pub(super) fn check_dropout(dropout: f64) -> Result<()> {
    if (0.0..1.0).contains(&dropout) {
        return Ok(());
    }
    Err(Error::setting("dropout", dropout, "it has to be at least 0 and below 1"))
}
