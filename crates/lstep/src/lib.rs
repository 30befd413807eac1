//! Temporal link prediction that cannot see the future.
//!
//! A stream of timed interactions says who met whom, when, and with what features. This library
//! predicts who will meet whom next, and reports honestly how well. Its modules follow the path of
//! an event:
//!
//! 1. [`read`] turns a file into a checked [`Dataset`](read::Dataset), or generates one;
//! 2. [`graph`] keeps the events in a log and shows them through views with a horizon;
//! 3. [`protocol`] decides which questions are asked and what counts as known;
//! 4. [`model`] turns [`query`] rows into scores;
//! 5. [`metric`] turns scores into AP, ROC-AUC and ranks;
//! 6. [`evaluation`] and [`training`] run models over a [`stream`], configured by [`settings`];
//! 7. [`serving`] answers questions while new events come in, [`audit`] checks a model for leaks,
//!    [`experiments`] runs grids of models, and [`report`] draws the results.
//!
//! Released code in this field leaks labels: from the way a batch is prepared, a scorer can tell
//! which candidates are true. Here a model gets [`Queries`](query::Queries), which have no labels,
//! and a [`Past`](graph::Past), which answers only for a node at a time and shows only what is
//! strictly before it. What types cannot forbid, [`audit::laws`] checks. The alternative, one
//! forward pass over positives and negatives with masks, is shorter to write and is how the leaks
//! came about.
//!
//! # Examples
//!
//! A model that only counts needs no training:
//!
//! ```
//! use lstep::evaluation::Evaluation;
//! use lstep::read::synthetic::{SyntheticConfig, generate};
//! use lstep::stream::Stream;
//!
//! let config = SyntheticConfig { events: 4_000, ..SyntheticConfig::default() };
//! let stream = Stream::from(generate(&config)?);
//! let report = Evaluation::new(&stream).model("edgebank")?.run()?;
//! assert!(report.results[0].auc > 0.5);
//! # Ok::<(), lstep::Error>(())
//! ```
//!
//! A learned model is trained in memory, or in a folder from which training can resume. It is then
//! evaluated, or used while further events come in:
//!
//! ```
//! use lstep::event::{Events, NodeId, Time};
//! use lstep::protocol::EvalScope;
//! use lstep::query::Queries;
//! use lstep::serving::Live;
//! use lstep::stream::Stream;
//! use lstep::training::Training;
//!
//! // Thirty people; everybody writes to the next but one.
//! let letters = (0..600).map(|n| (n % 30, (n + 2) % 30, f64::from(n)));
//! let stream = Stream::new("letters", Events::try_from(letters.collect::<Vec<_>>())?)?;
//! let trained = Training::new(stream)
//!     .model("lstep-pair")?
//!     .set("train.epochs", 1)
//!     .set("protocol.step", 50)
//!     .run()?;
//! println!("test AP {:.4}", trained.evaluate(&EvalScope::default())?.results[0].ap);
//!
//! let session = trained.at_the_end()?;
//! let mut live = Live::resume(trained.into_stream().log, session);
//! live.push(NodeId(0), NodeId(2), Time::from(600), &[])?;
//! live.observe()?;
//! let mut ask = Queries::new();
//! ask.push(NodeId(1), Time::from(601), [NodeId(3), NodeId(17)]);
//! let scores = live.score(&ask)?;
//! assert_eq!(scores.values().len(), 2);
//! # Ok::<(), lstep::Error>(())
//! ```
//!
//! `examples/` in the repository has longer ones.
//!
//! # Features
//!
//! All are on by default, and each can be left out.
//!
//! - `parquet`: events and node features in Parquet files. The largest dependency by far.
//! - `report`: pages of HTML that show a run, a comparison or a bound.
//! - `experiments`: grids of datasets, models and seeds, and recipes of published tables.

#![warn(unnameable_types)]
#![forbid(unsafe_code)]

pub mod audit;
pub mod checkpoint;
pub mod data;
pub mod disk;
pub mod error;
pub mod evaluation;
pub mod event;
#[cfg(feature = "experiments")]
pub mod experiments;
mod fingerprint;
pub mod graph;
mod linalg;
pub mod metric;
#[allow(unnameable_types, reason = "a model's state is its own affair: others have a `Session`")]
pub mod model;
pub mod nn;
pub mod numpy;
pub mod protocol;
pub mod query;
pub mod read;
#[cfg(feature = "report")]
pub mod report;
pub mod results;
pub mod rng;
pub mod serving;
pub mod settings;
pub mod stream;
pub mod training;

pub use error::{Error, Result};
/// Matrices, tapes and optimizers: the crate that models are built on.
pub use lstep_tensor as tensor;

// Unit tests build streams with macros of lstep-testkit, which name types by the path `::lstep`.
#[cfg(test)]
extern crate self as lstep;
