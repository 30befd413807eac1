//! The field's link predictor, two layers over the vectors of a pair, and what may stand beside it:
//! features of the pair, and vectors that are compared.

use super::StreamInfo;
use super::batch::{PairBatch, Role};
use super::encoder::{
    Encoded, FirstLayer, ForwardContext, NodeEncoder, ObserveScratch, PairHead, Sides,
};
use super::features::{CODE, INPUTS, PairConfig, PairState};
use crate::checkpoint::Checkpoint;
use crate::error::Result;
use crate::event::Event;
use crate::graph::{Past, Revealed, Seed};
use crate::nn::{Linear, Predictor};
use lstep_tensor::{
    Activation, Indices, Init, Pair, ParameterId, Parameters, Segments, Tape, Then, Var, Weighting,
    Workspace,
};
use std::sync::Arc;

/// y = w relu(W [h_u | h_v] + b + F(pair features) + C (c_u * c_v)) + d.
///
/// The summands F and C are optional; without an encoder h is absent and F stands alone. Where the
/// settings ask for filters over decayed walks, F reads their products as well.
#[derive(Debug, Clone)]
pub struct Mlp {
    predictor: Predictor,
    by_role: bool,
    features: Option<Features>,
    compare: Option<ParameterId>,
}

#[derive(Debug, Clone)]
struct Features {
    config: Arc<PairConfig>,
    /// Absent where all kinds of features are switched off.
    layers: Option<FeatureLayers>,
    /// Filters over decayed walks, as source and as candidate: [filters, INPUTS].
    filters: Option<[ParameterId; 2]>,
}

/// From a pair's features through two hidden layers to the predictor's.
#[derive(Debug, Clone, Copy)]
struct FeatureLayers {
    first: Linear,
    second: Linear,
    /// To the predictor's hidden layer, which has a bias of its own.
    out: ParameterId,
}

impl Mlp {
    /// Adds `predict.in` and `predict.out` for vectors of a width.
    pub fn add(parameters: &mut Parameters, width: usize) -> Mlp {
        let predictor = Predictor::add(parameters, width);
        Mlp { predictor, by_role: false, features: None, compare: None }
    }

    /// Multiplies each seed for the role it has and not for the other: fewer products, but rows are
    /// copied. Logits are the same bits; gradients are added in another order.
    #[must_use]
    pub fn by_role(self) -> Mlp {
        Mlp { by_role: true, ..self }
    }

    /// Adds `pair.*`: layers that read features of the pair and, if the settings ask for it, the
    /// products of the vectors that the encoder gives to compare, which have `compare` numbers.
    #[must_use]
    pub fn with_features(
        self,
        parameters: &mut Parameters,
        config: &PairConfig,
        compare: usize,
    ) -> Mlp {
        let width = self.predictor.width;
        let inner = |parameters: &mut Parameters, name: &str, inputs: usize| {
            parameters.add(name, width, inputs, Init::Linear { inputs })
        };
        let filters = (config.filters > 0).then(|| {
            ["pair.filters.source", "pair.filters.candidate"].map(|name| {
                parameters.add(name, config.filters, INPUTS, Init::Linear { inputs: INPUTS })
            })
        });
        let (inputs, hidden) = (config.width() + config.filters, config.hidden);
        let layers = (inputs > 0).then(|| FeatureLayers {
            first: Linear::add(parameters, "pair.first", inputs, hidden),
            second: Linear::add(parameters, "pair.second", hidden, hidden),
            out: inner(parameters, "pair.out.weight", hidden),
        });
        let positions = config.positions && compare > 0;
        let compare = positions.then(|| inner(parameters, "pair.positions.weight", compare));
        Mlp {
            features: Some(Features { config: Arc::new(config.clone()), layers, filters }),
            compare,
            ..self
        }
    }

