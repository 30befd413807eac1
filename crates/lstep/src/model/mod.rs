//! Questions to scores.
//!
//! A [`Model`] scores [`Queries`] from a [`Past`] and a state, reading only, and lets true events
//! change the state, writing only. Nothing else reaches it: there are no labels in the queries and
//! no future in the past. A [`Session`] is a model joined with its state, so that the loops above
//! need not know which model they run. [`laws`](crate::audit::laws) says what every model has to
//! keep. Depends on `graph` and `query`.

mod batch;
mod cache;
mod cawn;
mod checks;
mod composite;
mod config;
mod counting;
mod ctan;
mod diagnostic;
mod dygformer;
mod dyrep;
mod edgebank;
mod encoder;
mod feature_rows;
pub mod features;
mod freedyg;
mod graphmixer;
mod heuristic;
mod jodie;
mod lstep;
pub mod memory;
mod mlp;
mod nat;
mod neighbours;
mod newest;
mod objective;
mod occurrence;
mod pint;
mod popularity;
#[cfg(test)]
pub(crate) mod ranks_fixture;
mod reduce;
pub mod registry;
mod rows;
mod scratch;
mod silence;
mod state_size;
mod tcl;
mod tgat;
mod tgn;
mod tncn;
mod tpnet;
mod trainer;

pub use batch::{BatchOrder, PairBatch};
pub use cache::{NodeCache, Stamp};
pub use cawn::{Cawn, CawnConfig, CawnHead, CawnKind, WalkLaw};
pub(crate) use composite::with_most_weights;
pub use composite::{Composite, CompositeState};
pub use config::{AnySettings, ModelConfig};
pub(crate) use config::{merge, value_of};
pub use counting::{Counting, counting_trainer};
pub use ctan::{Ctan, CtanConfig, CtanEncoder, CtanKind};
pub use diagnostic::Diagnostic;
pub(crate) use dygformer::ReleasedPadding;
pub use dygformer::{DyGFormer, DyGFormerConfig, DyGFormerHead, DyGFormerKind, Padding};
pub use dyrep::{DyRep, DyRepConfig, DyRepKind, MemoryReadout};
pub use edgebank::{EdgeBank, EdgeBankConfig, EdgeBankKind, Memory};
pub use encoder::{
    Chunk, Compare, Encoded, FirstLayer, ForwardContext, LossBatch, Mode, NoEncoder, NodeEncoder,
    ObserveScratch, PairHead, Sides,
};
pub use features::PairConfig;
pub use freedyg::{FreeDyG, FreeDyGConfig, FreeDyGHead, FreeDyGKind};
pub use graphmixer::{GraphMixer, GraphMixerConfig, GraphMixerEncoder, GraphMixerKind};
pub use heuristic::{Heuristic, HeuristicConfig, HeuristicKind, Signal};
pub use jodie::{Jodie, JodieConfig, JodieKind, ProjectionReadout};
pub(crate) use lstep::ReleasedLeak;
pub use lstep::{
    Aggregation, FilterBound, LSTEP, LSTEP_PAIR, Lstep, LstepConfig, LstepEncoder, LstepKind,
    LstepState, Movement, Positions, Run, Scope, Start, Stored, Untouched, Variant,
};
pub use mlp::Mlp;
pub use nat::{Nat, NatConfig, NatHead, NatKind};
pub use neighbours::{NeighbourBatch, Sampling};
pub use objective::Loss;
pub use pint::{Pint, PintConfig, PintHead, PintKind, PintPositions};
pub use popularity::{PopTrack, PopTrackConfig, PopTrackKind};
pub use reduce::{Exchange, LaneOrder, Local, Ranks, Reduce};
pub use registry::{AnyModelKind, ModelKind, ModelSettings};
pub use scratch::FeatureWidths;
pub use silence::{Moments, Silence};
pub use state_size::{EVENT_BYTES, NODE_BYTES, StateSize, state_size};
pub use tcl::{Tcl, TclConfig, TclHead, TclKind};
pub use tgat::{FirstLayers, Tgat, TgatConfig, TgatEncoder, TgatKind};
pub use tgn::{Tgn, TgnConfig, TgnKind};
pub use tncn::{Tncn, TncnConfig, TncnHead, TncnKind, TncnMode};
pub use tpnet::{MissingSlots, Projections, Tpnet, TpnetConfig, TpnetHead, TpnetKind};
pub use trainer::{
    LaneGradients, Learner, Negative, OptimizerConfig, TrainBatch, TrainContext, TrainStep,
    Trainer, new_trainer,
};

