//! The `lstep` command; everything is in the library of this crate.
#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    lstep_cli::main()
}
