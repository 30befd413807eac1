//! L-STEP's weights by name. A linear layer is y = W x + b with W [out, in].

use super::attention::Attention;
use super::config::{Aggregation, LstepConfig};
use super::pair::PairWeights;
use lstep_tensor::{Init, ParameterId, Parameters};

/// A linear layer's weight and bias.
#[derive(Debug, Clone, Copy)]
pub struct Layer {
    pub weight: ParameterId,
    pub bias: ParameterId,
}

/// Adds a linear layer that starts as PyTorch's do.
pub fn linear(parameters: &mut Parameters, name: &str, outputs: usize, inputs: usize) -> Layer {
    Layer {
        weight: parameters.add(&format!("{name}.weight"), outputs, inputs, Init::Linear { inputs }),
        bias: parameters.add(&format!("{name}.bias"), 1, outputs, Init::Linear { inputs }),
    }
}

/// What makes one vector, [d_P], of the recent events around a node.
#[derive(Debug, Clone, Copy)]
pub enum PositionIn {
    /// W_P^(1), after a sum.
    Mlp(Layer),
    /// Attention in its place.
    Attention(Attention),
}

/// The places of all weights.
#[derive(Debug, Clone, Copy)]
pub struct Weights {
    /// W_filter, [d_P, L], real and imaginary part.
    pub filter: [ParameterId; 2],
    /// W_P^sum, [1, L].
    pub position_sum: ParameterId,
    /// W_link^(1).
    pub link_in: Layer,
    /// W_link^sum, [1, K].
    pub link_sum: ParameterId,
    /// W_link^(2).
    pub link_out: Layer,
    /// W_N||E.
    pub node_link: Layer,
    /// W_P^(1), or attention.
    pub position_in: PositionIn,
    /// W_P^(2).
    pub position_out: Layer,
    /// W_P^(self).
    pub position_self: Layer,
    /// W of Eq. temporal_rep.
    pub merge: Layer,
    /// W^(1) of Eq. link_prediction.
    pub predict_in: Layer,
    /// W^(2) of Eq. link_prediction.
    pub predict_out: Layer,
    /// What reads the pair, if anything is told about it.
    pub pair: Option<PairWeights>,
}

impl Weights {
    /// Adds all weights, drawn from the parameters' seed.
    pub fn add(parameters: &mut Parameters, config: &LstepConfig) -> Weights {
        let (d_t, d_n, d_e, d_p) =
            (config.time_width, config.node_width, config.edge_width, config.position_width);
        let (l, k) = (config.snapshots, config.recent);
        let mut layer =
            |name: &str, outputs: usize, inputs: usize| linear(parameters, name, outputs, inputs);
        let link_in = layer("link.in", d_t + d_e, d_t + d_e);
        let link_out = layer("link.out", d_t + d_e, d_t + d_e);
        let node_link = layer("node_link", d_n, d_n + d_t + d_e);
        let position_in = match config.aggregation {
            Aggregation::Mlp => PositionIn::Mlp(layer("position.in", d_p, d_t + d_p)),
            Aggregation::Attention => PositionIn::Attention(Attention::add(parameters, config)),
        };
        let mut layer =
            |name: &str, outputs: usize, inputs: usize| linear(parameters, name, outputs, inputs);
        let position_out = layer("position.out", d_p, d_p);
        let position_self = layer("position.self", d_p, d_p);
        let merge = layer("merge", d_n, d_n + d_p);
        let predict_in = layer("predict.in", d_n, 2 * d_n);
        let predict_out = layer("predict.out", 1, d_n);
        let init = Init::Normal { mean: 0.0, deviation: config.filter_deviation as f32 };
        let filter =
            [parameters.add("filter.re", d_p, l, init), parameters.add("filter.im", d_p, l, init)];
        let position_sum = parameters.add("position.sum", 1, l, Init::Linear { inputs: l });
        let link_sum = parameters.add("link.sum", 1, k, Init::Linear { inputs: k });
        // Last, so that the weights of the paper's model are the same with and without.
        let pair = config.pair.as_ref().map(|pair| PairWeights::add(parameters, pair, d_n, d_p));
        Weights {
            filter,
            position_sum,
            link_in,
            link_sum,
            link_out,
            node_link,
            position_in,
            position_out,
            position_self,
            merge,
            predict_in,
            predict_out,
            pair,
        }
    }
}
