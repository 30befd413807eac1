//! Codes of nodes: random signs, nearly orthogonal from node to node.
//!
//! A code is drawn from the node's first event, so that it does not depend on how nodes are
//! numbered, and is the same whenever it is asked for. A node that nobody has met has zeros.

use crate::event::NodeId;
use crate::rng::KeyedRng;

/// What codes are drawn from.
#[derive(Debug, Clone)]
pub enum Codes {
    /// For each node twice the number of its first event here, and one more where it was the
    /// destination; [`UNBORN`] before.
    ByFirstEvent(Vec<u64>),
    /// The node's number, as older runs have it.
    ByNumber,
}

/// The first event of a node that has none.
const UNBORN: u64 = u64::MAX;

impl Codes {
    pub fn reach(&mut self, node: usize) {
        if let Codes::ByFirstEvent(born) = self {
            born.resize(node + 1, UNBORN);
        }
    }

    /// Notes the first event of a node.
    pub fn meet(&mut self, node: NodeId, event: u64) {
        if let Codes::ByFirstEvent(born) = self
            && born[node.index()] == UNBORN
        {
            born[node.index()] = event;
        }
    }

    /// A node's code; zeros for a node that nobody has met, which is near nobody.
    pub fn of(&self, node: NodeId, width: usize, salt: u64) -> Code {
        match self {
            Codes::ByFirstEvent(born) => match born.get(node.index()) {
                None | Some(&UNBORN) => Code::none(width),
                Some(&event) => Code::drawn(0xb0 ^ salt << 8, event, width),
            },
            Codes::ByNumber => Code::drawn(0xc0de, u64::from(node.0), width),
        }
    }
}

/// A node's signs, the same whenever they are asked for. Those of the usual width need no memory of
/// their own.
#[expect(
    clippy::large_enum_variant,
    reason = "made for every pair, so that a box would cost more than the room"
)]
pub enum Code {
    Short([f32; 64]),
    Long(Vec<f32>),
}

impl Code {
    fn none(width: usize) -> Code {
        if width == 64 { Code::Short([0.0; 64]) } else { Code::Long(vec![0.0; width]) }
    }

    fn drawn(kind: u64, from: u64, width: usize) -> Code {
        let mut draw = KeyedRng::new(&[kind, from]);
        let mut sixty_four = || {
            let word = draw.next();
            std::array::from_fn(|place| {
                f32::from_bits(1.0f32.to_bits() | ((word >> place) as u32 & 1) << 31)
            })
        };
        match width {
            64 => Code::Short(sixty_four()),
            _ => Code::Long((0..width / 64).flat_map(|_| sixty_four()).collect()),
        }
    }

    pub fn signs(&self) -> &[f32] {
        match self {
            Code::Short(signs) => signs,
            Code::Long(signs) => signs,
        }
    }
}
