//! A small reverse-mode automatic differentiation tape on the CPU: `f32`, dense, made for training
//! steps of a few milliseconds that are repeated a million times.
//!
//! # What it is
//!
//! A [`Tape`] is one step. Its operations compute their result at once and note how it was made;
//! [`Tape::backward`] goes through the notes in reverse and adds d loss / d parameter to
//! [`Gradients`]; [`Adam`] changes the [`Parameters`]. There are matrices only: a batch of
//! sequences is a matrix of all their rows, and the operations that need it are told how many rows
//! make a block. The crate knows numbers, rows and segments; it knows no graph, no file and no
//! model.
//!
//! # What it promises
//!
//! * **The same bits** for the same input on any number of threads and on any instruction set. Work
//!   is cut into chunks of fixed size and partial sums are merged in order; every kernel is one
//!   sequence of fused multiply-adds per element, whatever the vector width. On x86-64 without FMA
//!   the same bits are computed by software, slowly.
//! * **Faster products where the processor has a unit for them.** [`Tape::with_matmul`] lets layers
//!   multiply numbers split into two of eight bits ([`Matmul::Bf16x2`]); they have their own
//!   definition, with the same bits everywhere.
//! * **Rows that do not know of each other.** A row of [`Tape::linear`], and of all other
//!   operations that work on rows, depends on that row and the weights only. Splitting a batch,
//!   reordering it, or scoring one row alone changes no bit.
//! * **No allocation in a steady step.** Values, gradients, indices and notes live in the arrays of
//!   a [`Workspace`], which grow in the first step and are reused in all later ones.
//! * **Time is not rounded.** Time differences and frequencies are `f64` up to the reduced angle of
//!   the cosine.
//!
//! What lost: `candle` and `burn` allocate every result afresh, which was half of their time; the
//! `gemm` crate, as fast as the product here, picks another order of additions for one row than for
//! many (see `kernel/gemm.rs`). What is missing: other number types, more than two dimensions,
//! second derivatives, devices.
//!
//! # How a step looks
//!
//! ```
//! use lstep_tensor::{Activation, Adam, AdamConfig, DropoutKey, Gradients, Init, Parameters, Workspace};
//!
//! // y = x1 - x2 is to be learned from four examples.
//! let examples = [1.0, 0.0, 0.0, 1.0, 1.0, 1.0, 0.5, 0.2];
//! let mut parameters = Parameters::new(42);
//! let hidden = parameters.add("in.weight", 8, 2, Init::Linear { inputs: 2 });
//! let bias = parameters.add("in.bias", 1, 8, Init::Linear { inputs: 2 });
//! let out = parameters.add("out.weight", 1, 8, Init::Linear { inputs: 8 });
//!
//! let mut gradients = Gradients::of(&parameters);
//! let mut adam = Adam::new(&parameters, AdamConfig { learning_rate: 0.02, ..AdamConfig::default() });
//! let mut workspace = Workspace::new();
//! let mut last = f32::INFINITY;
//! for step in 0..300 {
//!     gradients.zero();
//!     let mut tape = workspace.train(&parameters, DropoutKey { seed: 42, step });
//!     let x = tape.borrow(&examples, 2);
//!     let (w, b, v) = (tape.parameter(hidden), tape.parameter(bias), tape.parameter(out));
//!     let h = tape.linear(x, w, Some(b), Activation::Tanh);
//!     let y = tape.linear(h, v, None, Activation::Identity);
//!     let target = tape.constant(4, 1, &[1.0, -1.0, 0.0, 0.3]);
//!     let error = tape.sub(y, target);
//!     let error = tape.square(error);
//!     let loss = tape.mean(error);
//!     last = tape.scalar(loss);
//!     tape.backward(loss, &mut gradients);
//!     gradients.clip_norm(1.0);
//!     adam.step(&mut parameters, &gradients);
//! }
//! assert!(last < 1e-3);
//!
//! // Scoring only reads the parameters, so any number of threads can do it, each with a workspace of its own.
//! let mut tape = workspace.infer(&parameters);
//! # let _ = tape.is_training();
//! ```
//!
//! # Concatenation without copies
//!
//! [`Tape::columns`] of a [`Tape::zeros`] buffer are views, and the operations that end in `_into`
//! write into a view: the parts of a concatenation are made where they are needed. Slices and
//! reshapes are views too and cost nothing, forward or backward.
//!
//! # Threads
//!
//! Operations use the current `rayon` pool when they are large enough. Run whole steps inside
//! `rayon::ThreadPool::install`: a call from outside hands every operation over to the pool, which
//! costs microseconds and now and then an allocation.

#[macro_use]
mod kernel;
mod adam;
mod arithmetic;
mod backward;
pub mod check;
mod error;
mod init;
mod matrix;
mod op;
mod parallel;
mod parameter;
mod slab;
mod tape;
mod threads;
mod workspace;

pub use adam::{Adam, AdamConfig, AdamMoments};
pub use arithmetic::arithmetic;
pub use error::Error;
pub use init::Init;
pub use kernel::activation::Activation;
pub use kernel::gemm::Matmul;
pub use kernel::rows::row_products;
pub use kernel::simd::{Level, level, limit_level, prefetch};
pub use kernel::split::has_matrix_unit;
pub use kernel::vector::signed_logs;
pub use kernel::waves::{wave_sums, waves_later};
pub use matrix::Matrix;
pub use op::attention::{Heads, Keys};
pub use op::gather::Pair;
pub use op::linear::Then;
pub use op::mix_tokens::TokenNet;
pub use op::recurrent::Cell;
pub use op::segment::{Segments, Weighting};
pub use op::self_attention::Blocks;
pub use op::temporal_filter::Runs;
pub use parallel::{alone, awake, awake_in};
pub use parameter::{Gradients, Parameter, ParameterId, Parameters};
pub use tape::{DropoutKey, Indices, Tape, Times, Var};
pub use threads::Threads;
pub use workspace::Workspace;
