//! PyTorch Geometric's `TransformerConv`: a node attends over its neighbours, with features of
//! edges in keys and values.
//!
//! Shi et al., "Masked Label Prediction: Unified Message Passing Model for Semi-Supervised
//! Classification", IJCAI 2021, <https://arxiv.org/abs/2009.03509>. With x_i the vector of a node
//! and e_ij the features of an edge, for each head
//!
//! ```text
//! a   = softmax over j of <W_q x_i + b_q, W_k x_j + W_e e_ij> / sqrt(d)
//! o_i = sum over j of a_j (W_v x_j + b_v + W_e e_ij)
//! y_i = [o_i of all heads] + W_s x_i + b_s          the last two only with a root term
//! ```
//!
//! Dropout falls on a. A node without neighbours has o_i = 0. A bias of keys would add the same to
//! every score of a node, which softmax does not see, so PyTorch Geometric's is left out. There is
//! one query and there are many edges: weights of keys go to the query and those of values behind
//! the sum, as in [`TemporalAttention`](super::TemporalAttention). A column of ones carries b_v.

use super::Linear;
use super::attention::{apply_to_sums, fold_query};
use lstep_tensor::{Activation, Heads, Indices, Init, Keys, ParameterId, Parameters, Tape, Var};

/// The layer's weights.
#[derive(Debug, Clone, Copy)]
pub struct TransformerConv {
    query: Linear,
    key: ParameterId,
    value: Linear,
    edge: ParameterId,
    root: Option<Linear>,
    widths: ConvWidths,
}

/// Widths of a [`TransformerConv`].
#[derive(Debug, Clone, Copy)]
pub struct ConvWidths {
    /// Of a node's vector.
    pub node: usize,
    /// Of an edge's features.
    pub edge: usize,
    /// Of the result.
    pub out: usize,
    /// How many heads share the result evenly.
    pub heads: usize,
    /// Whether the node's own vector is added.
    pub root: bool,
}

/// What the nodes of a call look at: blocks of the same number of rows, the edges that are there
/// first.
#[derive(Debug, Clone, Copy)]
pub struct Around {
    /// Vectors of nodes, [n, node width]; those that are asked are first.
    pub nodes: Var,
    /// How many nodes are asked.
    pub asked: usize,
    /// The row of each edge's other node, any row where there is no edge.
    pub partners: Indices,
    /// The encoding of each edge's time, [asked rows, width]: the first features of an edge.
    pub times: Var,
    /// Further features, [asked rows, width]; absent where the stream has none.
    pub features: Option<Var>,
    /// How many edges of each block are there.
    pub counts: Indices,
    /// Rows of a block.
    pub rows: usize,
}

impl TransformerConv {
    /// Adds all weights under a name.
    pub fn add(parameters: &mut Parameters, name: &str, widths: ConvWidths) -> TransformerConv {
        let ConvWidths { node, edge, out, root, .. } = widths;
        let mut plain = |part: &str, inputs: usize| {
            let init = Init::Linear { inputs };
            parameters.add(&format!("{name}.{part}.weight"), out, inputs, init)
        };
        let (key, edge) = (plain("key", node), plain("edge", edge));
        let mut linear = |part: &str| Linear::add(parameters, &format!("{name}.{part}"), node, out);
        let (query, value) = (linear("query"), linear("value"));
        TransformerConv { query, key, value, edge, root: root.then(|| linear("root")), widths }
    }

    /// The layer of the nodes that are asked, [asked, out].
    pub fn apply(self, tape: &mut Tape<'_>, around: Around, dropout: f32) -> Var {
        let own = tape.rows(around.nodes, 0..around.asked);
        let attended = self.attend(tape, own, around, dropout);
        match self.root {
            None => attended,
            Some(root) => {
                let own = root.apply(tape, own, Activation::Identity);
                tape.add(own, attended)
            }
        }
    }

    /// The outputs of all heads side by side, [asked, out].
    fn attend(self, tape: &mut Tape<'_>, own: Var, around: Around, dropout: f32) -> Var {
        let ConvWidths { node, out, heads, .. } = self.widths;
        let head = out / heads;
        let partners = tape.gather(around.nodes, around.partners);
        let ones = tape.input(around.partners.len(), 1, |ones| ones.fill(1.0));
        let parts = [Some(partners), Some(around.times), around.features, Some(ones)];
        let parts: Vec<Var> = parts.into_iter().flatten().collect();
        let values = tape.concat_columns(&parts);
        let width = tape.shape(values).1 - 1;
        let keys = tape.columns(values, 0..width);

        let [key, value, edge] =
            [self.key, self.value.weight, self.edge].map(|id| tape.parameter(id));
        let edge = tape.columns(edge, 0..width - node);
        let bias = tape.parameter(self.value.bias);
        let bias = tape.reshape(bias, out, 1);
        let weights: [Vec<Var>; 2] = [&[key, edge][..], &[value, edge, bias][..]].map(|parts| {
            let of_head = |number: usize| {
                let parts: Vec<Var> = parts
                    .iter()
                    .map(|&part| tape.rows(part, number * head..(number + 1) * head))
                    .collect();
                tape.concat_columns(&parts)
            };
            (0..heads).map(of_head).collect()
        });
        let query = self.query.apply(tape, own, Activation::Identity);
        let folded = fold_query(tape, query, &weights[0]);
        let geometry = Heads {
            heads: 1,
            query_rows: heads,
            key_rows: around.rows,
            keys: Keys::First(around.counts),
            dropout,
        };
        let sums = tape.attention(folded, keys, values, geometry);
        apply_to_sums(tape, sums, &weights[1])
    }
}
