//! The parts of a learned model: an encoder of nodes, and a head that scores pairs.
//!
//! A [`NodeEncoder`] turns seeds into vectors; a [`PairHead`] turns two vectors, and whatever it
//! looks up about the pair, into a logit. [`Composite`](super::Composite) joins the two into a
//! model that scores, learns, saves and resumes. A model that looks at both nodes together has a
//! head and [`NoEncoder`]; a model that encodes nodes apart has an encoder and the field's
//! [`Mlp`](super::Mlp) head.
//!
//! Both parts only read their state in a forward pass, and may use nothing but the seeds or pairs
//! they are given: not how many there are, not in which order, not which of them happened.

use super::StreamInfo;
use super::batch::{BatchOrder, PairBatch};
use super::diagnostic::Diagnostic;
use super::scratch::FeatureWidths;
use crate::checkpoint::Checkpoint;
use crate::error::Result;
use crate::event::Event;
use crate::graph::{Neighbour, Past, Revealed, Seed, draw_for};
use crate::rng::KeyedRng;
use lstep_tensor::{DropoutKey, Indices, Parameters, Tape, Var};

/// What a forward pass works with.
pub struct ForwardContext<'a, 't> {
    /// The tape that records operations.
    pub tape: &'a mut Tape<'t>,
    /// What happened before.
    pub past: Past<'t>,
    /// The weights; on the tape they are reached by their ids.
    pub parameters: &'t Parameters,
    /// Key of random choices: fixed while scoring, another in every training step.
    pub(super) key: u64,
    /// The head's first layer while scoring, where the encoder is to leave its last linear layers
    /// to it, see [`NodeEncoder::fold`].
    pub(super) first_layer: Option<&'t FirstLayer>,
}

impl<'t> ForwardContext<'_, 't> {
    /// Random numbers for a seed. They depend on the seed's time, its newest event and the training
    /// step, never on what else is in the batch or on how nodes are numbered, so that scores do not
    /// either.
    pub fn rng(&self, seed: Seed) -> KeyedRng {
        draw_for(self.past, seed, self.key)
    }

    /// Whether the head takes the inputs of the encoder's last linear layers.
    pub fn folds(&self) -> bool {
        self.first_layer.is_some()
    }

    /// The head's first layer, where it takes the inputs of the encoder's last linear layers or
    /// what its first layer makes of them.
    pub fn first_layer(&self) -> Option<&'t FirstLayer> {
        self.first_layer
    }

    /// The features of neighbours' events as rows of a table on the tape; nothing where the stream
    /// has none.
    pub fn edge_features<'n>(
        &mut self,
        neighbours: impl IntoIterator<Item = &'n Neighbour>,
    ) -> Option<(Var, Indices)> {
        edge_features(self.tape, self.past, neighbours)
    }
}

/// [`ForwardContext::edge_features`] for a tape outside of a forward pass.
pub(super) fn edge_features<'t, 'n>(
    tape: &mut Tape<'t>,
    past: Past<'t>,
    neighbours: impl IntoIterator<Item = &'n Neighbour>,
) -> Option<(Var, Indices)> {
    let width = past.event_feature_width();
    (width > 0).then(|| {
        let table = tape.borrow(past.event_feature_table(), width);
        (table, tape.indices(neighbours.into_iter().map(Neighbour::event)))
    })
}

/// How much a model takes at once. Scores do not depend on it; losses are added up piece by piece,
/// so while training it decides their last bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chunk {
    /// Distinct seeds: enough to fill vector units, few enough to stay in cache.
    pub seeds: usize,
    /// Pairs.
    pub pairs: usize,
}

/// What a chunk is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Gradients are wanted.
    Train,
    /// Only logits are wanted.
    Score,
}

/// What an encoder hands to a head.
#[derive(Debug, Clone, Default)]
pub struct Encoded {
    /// The seeds' vectors, a row each: [seeds, width]; or, where the head folds, the inputs of the
    /// encoder's last linear layers, [seeds, inputs]. Nothing without an encoder.
    pub hidden: Option<Var>,
    /// The seeds' vectors as candidates, where they differ from those as sources.
    pub as_candidates: Option<Var>,
    /// What the head's first layer makes of the seeds, for an encoder that keeps that by node. The
    /// vectors themselves are absent then.
    pub sides: Option<Sides>,
    /// Further vectors that a head may compare between the two nodes of a pair.
    pub compare: Option<Compare>,
}

/// A head's first layer over the inputs of an encoder's last linear layers, see
/// [`NodeEncoder::fold`]: one for sources, one for candidates, and all biases together.
#[derive(Debug)]
pub struct FirstLayer {
    /// [width, inputs], for the source of a pair.
    pub source: Vec<f32>,
    /// [width, inputs], for its candidate.
    pub candidate: Vec<f32>,
    /// [1, width].
    pub bias: Vec<f32>,
    /// How many numbers it takes of a seed.
    pub inputs: usize,
}

