//! Node memories with pending messages: one family for TGN, JODIE, DyRep and their relatives.
//!
//! Every node that has interacted has a memory. An event leaves each of its nodes a message, which
//! stays pending until the node's next step; whoever looks at the node before that sees the memory
//! the message would make. So the update learns from what is predicted, and only an observation
//! writes. A member of the family chooses three parts: the [`Cell`] that turns a message and a
//! memory into a new memory, what a [`Message`] says about the other node, and the [`Readout`] that
//! makes a seed's vector of memories.

mod attention;
mod cell;
mod message;
mod products;
mod table;

pub use attention::AttentionReadout;
pub use cell::{Cell, CellKind};
pub use message::{EncodingMessage, MemoryMessage, Message, Observing};
pub use products::ProductCache;
pub use table::Memories;

use super::StreamInfo;
use super::encoder::{Chunk, Encoded, ForwardContext, Mode, NodeEncoder, ObserveScratch};
use super::feature_rows::node_features;
use super::scratch::FeatureWidths;
use crate::checkpoint::Checkpoint;
use crate::error::Result;
use crate::event::{Event, NodeId};
use crate::graph::{Past, Revealed, Seed};
use crate::nn::TimeEncoder;
use lstep_tensor::{Parameters, Tape, Var, Workspace};
use rustc_hash::FxHashMap;
use std::hash::Hash;

/// Makes seeds' vectors of memories.
pub trait Readout: Clone + Send + Sync + 'static {
    /// What it keeps beside the memories.
    type State: Clone + Send + Sync;

    /// Lists that each call fills anew; only their memory is kept.
    type Scratch: Default + Send;

    /// How much is encoded at once.
    fn chunk(&self, mode: Mode) -> Chunk;

    /// What it keeps before the first event.
    fn init(&self, info: &StreamInfo) -> Self::State;

    /// The vectors of seeds, [seeds, width].
    fn encode<'t>(
        &self,
        context: &mut ForwardContext<'_, 't>,
        memories: MemoryView<'_, 't>,
        state: &'t Self::State,
        seeds: &[Seed],
        scratch: &mut Self::Scratch,
    ) -> Encoded;

    /// See [`NodeEncoder::folds`].
    fn folds(&self) -> bool {
        false
    }

    /// See [`NodeEncoder::fold`].
    fn fold(&self, _: &mut Tape<'_>, _: Var) -> (Var, Var) {
        unreachable!("only a readout that folds is asked to")
    }

    /// Called once memories have changed.
    fn forget(&self, _: &mut Self::State) {}

    /// Writes what it keeps into a checkpoint.
    fn save_state<'a>(&self, _: &'a Self::State, _: &mut Checkpoint<'a>) {}

    /// Reads what [`Readout::save_state`] wrote.
    fn load_state(&self, info: &StreamInfo, _: &mut Checkpoint<'_>) -> Result<Self::State> {
        Ok(self.init(info))
    }
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

    /// Memories with pending messages applied, [nodes + 1, width]; the last row is zero.
    pub fn updated(&self, tape: &mut Tape<'t>, nodes: &[NodeId]) -> Var {
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
        tape.gather(stacked, order)
    }

    /// Memories with pending messages applied, plus node features, [nodes + 1, width]; the last row
    /// is zero.
    pub fn vectors(&self, tape: &mut Tape<'t>, past: Past<'t>, nodes: &[NodeId]) -> Var {
        let (vectors, width) = (self.updated(tape, nodes), self.memories.width());
        if past.node_feature_width() == 0 {
            return vectors;
        }
        let rows = (0..nodes.len() + 1).map(|row| nodes.get(row).copied());
        let features = node_features(tape, past, width, rows);
        tape.add(vectors, features)
    }
}

/// Distinct things of a call, each with a place.
#[derive(Debug)]
pub struct Places<K> {
    items: Vec<K>,
    places: FxHashMap<K, u32>,
}

/// The distinct nodes of a call.
pub type NodePlaces = Places<NodeId>;

impl<K> Default for Places<K> {
    fn default() -> Places<K> {
        Places { items: Vec::new(), places: FxHashMap::default() }
    }
}

impl<K: Copy + Eq + Hash> Places<K> {
    /// Drops all and keeps the memory.
    pub fn clear(&mut self) {
        self.items.clear();
        self.places.clear();
    }

    /// The place of a thing; a new one gets the next.
    pub fn place(&mut self, item: K) -> u32 {
        let next = self.items.len() as u32;
        let place = *self.places.entry(item).or_insert(next);
        if place == next {
            self.items.push(item);
        }
        place
    }

    /// The place of a thing that has one.
    pub fn find(&self, item: K) -> Option<u32> {
        self.places.get(&item).copied()
    }

    /// All of them in the order of their places.
    pub fn items(&self) -> &[K] {
        &self.items
    }
}

