//! The three protocols and what they have in common.

use super::dyglib::DyglibProtocol;
use super::eval_pass::{Part, Setting};
use super::negative::Strategy;
use super::step::{StepRule, Visibility};
use super::stream::StreamProtocol;
use super::tgb::TgbProtocol;
use crate::event::{Events, Names};
use serde::{Deserialize, Serialize};

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
    /// Its name as the user writes it.
    pub fn name(&self) -> &'static str {
        match self {
            Protocol::Stream(_) => "stream",
            Protocol::Dyglib(_) => "dyglib",
            Protocol::Tgb(_) => "tgb",
        }
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
