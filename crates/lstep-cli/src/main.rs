//! The `lstep` command.
fn main() {}