/// Products of a head's first layer, without its bias.
#[derive(Debug, Clone)]
pub struct Sides {
    /// As sources, [n, width].
    pub source: Var,
    /// As candidates, [n, width].
    pub candidate: Var,
    /// For each seed its row of the products; without it rows are those of seeds.
    pub rows: Option<Vec<u32>>,
}

/// Vectors to compare.
#[derive(Debug, Clone)]
pub struct Compare {
    /// [n, width].
    pub vectors: Var,
    /// For each seed its row of the vectors; without it rows are those of seeds.
    pub rows: Option<Vec<u32>>,
}

/// Turns seeds into vectors.
pub trait NodeEncoder: Clone + Send + Sync + 'static {
    /// What passing events leave behind.
    type State: Clone + Send + Sync;

    /// Lists that each call fills anew; only their memory is kept.
    type Scratch: Default + Send;

    /// What can be computed before a step changes the state, see [`NodeEncoder::ahead`].
    type Ahead: Default + Send;

    /// Widths of node and event features that the weights have room for.
    fn feature_widths(&self) -> FeatureWidths;

    /// How much is encoded at once.
    fn chunk(&self, mode: Mode) -> Chunk;

    /// In which order the pairs of a training batch stand.
    fn order(&self) -> BatchOrder {
        BatchOrder::ByEvent
    }

    /// Into how many lanes a training batch is cut unless the settings say otherwise. Each lane has
    /// gradients of its own, so the number decides the last bits.
    fn lanes(&self) -> usize {
        4
    }

    /// The state before the first event.
    fn init(&self, info: &StreamInfo) -> Self::State;

    /// Whether the state can be learned from yet.
    fn is_ready(&self, _: &Self::State) -> bool {
        true
    }

    /// The vectors of seeds. A vector depends on its seed alone.
    fn encode<'t>(
        &'t self,
        context: &mut ForwardContext<'_, 't>,
        state: &'t Self::State,
        seeds: &[Seed],
        scratch: &mut Self::Scratch,
    ) -> Encoded;

    /// Whether the last layers are linear and [`NodeEncoder::fold`] can push a head's first layer
    /// through them.
    fn folds(&self) -> bool {
        false
    }

    /// For a layer of vectors, W h with W [out, width], the layer of the inputs of the encoder's
    /// last linear layers: weight [out, inputs] and bias [1, out].
    fn fold(&self, _: &mut Tape<'_>, _: Past<'_>, _: Var) -> (Var, Var) {
        unreachable!("only an encoder that folds is asked to")
    }

    /// The whole loss of a batch, from that of the predictions. An encoder with a loss of its own
    /// adds it here.
    fn total_loss(
        &self,
        _: &mut Tape<'_>,
        prediction: Var,
        _: &Encoded,
        _: LossBatch<'_>,
        _: &Self::Scratch,
    ) -> Var {
        prediction
    }

    /// What a step's events will make of the state, computed from the state as it is. While
    /// training it runs beside the backward pass.
    fn ahead(
        &self,
        _: &Parameters,
        _: Revealed<'_>,
        _: &Self::State,
        _: &[Event],
        _: &mut ObserveScratch<Self::Scratch>,
    ) -> Self::Ahead {
        Self::Ahead::default()
    }

    /// Lets a step's events change the state.
    fn observe(
        &self,
        parameters: &Parameters,
        known: Revealed<'_>,
        state: &mut Self::State,
        step: &[Event],
        ahead: Self::Ahead,
        scratch: &mut ObserveScratch<Self::Scratch>,
    );

    /// Writes the state into a checkpoint.
    fn save_state<'a>(&self, state: &'a Self::State, checkpoint: &mut Checkpoint<'a>);

    /// Reads the state that [`NodeEncoder::save_state`] wrote.
    fn load_state(&self, info: &StreamInfo, checkpoint: &mut Checkpoint<'_>)
    -> Result<Self::State>;

    /// What it has learned, for people to look at.
    fn describe(&self, _: &Parameters, _: &Self::State) -> Vec<Diagnostic> {
        Vec::new()
    }
}

/// Working memory of an observation.
#[derive(Default)]
pub struct ObserveScratch<L> {
    /// The memory of tapes.
    pub workspace: lstep_tensor::Workspace,
    /// The part's own lists.
    pub lists: L,
    /// What dropout is drawn from while training; nothing while scoring.
    pub dropout: Option<DropoutKey>,
}

