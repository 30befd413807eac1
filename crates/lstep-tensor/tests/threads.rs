//! The same bits on any number of threads and any instruction set.

mod step;

use lstep_tensor::{Level, awake_in, limit_level};

fn bits((losses, weights): &(Vec<f32>, Vec<f32>)) -> Vec<u32> {
    losses.iter().chain(weights).map(|x| x.to_bits()).collect()
}

#[test]
fn a_training_run_has_the_same_bits_on_one_two_three_and_eight_threads() {
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool");
        pool.install(|| step::train(4))
    };
    let one = run(1);
    assert!(one.0.iter().all(|loss| loss.is_finite()) && one.0[3] < one.0[0], "{:?}", one.0);
    for threads in [2, 3, 8] {
        assert!(bits(&run(threads)) == bits(&one), "{threads} threads change the result");
    }
}

#[test]
fn a_training_run_has_the_same_bits_on_every_instruction_set() {
    let best = step::train(3);
    for limit in [Level::Avx2, Level::Portable] {
        limit_level(limit);
        let limited = step::train(3);
        limit_level(Level::Avx512);
        assert!(bits(&limited) == bits(&best), "{limit:?} changes the result");
    }
}

#[test]
fn work_in_a_pool_kept_awake_runs_there_and_a_panic_comes_out_of_it() {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().expect("a pool");
    assert_eq!(awake_in(&pool, rayon::current_num_threads), 3);
    let calm = pool.install(|| step::train(3));
    assert!(
        bits(&awake_in(&pool, || step::train(3))) == bits(&calm),
        "threads that help change the result"
    );
    let failing = std::panic::AssertUnwindSafe(|| awake_in(&pool, || panic!("the work failed")));
    let panicked = std::panic::catch_unwind(failing);
    assert!(panicked.is_err());
    assert_eq!(awake_in(&pool, || 1), 1, "the pool goes on");
}
