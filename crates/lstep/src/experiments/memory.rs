//! How much memory a cell takes, roughly, and how much there is.

use crate::experiments::DatasetDigest;
use crate::model::ModelConfig;

/// Bytes of an event in the log, in both its nodes' histories and in the questions about it,
/// without features.
const EVENT: u64 = 120;
/// Bytes for weights, moments, working memory and the program.
const WORKING: u64 = 160 << 20;

/// What a cell takes at its peak: the stream, training's own copy of it, and the state with a copy
/// for validation.
pub(super) fn estimate(digest: &DatasetDigest, model: &ModelConfig) -> u64 {
    let events = digest.events as u64 * (EVENT + 4 * digest.features as u64);
    let copies = if model.kind().learns() { 2 } else { 1 };
    let numbers = digest.node_features as u64 + model.numbers_per_node();
    let nodes = digest.nodes as u64 * (64 + 4 * numbers);
    copies * events + nodes + WORKING
}

/// Bytes that programs may still take, where the system tells.
pub(super) fn available() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kibibytes: u64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(kibibytes << 10)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{LstepConfig, Scope};

    #[test]
    fn the_estimate_covers_what_was_measured_on_wikipedia() {
        let digest = DatasetDigest {
            name: "wikipedia".into(),
            nodes: 9_227,
            events: 157_474,
            features: 172,
            node_features: 0,
            sha256: String::new(),
        };
        // docs/benchmarks.md: peak memory of training, scope `touched` and `all`.
        let touched = estimate(&digest, &LstepConfig::default().into());
        let all =
            estimate(&digest, &LstepConfig { scope: Scope::All, ..LstepConfig::default() }.into());
        assert!((209 << 20..(4 * 209) << 20).contains(&touched), "{touched}");
        assert!((1_364 << 20..(2 * 1_364) << 20).contains(&all), "{all}");
    }
}