/// The pairs of a loss: which happened, and which did not.
#[derive(Debug, Clone, Copy)]
pub struct LossBatch<'a> {
    /// All pairs.
    pub pairs: &'a PairBatch,
    /// In which order they stand.
    pub order: BatchOrder,
    /// How many of them happened.
    pub positives: usize,
}

impl LossBatch<'_> {
    /// The place of an event among the pairs.
    pub fn positive(&self, event: usize) -> usize {
        match self.order {
            BatchOrder::ByEvent => event * (self.pairs.len() / self.positives),
            BatchOrder::PositivesFirst => event,
        }
    }

    /// The places of an event's negatives among the pairs.
    pub fn negatives(&self, event: usize) -> std::ops::Range<usize> {
        let each = self.pairs.len() / self.positives - 1;
        let first = match self.order {
            BatchOrder::ByEvent => event * (each + 1) + 1,
            BatchOrder::PositivesFirst => self.positives + event * each,
        };
        first..first + each
    }
}

/// Turns pairs into logits.
pub trait PairHead<E: NodeEncoder>: Clone + Send + Sync + 'static {
    /// What passing events leave behind.
    type State: Clone + Send + Sync;

    /// Lists that each call fills anew; only their memory is kept.
    type Scratch: Default + Send;

    /// What scoring computes from the weights alone, once until they change.
    type Prepared: Send + Sync + 'static;

    /// Widths of node and event features that the weights have room for; those of the encoder where
    /// the head reads none itself.
    fn feature_widths(&self, encoder: &E) -> FeatureWidths {
        encoder.feature_widths()
    }

    /// How much is scored or learned at once.
    fn chunk(&self, encoder: &E, mode: Mode) -> Chunk {
        encoder.chunk(mode)
    }

    /// The state before the first event.
    fn init(&self, info: &StreamInfo) -> Self::State;

    /// The state before the first event of a training epoch, see
    /// [`Model::begin_epoch`](super::Model::begin_epoch).
    fn init_epoch(&self, info: &StreamInfo, _epoch: u32) -> Self::State {
        self.init(info)
    }

    /// The first layer among what was prepared, for an encoder that folds.
    fn first_layer<'p>(&self, _: &'p Self::Prepared) -> Option<&'p FirstLayer> {
        None
    }

    /// Computes what scoring needs of the weights alone.
    fn prepare(&self, encoder: &E, parameters: &Parameters, past: Past<'_>) -> Self::Prepared;

    /// A logit for each pair, [pairs, 1]. It depends on the pair's two seeds alone. `prepared` is
    /// given while scoring.
    fn logits<'t>(
        &'t self,
        context: &mut ForwardContext<'_, 't>,
        state: &'t Self::State,
        encoded: &Encoded,
        pairs: &PairBatch,
        prepared: Option<&'t Self::Prepared>,
        scratch: &mut Self::Scratch,
    ) -> Var;

    /// Lets a step's events change the state; a head that keeps none has nothing to do.
    fn observe(
        &self,
        _parameters: &Parameters,
        _known: Revealed<'_>,
        _state: &mut Self::State,
        _step: &[Event],
        _scratch: &mut ObserveScratch<Self::Scratch>,
    ) {
    }

    /// Writes the state into a checkpoint.
    fn save_state<'a>(&self, state: &'a Self::State, checkpoint: &mut Checkpoint<'a>);

    /// Reads the state that [`PairHead::save_state`] wrote.
    fn load_state(&self, info: &StreamInfo, checkpoint: &mut Checkpoint<'_>)
    -> Result<Self::State>;
}

/// No encoder: the head looks at both nodes itself.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoEncoder;

impl NodeEncoder for NoEncoder {
    type State = ();
    type Scratch = ();
    type Ahead = ();

    fn feature_widths(&self) -> FeatureWidths {
        FeatureWidths { node: usize::MAX, edge: usize::MAX }
    }

    fn chunk(&self, _: Mode) -> Chunk {
        Chunk { seeds: usize::MAX, pairs: 256 }
    }

    fn init(&self, _: &StreamInfo) {}

    fn encode<'t>(
        &'t self,
        _: &mut ForwardContext<'_, 't>,
        (): &'t (),
        _: &[Seed],
        (): &mut (),
    ) -> Encoded {
        Encoded::default()
    }

    fn observe(
        &self,
        _: &Parameters,
        _: Revealed<'_>,
        (): &mut (),
        _: &[Event],
        (): (),
        _: &mut ObserveScratch<()>,
    ) {
    }

    fn save_state<'a>(&self, (): &'a (), _: &mut Checkpoint<'a>) {}

    fn load_state(&self, _: &StreamInfo, _: &mut Checkpoint<'_>) -> Result<()> {
        Ok(())
    }
}
