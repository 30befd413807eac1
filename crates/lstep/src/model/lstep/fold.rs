//! Layers with no curve between them, multiplied together for scoring.
//!
//! From the inside of Eq. link_encoding_1 on, everything up to the hidden layer of Eq.
//! link_prediction is linear: W_link^(2), W_N||E, the merge and the predictor's first layer, one
//! such chain for a source and one for a candidate. Their product is one layer, which takes less
//! than half of the multiplications. Learning keeps the layers apart; scoring uses the product,
//! which is made anew whenever the weights have changed.

use super::config::{LstepConfig, Variant};
use super::parameters::Weights;
use lstep_tensor::{Activation, Tape, Var};
use std::ops::Range;

/// Where the columns of what is folded are.
#[derive(Debug, Clone)]
pub struct Parts {
    /// relu(W_link^(1) ...).
    pub links: Range<usize>,
    /// Eq. node_encoding.
    pub nodes: Range<usize>,
    /// Eq. pe.
    pub positions: Range<usize>,
}

impl Parts {
    pub fn new(config: &LstepConfig, node_features: usize) -> Parts {
        let has_links = config.variant != Variant::PositionOnly;
        let links = if has_links { config.time_width + config.edge_width } else { 0 };
        let nodes = links + if has_links { node_features } else { 0 };
        let positions =
            if config.variant == Variant::NoPosition { 0 } else { config.position_width };
        Parts { links: 0..links, nodes: links..nodes, positions: nodes..nodes + positions }
    }

    /// How many columns there are.
    pub fn width(&self) -> usize {
        self.positions.end
    }
}

/// For a layer of h, weight [out, d_N], the layer of the inputs of the linear layers that lead to
/// h: weight [out, parts] and bias [1, out].
pub fn fold(
    tape: &mut Tape<'_>,
    config: &LstepConfig,
    weights: &Weights,
    parts: &Parts,
    predict: Var,
) -> (Var, Var) {
    let d_n = config.node_width;
    let merge = tape.parameter(weights.merge.weight);
    let merge_bias = tape.parameter(weights.merge.bias);
    let mut bias = tape.linear(merge_bias, predict, None, Activation::Identity);
    let mut columns = Vec::new();
    if !parts.links.is_empty() {
        let merge_links = tape.columns(merge, 0..d_n);
        let to_node_link = tape.matmul(predict, merge_links);
        let node_link = tape.parameter(weights.node_link.weight);
        let of_links = tape.columns(node_link, d_n..d_n + parts.links.len());
        let to_links = tape.matmul(to_node_link, of_links);
        let link_out = tape.parameter(weights.link_out.weight);
        columns.push(tape.matmul(to_links, link_out));
        if !parts.nodes.is_empty() {
            let of_nodes = tape.columns(node_link, 0..parts.nodes.len());
            columns.push(tape.matmul(to_node_link, of_nodes));
        }
        for (layer, ahead) in [(weights.node_link, to_node_link), (weights.link_out, to_links)] {
            let inner = tape.parameter(layer.bias);
            let inner = tape.linear(inner, ahead, None, Activation::Identity);
            bias = tape.add(bias, inner);
        }
    }
    if !parts.positions.is_empty() {
        let merge_positions = tape.columns(merge, d_n..d_n + parts.positions.len());
        columns.push(tape.matmul(predict, merge_positions));
    }
    (tape.concat_columns(&columns), bias)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Way, scores_by};
    use super::super::{Lstep, LstepConfig};
    use super::*;
    use crate::event::{Event, Features};
    use crate::graph::EventLog;
    use crate::model::{Model, StreamInfo};
    use crate::query::Queries;
    use crate::read::synthetic::{SyntheticConfig, generate};

    #[test]
    fn layers_multiplied_together_score_as_the_layers_one_after_the_other() {
        let stream =
            SyntheticConfig { nodes: 40, events: 400, features: 3, ..SyntheticConfig::default() };
        let events = generate(&stream).expect("a stream").events;
        let features = Features::new(5, (0..200).map(|number| (number as f32).sin()).collect())
            .expect("40 rows");
        let info = StreamInfo::new(40, (events.times()[0], events.times()[300]));
        let with_features = EventLog::new(events.clone()).with_node_features(features);
        for log in [with_features, EventLog::new(events)] {
            for variant in [Variant::Full, Variant::PositionOnly, Variant::NoPosition] {
                let model =
                    Lstep::new(LstepConfig { variant, pair: None, ..LstepConfig::pair() }, 7)
                        .expect("settings are right");
                let mut state = model.begin(&info);
                for step in log.events().iter().take(300).collect::<Vec<Event>>().chunks(50) {
                    model
                        .observe(log.revealed(step[49].number + 1), &mut state, step)
                        .expect("observed");
                }
                let mut ask = Queries::new();
                for event in log.events().iter().skip(log.len() - 40) {
                    ask.push(event.source, event.time, [event.destination]);
                }
                let past = log.past(log.len() as u32);
                let together = scores_by(&model, past, &state, &ask, Way::EventsFolded);
                let apart = scores_by(&model, past, &state, &ask, Way::Events);
                let largest = apart.iter().fold(0.0f64, |largest, logit| largest.max(logit.abs()));
                for (together, apart) in together.iter().zip(&apart) {
                    assert!(
                        (together - apart).abs() < 1e-5 * largest,
                        "{variant:?}: {together} and {apart}"
                    );
                }
            }
        }
    }
}
