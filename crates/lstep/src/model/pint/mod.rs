//! PINT: memories, and neighbours summed with a decay, each with its place relative to the pair.
//!
//! Souza, Mesquita, Kaski and Garg, "Provably expressive temporal graph networks", NeurIPS 2022,
//! <https://arxiv.org/abs/2209.15059>, in the form of TPNet's authors, whose settings these are and
//! whose figures are compared with. Memories m' with pending messages applied are TGN's, see
//! [`memory`](super::memory); a node's first vector is h_0 = m' plus its features [d]. The vector of
//! the root u of a pair with target v at t looks at the K events of u before t, whose other nodes
//! look at K events before those. For a node w at time s, with N events k of time t_k and features
//! e_k, and for layer l = 1, 2
//!
//! ```text
//! z_k = A' relu(A [h_(l-1) of k | e_k | r_u(k) | r_v(k)] + a) + a'       A [d, d + d_E + 8]
//! c   = sum over k of 2^(-decay (s - t_k) / sqrt(N + 1e-4)) z_k
//! h_l = B' relu(B [c | h_0 | r_u(w) | r_v(w)] + b) + b'                  B [d, 2 d + 8]
//! ```
//!
//! where r_i(w) [4] says where w stands relative to i, see [`PintPositions`]. The logit is the
//! field's [`Predictor`] of h_u and h_v, each the root of its own with the other as target.
//!
//! `positions = "walks"` is the paper's: r_i(w) are the shares of walks of 0 to 3 steps back in time
//! from i to w, over their sum plus 1e-4. In the code that the published figures are of, the counts
//! are shifted the wrong way and stay what they are at the start, so r_i(w) is (1 / 1.0001, 0, 0, 0)
//! if w is i and zeros otherwise: `positions = "identity"`, the default.
//!
//! A' goes behind the sum: once for a node and not for an event. A splits, so its product with a
//! vector is made once for whoever is looked at, and its product with a position once for every
//! distinct one. Two nodes whose events, and positions of all of them, are the same are encoded once:
//! with identity positions most candidates of a source see the same source.
//!
//! Where the released code differs: among the messages of one step it keeps, for a node that was
//! source and destination, the last one as destination even if it is not the newest. With walks, it
//! takes the events of a step at once; here they count one by one.

mod config;
mod kind;
mod positions;

pub use config::{PintConfig, PintPositions};
pub use kind::PintKind;

use super::batch::PairBatch;
use super::dyrep::MemoryReadout;
use super::encoder::{
    Chunk, Encoded, ForwardContext, Mode, NoEncoder, NodeEncoder, ObserveScratch, PairHead,
};
use super::memory::{
    Cell, CellKind, MemoryMessage, MemoryNet, MemoryScratch, MemoryState, NodePlaces, ProductCache,
};
use super::mlp::added_to;
use super::neighbours::{NeighbourBatch, Sampling};
use super::scratch::FeatureWidths;
use super::{Composite, StreamInfo};
use crate::checkpoint::Checkpoint;
use crate::error::Result;
use crate::event::{Event, NodeId};
use crate::graph::{Neighbour, Past, Revealed};
use crate::nn::{Linear, Predictor, TimeEncoder};
use lstep_tensor::{Activation, Pair, Parameters, Segments, Tape, Var, Weighting};
use positions::{Positions, WIDTH as POSITION_WIDTH, Walks};
use rustc_hash::FxHashMap;

/// What keeps a node without events from dividing by zero.
const EPSILON: f64 = 1e-4;

/// PINT.
pub type Pint = Composite<NoEncoder, PintHead>;

impl Pint {
    /// A model with weights drawn from a seed.
    pub fn new(config: PintConfig, seed: u64) -> Result<Pint> {
        Composite::build(seed, |parameters| {
            config.check()?;
            Ok((NoEncoder, PintHead::add(parameters, config)))
        })
    }
}

/// TGN's memories; nobody reads them out but the head.
type Memory = MemoryNet<MemoryMessage, MemoryReadout>;

/// The head that encodes both nodes of a pair with a view to each other.
#[derive(Debug, Clone)]
pub struct PintHead {
    config: PintConfig,
    memory: Memory,
    layers: Vec<Layer>,
    predictor: Predictor,
}

/// The weights of a layer.
#[derive(Debug, Clone, Copy)]
struct Layer {
    /// A and a.
    look: Linear,
    /// A' and a'.
    see: Linear,
    /// B and b.
    merge_in: Linear,
    /// B' and b'.
    merge_out: Linear,
}

