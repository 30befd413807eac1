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

/// What the seeds of a call look at, with the vectors in place.
#[derive(Debug, Clone, Copy)]
pub struct Seen {
    /// How many seeds there are.
    pub seeds: usize,
    /// The seeds' own vectors, which ask: [seeds, node width or less].
    pub own: Option<Var>,
    /// What is merged behind the attention: [seeds, node width or less].
    pub merged: Option<Var>,
    /// The vectors of each event's other node: [seeds rows, node width or less].
    pub partners: Option<Var>,
    /// As in a [`Neighbourhood`].
    pub ages: Times,
    /// As in a [`Neighbourhood`].
    pub features: Option<Var>,
    /// As in a [`Neighbourhood`].
    pub counts: Indices,
    /// As in a [`Neighbourhood`].
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
        let partners = tape.gather(around.nodes, around.partners);
        let seen = Seen {
            seeds: around.own.len(),
            own: Some(own),
            merged: Some(own),
            partners: Some(partners),
            ages: around.ages,
            features: around.features,
            counts: around.counts,
            rows: around.rows,
        };
        self.apply_to(tape, time, seen, dropout)
    }

    /// [`TemporalAttention::apply`], where vectors may be narrower than the layer or absent: the
    /// columns that are not there are zeros. What is merged behind the attention may be another
    /// vector than the one that asks.
    pub fn apply_to(self, tape: &mut Tape<'_>, time: TimeEncoder, seen: Seen, dropout: f32) -> Var {
        let query = self.query(tape, time, seen);
        let attended = self.attend(tape, time, query, seen, dropout);
        let attended = self.out.apply(tape, attended, Activation::Identity);
        let attended = tape.dropout(attended, dropout);
        let query = match seen.own {
            Some(_) => query,
            None => {
                let same = tape.indices(std::iter::repeat_n(0, seen.seeds));
                tape.gather(query, same)
            }
        };
        let attended = tape.add(attended, query);
        let attended = self.norm.apply(tape, attended);
        let query_width = self.widths.node + self.widths.time;
        let (both, width) = match seen.merged {
            Some(merged) => {
                let width = query_width + tape.shape(merged).1;
                (tape.concat_columns(&[attended, merged]), width)
            }
            None => (attended, query_width),
        };
        let Linear { weight, bias } = self.merge_in;
        let (weight, bias) = (tape.parameter(weight), tape.parameter(bias));
        let weight = tape.columns(weight, 0..width);
        let inner = tape.linear(both, weight, Some(bias), Activation::Relu);
        self.merge_out.apply(tape, inner, Activation::Identity)
    }

    /// q of the seeds, [seeds, node + time]. Seeds without vectors all ask alike, so theirs is one
    /// row.
    fn query(self, tape: &mut Tape<'_>, time: TimeEncoder, seen: Seen) -> Var {
        let now = tape.times([0.0]);
        let now = time.apply(tape, now);
        let Some(own) = seen.own else {
            let nothing = tape.zeros(1, self.widths.node);
            return tape.concat_columns(&[nothing, now]);
        };
        let same = tape.indices(std::iter::repeat_n(0, seen.seeds));
        let now = tape.gather(now, same);
        let missing = self.widths.node - tape.shape(own).1;
        if missing == 0 {
            return tape.concat_columns(&[own, now]);
        }
        let nothing = tape.zeros(seen.seeds, missing);
        tape.concat_columns(&[own, nothing, now])
    }

    /// The outputs of all heads side by side, [seeds, node + time].
    fn attend(
        self,
        tape: &mut Tape<'_>,
        time: TimeEncoder,
        query: Var,
        seen: Seen,
        dropout: f32,
    ) -> Var {
        let AttentionWidths { node, time: time_width, heads, .. } = self.widths;
        let head = (node + time_width) / heads;
        let times = time.apply(tape, seen.ages);
        let there = seen.partners.map_or(0, |partners| tape.shape(partners).1);
        let after = time_width + seen.features.map_or(0, |features| tape.shape(features).1);
        let parts: Vec<Var> =
            [seen.partners, Some(times), seen.features].into_iter().flatten().collect();
        let looked_at = if let [only] = parts[..] { only } else { tape.concat_columns(&parts) };
        let width = there + after;
        let weights = [self.query, self.key, self.value].map(|id| tape.parameter(id));
        let [query_weight, key_weight, value_weight] = weights;
        let query = tape.linear(query, query_weight, None, Activation::Identity);
        // The columns of what is there.
        let of_head = |tape: &mut Tape<'_>, weight: Var, number: usize| {
            let rows = tape.rows(weight, number * head..(number + 1) * head);
            if there == node {
                return tape.columns(rows, 0..width);
            }
            let rest = tape.columns(rows, node..node + after);
            if there == 0 {
                return rest;
            }
            let nodes = tape.columns(rows, 0..there);
            tape.concat_columns(&[nodes, rest])
        };
        let [keys, values]: [Vec<Var>; 2] = [key_weight, value_weight]
            .map(|weight| (0..heads).map(|number| of_head(tape, weight, number)).collect());
        let mut folded = fold_query(tape, query, &keys);
        if seen.own.is_none() {
            let same = tape.indices((0..seen.seeds).flat_map(|_| 0..heads as u32));
            folded = tape.gather(folded, same);
        }
        let geometry = Heads {
            heads: 1,
            query_rows: heads,
            key_rows: seen.rows,
            keys: Keys::First(seen.counts),
            dropout,
        };
        let sums = tape.attention(folded, looked_at, looked_at, geometry);
        apply_to_sums(tape, sums, &values)
    }
}

/// Queries of heads side by side, [asked, heads head], as queries of what keys are made of, [asked
/// heads, width]: <q, W_k x> = <W_k^T q, x>. `keys` has W_k [head, width] of each head.
pub(super) fn fold_query(tape: &mut Tape<'_>, query: Var, keys: &[Var]) -> Var {
    let (head, width) = tape.shape(keys[0]);
    let folded: Vec<Var> = keys
        .iter()
        .enumerate()
        .map(|(number, &weight)| {
            let query = tape.columns(query, number * head..(number + 1) * head);
            tape.matmul(query, weight)
        })
        .collect();
    let folded = tape.concat_columns(&folded);
    let asked = tape.shape(folded).0;
    let folded = tape.reshape(folded, asked * keys.len(), width);
    // The operation divides by the square root of the width it sees, which is not that of a head.
    tape.scale(folded, (width as f32 / head as f32).sqrt())
}

/// The outputs of heads side by side, [asked, heads head], from sums of what values are made of,
/// [asked heads, width]. `values` has W_v [head, width] of each head.
pub(super) fn apply_to_sums(tape: &mut Tape<'_>, sums: Var, values: &[Var]) -> Var {
    let (rows, width) = tape.shape(sums);
    let sums = tape.reshape(sums, rows / values.len(), values.len() * width);
    let outputs: Vec<Var> = values
        .iter()
        .enumerate()
        .map(|(number, &weight)| {
            let sum = tape.columns(sums, number * width..(number + 1) * width);
            tape.linear(sum, weight, None, Activation::Identity)
        })
        .collect();
    tape.concat_columns(&outputs)
}
