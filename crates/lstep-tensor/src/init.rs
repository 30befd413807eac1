//! Starting values of parameters, drawn from a generator seeded by the run's seed and the
//! parameter's name.
//!
//! A parameter's first value therefore depends on nothing else: adding, removing or reordering
//! parameters changes no other one. The generator is ChaCha8, and the way from bits to numbers is
//! written out here, so that an update of a distribution crate can never change a run.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// How a parameter [rows, cols] starts. For a weight, `cols` is the number of inputs and `rows` of
/// outputs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Init {
    /// 0
    Zeros,
    /// 1
    Ones,
    /// The same number everywhere.
    Constant(f32),
    /// U(low, high)
    Uniform {
        /// Lower end.
        low: f32,
        /// Upper end.
        high: f32,
    },
    /// N(mean, deviation^2)
    Normal {
        /// Mean.
        mean: f32,
        /// Standard deviation.
        deviation: f32,
    },
    /// U(-b, b), b = 1 / sqrt(`inputs`): what PyTorch's `nn.Linear` does to weight and bias
    /// (`kaiming_uniform_(a = sqrt 5)`).
    Linear {
        /// Inputs of the layer, also for its bias.
        inputs: usize,
    },
    /// U(-b, b), b = sqrt(6 / (rows + cols)): PyTorch's `xavier_uniform_`.
    XavierUniform,
    /// N(0, 2 / (rows + cols)): PyTorch's `xavier_normal_`.
    XavierNormal,
}

impl Init {
    /// Fills `values`, the elements of a [rows, cols] parameter called `name`.
    pub fn fill(self, values: &mut [f32], rows: usize, cols: usize, seed: u64, name: &str) {
        let mut generator = Generator::new(seed, name);
        let fans = (rows + cols) as f32;
        match self {
            Self::Zeros => values.fill(0.0),
            Self::Ones => values.fill(1.0),
            Self::Constant(value) => values.fill(value),
            Self::Uniform { low, high } => generator.uniform(values, low, high),
            Self::Normal { mean, deviation } => generator.normal(values, mean, deviation),
            Self::Linear { inputs } => {
                let bound = 1.0 / (inputs.max(1) as f32).sqrt();
                generator.uniform(values, -bound, bound);
            }
            Self::XavierUniform => {
                let bound = (6.0 / fans).sqrt();
                generator.uniform(values, -bound, bound);
            }
            Self::XavierNormal => generator.normal(values, 0.0, (2.0 / fans).sqrt()),
        }
    }
}

struct Generator(ChaCha8Rng);

impl Generator {
    fn new(seed: u64, name: &str) -> Self {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        key[8..16].copy_from_slice(&hash(name).to_le_bytes());
        Self(ChaCha8Rng::from_seed(key))
    }

    /// A multiple of 2^-24 in [0, 1).
    fn unit(&mut self) -> f64 {
        f64::from(self.0.next_u32() >> 8) / f64::from(1 << 24)
    }

    fn uniform(&mut self, values: &mut [f32], low: f32, high: f32) {
        let (low, high) = (f64::from(low), f64::from(high));
        for value in values {
            *value = (low + (high - low) * self.unit()) as f32;
        }
    }

    /// Box-Muller in `f64`; the sine of the pair is dropped for simplicity, since this runs once.
    fn normal(&mut self, values: &mut [f32], mean: f32, deviation: f32) {
        for value in values {
            let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
            let angle = std::f64::consts::TAU * self.unit();
            *value = (f64::from(mean) + f64::from(deviation) * radius * angle.cos()) as f32;
        }
    }
}

/// FNV-1a, 64 bit: stable forever, unlike the standard library's hasher.
fn hash(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(init: Init, name: &str) -> Vec<f32> {
        let mut values = vec![9.0; 20_000];
        init.fill(&mut values, 100, 200, 7, name);
        values
    }

    fn moments(values: &[f32]) -> (f64, f64) {
        let n = values.len() as f64;
        let mean = values.iter().map(|&x| f64::from(x)).sum::<f64>() / n;
        let variance = values.iter().map(|&x| (f64::from(x) - mean).powi(2)).sum::<f64>() / n;
        (mean, variance.sqrt())
    }

    #[test]
    fn a_linear_layer_starts_uniform_within_the_inverse_root_of_its_inputs() {
        let values = drawn(Init::Linear { inputs: 200 }, "w");
        let bound = 1.0 / 200_f32.sqrt();
        assert!(values.iter().all(|x| x.abs() <= bound));
        let (mean, deviation) = moments(&values);
        assert!(mean.abs() < 2e-3 && (deviation - f64::from(bound) / 3_f64.sqrt()).abs() < 1e-3);
    }

    #[test]
    fn normal_values_have_their_mean_and_deviation() {
        let (mean, deviation) = moments(&drawn(Init::Normal { mean: 1.0, deviation: 0.5 }, "w"));
        assert!((mean - 1.0).abs() < 0.02 && (deviation - 0.5).abs() < 0.02);
        let (_, deviation) = moments(&drawn(Init::XavierNormal, "w"));
        assert!((deviation - (2.0 / 300_f64).sqrt()).abs() < 2e-3);
    }

    #[test]
    fn values_depend_on_the_name_and_the_seed() {
        assert_eq!(drawn(Init::XavierUniform, "a"), drawn(Init::XavierUniform, "a"));
        assert_ne!(drawn(Init::XavierUniform, "a"), drawn(Init::XavierUniform, "b"));
        let mut other = vec![0.0; 20_000];
        Init::XavierUniform.fill(&mut other, 100, 200, 8, "a");
        assert_ne!(drawn(Init::XavierUniform, "a"), other);
    }
}