    /// What sources and candidates bring to the hidden layer, and its bias.
    fn sides<'t>(
        &self,
        tape: &mut Tape<'t>,
        (hidden, as_candidates): (Var, Var),
        pairs: &PairBatch,
        folded: Option<&'t FirstLayer>,
    ) -> (Pair, Var) {
        let width = self.predictor.width;
        let ([to_u, to_v], bias) = match folded {
            None => {
                let weight = tape.parameter(self.predictor.inner.weight);
                let to = [0..width, width..2 * width].map(|columns| tape.columns(weight, columns));
                (to, tape.parameter(self.predictor.inner.bias))
            }
            Some(folded) => {
                let to = [&folded.source, &folded.candidate]
                    .map(|weight| tape.borrow(weight, folded.inputs));
                (to, tape.borrow(&folded.bias, width))
            }
        };
        let (u, u_rows) = self.side(tape, pairs.sources(), hidden, pairs.seeds().len(), to_u);
        let (v, v_rows) =
            self.side(tape, pairs.candidates(), as_candidates, pairs.seeds().len(), to_v);
        (Pair { u, u_rows, v, v_rows }, bias)
    }

    /// What sources and candidates bring to the hidden layer where the encoder has made it.
    fn made_sides<'t>(
        &self,
        tape: &mut Tape<'t>,
        sides: &Sides,
        pairs: &PairBatch,
        folded: Option<&'t FirstLayer>,
    ) -> (Pair, Var) {
        let [u_rows, v_rows] = [pairs.sources(), pairs.candidates()]
            .map(|numbers| rows_of(tape, numbers, sides.rows.as_deref()));
        let bias = match folded {
            None => tape.parameter(self.predictor.inner.bias),
            Some(folded) => tape.borrow(&folded.bias, self.predictor.width),
        };
        (Pair { u: sides.source, u_rows, v: sides.candidate, v_rows }, bias)
    }

    /// A role's products, and for each pair which of them is its own.
    fn side(
        &self,
        tape: &mut Tape<'_>,
        numbers: &[u32],
        hidden: Var,
        seeds: usize,
        weight: Var,
    ) -> (Var, Indices) {
        let role = self.by_role.then(|| Role::of(numbers, seeds));
        // Where nearly all seeds have the role, a few products too many cost less than copying the
        // others out.
        let role = role.filter(|role| tape.is_training() || role.seeds.len() * 8 <= seeds * 7);
        let Some(role) = role else {
            let inner = tape.linear(hidden, weight, None, Activation::Identity);
            return (inner, tape.indices(numbers.iter().copied()));
        };
        let chosen = tape.indices(role.seeds.iter().copied());
        let hidden = tape.gather(hidden, chosen);
        let inner = tape.linear(hidden, weight, None, Activation::Identity);
        (inner, tape.indices(role.rows.iter().copied()))
    }

    /// Scores with what is known of how active their sources are. Training has none of it: the term
    /// has no weights, and is for scores of different sources that are compared.
    fn with_activity(
        &self,
        context: &mut ForwardContext<'_, '_>,
        state: &PairState,
        weight: f64,
        pairs: &PairBatch,
        logits: Var,
    ) -> Var {
        if context.tape.is_training() {
            return logits;
        }
        let terms = context.tape.input(pairs.len(), 1, |terms| {
            for (term, &source) in terms.iter_mut().zip(pairs.sources()) {
                let seed = pairs.seeds()[source as usize];
                *term = (weight * state.activity(context.past, seed)) as f32;
            }
        });
        context.tape.add(logits, terms)
    }

    /// The hidden layer before its activation, where something stands beside the vectors.
    fn hidden_with_features<'t>(
        &self,
        context: &mut ForwardContext<'_, 't>,
        state: &PairState,
        vectors: Option<(Pair, Var)>,
        encoded: &Encoded,
        pairs: &PairBatch,
    ) -> Var {
        let past = context.past;
        let tape = &mut *context.tape;
        let mut inner = match vectors {
            Some((pair, bias)) => tape.gather_pair(pair, Some(bias), Activation::Identity),
            None => {
                let bias = tape.parameter(self.predictor.inner.bias);
                let same = tape.indices(std::iter::repeat_n(0, pairs.len()));
                tape.gather(bias, same)
            }
        };
        let features = self.features.as_ref();
        if let Some((features, layers)) = features.and_then(|f| Some((f, f.layers?))) {
            let width = features.config.width();
            let numbers = (width > 0)
                .then(|| tape.input(pairs.len(), width, |rows| state.fill(past, pairs, rows)));
            let filtered =
                features.filters.map(|filters| filtered(tape, past, state, filters, pairs));
            let parts: Vec<Var> = numbers.into_iter().chain(filtered).collect();
            let rows = match parts[..] {
                [one] => one,
                _ => tape.concat_columns(&parts),
            };
            let read = layers.first.apply(tape, rows, Activation::Relu);
            let read = layers.second.apply(tape, read, Activation::Relu);
            let read = tape.dropout(read, features.config.dropout as f32);
            let out = tape.parameter(layers.out);
            inner = tape.layer(read, out, None, added_to(inner));
        }
        if let (Some(weight), Some(compare)) = (self.compare, &encoded.compare) {
            let [u, v] = [pairs.sources(), pairs.candidates()].map(|numbers| {
                let rows = rows_of(tape, numbers, compare.rows.as_deref());
                tape.gather(compare.vectors, rows)
            });
            let product = tape.mul(u, v);
            let weight = tape.parameter(weight);
            inner = tape.layer(product, weight, None, added_to(inner));
        }
        tape.apply(inner, Activation::Relu)
    }
}

