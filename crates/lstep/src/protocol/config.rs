//! The three protocols and what they have in common.

use super::dyglib::DyglibProtocol;
use super::eval_pass::{Part, Setting};
use super::negative::Strategy;
use super::numbering::Numbering;
use super::step::{StepRule, Visibility};
use super::stream::StreamProtocol;
use super::tgb::TgbProtocol;
use super::ties::Ties;
use crate::error::{Argument, Error, Remedy, Result};
use crate::event::{Events, Names};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// A way to evaluate, with its settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
#[serde(tag = "name", rename_all = "lowercase")]
pub enum Protocol {
    /// One stream that runs on; nobody sees ahead. The default.
    Stream(StreamProtocol),
    /// DyGLib's, bit for bit, for comparison with published tables.
    Dyglib(DyglibProtocol),
    /// The Temporal Graph Benchmark's, for comparison with its leaderboard.
    Tgb(TgbProtocol),
}

/// What a protocol asks about.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// The stream.
    pub events: &'a Events,
    /// Its nodes' names: the field's protocols depend on how nodes are numbered.
    pub names: &'a Names,
}

/// What is to be asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EvalScope {
    /// Which parts of the stream.
    pub parts: Vec<Part>,
    /// Which of their events.
    pub settings: Vec<Setting>,
    /// Against which negatives.
    pub strategies: Vec<Strategy>,
}

/// Settings of a protocol that somebody chooses. What is `None` stays as it is.
///
/// No protocol reads all of them: [`Protocol::options`] says which.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ProtocolOptions {
    /// Time quantiles at which validation and test begin.
    pub split: Option<(f64, f64)>,
    /// Where steps end.
    pub step: Option<StepRule>,
    /// What questions may see.
    pub visibility: Option<Visibility>,
    /// Share of all nodes that training does not get to know.
    pub held_out: Option<f64>,
    /// Negatives for each event.
    pub per_event: Option<usize>,
    /// At most this many events of a part are asked.
    pub questions: Option<usize>,
    /// Seed of held-out nodes and negatives.
    pub seed: Option<u64>,
    /// The order of events that share a time. Every protocol reads it.
    pub ties: Option<Ties>,
}

impl From<StreamProtocol> for Protocol {
    fn from(protocol: StreamProtocol) -> Protocol {
        Protocol::Stream(protocol)
    }
}

impl From<DyglibProtocol> for Protocol {
    fn from(protocol: DyglibProtocol) -> Protocol {
        Protocol::Dyglib(protocol)
    }
}

impl From<TgbProtocol> for Protocol {
    fn from(protocol: TgbProtocol) -> Protocol {
        Protocol::Tgb(protocol)
    }
}

impl Default for EvalScope {
    /// All events of the test part against random negatives.
    fn default() -> EvalScope {
        EvalScope {
            parts: vec![Part::Test],
            settings: vec![Setting::Transductive],
            strategies: vec![Strategy::Random],
        }
    }
}

impl Protocol {
    /// The names of all protocols.
    pub const NAMES: [&'static str; 3] = ["stream", "dyglib", "tgb"];

    /// A protocol by name, with its own settings for a dataset whose files are in a folder.
    pub fn named(name: &str, dataset: &str, folder: Option<PathBuf>) -> Result<Protocol> {
        match name {
            "stream" => Ok(Protocol::Stream(StreamProtocol::default())),
            "dyglib" => Ok(Protocol::Dyglib(DyglibProtocol::default())),
            "tgb" => Ok(Protocol::Tgb(TgbProtocol::for_dataset(dataset, folder))),
            _ => Err(Error::setting("protocol", name, "choose stream, dyglib or tgb")),
        }
    }

    /// Where the negatives that it needs are missing: the first file looked for. Only TGB's has
    /// files of its own, and makes negatives by its rule where there are none.
    pub fn missing_file(&self) -> Option<String> {
        let Protocol::Tgb(tgb) = self else { return None };
        let parts = [(Part::Validation, "val"), (Part::Test, "test")];
        let missing = parts.into_iter().find(|(part, _)| tgb.file(*part).is_none());
        missing.map(|(_, name)| format!("{}_{name}_ns.pkl", tgb.dataset))
    }

    /// The protocol of a dataset's published numbers: TGB's for its own datasets, else DyGLib's.
    pub fn of_published(dataset: &str, folder: Option<PathBuf>) -> Protocol {
        if TgbProtocol::has(dataset) {
            Protocol::Tgb(TgbProtocol::for_dataset(dataset, folder))
        } else {
            Protocol::Dyglib(DyglibProtocol::default())
        }
    }

    /// The options it reads, as its settings call them. `folder` is where TGB's files are.
    pub fn options(&self) -> &'static [&'static str] {
        match self {
            Protocol::Stream(_) => &[
                "split",
                "step",
                "visibility",
                "held_out",
                "per_event",
                "questions",
                "seed",
                "ties",
            ],
            Protocol::Dyglib(_) => &["step", "ties"],
            Protocol::Tgb(_) => &["step", "visibility", "per_event", "questions", "folder", "ties"],
        }
    }

