//! Per-thread working memory, reused from call to call.

use std::cell::RefCell;

use crate::slab::Slab;

thread_local! {
    // A stack, not one buffer: while a thread waits for its parallel parts it may run a task of
    // someone else's step.
    static FREE: RefCell<Vec<Slab>> = const { RefCell::new(Vec::new()) };
}

/// Lends `task` at least `floats` values of working memory with unspecified content.
pub(crate) fn with<R>(floats: usize, task: impl FnOnce(&mut [f32]) -> R) -> R {
    let mut slab = FREE.with(|free| free.borrow_mut().pop()).unwrap_or_default();
    let result = task(slab.take(floats));
    FREE.with(|free| free.borrow_mut().push(slab));
    result
}