/// The products z of [`features`](super::features)' filtered walks: [pairs, filters].
fn filtered(
    tape: &mut Tape<'_>,
    past: Past<'_>,
    state: &PairState,
    filters: [ParameterId; 2],
    pairs: &PairBatch,
) -> Var {
    let seeds = pairs.seeds();
    let [u, v] = [(pairs.sources(), filters[0]), (pairs.candidates(), filters[1])].map(
        |(numbers, filter)| {
            let role = Role::of(numbers, seeds.len());
            let seeds: Vec<Seed> = role.seeds.iter().map(|&seed| seeds[seed as usize]).collect();
            let walks = tape.input(seeds.len() * CODE, INPUTS, |rows| {
                state.fill_filters(past, &seeds, rows);
            });
            let filter = tape.parameter(filter);
            let count = tape.shape(filter).0;
            let y = tape.linear(walks, filter, None, Activation::Identity);
            let y = tape.reshape(y, seeds.len(), CODE * count);
            let rows = tape.indices(role.rows);
            tape.gather(y, rows)
        },
    );
    let product = tape.mul(u, v);
    let (count, width) = tape.shape(product);
    let product = tape.reshape(product, count * CODE, width / CODE);
    let offsets = tape.indices((0..=count).map(|pair| (pair * CODE) as u32));
    tape.segment_sum(product, Segments { rows: None, offsets }, Weighting::Sum)
}

/// The rows of seeds by their numbers, where rows may be others than those of seeds.
fn rows_of(tape: &mut Tape<'_>, numbers: &[u32], rows: Option<&[u32]>) -> Indices {
    match rows {
        None => tape.indices(numbers.iter().copied()),
        Some(rows) => tape.indices(numbers.iter().map(|&seed| rows[seed as usize])),
    }
}

/// A product that is added to a sum as it is made.
pub(super) fn added_to(sum: Var) -> Then {
    Then { activation: Activation::Identity, dropout: 0.0, add: Some(sum) }
}

impl<E: NodeEncoder> PairHead<E> for Mlp {
    type State = Option<PairState>;
    type Scratch = ();
    type Prepared = Option<FirstLayer>;

    fn init(&self, info: &StreamInfo) -> Option<PairState> {
        <Mlp as PairHead<E>>::init_epoch(self, info, 0)
    }

    fn init_epoch(&self, info: &StreamInfo, epoch: u32) -> Option<PairState> {
        self.features.as_ref().map(|features| PairState::new(&features.config, info, epoch))
    }

    fn first_layer<'p>(&self, prepared: &'p Option<FirstLayer>) -> Option<&'p FirstLayer> {
        prepared.as_ref()
    }

    fn prepare(&self, encoder: &E, parameters: &Parameters, past: Past<'_>) -> Option<FirstLayer> {
        encoder.folds().then(|| {
            let mut workspace = Workspace::new();
            let mut tape = workspace.infer(parameters);
            let width = self.predictor.width;
            let [source, candidate] = [0..width, width..2 * width].map(|role| {
                let weight = tape.parameter(self.predictor.inner.weight);
                let weight = tape.columns(weight, role);
                encoder.fold(&mut tape, past, weight)
            });
            let own = tape.parameter(self.predictor.inner.bias);
            let bias = tape.add(source.1, candidate.1);
            let bias = tape.add(bias, own);
            let inputs = tape.shape(source.0).1;
            let [source, candidate, bias] =
                [source.0, candidate.0, bias].map(|values| tape.value(values).to_vec());
            FirstLayer { source, candidate, bias, inputs }
        })
    }

    fn logits<'t>(
        &'t self,
        context: &mut ForwardContext<'_, 't>,
        state: &'t Option<PairState>,
        encoded: &Encoded,
        pairs: &PairBatch,
        _: Option<&'t Option<FirstLayer>>,
        (): &mut (),
    ) -> Var {
        let folded = context.first_layer();
        let vectors = match &encoded.sides {
            Some(sides) => Some(self.made_sides(context.tape, sides, pairs, folded)),
            None => encoded.hidden.map(|hidden| {
                let vectors = (hidden, encoded.as_candidates.unwrap_or(hidden));
                self.sides(context.tape, vectors, pairs, folded)
            }),
        };
        let inner = match (state, vectors) {
            (None, Some((pair, bias))) => {
                context.tape.gather_pair(pair, Some(bias), Activation::Relu)
            }
            (Some(state), vectors) => {
                self.hidden_with_features(context, state, vectors, encoded, pairs)
            }
            (None, None) => panic!("a predictor without an encoder needs features of the pair"),
        };
        let logits = self.predictor.outer.apply(context.tape, inner, Activation::Identity);
        match (state, &self.features) {
            (Some(state), Some(features)) if features.config.activity != 0.0 => {
                self.with_activity(context, state, features.config.activity, pairs, logits)
            }
            _ => logits,
        }
    }

    fn observe(
        &self,
        _: &Parameters,
        _: Revealed<'_>,
        state: &mut Option<PairState>,
        step: &[Event],
        _: &mut ObserveScratch<()>,
    ) {
        if let Some(state) = state {
            state.observe(step);
        }
    }

    fn save_state<'a>(&self, state: &'a Option<PairState>, checkpoint: &mut Checkpoint<'a>) {
        if let Some(state) = state {
            state.save(checkpoint);
        }
    }

    fn load_state(
        &self,
        info: &StreamInfo,
        checkpoint: &mut Checkpoint<'_>,
    ) -> Result<Option<PairState>> {
        let mut state = <Mlp as PairHead<E>>::init(self, info);
        if let Some(state) = &mut state {
            state.load(checkpoint)?;
        }
        Ok(state)
    }
}
