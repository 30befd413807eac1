//! A trained model in use: scoring by name, and scoring while events come in.

mod live;
mod scorer;

pub use live::Live;
pub use scorer::{Scored, Scorer};
