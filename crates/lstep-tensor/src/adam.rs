//! Adam (Kingma and Ba 2015) with PyTorch's formula and defaults, and its state for exact
//! resumption.

use crate::error::Error;
use crate::parallel;
use crate::parameter::{Entry, Gradients, Parameters};
use crate::slab::Slab;

/// The constants of [`Adam`]; defaults are PyTorch's. They are `f64` because 1 - 0.999 is not: in
/// `f32` it is wrong in the fifth digit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdamConfig {
    /// Step size, default 1e-3.
    pub learning_rate: f64,
    /// Decay of the mean of gradients, default 0.9.
    pub beta1: f64,
    /// Decay of the mean of squared gradients, default 0.999.
    pub beta2: f64,
    /// Added to the root of the second moment, default 1e-8.
    pub epsilon: f64,
    /// L2 penalty added to the gradient (not the decoupled kind), default 0.
    pub weight_decay: f64,
}

impl Default for AdamConfig {
    fn default() -> Self {
        Self { learning_rate: 1e-3, beta1: 0.9, beta2: 0.999, epsilon: 1e-8, weight_decay: 0.0 }
    }
}

/// The optimiser and its moments.
pub struct Adam {
    config: AdamConfig,
    entries: Vec<Entry>,
    first: Slab,
    second: Slab,
    len: usize,
    steps: u64,
}

/// The moments of one parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdamMoments<'a> {
    /// The parameter's name.
    pub name: &'a str,
    /// Running mean of gradients.
    pub first: &'a [f32],
    /// Running mean of squared gradients.
    pub second: &'a [f32],
}

/// Numbers updated by one task.
const CHUNK: usize = 16 * 1024;

impl Adam {
    /// Zero moments for these parameters.
    pub fn new(parameters: &Parameters, config: AdamConfig) -> Self {
        let len = parameters.flat().len();
        let (mut first, mut second) = (Slab::default(), Slab::default());
        first.reserve(len);
        second.reserve(len);
        Self { config, entries: parameters.entries().to_vec(), first, second, len, steps: 0 }
    }

    /// One update: with `g = gradient + weight_decay * p`,
    /// `m += (1 - beta1) (g - m)`, `v = beta2 v + (1 - beta2) g^2`,
    /// `p -= learning_rate / (1 - beta1^t) * m / (sqrt(v) / sqrt(1 - beta2^t) + epsilon)`.
    pub fn step(&mut self, parameters: &mut Parameters, gradients: &Gradients) {
        assert_eq!(parameters.flat().len(), self.len, "these moments belong to other parameters");
        assert_eq!(gradients.flat().len(), self.len, "these gradients belong to other parameters");
        self.steps += 1;
        let t = self.steps as f64;
        let c = self.config;
        let update = Update {
            one_minus_beta1: (1.0 - c.beta1) as f32,
            beta2: c.beta2 as f32,
            one_minus_beta2: (1.0 - c.beta2) as f32,
            step: (c.learning_rate / (1.0 - c.beta1.powf(t))) as f32,
            inverse_root: (1.0 / (1.0 - c.beta2.powf(t)).sqrt()) as f32,
            epsilon: c.epsilon as f32,
            weight_decay: c.weight_decay as f32,
        };
        let gradients = gradients.flat();
        let values = parameters.flat_mut();
        let first = &mut self.first.as_mut_slice()[..self.len];
        let second = &mut self.second.as_mut_slice()[..self.len];
        if parallel::is_worth(self.len * 8) {
            use rayon::prelude::*;
            values
                .par_chunks_mut(CHUNK)
                .zip(first.par_chunks_mut(CHUNK))
                .zip(second.par_chunks_mut(CHUNK))
                .zip(gradients.par_chunks(CHUNK))
                .for_each(|(((p, m), v), g)| apply(p, m, v, g, update));
        } else {
            apply(values, first, second, gradients, update);
        }
    }

    /// How many updates were made.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// The constants.
    pub fn config(&self) -> AdamConfig {
        self.config
    }

    /// Changes the step size, for schedules.
    pub fn set_learning_rate(&mut self, learning_rate: f64) {
        self.config.learning_rate = learning_rate;
    }

    /// The moments of all parameters, in the parameters' order.
    pub fn moments(&self) -> impl Iterator<Item = AdamMoments<'_>> {
        self.entries.iter().map(|entry| AdamMoments {
            name: &entry.name,
            first: &self.first.as_slice()[entry.range()],
            second: &self.second.as_slice()[entry.range()],
        })
    }

    /// Sets the number of updates made so far.
    pub fn load_steps(&mut self, steps: u64) {
        self.steps = steps;
    }

    /// Replaces the moments of one parameter, exactly.
    pub fn load(&mut self, moments: AdamMoments<'_>) -> Result<(), Error> {
        let entry = self
            .entries
            .iter()
            .find(|entry| entry.name == moments.name)
            .ok_or_else(|| Error::UnknownParameter { name: moments.name.to_owned() })?;
        entry.copy_into(self.first.as_mut_slice(), moments.first)?;
        entry.copy_into(self.second.as_mut_slice(), moments.second)
    }
}

#[derive(Clone, Copy)]
struct Update {
    one_minus_beta1: f32,
    beta2: f32,
    one_minus_beta2: f32,
    step: f32,
    /// 1 / sqrt(1 - beta2^t): the processor divides a tenth as fast as it multiplies.
    inverse_root: f32,
    epsilon: f32,
    weight_decay: f32,
}

multiversion! {
    fn apply(values: &mut [f32], first: &mut [f32], second: &mut [f32], gradients: &[f32], update: Update) {
        for (((p, m), v), &g) in values.iter_mut().zip(first).zip(second).zip(gradients) {
            let g = update.weight_decay.mul_add(*p, g);
            *m = update.one_minus_beta1.mul_add(g - *m, *m);
            *v = (update.one_minus_beta2 * g).mul_add(g, update.beta2 * *v);
            let denominator = v.sqrt().mul_add(update.inverse_root, update.epsilon);
            *p -= update.step * *m / denominator;
        }
    }
}
