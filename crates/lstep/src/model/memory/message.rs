//! What a message says about the node on the other side of an event.

use super::{Memories, MemoryView, Readout};
use crate::event::{Event, NodeId};
use crate::graph::{Revealed, Seed};
use crate::model::encoder::ForwardContext;
use lstep_tensor::{DropoutKey, Parameters, Workspace};

/// What is at hand before a step changes memories.
pub struct Observing<'a> {
    /// The weights.
    pub parameters: &'a Parameters,
    /// The graph with the step.
    pub known: Revealed<'a>,
    /// Memories before the step.
    pub memories: MemoryView<'a, 'a>,
    /// The memory of tapes.
    pub workspace: &'a mut Workspace,
    /// What dropout is drawn from while training; nothing while scoring.
    pub dropout: Option<DropoutKey>,
}

/// What a message says about the other node.
pub trait Message: Clone + Send + Sync + 'static {
    /// Lists that each call fills anew; only their memory is kept.
    type Scratch: Default + Send;

    /// What has to be made while memories are as they were before the step. `others` has the other
    /// node and the event of each message.
    fn ahead(
        &self,
        _: Observing<'_>,
        _others: &[(NodeId, Event)],
        _: &mut Self::Scratch,
    ) -> Vec<f32> {
        Vec::new()
    }

    /// Writes the vectors of the other nodes, [nodes, width], as of their events.
    fn others(
        &self,
        memories: &Memories,
        ahead: &[f32],
        others: &[(NodeId, Event)],
        out: &mut Vec<f32>,
    );
}

/// The other node's memory, as the step finds it with its pending message applied.
#[derive(Debug, Clone, Copy, Default)]
pub struct MemoryMessage;

impl Message for MemoryMessage {
    type Scratch = ();

    fn others(
        &self,
        memories: &Memories,
        _: &[f32],
        others: &[(NodeId, Event)],
        out: &mut Vec<f32>,
    ) {
        for (node, _) in others {
            let end = out.len() + memories.width();
            out.extend_from_slice(memories.of(*node));
            out.resize(end, 0.0);
        }
    }
}

/// The other node's encoding at the time of the event. No gradient reaches what makes it: a message
/// is used a step later, when only its numbers are left.
#[derive(Debug, Clone)]
pub struct EncodingMessage<R> {
    /// Makes the encodings.
    pub readout: R,
}

impl<R: Readout<State = ()>> Message for EncodingMessage<R> {
    type Scratch = R::Scratch;

    fn ahead(
        &self,
        Observing { parameters, known, memories, workspace, dropout }: Observing<'_>,
        others: &[(NodeId, Event)],
        scratch: &mut R::Scratch,
    ) -> Vec<f32> {
        let seeds: Vec<Seed> =
            others.iter().map(|(node, event)| Seed::new(*node, event.time)).collect();
        let mut tape = match dropout {
            // Not the masks that the loss of the step is drawn with.
            Some(key) => workspace.train(parameters, DropoutKey { seed: !key.seed, ..key }),
            None => workspace.infer(parameters),
        };
        let mut context = ForwardContext {
            tape: &mut tape,
            past: known.past(),
            parameters,
            key: 0,
            first_layer: None,
        };
        let encoded = self.readout.encode(&mut context, memories, &(), &seeds, scratch);
        tape.value(encoded.hidden.expect("nothing folds here")).to_vec()
    }

    fn others(&self, _: &Memories, ahead: &[f32], _: &[(NodeId, Event)], out: &mut Vec<f32>) {
        out.extend_from_slice(ahead);
    }
}
