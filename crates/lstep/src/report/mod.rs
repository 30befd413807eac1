//! What a run or a comparison looks like: one file of HTML, complete in itself, made to be looked
//! at.
//!
//! Numbers come from `run` and are turned into figures by [`figures`]; [`chart`] draws them, and a
//! [`Page`] puts them together. Nothing here scores or trains. No text from data reaches a page
//! unescaped, because only drawings and pages write markup, and both escape everything they are
//! given. The alternative, a template engine and a charting script, is a megabyte in every file.

mod answers;
mod bars;
mod bound;
pub mod chart;
#[cfg(feature = "experiments")]
mod comparison;
mod diagnostics;
mod evaluation;
mod examples;
pub mod figures;
mod page;
#[cfg(feature = "experiments")]
mod ranks;
mod run;
mod scale;
mod stream;
mod words;

pub use bound::bound_page;
#[cfg(feature = "experiments")]
pub use comparison::comparison_page;
pub use evaluation::evaluation_page;
pub use page::{Cell, Page, Table};
pub use run::{page_of_run, run_page};
pub use scale::{Axis, Scale};
