//! The vectorised loops under the operations. They see slices and strides, never the tape.
//!
//! Every kernel gives the same bits on every instruction set: bodies are written once, use explicit
//! `mul_add`, and sum in a fixed order of 16 lanes, so the compiler may only change how many lanes
//! go at once.

#[macro_use]
pub(crate) mod simd;
pub(crate) mod activation;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod amx;
pub(crate) mod gemm;
#[cfg(target_arch = "x86_64")]
mod gemm_x86;
pub(crate) mod math;
pub(crate) mod rows;
pub(crate) mod scatter;
pub(crate) mod scratch;
pub(crate) mod split;
pub(crate) mod vector;
pub(crate) mod waves;
