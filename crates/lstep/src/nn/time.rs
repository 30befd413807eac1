//! The field's time encoding: cosines whose periods spread over nine orders of magnitude, fixed or
//! trainable.

use lstep_tensor::{Init, ParameterId, Parameters, Tape, Times, Var};

/// omega_i = 10^(-9 i / (width - 1)), i from 0: the frequencies with which TGAT's successors start,
/// or stay.
pub fn frequencies(width: usize) -> impl Iterator<Item = f64> {
    let last = width.saturating_sub(1).max(1) as f64;
    (0..width).map(move |i| 10f64.powf(-9.0 * i as f64 / last))
}

/// f_T(t) = cos(t omega + phase), both learned.
#[derive(Debug, Clone, Copy)]
pub struct TimeEncoder {
    omega: ParameterId,
    phase: ParameterId,
    width: usize,
}

impl TimeEncoder {
    /// Adds `time.omega`, which starts from [`frequencies`], and `time.phase`, which starts from
    /// zero.
    pub fn add(parameters: &mut Parameters, width: usize) -> TimeEncoder {
        let omega = parameters.add("time.omega", 1, width, Init::Zeros);
        let start = parameters.values_mut(omega).iter_mut().zip(frequencies(width));
        start.for_each(|(omega, frequency)| *omega = frequency as f32);
        TimeEncoder { omega, phase: parameters.add("time.phase", 1, width, Init::Zeros), width }
    }

    /// Adds the same weights, drawn as PyTorch's `Linear(1, width)` draws its own, with which
    /// PyTorch Geometric's encoder starts: frequencies and phases in [-1, 1).
    pub fn add_as_linear(parameters: &mut Parameters, width: usize) -> TimeEncoder {
        let mut drawn = |name: &str| parameters.add(name, 1, width, Init::Linear { inputs: 1 });
        TimeEncoder { omega: drawn("time.omega"), phase: drawn("time.phase"), width }
    }

    /// How many numbers an encoding has.
    pub fn width(self) -> usize {
        self.width
    }

    /// Encodings of lengths of time, [n, width].
    pub fn apply(self, tape: &mut Tape<'_>, times: Times) -> Var {
        let (omega, phase) = (tape.parameter(self.omega), tape.parameter(self.phase));
        tape.trainable_time_encoding(times, omega, phase)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frequencies_fall_from_one_to_a_billionth() {
        let all: Vec<f64> = frequencies(4).collect();
        for (found, expected) in all.iter().zip([1.0, 1e-3, 1e-6, 1e-9]) {
            assert!((found / expected - 1.0).abs() < 1e-12, "{found} {expected}");
        }
        assert_eq!(frequencies(1).collect::<Vec<_>>(), [1.0]);
    }
}
