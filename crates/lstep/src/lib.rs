//! Temporal link prediction that cannot see the future.
//!
//! A stream of timed interactions says who met whom, when, and with what features. This library answers who will meet whom next,
//! and says honestly how well it does. Its rooms are the path of an event:
//!
//! 1. [`read`] turns a file into a checked [`Dataset`](read::Dataset), or makes one up;
//! 2. [`graph`] keeps it in a log, and shows it through views that cannot see over their horizon;
//! 3. [`protocol`] decides which questions are asked and what counts as known;
//! 4. [`model`] turns questions into scores;
//! 5. [`metric`] turns scores into numbers;
//! 6. [`run`] joins the rooms, [`report`] shows what came of it, and [`live`] lets a model answer while its log grows.
//!
//! Released code in this field leaks labels: from the way a batch is prepared a scorer can find out which candidates are true.
//! Here a model gets [`Queries`](protocol::Queries), which have no labels, and a [`Past`](graph::Past), which answers only for a
//! node at a time and shows only what is strictly before it. What types cannot forbid, [`model::laws`] checks. The alternative, one
//! forward pass over positives and negatives with masks, is shorter to write and is how the leaks came about.
//!
//! # Example
//!
//! ```
//! use lstep::run::{
//!     Asked, Contender, Evaluation, ModelConfig, Part, Protocol, Setting, Strategy, Stream, StreamProtocol, SyntheticConfig,
//!     generate,
//! };
//!
//! let stream = Stream::from(generate(&SyntheticConfig { events: 4_000, ..SyntheticConfig::default() })?);
//! let report = Evaluation {
//!     protocol: Protocol::Stream(StreamProtocol::default()),
//!     asked: Asked {
//!         parts: vec![Part::Test],
//!         settings: vec![Setting::Transductive],
//!         strategies: vec![Strategy::Random],
//!     },
//!     contenders: vec![Contender::Fixed("edgebank".parse::<ModelConfig>()?)],
//!     read_negatives: None,
//!     write_negatives: None,
//! }
//! .run(&stream, &|_, _, _| ())?;
//! assert!(report.results[0].auc > 0.5);
//! # Ok::<(), lstep::Error>(())
//! ```
//!
//! A model that learns is trained in a folder from which it can go on, opened again, and used while further events come in:
//!
//! ```
//! use lstep::event::{Events, Features, NodeId, Time};
//! use lstep::live::Live;
//! use lstep::protocol::Queries;
//! use lstep::run::{DataConfig, Fit, ModelConfig, RunConfig, RunFolder, Stream, Trained};
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
//!     RunConfig::start(DataConfig::default(), ModelConfig::learned("lstep-pair")?, None)?.with(None, &settings)?;
//! # let place = tempfile::tempdir().expect("a folder");
//! # let path = place.path().join("run");
//! let folder = RunFolder::new(path);
//! Fit::begin(config, stream.clone(), folder.clone())?.run(&mut |_| true)?;
//!
//! // Later, perhaps in another program.
//! let trained = Trained::open_with(&folder, stream)?;
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

pub mod checkpoint;
pub mod draw;
pub mod error;
pub mod event;
mod fingerprint;
pub mod graph;
pub mod live;
pub mod metric;
pub mod model;
pub mod nn;
pub mod protocol;
pub mod read;
pub mod report;
pub mod run;

pub use error::{Error, Result};
