//! TGN: a memory for each node, changed by messages, and attention over recent events.
//!
//! Rossi et al., "Temporal Graph Networks for Deep Learning on Dynamic Graphs", 2020, with the
//! hyper-parameters of DyGLib. An event of u and v at t leaves each a message, here u's, in which m
//! are the memories as they are then and t_u is when m_u last changed:
//!
//! ```text
//! [m_u | m_v | f_T(t - t_u) | e]
//! ```
//!
//! The newest message of a node stays pending until the node's next step. Whoever looks at the node
//! before that sees the memory the message would make, GRU(message, m_u), so the updater learns
//! from what is batch; only [`Encoder::observe`] writes it. A seed's encoding is
//! [`TemporalAttention`] over its recent events, in which nodes are their memories plus their
//! features.
//!
//! Where DyGLib differs: among the messages of one step it keeps, for a node that was source and
//! destination, the last one as destination even if it is not the newest; and a node without events
//! attends to padding, where it here gets zeros.
//!
//! Seams for its relatives: the updater is [`Tgn::updated`], what a message says
//! [`Tgn::send_messages`], what an encoding is made of [`Tgn::encode`].

mod config;
mod kind;
mod memory;

pub use config::TgnConfig;
pub use kind::TgnKind;
pub use memory::Memories;

use super::StreamInfo;
use super::encoder::{Encoder, FeatureWidths, PairBatch, Scratch};
use super::neighbours::Meetings;
use crate::checkpoint::Checkpoint;
use crate::error::Result;
use crate::event::{Event, NodeId};
use crate::graph::{Past, Revealed};
use crate::nn::{AttentionWidths, Neighbourhood, Predictor, TemporalAttention, TimeEncoder};
use lstep_tensor::{Cell, Init, ParameterId, Parameters, Tape, Var, Workspace};
use rustc_hash::FxHashMap;

/// The encoder: settings and weights.
#[derive(Clone)]
pub struct Tgn {
    config: TgnConfig,
    time: TimeEncoder,
    updater: [ParameterId; 4],
    attention: TemporalAttention,
    predictor: Predictor,
}

/// Lists of a call.
#[derive(Default)]
pub struct Lists {
    meetings: Meetings,
    nodes: Nodes,
}

/// The distinct nodes whose vectors a call needs.
#[derive(Default)]
struct Nodes {
    list: Vec<NodeId>,
    places: FxHashMap<NodeId, u32>,
}

impl Nodes {
    fn clear(&mut self) {
        self.list.clear();
        self.places.clear();
    }

    fn place(&mut self, node: NodeId) -> u32 {
        let next = self.list.len() as u32;
        let place = *self.places.entry(node).or_insert(next);
        if place == next {
            self.list.push(node);
        }
        place
    }
}

/// What is computed with, outside of a question.
struct Compute<'a> {
    parameters: &'a Parameters,
    workspace: &'a mut Workspace,
}

