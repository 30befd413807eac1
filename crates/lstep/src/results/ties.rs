//! What the order of rows that share a time is worth to a model.

use serde::{Deserialize, Serialize};

/// From this share of tied events on, an evaluation shows what their order is worth, and warns.
pub(crate) const MANY_TIES: f64 = 0.5;

/// A model's AP on the test part with ties in the order of the file, shuffled, and held back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TiesReport {
    /// The model's name.
    pub model: String,
    /// Share of events that share their time with another.
    pub tied_share: f64,
    /// Test AP with rows of one time in the order of the file.
    pub file_ap: f64,
    /// The same with those rows shuffled.
    pub shuffled_ap: f64,
    /// The same questions as in the order of the file, asked of a state that has observed strictly
    /// earlier events only.
    pub strict_ap: f64,
    /// What an oracle reaches that knows all pairs of the test part, but not when they meet.
    pub oracle_ap: f64,
}

impl TiesReport {
    /// What the columns of a table of reports are called.
    pub const COLUMNS: [&'static str; 6] =
        ["model", "tied", "file order", "shuffled", "strict", "graph oracle"];

    /// A row of that table, AP as a share.
    pub fn shown(&self) -> [String; 6] {
        let share = |value: f64| format!("{value:.4}");
        [
            self.model.clone(),
            format!("{:.0} %", 100.0 * self.tied_share),
            share(self.file_ap),
            share(self.shuffled_ap),
            share(self.strict_ap),
            share(self.oracle_ap),
        ]
    }

    /// What the columns mean, in three sentences.
    pub const MEANING: &'static str = "Events of one time have no order: a gain over `shuffled` is the listing of the file. A \
         gain over `strict` comes from events of the question's own time. Above the oracle, which \
         knows all pairs of the test part, a model reads the listing.";
}