/// Memories, and counts of walks where they are asked for.
#[derive(Debug, Clone)]
pub struct PintState {
    memory: MemoryState<ProductCache>,
    walks: Walks,
}

/// Lists of a call.
#[derive(Default)]
pub struct Lists {
    observing: ObserveScratch<MemoryScratch<NodePlaces, ()>>,
    first: NeighbourBatch,
    second: NeighbourBatch,
    nodes: NodePlaces,
    positions: Positions,
    /// The encodings to be made, by layer.
    wanted: [Wanted; 2],
    key: Vec<u32>,
}

/// The distinct encodings of a layer.
#[derive(Default)]
struct Wanted {
    /// What was asked for already: own node and position, then everybody who is looked at.
    places: FxHashMap<Vec<u32>, u32>,
    /// The place of each encoding's own node.
    own: Vec<u32>,
    own_positions: Vec<u32>,
    offsets: Vec<u32>,
    /// Who is looked at: the place of a node, or of an encoding of the layer below.
    looked_at: Vec<u32>,
    positions: Vec<u32>,
    weights: Vec<f32>,
    /// The sum of an encoding's weights.
    sums: Vec<f32>,
    events: Vec<Neighbour>,
}

impl Wanted {
    fn clear(&mut self) {
        self.places.clear();
        self.own.clear();
        self.own_positions.clear();
        self.offsets.clear();
        self.offsets.push(0);
        self.looked_at.clear();
        self.positions.clear();
        self.weights.clear();
        self.sums.clear();
        self.events.clear();
    }

    /// The place of an encoding. The key is the seed's number, its node's place and position, and
    /// for each event who is looked at and its position.
    fn place(&mut self, key: &[u32], span: Span<'_>, decay: f64) -> u32 {
        if let Some(&place) = self.places.get(key) {
            return place;
        }
        let place = self.own.len() as u32;
        self.places.insert(key.to_vec(), place);
        self.own.push(key[1]);
        self.own_positions.push(key[2]);
        let root = (span.events.len() as f64 + EPSILON).sqrt();
        let weights = span.ages.iter().map(|age| (-decay * age / root).exp2() as f32);
        let first = self.weights.len();
        self.weights.extend(weights);
        self.sums.push(self.weights[first..].iter().sum());
        for looked_at in key[3..].chunks(2) {
            self.looked_at.push(looked_at[0]);
            self.positions.push(looked_at[1]);
        }
        self.events.extend_from_slice(span.events);
        self.offsets.push(self.looked_at.len() as u32);
        place
    }
}

/// The events that a seed looks at.
#[derive(Clone, Copy)]
struct Span<'a> {
    events: &'a [Neighbour],
    ages: &'a [f64],
}

/// The spans of all seeds.
fn spans(batch: &NeighbourBatch) -> Vec<Span<'_>> {
    let span = |span: std::ops::Range<u32>| {
        let span = span.start as usize..span.end as usize;
        Span { events: &batch.neighbours()[span.clone()], ages: &batch.ages()[span] }
    };
    batch.spans().map(span).collect()
}

impl PintHead {
    fn add(parameters: &mut Parameters, config: PintConfig) -> PintHead {
        let PintConfig { time_width, node_width: width, edge_width: edge, .. } = config;
        let time = TimeEncoder::add(parameters, time_width);
        let message = 2 * width + time_width + edge;
        let cell = Cell::add(parameters, "updater", CellKind::Gru, message, width);
        let widths = FeatureWidths { node: width, edge };
        let memory = MemoryNet::new(widths, time, cell, MemoryMessage, MemoryReadout);
        let layer = |parameters: &mut Parameters, number: usize| {
            let mut part = |name: &str, inputs: usize| {
                Linear::add(parameters, &format!("layer.{number}.{name}"), inputs, width)
            };
            Layer {
                look: part("look", width + edge + POSITION_WIDTH),
                see: part("see", width),
                merge_in: part("merge.in", 2 * width + POSITION_WIDTH),
                merge_out: part("merge.out", width),
            }
        };
        let layers = (0..config.layers).map(|number| layer(parameters, number)).collect();
        let predictor = Predictor::add(parameters, width);
        PintHead { config, memory, layers, predictor }
    }