impl Tgn {
    /// The memories that pending messages make of some rows, [rows, node width]: GRU(message,
    /// memory).
    fn updated<'t>(
        &self,
        tape: &mut Tape<'t>,
        memories: &'t Memories,
        table: Var,
        rows: &[u32],
    ) -> Var {
        let [input_weight, hidden_weight, input_bias, hidden_bias] =
            self.updater.map(|id| tape.parameter(id));
        let width = memories.message_width();
        let messages = tape.borrow(memories.messages(), width);
        let rows = tape.indices(rows.iter().copied());
        let (message, memory) = (tape.gather(messages, rows), tape.gather(table, rows));
        // A stream without features has shorter messages.
        let input_weight = tape.columns(input_weight, 0..width);
        tape.gru_cell(
            message,
            memory,
            Cell { input_weight, hidden_weight, input_bias, hidden_bias },
        )
    }

    /// Memories with pending messages folded in, plus features, [nodes + 1, node width]; the last
    /// row is zero.
    fn vectors<'t>(
        &self,
        tape: &mut Tape<'t>,
        past: Past<'t>,
        memories: &'t Memories,
        nodes: &[NodeId],
    ) -> Var {
        let width = self.config.node_width;
        let (mut pending, mut settled) = (Vec::new(), Vec::new());
        let rows = nodes.iter().map(|&node| memories.row(node));
        for row in rows.clone().flatten() {
            if memories.is_pending(row) { pending.push(row) } else { settled.push(row) }
        }
        let table = tape.borrow(memories.table(), width);
        let mut parts = Vec::with_capacity(3);
        if !pending.is_empty() {
            parts.push(self.updated(tape, memories, table, &pending));
        }
        if !settled.is_empty() {
            let rows = tape.indices(settled.iter().copied());
            parts.push(tape.gather(table, rows));
        }
        parts.push(tape.zeros(1, width));
        let stacked = tape.concat_rows(&parts);
        let (mut next_pending, mut next_settled) = (0, pending.len() as u32);
        let nothing = (pending.len() + settled.len()) as u32;
        let order = rows.map(|row| match row {
            Some(row) => {
                let next =
                    if memories.is_pending(row) { &mut next_pending } else { &mut next_settled };
                *next += 1;
                *next - 1
            }
            None => nothing,
        });
        let order: Vec<u32> = order.chain([nothing]).collect();
        let order = tape.indices(order);
        let vectors = tape.gather(stacked, order);
        if past.node_feature_width() == 0 {
            return vectors;
        }
        let features = tape.input(nodes.len() + 1, width, |values| {
            for (row, &node) in values.chunks_mut(width).zip(nodes) {
                let features = past.node_features(node);
                row[..features.len()].copy_from_slice(features);
            }
        });
        tape.add(vectors, features)
    }

    /// Encodings of the seeds, [seeds, node width].
    fn encode<'t>(
        &self,
        tape: &mut Tape<'t>,
        past: Past<'t>,
        memories: &'t Memories,
        batch: &PairBatch,
        lists: &mut Lists,
    ) -> Var {
        let Lists { meetings, nodes } = lists;
        let most = self.config.recent;
        meetings.gather(past, &batch.seeds, most, self.config.sampling);
        nodes.clear();
        let own: Vec<u32> = batch.seeds.iter().map(|seed| nodes.place(seed.node)).collect();
        let met: Vec<u32> = meetings.neighbours.iter().map(|&node| nodes.place(node)).collect();
        let nodes = self.vectors(tape, past, memories, &lists.nodes.list);
        let nobody = lists.nodes.list.len() as u32;
        let (mut partners, mut ages) = (Vec::new(), Vec::new());
        for (seed, span) in lists.meetings.spans().enumerate() {
            let span = span.start as usize..span.end as usize;
            partners.extend_from_slice(&met[span.clone()]);
            ages.extend_from_slice(&lists.meetings.ages[span]);
            partners.resize((seed + 1) * most, nobody);
            ages.resize((seed + 1) * most, 0.0);
        }
        let around = Neighbourhood {
            nodes,
            own: tape.indices(own),
            partners: tape.indices(partners),
            ages: tape.times(ages),
            features: self.features(tape, past, &lists.meetings),
            counts: tape.indices(lists.meetings.spans().map(|span| span.len() as u32)),
            rows: most,
        };
        self.attention.apply(tape, self.time, around, self.config.dropout as f32)
    }

    /// Features of the events looked at, in blocks; nothing where the stream has none.
    fn features<'t>(
        &self,
        tape: &mut Tape<'t>,
        past: Past<'t>,
        meetings: &Meetings,
    ) -> Option<Var> {
        let (width, most) = (past.event_feature_width(), self.config.recent);
        (width > 0).then(|| {
            tape.input((meetings.offsets.len() - 1) * most, width, |values| {
                for (block, span) in values.chunks_mut(most * width).zip(meetings.spans()) {
                    for (row, meeting) in block.chunks_mut(width).zip(span) {
                        row.copy_from_slice(past.event_features(meetings.events[meeting as usize]));
                    }
                }
            })
        })
    }

    /// Makes the pending messages of some nodes part of their memories.
    fn settle(&self, at: Compute<'_>, memories: &mut Memories, nodes: &[NodeId]) {
        let rows = nodes.iter().filter_map(|&node| memories.row(node));
        let pending: Vec<u32> = rows.filter(|&row| memories.is_pending(row)).collect();
        if pending.is_empty() {
            return;
        }
        let mut tape = at.workspace.infer(at.parameters);
        let table = tape.borrow(memories.table(), self.config.node_width);
        let updated = self.updated(&mut tape, memories, table, &pending);
        let vectors = tape.value(updated).to_vec();
        memories.update(&pending, &vectors);
    }

    /// Leaves each node the message of its newest event. `newest` has the other node and the event
    /// of each.
    fn send_messages(
        &self,
        at: Compute<'_>,
        past: Past<'_>,
        memories: &mut Memories,
        nodes: &[NodeId],
        newest: &[(NodeId, Event)],
    ) {
        let width = self.config.node_width;
        let mut tape = at.workspace.infer(at.parameters);
        let waited = nodes
            .iter()
            .zip(newest)
            .map(|(&node, (_, event))| event.time.value() - memories.changed(node));
        let waited = tape.times(waited);
        let times = self.time.apply(&mut tape, waited);
        let times = tape.value(times);
        let mut messages = Vec::new();
        let mut ends = Vec::with_capacity(nodes.len());
        for (place, (&node, &(other, event))) in nodes.iter().zip(newest).enumerate() {
            for side in [node, other] {
                let end = messages.len() + width;
                messages.extend_from_slice(memories.of(side));
                messages.resize(end, 0.0);
            }
            messages.extend_from_slice(times.row(place));
            messages.extend_from_slice(past.event_features(event.number));
            ends.push(messages.len());
        }
        let mut from = 0;
        for ((&node, (_, event)), end) in nodes.iter().zip(newest).zip(ends) {
            memories.send(node, event.time.value(), &messages[from..end]);
            from = end;
        }
    }
}

