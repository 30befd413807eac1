//! What L-STEP shows of itself: how its filter treats frequencies, what that does to each
//! remembered snapshot, and where nodes are.
//!
//! Depends on the weights and the state only; what is shown here is what scoring uses.

use super::{LstepEncoder, LstepState, Variant};
use crate::event::NodeId;
use crate::model::Diagnostic;
use lstep_tensor::{Parameters, Workspace};

impl LstepEncoder {
    /// The filter, transforms and weighted sum as one kernel, [L, d_P]: a row for each slot of the
    /// window, oldest first.
    pub fn kernel(&self, parameters: &Parameters) -> Vec<f32> {
        let mut workspace = Workspace::new();
        let mut tape = workspace.infer(parameters);
        let kernel = self.equations(parameters, false).kernel(&mut tape);
        tape.value(kernel).iter_rows().flatten().copied().collect()
    }

    /// Eqs. transform_pe and approx_pe: p~ of some nodes, [nodes, d_P], as the next step would be
    /// scored with.
    pub fn approximate_positions(
        &self,
        parameters: &Parameters,
        state: &LstepState,
        nodes: &[NodeId],
    ) -> Vec<f32> {
        let (mut workspace, mut runs) = (Workspace::new(), Vec::new());
        let mut tape = workspace.infer(parameters);
        let filtered =
            self.equations(parameters, false).filter(&mut tape, nodes, &state.positions, &mut runs);
        tape.value(filtered).iter_rows().flatten().copied().collect()
    }

    /// Real and imaginary part of W_filter, [d_P, L] each, and W_P^sum, [L].
    pub(super) fn filter_weights<'p>(&self, parameters: &'p Parameters) -> [&'p [f32]; 3] {
        let [real, imaginary] = self.weights.filter;
        [real, imaginary, self.weights.position_sum].map(|id| parameters.get(id).values)
    }

    pub(super) fn diagnostics(
        &self,
        parameters: &Parameters,
        state: &LstepState,
    ) -> Vec<Diagnostic> {
        if self.config.variant == Variant::NoPosition {
            return Vec::new();
        }
        vec![self.response(parameters), self.folded_kernel(parameters), self.places(state)]
    }

    /// Positions are real, so of W only H_k = (W_k + conj W_(L-k)) / 2 acts on them.
    fn response(&self, parameters: &Parameters) -> Diagnostic {
        let length = self.config.snapshots;
        let [real, imaginary, _] = self.filter_weights(parameters);
        let gain = |real: &[f32], imaginary: &[f32], k: usize| {
            let mirror = (length - k) % length;
            let re = f64::from(real[k]) + f64::from(real[mirror]);
            let im = f64::from(imaginary[k]) - f64::from(imaginary[mirror]);
            re.hypot(im) / 2.0
        };
        let rows = real.chunks_exact(length).zip(imaginary.chunks_exact(length));
        Diagnostic::Curves {
            title: "Frequency response of the learned filter".into(),
            about: "How strongly the filter passes each frequency of a node's past positions: left is what stays, right is what \
                    flickers from step to step. A gain of 1 passes a frequency unchanged."
                .into(),
            along: "frequency (cycles per step)".into(),
            height: "gain".into(),
            at: (0..=length / 2).map(|k| k as f64 / length as f64).collect(),
            curves: rows.map(|(re, im)| (0..=length / 2).map(|k| gain(re, im, k)).collect()).collect(),
        }
    }

    fn folded_kernel(&self, parameters: &Parameters) -> Diagnostic {
        let (length, width) = (self.config.snapshots, self.config.position_width);
        let kernel = self.kernel(parameters);
        let of_dimension = |dimension| {
            (0..length).rev().map(|slot| f64::from(kernel[slot * width + dimension])).collect()
        };
        Diagnostic::Curves {
            title: "The folded kernel".into(),
            about: "Transform, filter, inverse transform and weighted sum are one weight for each remembered step. It says how much \
                    of the position at that age enters the approximate position."
                .into(),
            along: "age of the position (steps ago)".into(),
            height: "weight".into(),
            at: (0..length).map(|age| age as f64 + 1.0).collect(),
            curves: (0..width).map(of_dimension).collect(),
        }
    }

    fn places(&self, state: &LstepState) -> Diagnostic {
        let nodes: Vec<NodeId> =
            state.met.iter().filter(|node| state.positions.latest(*node).is_some()).collect();
        let latest =
            |node: &NodeId| state.positions.latest(*node).expect("only nodes that have one");
        Diagnostic::Places {
            title: "Where positions moved".into(),
            about:
                "The learned positions of nodes in their two main directions (principal components)"
                    .into(),
            width: self.config.position_width,
            vectors: nodes.iter().flat_map(latest).copied().collect(),
            nodes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Time;
    use crate::model::{Learner, Lstep, LstepConfig, Model, StreamInfo};

    fn small() -> Lstep {
        let config = LstepConfig { position_width: 3, snapshots: 5, ..LstepConfig::default() };
        Lstep::new(config, 7).expect("allowed settings")
    }

    #[test]
    fn the_kernel_that_is_shown_gives_the_approximate_positions() {
        let model = small();
        let mut state = model.begin(&StreamInfo::new(2, (Time::ZERO, Time::ZERO)));
        let steps: [[f32; 3]; 4] =
            [[1.0, -2.0, 0.5], [0.25, 0.0, 1.0], [3.0, 1.0, -1.0], [0.5, 0.5, 2.0]];
        for vector in &steps {
            state.encoder.positions.push_snapshot(&[NodeId(1)], vector);
        }
        let (kernel, shown) = (
            model.encoder().kernel(model.parameters()),
            model.encoder().approximate_positions(
                model.parameters(),
                &state.encoder,
                &[NodeId(1), NodeId(0)],
            ),
        );
        for dimension in 0..3 {
            // Four snapshots stand in the last four of five slots; the oldest slot is zero.
            let plain: f32 = (0..4)
                .map(|step| kernel[(step + 1) * 3 + dimension] * steps[step][dimension])
                .sum();
            assert!((shown[dimension] - plain).abs() < 1e-5, "{} and {plain}", shown[dimension]);
        }
        assert_eq!(shown[3..], [0.0; 3], "a node without positions");
    }

    #[test]
    fn a_filter_of_ones_passes_every_frequency_unchanged() {
        let mut model = small();
        let [real, imaginary] = model.encoder().weights.filter;
        model.parameters_mut().values_mut(real).fill(1.0);
        // An imaginary part that is even around L / 2 does nothing to real positions.
        model.parameters_mut().values_mut(imaginary).fill(0.7);
        let Diagnostic::Curves { at, curves, .. } = model.encoder().response(model.parameters())
        else {
            panic!("curves")
        };
        assert_eq!(at, [0.0, 0.2, 0.4]);
        assert_eq!(curves.len(), 3);
        // At frequency zero the mirror is the frequency itself, so the imaginary part is out as
        // well.
        assert!(curves.iter().flatten().all(|gain| (gain - 1.0).abs() < 1e-6), "{curves:?}");
    }
}
