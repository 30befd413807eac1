//! Node memories with pending messages: one family for TGN, JODIE, DyRep and their relatives.
//!
//! Every node that has interacted has a memory. An event leaves each of its nodes a message, which
//! stays pending until the node's next step; whoever looks at the node before that sees the memory
//! the message would make. So the update learns from what is predicted, and only an observation
//! writes. A member of the family chooses three parts: the [`Cell`] that turns a message and a
//! memory into a new memory, what a [`Message`] says about the other node, and the [`Readout`] that
//! makes a seed's vector of memories.

mod cell;
mod table;

pub use cell::{Cell, CellKind};
pub use table::Memories;

use super::StreamInfo;
use super::encoder::{Chunk, Encoded, ForwardContext, Mode, NodeEncoder, ObserveScratch};
use super::scratch::FeatureWidths;
use crate::checkpoint::Checkpoint;
use crate::error::Result;
use crate::event::{Event, NodeId};
use crate::graph::{Past, Revealed, Seed};
use crate::nn::TimeEncoder;
use lstep_tensor::{Parameters, Tape, Var, Workspace};
use rustc_hash::FxHashMap;

/// What a message says about the node on the other side of an event.
pub trait Message: Clone + Send + Sync + 'static {
    /// Writes the vectors of the other nodes, [nodes, width], as of their events.
    fn others(&self, memories: &Memories, others: &[(NodeId, Event)], out: &mut Vec<f32>);
}

/// The other node's memory as it is.
#[derive(Debug, Clone, Copy, Default)]
pub struct MemoryMessage;

impl Message for MemoryMessage {
    fn others(&self, memories: &Memories, others: &[(NodeId, Event)], out: &mut Vec<f32>) {
        for (node, _) in others {
            let end = out.len() + memories.width();
            out.extend_from_slice(memories.of(*node));
            out.resize(end, 0.0);
        }
    }
}

/// Makes seeds' vectors of memories.
pub trait Readout: Clone + Send + Sync + 'static {
    /// Lists that each call fills anew; only their memory is kept.
    type Scratch: Default + Send;

    /// How much is encoded at once.
    fn chunk(&self, mode: Mode) -> Chunk;

    /// The vectors of seeds, [seeds, width].
    fn encode<'t>(
        &self,
        context: &mut ForwardContext<'_, 't>,
        memories: MemoryView<'_, 't>,
        seeds: &[Seed],
        scratch: &mut Self::Scratch,
    ) -> Var;
}

/// Memories as a readout sees them: with pending messages applied.
#[derive(Clone, Copy)]
pub struct MemoryView<'m, 't> {
    memories: &'t Memories,
    cell: &'m Cell,
}