impl Encoder for Tgn {
    type Config = TgnConfig;
    type State = Memories;
    type Lists = Lists;
    const SEEDS_AT_ONCE: usize = 1_024;
    const PAIRS_AT_ONCE: usize = 65_536;

    fn new(config: TgnConfig, parameters: &mut Parameters) -> Result<Tgn> {
        config.check()?;
        let TgnConfig { time_width, node_width, edge_width, heads, .. } = config;
        let time = TimeEncoder::add(parameters, time_width);
        // PyTorch draws all weights of a cell by the width of its memory.
        let mut gates = |name: &str, rows: usize, inputs: usize| {
            parameters.add(
                &format!("updater.{name}"),
                rows,
                inputs,
                Init::Linear { inputs: node_width },
            )
        };
        let three = 3 * node_width;
        let updater = [
            gates("input.weight", three, 2 * node_width + time_width + edge_width),
            gates("hidden.weight", three, node_width),
            gates("input.bias", 1, three),
            gates("hidden.bias", 1, three),
        ];
        let widths =
            AttentionWidths { node: node_width, time: time_width, edge: edge_width, heads };
        let attention = TemporalAttention::add(parameters, "attention", widths);
        let predictor = Predictor::add(parameters, node_width);
        Ok(Tgn { config, time, updater, attention, predictor })
    }

    fn feature_widths(&self) -> FeatureWidths {
        FeatureWidths { node: self.config.node_width, edge: self.config.edge_width }
    }

    fn begin(&self, info: &StreamInfo) -> Memories {
        Memories::new(self.config.node_width, info.training.0.value())
    }

    fn logits<'t>(
        &self,
        tape: &mut Tape<'t>,
        past: Past<'t>,
        memories: &'t Memories,
        batch: &PairBatch,
        lists: &mut Lists,
    ) -> Var {
        let hidden = self.encode(tape, past, memories, batch, lists);
        self.predictor.apply_within(tape, hidden, &batch.sources, &batch.candidates)
    }

    fn observe(
        &self,
        parameters: &Parameters,
        room: &mut Scratch<Lists>,
        known: Revealed<'_>,
        memories: &mut Memories,
        step: &[Event],
    ) {
        let nodes = &mut room.lists.nodes;
        nodes.clear();
        let mut newest = Vec::new();
        for &event in step {
            for (node, other) in
                [(event.source, event.destination), (event.destination, event.source)]
            {
                let place = nodes.place(node) as usize;
                if place == newest.len() {
                    newest.push((other, event));
                } else {
                    newest[place] = (other, event);
                }
            }
        }
        let workspace = &mut room.workspace;
        self.settle(Compute { parameters, workspace }, memories, &nodes.list);
        self.send_messages(
            Compute { parameters, workspace },
            known.past(),
            memories,
            &nodes.list,
            &newest,
        );
    }

    fn save_state<'a>(&self, memories: &'a Memories, checkpoint: &mut Checkpoint<'a>) {
        memories.save(checkpoint);
    }

    fn load_state(&self, info: &StreamInfo, checkpoint: &mut Checkpoint<'_>) -> Result<Memories> {
        let mut memories = self.begin(info);
        memories.load(checkpoint)?;
        Ok(memories)
    }
}