    /// The names of the protocols that read an option.
    pub fn names_with(option: &str) -> Vec<&'static str> {
        let reads = |name: &&str| {
            Protocol::named(name, "", None)
                .is_ok_and(|protocol| protocol.options().contains(&option))
        };
        Protocol::NAMES.into_iter().filter(reads).collect()
    }

    /// The same with other settings. Options it does not read change nothing.
    pub fn with_options(mut self, options: &ProtocolOptions) -> Result<Protocol> {
        self = match options.ties {
            Some(ties) => self.with_ties(ties),
            None => self,
        };
        match &mut self {
            Protocol::Stream(stream) => {
                stream.split = options.split.unwrap_or(stream.split);
                stream.step = options.step.unwrap_or(stream.step);
                stream.visibility = options.visibility.unwrap_or(stream.visibility);
                stream.held_out = options.held_out.unwrap_or(stream.held_out);
                stream.per_event = options.per_event.unwrap_or(stream.per_event);
                stream.questions = options.questions.or(stream.questions);
                stream.seed = options.seed.unwrap_or(stream.seed);
            }
            Protocol::Dyglib(dyglib) => dyglib.step = events_of(options.step, dyglib.step)?,
            Protocol::Tgb(tgb) => {
                tgb.step = events_of(options.step, tgb.step)?;
                tgb.visibility = options.visibility.unwrap_or(tgb.visibility);
                tgb.per_event = options.per_event.unwrap_or(tgb.per_event);
                tgb.questions = options.questions.or(tgb.questions);
            }
        }
        Ok(self)
    }

    /// The same with this many events in a step.
    #[must_use]
    pub fn with_step(mut self, events: u32) -> Protocol {
        match &mut self {
            Protocol::Stream(stream) => stream.step = StepRule::Events(events),
            Protocol::Dyglib(dyglib) => dyglib.step = events,
            Protocol::Tgb(tgb) => tgb.step = events,
        }
        self
    }

    /// The order of events that share a time.
    pub fn ties(&self) -> Ties {
        match self {
            Protocol::Stream(stream) => stream.ties,
            Protocol::Dyglib(dyglib) => dyglib.ties,
            Protocol::Tgb(tgb) => tgb.ties,
        }
    }

    /// The order of the numbers that models call nodes by. The field's protocols draw by numbers, so
    /// theirs stay as they are.
    pub fn numbering(&self) -> Numbering {
        match self {
            Protocol::Stream(stream) => stream.numbering,
            Protocol::Dyglib(_) | Protocol::Tgb(_) => Numbering::Appearance,
        }
    }

    /// The same with another order of events that share a time.
    #[must_use]
    pub fn with_ties(mut self, ties: Ties) -> Protocol {
        match &mut self {
            Protocol::Stream(stream) => stream.ties = ties,
            Protocol::Dyglib(dyglib) => dyglib.ties = ties,
            Protocol::Tgb(tgb) => tgb.ties = ties,
        }
        self
    }

    /// Its name as the user writes it.
    pub fn name(&self) -> &'static str {
        match self {
            Protocol::Stream(_) => "stream",
            Protocol::Dyglib(_) => "dyglib",
            Protocol::Tgb(_) => "tgb",
        }
    }

    /// What it is, in a sentence for reports.
    pub fn about(&self) -> &'static str {
        match self {
            Protocol::Stream(_) => {
                "one stream that runs on from training through validation to test, and nobody sees \
                 ahead"
            }
            Protocol::Dyglib(_) => {
                "the field's habit, bit for bit: splits and negatives are those behind published \
                 tables"
            }
            Protocol::Tgb(_) => "the Temporal Graph Benchmark's: its negatives, and ranks",
        }
    }

    /// The only negatives it asks about, if they are not to be chosen. Epochs are then selected by
    /// their MRR.
    pub fn own_negatives(&self) -> Option<Strategy> {
        match self {
            Protocol::Stream(_) | Protocol::Dyglib(_) => None,
            Protocol::Tgb(_) => Some(Strategy::Tgb),
        }
    }

    /// Everything it asks of the test part. TGB's tables give validation, too.
    pub fn full_scope(&self) -> EvalScope {
        let mut scope = EvalScope {
            parts: vec![Part::Test],
            settings: vec![Setting::Transductive],
            strategies: Strategy::DRAWN.to_vec(),
        };
        match self {
            Protocol::Stream(_) => {}
            Protocol::Dyglib(_) => scope.settings.push(Setting::Inductive),
            Protocol::Tgb(_) => scope.parts.insert(0, Part::Validation),
        }
        self.scope(&scope)
    }

    /// What it asks where this is wanted: a protocol with negatives of its own asks about these,
    /// in the transductive setting.
    pub fn scope(&self, wanted: &EvalScope) -> EvalScope {
        match self.own_negatives() {
            Some(own) => EvalScope {
                parts: wanted.parts.clone(),
                settings: vec![Setting::Transductive],
                strategies: vec![own],
            },
            None => wanted.clone(),
        }
    }

    /// Asks each event against this many negatives, and at most so many events of a part; what is
    /// not given stays. Refused by a protocol that fixes its questions; TGB's lets fewer be asked.
    pub fn set_questions(
        &mut self,
        per_event: Option<usize>,
        questions: Option<usize>,
    ) -> Result<()> {
        match self {
            Protocol::Stream(stream) => {
                stream.per_event = per_event.unwrap_or(stream.per_event);
                stream.questions = questions.or(stream.questions);
            }
            Protocol::Tgb(tgb) if per_event.is_none() => {
                tgb.questions = questions.or(tgb.questions);
            }
            Protocol::Tgb(_) | Protocol::Dyglib(_) => {
                let remedy = Remedy::LeaveOut(&[Argument::PerEvent, Argument::Questions]);
                let problem = "it settles what is asked";
                return Err(Error::refused("protocol", self.name(), problem, remedy));
            }
        }
        Ok(())
    }

    /// The same without the places of files, which may move.
    #[must_use]
    pub fn without_places(mut self) -> Protocol {
        if let Protocol::Tgb(tgb) = &mut self {
            tgb.folder = None;
        }
        self
    }

    /// Where training's steps end.
    pub fn step(&self) -> StepRule {
        match self {
            Protocol::Stream(stream) => stream.step,
            Protocol::Dyglib(dyglib) => StepRule::Events(dyglib.step),
            Protocol::Tgb(tgb) => StepRule::Events(tgb.step),
        }
    }

    /// What questions may see.
    pub fn visibility(&self) -> Visibility {
        match self {
            Protocol::Stream(stream) => stream.visibility,
            Protocol::Dyglib(_) => Visibility::Event,
            Protocol::Tgb(tgb) => tgb.visibility,
        }
    }
}

/// The events in a step of a protocol whose steps are counted.
fn events_of(step: Option<StepRule>, otherwise: u32) -> Result<u32> {
    match step {
        None => Ok(otherwise),
        Some(StepRule::Events(events)) => Ok(events),
        Some(StepRule::DistinctTime) => {
            Err(Error::setting("step", "time", "give a number of events, at least 1"))
        }
    }
}
