//! The examples run, so that they cannot go stale.

#[path = "../../examples/compare.rs"]
mod compare;
#[path = "../../examples/evaluate.rs"]
mod evaluate;
#[path = "../../examples/live.rs"]
mod live;
#[path = "../../examples/train_in_memory.rs"]
mod train_in_memory;

#[test]
fn evaluate_runs() {
    evaluate::main().expect("it runs");
}

#[test]
fn train_in_memory_runs() {
    train_in_memory::main().expect("it runs");
}

#[test]
fn live_runs() {
    live::main().expect("it runs");
}

#[test]
fn compare_runs() {
    compare::main().expect("it runs");
}