    /// Lists what has to be encoded; tells for each pair the encodings of its two nodes.
    fn plan(
        &self,
        past: Past<'_>,
        walks: &Walks,
        pairs: &PairBatch,
        lists: &mut Lists,
    ) -> [Vec<u32>; 2] {
        let Lists { first, second, nodes, positions, wanted, key, .. } = lists;
        let PintConfig { recent, layers, decay, positions: kind, .. } = self.config;
        nodes.clear();
        positions.clear();
        wanted.iter_mut().for_each(Wanted::clear);
        first.gather(past, pairs.seeds(), recent, Sampling::Recent);
        let (frontier, next) =
            if layers == 2 { first.frontier() } else { (Vec::new(), Vec::new()) };
        second.gather(past, &frontier, recent, Sampling::Recent);
        let (first_spans, second_spans) = (spans(first), spans(second));
        let begins: Vec<u32> = first.spans().map(|span| span.start).collect();
        let [below, top] = wanted;
        let mut side = |number: u32, target: NodeId| {
            let root = pairs.seeds()[number as usize].node();
            let ends = (root, target);
            let mut looked_at = Vec::new();
            let span = first_spans[number as usize];
            for (event, neighbour) in (begins[number as usize] as usize..).zip(span.events) {
                let position = positions.place(kind, walks, ends, neighbour.node());
                if layers == 1 {
                    looked_at.extend([nodes.place(neighbour.node()), position]);
                    continue;
                }
                let seed = next[event];
                key.clear();
                key.extend([seed, nodes.place(neighbour.node()), position]);
                let span = second_spans[seed as usize];
                for other in span.events {
                    let position = positions.place(kind, walks, ends, other.node());
                    key.extend([nodes.place(other.node()), position]);
                }
                looked_at.extend([below.place(key, span, decay), position]);
            }
            key.clear();
            key.extend([number, nodes.place(root), positions.place(kind, walks, ends, root)]);
            key.extend(looked_at);
            top.place(key, span, decay)
        };
        let (mut sources, mut candidates) = (Vec::new(), Vec::new());
        for (&source, &candidate) in pairs.sources().iter().zip(pairs.candidates()) {
            let node = |number: u32| pairs.seeds()[number as usize].node();
            sources.push(side(source, node(candidate)));
            candidates.push(side(candidate, node(source)));
        }
        [sources, candidates]
    }

    /// The encodings of a layer, [encodings, d]: `below` has the vectors that are looked at,
    /// `vectors` those of nodes.
    fn encode<'t>(
        &self,
        tape: &mut Tape<'t>,
        past: Past<'t>,
        layer: Layer,
        wanted: &Wanted,
        (below, vectors, positions): (Var, Var, Var),
    ) -> Var {
        let (width, edge) = (self.config.node_width, self.config.edge_width);
        let columns = |tape: &mut Tape<'t>, linear: Linear, range: std::ops::Range<usize>| {
            let weight = tape.parameter(linear.weight);
            tape.columns(weight, range)
        };
        let plain = Activation::Identity;
        let weight = columns(tape, layer.look, 0..width);
        let bias = tape.parameter(layer.look.bias);
        let seen = tape.linear(below, weight, Some(bias), plain);
        let weight = columns(tape, layer.look, width + edge..width + edge + POSITION_WIDTH);
        let placed = tape.linear(positions, weight, None, plain);
        let mut u_rows = tape.indices(wanted.looked_at.iter().copied());
        let v_rows = tape.indices(wanted.positions.iter().copied());
        let features = super::encoder::edge_features(tape, past, &wanted.events);
        let seen = match features {
            None => seen,
            Some((table, rows)) => {
                let features = tape.gather(table, rows);
                let weight = columns(tape, layer.look, width..width + tape.shape(features).1);
                let seen = tape.gather(seen, u_rows);
                u_rows = tape.indices(0..wanted.looked_at.len() as u32);
                tape.layer(features, weight, None, added_to(seen))
            }
        };
        let pair = Pair { u: seen, u_rows, v: placed, v_rows };
        let seen = tape.gather_pair(pair, None, Activation::Relu);
        let offsets = tape.indices(wanted.offsets.iter().copied());
        let weights = tape.constant(1, wanted.weights.len(), &wanted.weights);
        let weighting = Weighting::By { weights, slots: None };
        let sum = tape.segment_sum(seen, Segments { rows: None, offsets }, weighting);
        // A' of the sum, and a' as often as it was added.
        let sums = tape.constant(wanted.sums.len(), 1, &wanted.sums);
        let bias = tape.parameter(layer.see.bias);
        let bias = tape.reshape(bias, width, 1);
        let often = tape.linear(sums, bias, None, plain);
        let weight = tape.parameter(layer.see.weight);
        let sum = tape.layer(sum, weight, None, added_to(often));

        let weight = columns(tape, layer.merge_in, width..2 * width);
        let own = tape.linear(vectors, weight, None, plain);
        let rows = tape.indices(wanted.own.iter().copied());
        let own = tape.gather(own, rows);
        let weight = columns(tape, layer.merge_in, 0..width);
        let bias = tape.parameter(layer.merge_in.bias);
        let u = tape.layer(sum, weight, Some(bias), added_to(own));
        let weight = columns(tape, layer.merge_in, 2 * width..2 * width + POSITION_WIDTH);
        let v = tape.linear(positions, weight, None, plain);
        let u_rows = tape.indices(0..wanted.own.len() as u32);
        let v_rows = tape.indices(wanted.own_positions.iter().copied());
        let inner = tape.gather_pair(Pair { u, u_rows, v, v_rows }, None, Activation::Relu);
        layer.merge_out.apply(tape, inner, plain)
    }
}

