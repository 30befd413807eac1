//! The recurrent cell that makes a memory of a message and the memory before it.

use super::Memories;
use lstep_tensor::{Cell as CellWeights, Init, ParameterId, Parameters, Tape, Var};

/// Which cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CellKind {
    /// A gated recurrent unit, as in TGN.
    Gru,
    /// A plain recurrent cell with tanh, as in JODIE and DyRep.
    Rnn,
}

/// The cell with its weights, as PyTorch lays them out.
#[derive(Debug, Clone, Copy)]
pub struct Cell {
    kind: CellKind,
    weights: [ParameterId; 4],
}

impl Cell {
    /// Adds `NAME.input.weight`, `NAME.hidden.weight` and both biases, for messages of `inputs`
    /// numbers and memories of `width`. PyTorch draws all of them by the width of the memory.
    pub fn add(
        parameters: &mut Parameters,
        name: &str,
        kind: CellKind,
        inputs: usize,
        width: usize,
    ) -> Cell {
        let rows = match kind {
            CellKind::Gru => 3 * width,
            CellKind::Rnn => width,
        };
        let mut gates = |part: &str, rows: usize, columns: usize| {
            let init = Init::Linear { inputs: width };
            parameters.add(&format!("{name}.{part}"), rows, columns, init)
        };
        let weights = [
            gates("input.weight", rows, inputs),
            gates("hidden.weight", rows, width),
            gates("input.bias", 1, rows),
            gates("hidden.bias", 1, rows),
        ];
        Cell { kind, weights }
    }

    /// The memories that pending messages make of some rows of a table, [rows, width].
    pub(super) fn updated<'t>(
        &self,
        tape: &mut Tape<'t>,
        memories: &'t Memories,
        table: Var,
        rows: &[u32],
    ) -> Var {
        let messages = tape.borrow(memories.messages(), memories.message_width());
        let rows = tape.indices(rows.iter().copied());
        let (message, memory) = (tape.gather(messages, rows), tape.gather(table, rows));
        self.apply(tape, message, memory)
    }

    /// What inputs make of hidden states, [n, width]. Inputs may be shorter than the weights have
    /// room for: a stream without features has shorter messages.
    pub fn apply(&self, tape: &mut Tape<'_>, input: Var, hidden: Var) -> Var {
        let [input_weight, hidden_weight, input_bias, hidden_bias] =
            self.weights.map(|id| tape.parameter(id));
        let input_weight = tape.columns(input_weight, 0..tape.shape(input).1);
        let weights = CellWeights { input_weight, hidden_weight, input_bias, hidden_bias };
        match self.kind {
            CellKind::Gru => tape.gru_cell(input, hidden, weights),
            CellKind::Rnn => tape.rnn_cell(input, hidden, weights),
        }
    }
}
