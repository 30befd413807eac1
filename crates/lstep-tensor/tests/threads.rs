//! The same bits on any number of threads and any instruction set.

mod step;

use lstep_tensor::{Level, limit_level};

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
