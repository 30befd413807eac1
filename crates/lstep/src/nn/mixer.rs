//! An MLP-Mixer block: one feed-forward net over the tokens of a block, one over the channels of a
//! token.
//!
//! Tolstikhin et al., "MLP-Mixer: An all-MLP Architecture for Vision", NeurIPS 2021.

use super::linear::EPSILON;
use super::{FeedForward, Norm};
use lstep_tensor::{Parameters, Segments, Tape, TokenNet, Var, Weighting};

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
            tokens: FeedForward::add(
                parameters,
                [&format!("{name}.tokens.in"), &format!("{name}.tokens.out")],
                tokens,
                token_inner,
            ),
            channel_norm: Norm::add(parameters, &format!("{name}.channel_norm"), channels),
            channels: FeedForward::add(
                parameters,
                [&format!("{name}.channels.in"), &format!("{name}.channels.out")],
                channels,
                channel_inner,
            ),
        }
    }

    /// Mixes blocks of rows: [blocks tokens, channels] to the same shape.
    pub fn apply(self, tape: &mut Tape<'_>, x: Var, dropout: f32) -> Var {
        let x = self.mix_tokens(tape, x, dropout);
        let normal = self.channel_norm.apply(tape, x);
        self.channels.apply(tape, normal, Some(x), dropout)
    }

    /// [`Mixer::apply`] whose net over tokens looks at x + f: x' = x + (tokens(norm((x + f)^T)))^T.
    pub fn apply_beside(self, tape: &mut Tape<'_>, x: Var, f: Var, dropout: f32) -> Var {
        let both = tape.add(x, f);
        let mixed = self.mix_tokens(tape, both, dropout);
        let x = tape.sub(mixed, f);
        let normal = self.channel_norm.apply(tape, x);
        self.channels.apply(tape, normal, Some(x), dropout)
    }

    /// The means of the mixed blocks, [blocks tokens, channels] to [blocks, channels].
    pub fn apply_to_mean(self, tape: &mut Tape<'_>, x: Var, tokens: usize, dropout: f32) -> Var {
        let ends =
            tape.indices((0..=tape.shape(x).0 / tokens).map(|block| (block * tokens) as u32));
        let blocks = Segments { rows: None, offsets: ends };
        let x = self.mix_tokens(tape, x, dropout);
        let normal = self.channel_norm.apply(tape, x);
        let [mean] =
            self.channels.apply_to_means(tape, normal, x, [(blocks, Weighting::Mean)], dropout);
        mean
    }

    fn mix_tokens(self, tape: &mut Tape<'_>, x: Var, dropout: f32) -> Var {
        let FeedForward { inner, outer } = self.tokens;
        let net = TokenNet {
            gain: tape.parameter(self.token_norm.gain),
            shift: tape.parameter(self.token_norm.bias),
            inner: tape.parameter(inner.weight),
            inner_bias: tape.parameter(inner.bias),
            outer: tape.parameter(outer.weight),
            outer_bias: tape.parameter(outer.bias),
            epsilon: EPSILON,
            dropout,
        };
        tape.mix_tokens(x, net)
    }
}