impl PairHead<NoEncoder> for PintHead {
    type State = PintState;
    type Scratch = Lists;
    type Prepared = ();

    fn feature_widths(&self, _: &NoEncoder) -> FeatureWidths {
        FeatureWidths { node: self.config.node_width, edge: self.config.edge_width }
    }

    fn chunk(&self, _: &NoEncoder, mode: Mode) -> Chunk {
        let pairs = match mode {
            Mode::Train => 100,
            Mode::Score => 256,
        };
        Chunk { seeds: usize::MAX, pairs }
    }

    fn init(&self, info: &StreamInfo) -> PintState {
        PintState { memory: self.memory.init(info), walks: Walks::default() }
    }

    fn prepare(&self, _: &NoEncoder, _: &Parameters, _: Past<'_>) {}

    fn logits<'t>(
        &'t self,
        context: &mut ForwardContext<'_, 't>,
        state: &'t PintState,
        _: &Encoded,
        pairs: &PairBatch,
        _: Option<&'t ()>,
        lists: &mut Lists,
    ) -> Var {
        let past = context.past;
        let [sources, candidates] = self.plan(past, &state.walks, pairs, lists);
        let tape = &mut *context.tape;
        let memories = self.memory.view(&state.memory);
        let vectors = memories.vectors(tape, past, lists.nodes.items());
        let rows = lists.positions.rows();
        let positions = tape.constant(rows.len(), POSITION_WIDTH, rows.as_flattened());
        let [below, top] = &lists.wanted;
        let mut hidden = vectors;
        let wanted = if self.layers.len() == 2 { vec![below, top] } else { vec![top] };
        for (&layer, wanted) in self.layers.iter().zip(wanted) {
            hidden = self.encode(tape, past, layer, wanted, (hidden, vectors, positions));
        }
        let (sources, candidates) = (tape.indices(sources), tape.indices(candidates));
        self.predictor.apply(tape, (hidden, sources), (hidden, candidates))
    }

    fn observe(
        &self,
        parameters: &Parameters,
        known: Revealed<'_>,
        state: &mut PintState,
        step: &[Event],
        ObserveScratch { lists, .. }: &mut ObserveScratch<Lists>,
    ) {
        let observing = &mut lists.observing;
        let ahead = self.memory.ahead(parameters, known, &state.memory, step, observing);
        self.memory.observe(parameters, known, &mut state.memory, step, ahead, observing);
        if self.config.positions == PintPositions::Walks {
            state.walks.observe(step);
        }
    }

    fn save_state<'a>(&self, state: &'a PintState, checkpoint: &mut Checkpoint<'a>) {
        self.memory.save_state(&state.memory, checkpoint);
        if self.config.positions == PintPositions::Walks {
            state.walks.save(checkpoint);
        }
    }

    fn load_state(&self, info: &StreamInfo, checkpoint: &mut Checkpoint<'_>) -> Result<PintState> {
        let memory = self.memory.load_state(info, checkpoint)?;
        let walks = match self.config.positions {
            PintPositions::Walks => Walks::load(checkpoint)?,
            PintPositions::Identity => Walks::default(),
        };
        Ok(PintState { memory, walks })
    }
}
