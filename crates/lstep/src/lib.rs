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
//! # Example
//!
//! ```
//! use lstep::evaluation::{EvaluatedModel, Evaluation};
//! use lstep::model::ModelConfig;
//! use lstep::protocol::{EvalScope, Part, Protocol, Setting, Strategy, StreamProtocol};
//! use lstep::read::synthetic::{SyntheticConfig, generate};
//! use lstep::stream::Stream;
//!
//! let config = SyntheticConfig { events: 4_000, ..SyntheticConfig::default() };
//! let stream = Stream::from(generate(&config)?);
//! let report = Evaluation {
//!     protocol: Protocol::Stream(StreamProtocol::default()),
//!     asked: EvalScope {
//!         parts: vec![Part::Test],
//!         settings: vec![Setting::Transductive],
//!         strategies: vec![Strategy::Random],
//!     },
//!     models: vec![EvaluatedModel::Fixed("edgebank".parse::<ModelConfig>()?)],
//!     read_negatives: None,
//!     write_negatives: None,
//! }
//! .run(&stream, &|_, _, _| ())?;
//! assert!(report.results[0].auc > 0.5);
//! # Ok::<(), lstep::Error>(())
//! ```
//!
//! A learned model is trained in a run folder from which training can resume. The run can be
//! opened again and used while further events come in:
//!
//! ```
//! use lstep::event::{Events, Features, NodeId, Time};
//! use lstep::query::Queries;
//! use lstep::serving::Live;
//! use lstep::settings::{DataConfig, RunConfig};
//! use lstep::stream::Stream;
//! use lstep::training::{RunFolder, TrainedRun, Training};
//!
//! // Thirty people; everybody writes to the next but one.
//! let time = |second: u32| Time::new(f64::from(second)).expect("finite");
//! let events = Events::new(
//!     (0..600).map(|n| NodeId(n % 30)).collect(),
//!     (0..600).map(|n| NodeId((n + 2) % 30)).collect(),
//!     (0..600).map(time).collect(),
//!     Features::none(),
//! )?;
//! let stream = Stream::new("letters", events)?;
//! let settings = ["train.epochs=1", "protocol.step=50"].map(String::from);
//! let config =
//!     RunConfig::builder(DataConfig::default()).model("lstep-pair").set(&settings).build()?;
//! # let place = tempfile::tempdir().expect("a folder");
//! # let path = place.path().join("run");
//! let folder = RunFolder::new(path);
//! Training::begin(config, stream.clone(), folder.clone())?.run(&mut |_| true)?;
//!
//! // Later, perhaps in another program.
//! let trained = TrainedRun::open_with(&folder, stream)?;
//! let session = trained.at_the_end()?;
//! let mut live = Live::resume(trained.into_stream().log, session);
//! live.push(NodeId(0), NodeId(2), time(600), &[])?;
//! live.observe()?;
//! let mut ask = Queries::new();
//! ask.push(NodeId(1), time(601), [NodeId(3), NodeId(17)]);
//! let scores = live.score(&ask)?;
//! assert_eq!(scores.values().len(), 2);
//! # Ok::<(), lstep::Error>(())
//! ```

pub mod audit;
pub mod checkpoint;
pub mod data;
pub mod error;
pub mod evaluation;
pub mod event;
pub mod experiments;
mod fingerprint;
pub mod graph;
mod linalg;
pub mod metric;
pub mod model;
pub mod nn;
pub mod numpy;
pub mod protocol;
pub mod query;
pub mod read;
pub mod report;
pub mod results;
pub mod rng;
pub mod serving;
pub mod settings;
pub mod stream;
pub mod training;

pub use error::{Error, Result};