use crate::error::Result;
use crate::event::{Event, NodeSet, Time};
use crate::graph::{Past, Revealed};
use crate::query::{Queries, Scores};
use std::sync::Arc;

/// What a model may know of a stream before it sees any event.
#[derive(Debug, Clone, PartialEq)]
pub struct StreamInfo {
    /// How many nodes training knows; more may come, and nobody knows how many.
    pub nodes: usize,
    /// The first and last time of training.
    pub training: (Time, Time),
    /// How long nodes are silent between events of training.
    pub silence: Silence,
}

impl StreamInfo {
    /// Nodes and times alone; nothing is known of how long nodes are silent.
    pub fn new(nodes: usize, training: (Time, Time)) -> StreamInfo {
        StreamInfo { nodes, training, silence: Silence::default() }
    }

    /// What these events of training tell, in order; nothing if there are none.
    pub fn of(events: impl Iterator<Item = Event> + Clone) -> Option<StreamInfo> {
        let (mut ends, mut nodes): (Option<(Time, Time)>, _) = (None, NodeSet::default());
        for event in events.clone() {
            ends = Some((ends.map_or(event.time, |(first, _)| first), event.time));
            nodes.insert(event.source);
            nodes.insert(event.destination);
        }
        let training = ends?;
        let silence = Silence::of(training.0, events);
        Some(StreamInfo { nodes: nodes.len(), training, silence })
    }
}

/// How finely a model's state can follow the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// A step at a time: the step is part of the model's definition.
    Step,
    /// A moment at a time: one observation of many events leaves the same state as many
    /// observations of one.
    Timestamp,
}

/// A way to score candidates. Only [`Model::observe`] changes a state.
pub trait Model: Send + Sync {
    /// What passing events leave behind.
    type State: Clone + Send + Sync;

    /// The state before the first event.
    fn begin(&self, info: &StreamInfo) -> Self::State;

    /// The state before the first event of a training epoch. A model that draws its state anew in
    /// each draws it here.
    fn begin_epoch(&self, info: &StreamInfo, _epoch: u32) -> Self::State {
        self.begin(info)
    }

    /// How finely the state can follow.
    fn pace(&self) -> Pace {
        Pace::Step
    }

    /// A finite score for every candidate; higher is likelier.
    fn score(&self, past: Past<'_>, state: &Self::State, ask: &Queries) -> Result<Scores>;

    /// Lets true events change the state.
    fn observe(&self, known: Revealed<'_>, state: &mut Self::State, step: &[Event]) -> Result<()>;

    /// What it has learned, to be looked at; nothing if there is nothing to see.
    fn describe(&self, _: &Self::State) -> Vec<Diagnostic> {
        Vec::new()
    }
}

/// A model with its state, whichever model it is.
pub trait Session: Send + Sync {
    /// How finely the state can follow.
    fn pace(&self) -> Pace;
    /// A finite score for every candidate; higher is likelier.
    fn score(&self, past: Past<'_>, ask: &Queries) -> Result<Scores>;
    /// Lets true events change the state.
    fn observe(&mut self, known: Revealed<'_>, step: &[Event]) -> Result<()>;
    /// What it has learned, to be looked at; nothing if there is nothing to see.
    fn describe(&self) -> Vec<Diagnostic> {
        Vec::new()
    }
    /// Another session that starts from this state and goes its own way.
    fn fork(&self) -> Box<dyn Session>;
}

/// Joins a model with the state before the first event.
pub fn open<M: Model + 'static>(model: M, info: &StreamInfo) -> Box<dyn Session> {
    let state = model.begin(info);
    Box::new(Joined { model: Arc::new(model), state })
}

struct Joined<M: Model> {
    model: Arc<M>,
    state: M::State,
}

impl<M: Model + 'static> Session for Joined<M> {
    fn pace(&self) -> Pace {
        self.model.pace()
    }

    fn score(&self, past: Past<'_>, ask: &Queries) -> Result<Scores> {
        self.model.score(past, &self.state, ask)
    }

    fn observe(&mut self, known: Revealed<'_>, step: &[Event]) -> Result<()> {
        self.model.observe(known, &mut self.state, step)
    }

    fn describe(&self) -> Vec<Diagnostic> {
        self.model.describe(&self.state)
    }

    fn fork(&self) -> Box<dyn Session> {
        Box::new(Joined { model: Arc::clone(&self.model), state: self.state.clone() })
    }
}
