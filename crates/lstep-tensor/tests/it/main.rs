//! Operations against plain definitions, finite differences and PyTorch.

mod gradients;
mod inference;
mod reference;
mod torch;
