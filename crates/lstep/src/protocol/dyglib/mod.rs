//! DyGLib's evaluation, bit for bit: which events are held out, which nodes are new, and which
//! pairs are the negatives.
//!
//! Published tables of this field come from DyGLib's protocol, and its samples depend on three
//! things that no honest protocol would: numpy's legacy generator, Python's `random`, and the
//! iteration order of CPython's sets. All three are rebuilt here ([`crate::numpy`], [`pyset`]), and
//! nothing outside this folder uses them except to compare. The path is
//!
//! 1. [`EdgeColumns`]: sources, destinations and times as in an `ml_NAME.csv`, ids as the integers of
//!    that file;
//! 2. [`EmulatedSplit`]: the events of train, validation and test, and the new nodes;
//! 3. [`Sampler`]: batch by batch, the negatives of one part under one [`EmulatedStrategy`].
//!
//! Known faults of the protocol (collisions with true events, negatives that depend on the batch
//! size, sources replaced in two of three strategies) are reproduced, not repaired.

mod negative;
mod protocol;
pub mod pyset;
mod split;

pub use negative::{EmulatedPart, EmulatedStrategy, Sampler};
pub use protocol::{DyglibProtocol, Emulation};
pub use split::{EdgeColumns, EmulatedSplit};
