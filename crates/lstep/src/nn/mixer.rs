//! An MLP-Mixer block: one feed-forward net over the tokens of a block, one over the channels of a token.
//!
//! Tolstikhin et al., "MLP-Mixer: An all-MLP Architecture for Vision", NeurIPS 2021.

use super::{Linear, Norm};
use lstep_tensor::{Activation, Parameters, Segments, Tape, Var, Weighting};

/// x' = x + (tokens(norm(x^T)))^T, y = x' + channels(norm(x')).
#[derive(Debug, Clone, Copy)]
pub struct Mixer {
    token_norm: Norm,
    tokens: FeedForward,
    channel_norm: Norm,
    channels: FeedForward,
}

/// Inner widths of the two nets of a [`Mixer`], and the width it works on.
#[derive(Debug, Clone, Copy)]
pub struct MixerWidths {
    /// Tokens of a block.
    pub tokens: usize,
    /// Channels of a token.
    pub channels: usize,
    /// Inner width of the net over tokens.
    pub token_inner: usize,
    /// Inner width of the net over channels.
    pub channel_inner: usize,
}

impl Mixer {
    /// Adds all weights under a name.
    pub fn add(parameters: &mut Parameters, name: &str, widths: MixerWidths) -> Mixer {
        let MixerWidths { tokens, channels, token_inner, channel_inner } = widths;
        Mixer {
            token_norm: Norm::add(parameters, &format!("{name}.token_norm"), tokens),
            tokens: FeedForward::add(parameters, &format!("{name}.tokens"), tokens, token_inner),
            channel_norm: Norm::add(parameters, &format!("{name}.channel_norm"), channels),
            channels: FeedForward::add(parameters, &format!("{name}.channels"), channels, channel_inner),
        }
    }

    /// Mixes blocks of `tokens` rows: [blocks tokens, channels] to the same shape.
    pub fn apply(self, tape: &mut Tape<'_>, x: Var, tokens: usize, dropout: f32) -> Var {
        let x = self.mix_tokens(tape, x, tokens, dropout);
        let normal = self.channel_norm.apply(tape, x);
        let mixed = self.channels.apply(tape, normal, dropout);
        tape.add(mixed, x)
    }

    /// The means of the mixed blocks, [blocks tokens, channels] to [blocks, channels]. Unless dropout stands behind it, the outer
    /// layer of the net over channels is applied to the mean and not to every token.
    pub fn apply_to_mean(self, tape: &mut Tape<'_>, x: Var, tokens: usize, dropout: f32) -> Var {
        let ends = tape.indices((0..=tape.shape(x).0 / tokens).map(|block| (block * tokens) as u32));
        let blocks = Segments { rows: None, offsets: ends };
        if tape.is_training() && dropout > 0.0 {
            let mixed = self.apply(tape, x, tokens, dropout);
            return tape.segment_sum(mixed, blocks, Weighting::Mean);
        }
        let x = self.mix_tokens(tape, x, tokens, dropout);
        let normal = self.channel_norm.apply(tape, x);
        let inner = self.channels.inner.apply(tape, normal, Activation::Gelu);
        let inner = tape.segment_sum(inner, blocks, Weighting::Mean);
        let mixed = self.channels.outer.apply(tape, inner, Activation::Identity);
        let x = tape.segment_sum(x, blocks, Weighting::Mean);
        tape.add(mixed, x)
    }

    fn mix_tokens(self, tape: &mut Tape<'_>, x: Var, tokens: usize, dropout: f32) -> Var {
        let channels = tape.shape(x).1;
        let turned = tape.transpose_blocks(x, tokens);
        let normal = self.token_norm.apply(tape, turned);
        let mixed = self.tokens.apply(tape, normal, dropout);
        let mixed = tape.transpose_blocks(mixed, channels);
        tape.add(mixed, x)
    }
}

/// W2 gelu(W1 x + b1) + b2, with dropout after the activation and at the end.
#[derive(Debug, Clone, Copy)]
struct FeedForward {
    inner: Linear,
    outer: Linear,
}

impl FeedForward {
    fn add(parameters: &mut Parameters, name: &str, width: usize, inner: usize) -> FeedForward {
        FeedForward {
            inner: Linear::add(parameters, &format!("{name}.in"), width, inner),
            outer: Linear::add(parameters, &format!("{name}.out"), inner, width),
        }
    }

    fn apply(self, tape: &mut Tape<'_>, x: Var, dropout: f32) -> Var {
        let inner = self.inner.apply(tape, x, Activation::Gelu);
        let inner = tape.dropout(inner, dropout);
        let outer = self.outer.apply(tape, inner, Activation::Identity);
        tape.dropout(outer, dropout)
    }
}
