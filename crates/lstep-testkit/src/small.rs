//! Settings of models that train in a moment, in the form of the command's `--set`.

/// L-STEP under the stream protocol. Also the settings of a grid.
pub const LSTEP: &[&str] = &[
    "model.position_width=8",
    "model.time_width=8",
    "model.node_width=8",
    "model.edge_width=4",
    "model.snapshots=6",
    "model.recent=4",
    "protocol.step.events=50",
];

/// GraphMixer.
pub const GRAPHMIXER: &[&str] =
    &["model.channels=8", "model.recent=4", "model.time_width=8", "model.node_width=8"];

/// [`LSTEP`] without the setting of the protocol, for tests that choose another one.
pub fn lstep_model() -> impl Iterator<Item = &'static str> {
    LSTEP.iter().copied().filter(|setting| setting.starts_with("model"))
}
