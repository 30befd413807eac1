//! Layers and encodings that several models share.
//!
//! This room serves `model` and knows nothing of it: it sees numbers, shapes and small graphs.

pub mod spectrum;
