//! Encodings and layers that models share.
//!
//! A layer is a small struct of parameter numbers: `add` draws its weights under a name, `apply`
//! puts it on a tape. It knows no graph.

mod attention;
mod feed_forward;
mod linear;
mod lstm;
mod mixer;
mod predictor;
pub mod spectrum;
mod time;
mod transformer;
mod transformer_conv;
mod transformer_encoder;

pub use attention::{AttentionWidths, Neighbourhood, Seen, TemporalAttention};
pub use feed_forward::FeedForward;
pub use linear::{Linear, Norm};
pub use lstm::Lstm;
pub use mixer::{Mixer, MixerWidths};
pub use predictor::Predictor;
pub use time::{TimeEncoder, frequencies};
pub use transformer::Transformer;
pub use transformer_conv::{Around, ConvWidths, TransformerConv};
pub use transformer_encoder::TransformerEncoder;
