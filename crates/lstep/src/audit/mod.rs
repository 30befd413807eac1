//! Does a model keep its promises? The laws, what released leaks are worth, and the paper's bound.

mod bound;
pub mod laws;
mod released_leak;
mod report;

pub use bound::{BoundReport, NodeBound, bound};
pub use released_leak::{Fault, LeakCompared, LeakReport, LeakWatch, Quality, show_released_leak};
pub use report::{AuditOptions, AuditReport, AuditSize, audit};