impl NodePlaces {
    /// The nodes of a step in order, in place of those before.
    pub fn fill_from(&mut self, step: &[Event]) {
        self.clear();
        for event in step {
            self.place(event.source);
            self.place(event.destination);
        }
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

/// Memories, and what the readout keeps beside them.
#[derive(Debug, Clone)]
pub struct MemoryState<S> {
    memories: Memories,
    readout: S,
}

/// Lists of a call.
#[derive(Default)]
pub struct MemoryScratch<R, M> {
    readout: R,
    message: M,
    touched: Touched,
}

/// The nodes of a step, each with the other node and the event of its newest meeting.
#[derive(Default)]
struct Touched {
    places: NodePlaces,
    newest: Vec<(NodeId, Event)>,
}

impl Touched {
    fn fill(&mut self, step: &[Event]) {
        self.places.clear();
        self.newest.clear();
        for &event in step {
            for (node, other) in
                [(event.source, event.destination), (event.destination, event.source)]
            {
                let place = self.places.place(node) as usize;
                if place == self.newest.len() {
                    self.newest.push((other, event));
                } else {
                    self.newest[place] = (other, event);
                }
            }
        }
    }
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

    /// The memories of a state, for whoever reads them out otherwise.
    pub fn view<'m, 't>(&'m self, state: &'t MemoryState<R::State>) -> MemoryView<'m, 't> {
        MemoryView { memories: &state.memories, cell: &self.cell }
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

    /// Leaves each node the message of its newest event. `ahead` is what the messages say of the
    /// other nodes, if that was made before memories changed.
    fn send_messages(
        &self,
        parameters: &Parameters,
        workspace: &mut Workspace,
        known: Revealed<'_>,
        memories: &mut Memories,
        touched: &Touched,
        ahead: &[f32],
    ) {
        let (width, nodes, newest) = (memories.width(), touched.places.items(), &touched.newest);
        let mut tape = workspace.infer(parameters);
        let waited = nodes
            .iter()
            .zip(newest)
            .map(|(&node, (_, event))| event.time.value() - memories.changed(node));
        let waited = tape.times(waited);
        let times = self.time.apply(&mut tape, waited);
        let times = tape.value(times);
        let mut others = Vec::new();
        self.message.others(memories, ahead, newest, &mut others);
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
    type State = MemoryState<R::State>;
    type Scratch = MemoryScratch<R::Scratch, M::Scratch>;
    type Ahead = Vec<f32>;

    fn feature_widths(&self) -> FeatureWidths {
        self.widths
    }

    fn chunk(&self, mode: Mode) -> Chunk {
        self.readout.chunk(mode)
    }

    fn init(&self, info: &StreamInfo) -> Self::State {
        let memories = Memories::new(self.widths.node, info.training.0.value());
        MemoryState { memories, readout: self.readout.init(info) }
    }

    fn encode<'t>(
        &'t self,
        context: &mut ForwardContext<'_, 't>,
        MemoryState { memories, readout }: &'t Self::State,
        seeds: &[Seed],
        scratch: &mut Self::Scratch,
    ) -> Encoded {
        let view = MemoryView { memories, cell: &self.cell };
        self.readout.encode(context, view, readout, seeds, &mut scratch.readout)
    }

    fn folds(&self) -> bool {
        self.readout.folds()
    }

    fn fold(&self, tape: &mut Tape<'_>, _: Past<'_>, weight: Var) -> (Var, Var) {
        self.readout.fold(tape, weight)
    }

    fn ahead(
        &self,
        parameters: &Parameters,
        known: Revealed<'_>,
        state: &Self::State,
        step: &[Event],
        ObserveScratch { workspace, lists, dropout }: &mut ObserveScratch<Self::Scratch>,
    ) -> Vec<f32> {
        let memories = self.view(state);
        lists.touched.fill(step);
        let observing = Observing { parameters, known, memories, workspace, dropout: *dropout };
        self.message.ahead(observing, &lists.touched.newest, &mut lists.message)
    }

    fn observe(
        &self,
        parameters: &Parameters,
        known: Revealed<'_>,
        MemoryState { memories, readout }: &mut Self::State,
        step: &[Event],
        ahead: Vec<f32>,
        ObserveScratch { workspace, lists, .. }: &mut ObserveScratch<Self::Scratch>,
    ) {
        let touched = &mut lists.touched;
        touched.fill(step);
        self.settle(parameters, workspace, memories, touched.places.items());
        self.send_messages(parameters, workspace, known, memories, touched, &ahead);
        self.readout.forget(readout);
    }

    fn save_state<'a>(&self, state: &'a Self::State, checkpoint: &mut Checkpoint<'a>) {
        state.memories.save(checkpoint);
        self.readout.save_state(&state.readout, checkpoint);
    }

    fn load_state(
        &self,
        info: &StreamInfo,
        checkpoint: &mut Checkpoint<'_>,
    ) -> Result<Self::State> {
        let MemoryState { mut memories, .. } = self.init(info);
        // A stream without features has shorter messages.
        let plain = 2 * self.widths.node + self.time.width();
        let widths = match checkpoint.extent() {
            Some(extent) => plain + extent.event_features..=plain + extent.event_features,
            None => plain..=plain + self.widths.edge,
        };
        memories.load(checkpoint, widths)?;
        Ok(MemoryState { memories, readout: self.readout.load_state(info, checkpoint)? })
    }
}

#[cfg(test)]
mod tests {
    use crate::model::composite::scores_as_it_learns;
    use crate::model::{DyRep, DyRepConfig, Jodie, JodieConfig};

    #[test]
    fn products_that_are_kept_score_as_the_vectors_they_are_made_of() {
        let jodie = JodieConfig { dropout: 0.0, node_width: 12, ..JodieConfig::default() };
        scores_as_it_learns(&Jodie::new(jodie, 3).expect("right settings"));
        let dyrep = DyRepConfig { dropout: 0.0, node_width: 12, ..DyRepConfig::default() };
        scores_as_it_learns(&DyRep::new(dyrep, 3).expect("right settings"));
    }
}
