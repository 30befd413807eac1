//! Attention of a seed's node over its recent events, in which nodes are their memories plus their
//! features.

use super::{MemoryView, NodePlaces, Readout};
use crate::graph::Seed;
use crate::model::StreamInfo;
use crate::model::encoder::{Chunk, Encoded, ForwardContext, Mode};
use crate::model::neighbours::{NeighbourBatch, Sampling};
use crate::nn::{Neighbourhood, TemporalAttention, TimeEncoder};

/// Attention of a seed's node over its recent events.
#[derive(Debug, Clone)]
pub struct AttentionReadout {
    /// How many events a node looks at.
    pub recent: usize,
    /// Which events a node looks at.
    pub sampling: Sampling,
    /// Dropout of the attention.
    pub dropout: f64,
    /// Encodes how long ago an event was.
    pub time: TimeEncoder,
    /// The layer.
    pub attention: TemporalAttention,
}

/// Lists of a call.
#[derive(Default)]
pub struct Lists {
    neighbours: NeighbourBatch,
    nodes: NodePlaces,
}

impl Readout for AttentionReadout {
    type State = ();
    type Scratch = Lists;

    fn chunk(&self, _: Mode) -> Chunk {
        Chunk { seeds: 1_024, pairs: 65_536 }
    }

    fn init(&self, _: &StreamInfo) {}

    fn encode<'t>(
        &self,
        context: &mut ForwardContext<'_, 't>,
        memories: MemoryView<'_, 't>,
        (): &(),
        seeds: &[Seed],
        Lists { neighbours, nodes }: &mut Lists,
    ) -> Encoded {
        let (past, most) = (context.past, self.recent);
        let tape = &mut *context.tape;
        neighbours.gather(past, seeds, most, self.sampling);
        nodes.clear();
        let own: Vec<u32> = seeds.iter().map(|seed| nodes.place(seed.node())).collect();
        let met: Vec<u32> =
            neighbours.neighbours().iter().map(|other| nodes.place(other.node())).collect();
        let vectors = memories.vectors(tape, past, nodes.items());
        let nobody = nodes.items().len() as u32;
        let (mut partners, mut ages) = (Vec::new(), Vec::new());
        for (seed, span) in neighbours.spans().enumerate() {
            let span = span.start as usize..span.end as usize;
            partners.extend_from_slice(&met[span.clone()]);
            ages.extend_from_slice(&neighbours.ages()[span]);
            partners.resize((seed + 1) * most, nobody);
            ages.resize((seed + 1) * most, 0.0);
        }
        let around = Neighbourhood {
            nodes: vectors,
            own: tape.indices(own),
            partners: tape.indices(partners),
            ages: tape.times(ages),
            features: neighbours.event_features_in_blocks(tape, past, most),
            counts: tape.indices(neighbours.spans().map(|span| span.len() as u32)),
            rows: most,
        };
        let hidden = self.attention.apply(tape, self.time, around, self.dropout as f32);
        Encoded { hidden: Some(hidden), ..Encoded::default() }
    }
}
