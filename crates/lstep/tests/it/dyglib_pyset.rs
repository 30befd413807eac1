//! Sets against CPython's own, by the programs in `fixtures/dyglib/pyset_reference.json`.

use lstep::protocol::dyglib::pyset::{Key, PySet};
use serde_json::Value;
use sha2::{Digest, Sha256};

/// The generator of `pyset_reference.py`.
fn numbers(seed: u64, count: u64, span: u64) -> impl Iterator<Item = i64> {
    let mut x = seed;
    (0..count).map(move |_| {
        x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((x >> 33) % span) as i64
    })
}

fn run<K: Key>(program: &[Value], key: impl Fn(i64, i64) -> K, bytes: impl Fn(K) -> Vec<u8>) {
    let mut sets: Vec<PySet<K>> = vec![PySet::new(); 8];
    for (place, step) in program.iter().enumerate() {
        let number = |field: usize| step[field].as_u64().expect("a number");
        let (to, a, b) = (number(1) as usize, number(2) as usize, number(3) as usize);
        match step[0].as_str().expect("a word") {
            "add" => {
                let span = number(6);
                sets[to].extend(numbers(number(4), number(5), span).map(|x| key(x, span as i64)));
            }
            "union" => sets[to] = sets[a].union(&sets[b]),
            "difference" => sets[to] = sets[a].difference(&sets[b]),
            "copy" => sets[to] = sets[a].copy(),
            other => panic!("no such step: {other}"),
        }
        let mut digest = Sha256::new();
        for key in sets[to].iter() {
            digest.update(bytes(key));
        }
        let order: String =
            digest.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(sets[to].len() as u64, number(7), "size after step {place}: {step}");
        assert_eq!(order, step[8].as_str().expect("a hash"), "order after step {place}: {step}");
    }
}

#[test]
fn sets_are_iterated_in_the_order_of_cpython() {
    let cases: Vec<Value> =
        serde_json::from_str(include_str!("../fixtures/dyglib/pyset_reference.json"))
            .expect("the fixture is JSON");
    assert_eq!(cases.len(), 12);
    let plain = |key: i64| key.to_le_bytes().to_vec();
    for case in &cases {
        let program = case["program"].as_array().expect("steps");
        match case["kind"].as_str().expect("a word") {
            "small" => run(program, |x, _| x, plain),
            "signed" => run(program, |x, span| x - span / 2, plain),
            "large" => run(program, |x, span| (x - span / 2) * 20_000_000_000_033, plain),
            "pair" => run(
                program,
                |x, _| ((x / 50) as u32, (x % 50) as u32),
                |(a, b)| [i64::from(a).to_le_bytes(), i64::from(b).to_le_bytes()].concat(),
            ),
            other => panic!("no such kind: {other}"),
        }
    }
}
