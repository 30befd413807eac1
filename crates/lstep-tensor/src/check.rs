//! Gradients by finite differences, for tests of operations and of layers built on them.

use crate::parameter::{Gradients, ParameterId, Parameters};
use crate::tape::{DropoutKey, Tape, Var};
use crate::workspace::Workspace;

/// The largest difference found by [`gradients`].
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// The parameter it was found in.
    pub name: String,
    /// The element of that parameter.
    pub element: usize,
    /// The gradient of the tape.
    pub backward: f32,
    /// The central difference.
    pub finite: f32,
    /// |backward - finite| / (1 + largest gradient of that parameter).
    pub error: f32,
}

/// Compares the gradient of `loss` with respect to every element of every parameter with the
/// central difference (loss(p + step) - loss(p - step)) / (2 step), and returns the worst.
///
/// `loss` is called many times and must record the same operations each time; dropout masks stay
/// the same. With steps of 1e-2 and values around 1, smooth functions agree to about 1e-3.
pub fn gradients(
    parameters: &mut Parameters,
    step: f32,
    mut loss: impl FnMut(&mut Tape<'_>) -> Var,
) -> Difference {
    let draw = DropoutKey { seed: 5, step: 7 };
    let mut workspace = Workspace::new();
    let mut gradients = Gradients::of(parameters);
    let mut tape = workspace.train(parameters, draw);
    let value = loss(&mut tape);
    tape.backward(value, &mut gradients);
    let mut at = |parameters: &Parameters| {
        let mut tape = workspace.train(parameters, draw);
        let value = loss(&mut tape);
        tape.scalar(value)
    };
    let mut worst =
        Difference { name: String::new(), element: 0, backward: 0.0, finite: 0.0, error: 0.0 };
    for id in (0..parameters.len()).map(ParameterId) {
        let scale = 1.0 + gradients.get(id).to_vec().iter().fold(0.0_f32, |a, b| a.max(b.abs()));
        for element in 0..parameters.get(id).values.len() {
            let original = parameters.get(id).values[element];
            let (up, down) = (original + step, original - step);
            parameters.values_mut(id)[element] = up;
            let above = at(parameters);
            parameters.values_mut(id)[element] = down;
            let below = at(parameters);
            parameters.values_mut(id)[element] = original;
            let finite = (above - below) / (up - down);
            let backward = gradients.get(id).to_vec()[element];
            let error = (finite - backward).abs() / scale;
            if error >= worst.error || error.is_nan() {
                let name = parameters.get(id).name.to_owned();
                worst = Difference { name, element, backward, finite, error };
                if error.is_nan() {
                    return worst;
                }
            }
        }
    }
    worst
}
