//! A fingerprint of what this machine computes: a small network, forward and backward.
//!
//! Kernels are written to give the same bits on every processor. Machines that train one model
//! together compare this number before they begin, so that a promise is also a check.

use crate::{
    Activation, Adam, AdamConfig, DropoutKey, Gradients, Init, Matmul, Parameters, Workspace,
};

/// A number that two machines share exactly if they compute the same bits: products of awkward
/// shapes in both ways layers can multiply, activations, a softmax, their gradients, and Adam.
pub fn arithmetic() -> u64 {
    let mut parameters = Parameters::new(0x5eed);
    let first = parameters.add("first", 53, 37, Init::XavierUniform);
    let second = parameters.add("second", 29, 53, Init::XavierUniform);
    let third = parameters.add("third", 17, 29, Init::XavierUniform);
    let mut inputs = vec![0.0; 41 * 37];
    Init::Normal { mean: 0.0, deviation: 1.0 }.fill(&mut inputs, 41, 37, 3, "inputs");
    let mut adam = Adam::new(&parameters, AdamConfig::default());
    let mut gradients = Gradients::of(&parameters);
    let mut workspace = Workspace::new();
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut take = |values: &[f32]| {
        for value in values {
            hash = (hash ^ u64::from(value.to_bits())).wrapping_mul(0x0100_0000_01b3);
        }
    };
    for matmul in [Matmul::F32, Matmul::Bf16x2] {
        gradients.zero();
        let key = DropoutKey::default();
        let mut tape = workspace.train(&parameters, key).with_matmul(matmul);
        let mut x = tape.constant(41, 37, &inputs);
        for (layer, activation) in
            [(first, Activation::Gelu), (second, Activation::Tanh), (third, Activation::Cos)]
        {
            let weight = tape.parameter(layer);
            x = tape.linear(x, weight, None, activation);
        }
        let shares = tape.softmax(x);
        let weighed = tape.mul(shares, x);
        let loss = tape.mean(weighed);
        take(&tape.value(weighed).to_vec());
        tape.backward(loss, &mut gradients);
        take(gradients.flat());
        adam.step(&mut parameters, &gradients);
        parameters.iter().for_each(|parameter| take(parameter.values));
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_and_repetition_do_not_change_it() {
        let on = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
            pool.expect("a small pool").install(arithmetic)
        };
        assert_eq!(on(1), on(3));
        assert_eq!(arithmetic(), arithmetic());
    }
}
