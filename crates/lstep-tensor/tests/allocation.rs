//! A steady training step allocates nothing: counted over all threads, inside a pool.

mod step;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use lstep_tensor::{Adam, AdamConfig, DropoutKey, Gradients, Workspace};

struct Counting;

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call goes to the system allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn allocations_of_later_steps(threads: usize) -> Vec<usize> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool");
    pool.install(|| {
        let mut p = step::parameters();
        let mut gradients = Gradients::of(&p);
        let mut adam = Adam::new(&p, AdamConfig::default());
        let mut workspace = Workspace::new();
        (0..16)
            .map(|number| {
                let before = ALLOCATIONS.load(Ordering::Relaxed);
                gradients.zero();
                let mut tape = workspace.train(&p, DropoutKey { seed: 1, step: number });
                let loss = step::forward(&mut tape, &p, step::features());
                tape.backward(loss, &mut gradients);
                gradients.clip_norm(1.0);
                adam.step(&mut p, &gradients);
                ALLOCATIONS.load(Ordering::Relaxed) - before
            })
            .collect()
    })
}

#[test]
fn from_the_second_step_on_nothing_is_allocated() {
    let counts = allocations_of_later_steps(1);
    assert!(counts[0] > 0, "the counter works");
    assert!(counts[1..].iter().all(|&count| count == 0), "{counts:?}");
    // With several threads which of them does what varies, so a thread may need working memory for
    // the first time in any step, once per size; the rest allocate nothing.
    let counts = allocations_of_later_steps(2);
    let quiet = counts.iter().filter(|&&count| count == 0).count();
    assert!(quiet >= counts.len() / 2, "{counts:?}");
}
