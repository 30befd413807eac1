//! Temporal graph attention: a node looks at its recent events.
//!
//! Xu et al., "Inductive Representation Learning on Temporal Graphs", ICLR 2020, in the form that
//! DyGLib gives it. With the query q = [m_u | f_T(0)] and for each event the row x_k = [m_k | f_T(t
//! - t_k) | e_k], for each head
//!
//! ```text
//! a = softmax over k of <W_q q, W_k x_k> / sqrt(d),   o = sum over k of a_k W_v x_k
//! y = norm(q + W_o [o of all heads] + b_o),           h = W_2 relu(W_1 [y | m_u] + b_1) + b_2
//! ```
//!
//! There is one query and there are many events, so W_k goes to the query, <q, W_k x> = <W_k^T q,
//! x>, and W_v behind the sum: both are applied once for a seed and never to an event. The heads of
//! a seed then are queries of one attention over the same rows.

use super::{Linear, Norm, TimeEncoder};
use lstep_tensor::{
    Activation, Heads, Indices, Init, Keys, ParameterId, Parameters, Tape, Times, Var,
};

/// The layer's weights.
#[derive(Debug, Clone, Copy)]
pub struct TemporalAttention {
    query: ParameterId,
    key: ParameterId,
    value: ParameterId,
    out: Linear,
    norm: Norm,
    merge_in: Linear,
    merge_out: Linear,
    widths: AttentionWidths,
}

/// Widths of a [`TemporalAttention`].
#[derive(Debug, Clone, Copy)]
pub struct AttentionWidths {
    /// Of a node's vector, and of the result.
    pub node: usize,
    /// Of a time encoding.
    pub time: usize,
    /// Of an event's features.
    pub edge: usize,
    /// How many heads share node and time width evenly.
    pub heads: usize,
}

/// What the seeds of a call look at: blocks of the same number of rows, the events that are there
/// first.
#[derive(Debug, Clone, Copy)]
pub struct Neighbourhood {
    /// Vectors of nodes, [n, node width].
    pub nodes: Var,
    /// The row of each seed's own node.
    pub own: Indices,
    /// The row of each event's other node, any row where there is no event.
    pub partners: Indices,
    /// How long ago each event was, anything where there is none.
    pub ages: Times,
    /// Features of each event, [seeds rows, width]; absent where the stream has none.
    pub features: Option<Var>,
    /// How many events of each block are there.
    pub counts: Indices,
    /// Rows of a block.
    pub rows: usize,
}

impl TemporalAttention {
    /// Adds all weights under a name.
    pub fn add(
        parameters: &mut Parameters,
        name: &str,
        widths: AttentionWidths,
    ) -> TemporalAttention {
        let AttentionWidths { node, time, edge, .. } = widths;
        let query_width = node + time;
        let mut projection = |part: &str, inputs: usize| {
            parameters.add(
                &format!("{name}.{part}.weight"),
                query_width,
                inputs,
                Init::Linear { inputs },
            )
        };
        let (query, key, value) = (
            projection("query", query_width),
            projection("key", query_width + edge),
            projection("value", query_width + edge),
        );
        TemporalAttention {
            query,
            key,
            value,
            out: Linear::add(parameters, &format!("{name}.out"), query_width, query_width),
            norm: Norm::add(parameters, &format!("{name}.norm"), query_width),
            merge_in: Linear::add(
                parameters,
                &format!("{name}.merge.in"),
                query_width + node,
                node,
            ),
            merge_out: Linear::add(parameters, &format!("{name}.merge.out"), node, node),
            widths,
        }
    }

    /// Encodings of the seeds, [seeds, node width].
    pub fn apply(
        self,
        tape: &mut Tape<'_>,
        time: TimeEncoder,
        around: Neighbourhood,
        dropout: f32,
    ) -> Var {
        let own = tape.gather(around.nodes, around.own);
        let seeds = around.own.len();
        let now = tape.times([0.0]);
        let now = time.apply(tape, now);
        let same = tape.indices(std::iter::repeat_n(0, seeds));
        let now = tape.gather(now, same);
        let query = tape.concat_columns(&[own, now]);
        let looked_at = self.looked_at(tape, time, around);
        let seen = self.attend(tape, query, looked_at, around, dropout);
        let seen = self.out.apply(tape, seen, Activation::Identity);
        let seen = tape.dropout(seen, dropout);
        let seen = tape.add(seen, query);
        let seen = self.norm.apply(tape, seen);
        let both = tape.concat_columns(&[seen, own]);
        let inner = self.merge_in.apply(tape, both, Activation::Relu);
        self.merge_out.apply(tape, inner, Activation::Identity)
    }

    /// x of all events, [seeds rows, node + time + feature width].
    fn looked_at(self, tape: &mut Tape<'_>, time: TimeEncoder, around: Neighbourhood) -> Var {
        let partners = tape.gather(around.nodes, around.partners);
        let times = time.apply(tape, around.ages);
        match around.features {
            Some(features) => tape.concat_columns(&[partners, times, features]),
            None => tape.concat_columns(&[partners, times]),
        }
    }

    /// The outputs of all heads side by side, [seeds, node + time].
    fn attend(
        self,
        tape: &mut Tape<'_>,
        query: Var,
        looked_at: Var,
        around: Neighbourhood,
        dropout: f32,
    ) -> Var {
        let AttentionWidths { node, time, heads, .. } = self.widths;
        let (seeds, width, head) =
            (around.own.len(), tape.shape(looked_at).1, (node + time) / heads);
        let weights = [self.query, self.key, self.value].map(|id| tape.parameter(id));
        let [query_weight, key_weight, value_weight] = weights;
        let query = tape.linear(query, query_weight, None, Activation::Identity);
        let of_head = |tape: &mut Tape<'_>, weight: Var, number: usize| {
            let rows = tape.rows(weight, number * head..(number + 1) * head);
            tape.columns(rows, 0..width)
        };
        let folded: Vec<Var> = (0..heads)
            .map(|number| {
                let query = tape.columns(query, number * head..(number + 1) * head);
                let weight = of_head(tape, key_weight, number);
                tape.matmul(query, weight)
            })
            .collect();
        let folded = tape.concat_columns(&folded);
        let folded = tape.reshape(folded, seeds * heads, width);
        // The operation divides by the square root of the width it sees, which is not that of a
        // head.
        let folded = tape.scale(folded, (width as f32 / head as f32).sqrt());
        let geometry = Heads {
            heads: 1,
            query_rows: heads,
            key_rows: around.rows,
            keys: Keys::First(around.counts),
            dropout,
        };
        let sums = tape.attention(folded, looked_at, looked_at, geometry);
        let sums = tape.reshape(sums, seeds, heads * width);
        let outputs: Vec<Var> = (0..heads)
            .map(|number| {
                let sum = tape.columns(sums, number * width..(number + 1) * width);
                let weight = of_head(tape, value_weight, number);
                tape.linear(sum, weight, None, Activation::Identity)
            })
            .collect();
        tape.concat_columns(&outputs)
    }
}