impl<'t> MemoryView<'_, 't> {
    /// The stored memories and the times of their last change.
    pub fn memories(&self) -> &'t Memories {
        self.memories
    }

    /// Memories with pending messages applied, plus node features, [nodes + 1, width]; the last row
    /// is zero.
    pub fn vectors(&self, tape: &mut Tape<'t>, past: Past<'t>, nodes: &[NodeId]) -> Var {
        let (memories, width) = (self.memories, self.memories.width());
        let (mut pending, mut settled) = (Vec::new(), Vec::new());
        let rows = nodes.iter().map(|&node| memories.row(node));
        for row in rows.clone().flatten() {
            if memories.is_pending(row) { pending.push(row) } else { settled.push(row) }
        }
        let table = tape.borrow(memories.table(), width);
        let mut parts = Vec::with_capacity(3);
        if !pending.is_empty() {
            parts.push(self.cell.updated(tape, memories, table, &pending));
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
}

/// The distinct nodes of a call.
#[derive(Debug, Default)]
pub struct NodePlaces {
    nodes: Vec<NodeId>,
    places: FxHashMap<NodeId, u32>,
}

impl NodePlaces {
    /// Drops all nodes and keeps the memory.
    pub fn clear(&mut self) {
        self.nodes.clear();
        self.places.clear();
    }

    /// The node's place; a new node gets the next one.
    pub fn place(&mut self, node: NodeId) -> u32 {
        let next = self.nodes.len() as u32;
        let place = *self.places.entry(node).or_insert(next);
        if place == next {
            self.nodes.push(node);
        }
        place
    }

    /// The nodes in the order of their places.
    pub fn nodes(&self) -> &[NodeId] {
        &self.nodes
    }
}

/// The encoder: memories, their update, and the readout.
#[derive(Debug, Clone)]
pub struct MemoryNet<M, R> {
    widths: FeatureWidths,
    time: TimeEncoder,
    cell: Cell,
    message: M,
    readout: R,
}

/// Lists of a call.
#[derive(Default)]
pub struct MemoryScratch<L> {
    readout: L,
    touched: NodePlaces,
}

impl<M: Message, R: Readout> MemoryNet<M, R> {
    /// Joins the parts. Memories are as wide as the weights have room for node features; messages
    /// are [own memory | other | f_T(time since the own memory changed) | event features].
    pub fn new(
        widths: FeatureWidths,
        time: TimeEncoder,
        cell: Cell,
        message: M,
        readout: R,
    ) -> MemoryNet<M, R> {
        MemoryNet { widths, time, cell, message, readout }
    }

    /// Makes the pending messages of some nodes part of their memories.
    fn settle(
        &self,
        parameters: &Parameters,
        workspace: &mut Workspace,
        memories: &mut Memories,
        nodes: &[NodeId],
    ) {
        let rows = nodes.iter().filter_map(|&node| memories.row(node));
        let pending: Vec<u32> = rows.filter(|&row| memories.is_pending(row)).collect();
        if pending.is_empty() {
            return;
        }
        let mut tape = workspace.infer(parameters);
        let table = tape.borrow(memories.table(), memories.width());
        let updated = self.cell.updated(&mut tape, memories, table, &pending);
        let vectors = tape.value(updated).to_vec();
        memories.update(&pending, &vectors);
    }

    /// Leaves each node the message of its newest event. `newest` has the other node and the event
    /// of each.
    fn send_messages(
        &self,
        parameters: &Parameters,
        workspace: &mut Workspace,
        known: Revealed<'_>,
        memories: &mut Memories,
        (nodes, newest): (&[NodeId], &[(NodeId, Event)]),
    ) {
        let width = memories.width();
        let mut tape = workspace.infer(parameters);
        let waited = nodes
            .iter()
            .zip(newest)
            .map(|(&node, (_, event))| event.time.value() - memories.changed(node));
        let waited = tape.times(waited);
        let times = self.time.apply(&mut tape, waited);
        let times = tape.value(times);
        let mut others = Vec::new();
        self.message.others(memories, newest, &mut others);
        let mut messages = Vec::new();
        let mut ends = Vec::with_capacity(nodes.len());
        for (place, (&node, (_, event))) in nodes.iter().zip(newest).enumerate() {
            let end = messages.len() + width;
            messages.extend_from_slice(memories.of(node));
            messages.resize(end, 0.0);
            messages.extend_from_slice(&others[place * width..][..width]);
            messages.extend_from_slice(times.row(place));
            messages.extend_from_slice(known.event_features(event));
            ends.push(messages.len());
        }
        let mut from = 0;
        for ((&node, (_, event)), end) in nodes.iter().zip(newest).zip(ends) {
            memories.send(node, event.time.value(), &messages[from..end]);
            from = end;
        }
    }
}

impl<M: Message, R: Readout> NodeEncoder for MemoryNet<M, R> {
    type State = Memories;
    type Scratch = MemoryScratch<R::Scratch>;
    type Ahead = ();

    fn feature_widths(&self) -> FeatureWidths {
        self.widths
    }

    fn chunk(&self, mode: Mode) -> Chunk {
        self.readout.chunk(mode)
    }

    fn init(&self, info: &StreamInfo) -> Memories {
        Memories::new(self.widths.node, info.training.0.value())
    }

    fn encode<'t>(
        &'t self,
        context: &mut ForwardContext<'_, 't>,
        memories: &'t Memories,
        seeds: &[Seed],
        scratch: &mut Self::Scratch,
    ) -> Encoded {
        let view = MemoryView { memories, cell: &self.cell };
        let hidden = self.readout.encode(context, view, seeds, &mut scratch.readout);
        Encoded { hidden: Some(hidden), compare: None }
    }

    fn observe(
        &self,
        parameters: &Parameters,
        known: Revealed<'_>,
        memories: &mut Memories,
        step: &[Event],
        (): (),
        ObserveScratch { workspace, lists }: &mut ObserveScratch<Self::Scratch>,
    ) {
        let touched = &mut lists.touched;
        touched.clear();
        let mut newest = Vec::new();
        for &event in step {
            for (node, other) in
                [(event.source, event.destination), (event.destination, event.source)]
            {
                let place = touched.place(node) as usize;
                if place == newest.len() {
                    newest.push((other, event));
                } else {
                    newest[place] = (other, event);
                }
            }
        }
        let nodes = touched.nodes();
        self.settle(parameters, workspace, memories, nodes);
        self.send_messages(parameters, workspace, known, memories, (nodes, &newest));
    }

    fn save_state<'a>(&self, memories: &'a Memories, checkpoint: &mut Checkpoint<'a>) {
        memories.save(checkpoint);
    }

    fn load_state(&self, info: &StreamInfo, checkpoint: &mut Checkpoint<'_>) -> Result<Memories> {
        let mut memories = self.init(info);
        // A stream without features has shorter messages.
        let plain = 2 * self.widths.node + self.time.width();
        let widths = match checkpoint.extent() {
            Some(extent) => plain + extent.event_features..=plain + extent.event_features,
            None => plain..=plain + self.widths.edge,
        };
        memories.load(checkpoint, widths)?;
        Ok(memories)
    }
}
