//! The weights of L-STEP's encoder by name. The link predictor's are the head's.

use super::attention::Attention;
use super::config::{Aggregation, LstepConfig};
use crate::nn::Linear;
use lstep_tensor::{Init, ParameterId, Parameters};

/// What makes one vector, [d_P], of the recent events around a node.
#[derive(Debug, Clone, Copy)]
pub enum PositionIn {
    /// W_P^(1), after a sum.
    Mlp(Linear),
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
    pub link_in: Linear,
    /// W_link^sum, [1, K].
    pub link_sum: ParameterId,
    /// W_link^(2).
    pub link_out: Linear,
    /// W_N||E.
    pub node_link: Linear,
    /// W_P^(1), or attention.
    pub position_in: PositionIn,
    /// W_P^(2).
    pub position_out: Linear,
    /// W_P^(self).
    pub position_self: Linear,
    /// W of Eq. temporal_rep.
    pub merge: Linear,
}

impl Weights {
    /// Adds all weights, drawn from the parameters' seed.
    pub fn add(parameters: &mut Parameters, config: &LstepConfig) -> Weights {
        let (d_t, d_n, d_e, d_p) =
            (config.time_width, config.node_width, config.edge_width, config.position_width);
        let (l, k) = (config.snapshots, config.recent);
        let mut layer = |name: &str, outputs: usize, inputs: usize| {
            Linear::add(parameters, name, inputs, outputs)
        };
        let link_in = layer("link.in", d_t + d_e, d_t + d_e);
        let link_out = layer("link.out", d_t + d_e, d_t + d_e);
        let node_link = layer("node_link", d_n, d_n + d_t + d_e);
        let position_in = match config.aggregation {
            Aggregation::Mlp => PositionIn::Mlp(layer("position.in", d_p, d_t + d_p)),
            Aggregation::Attention => PositionIn::Attention(Attention::add(parameters, config)),
        };
        let mut layer = |name: &str, outputs: usize, inputs: usize| {
            Linear::add(parameters, name, inputs, outputs)
        };
        let position_out = layer("position.out", d_p, d_p);
        let position_self = layer("position.self", d_p, d_p);
        let merge = layer("merge", d_n, d_n + d_p);
        let init = Init::Normal { mean: 0.0, deviation: config.filter_deviation as f32 };
        let filter =
            [parameters.add("filter.re", d_p, l, init), parameters.add("filter.im", d_p, l, init)];
        let position_sum = parameters.add("position.sum", 1, l, Init::Linear { inputs: l });
        let link_sum = parameters.add("link.sum", 1, k, Init::Linear { inputs: k });
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
        }
    }
}
