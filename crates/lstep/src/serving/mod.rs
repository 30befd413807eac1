//! A trained model in use: as a file that can travel, asked by name, and read by many while events
//! come in.
//!
//! A [`Bundle`] is a model with all that its use needs; [`Scorer`] asks it by name and lets it
//! follow new events; [`Service`] shares it between readers and a writer. [`Live`] is the same by
//! node number, for any session.

mod bundle;
#[cfg(test)]
mod fixture;
mod live;
mod scorer;
mod service;

pub use bundle::{Bundle, BundleInfo};
pub use live::Live;
pub use scorer::{NewEvent, Scored, Scorer};
pub use service::Service;
