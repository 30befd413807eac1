//! A trained model in use: as a file that can travel, asked by name, and read by many while events
//! come in.
//!
//! A [`Bundle`] is a model with all that its use needs; [`Scorer`] asks it by name and lets it
//! follow new events; a [`Recommender`] answers for many sources at once; [`Service`] shares it
//! between readers and a writer. [`Live`] is the same by node number, for any session.

mod bundle;
mod explain;
#[cfg(test)]
mod fixture;
mod live;
mod recommend;
mod scorer;
mod service;
mod update;
mod watch;

pub use bundle::{Bundle, BundleInfo};
pub use explain::{Explanation, SharedPartner};
pub use live::Live;
pub use recommend::{Recommendation, Recommended, Recommender, TopK};
pub use scorer::{NewEvent, Scored, Scorer};
pub use service::Service;
pub use update::{Updated, update};
pub use watch::{Beside, WatchReport, Watched, watch};
