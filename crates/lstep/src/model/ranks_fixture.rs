//! Threads that exchange as processes do, for tests of what several ranks compute.

use super::reduce::Exchange;
use crate::error::Result;
use std::sync::mpsc::{Receiver, Sender, channel};

/// One of several threads that exchange through channels.
pub struct Threads {
    rank: usize,
    to: Vec<Sender<Vec<u8>>>,
    from: Vec<Receiver<Vec<u8>>>,
}

impl Threads {
    fn exchange(&mut self, parts: Vec<Vec<u8>>) -> Vec<u8> {
        for (to, part) in self.to.iter().zip(parts) {
            to.send(part).expect("the other rank lives");
        }
        self.from.iter().flat_map(|from| from.recv().expect("the other rank sends")).collect()
    }
}

fn to_bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn to_floats(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()
}

impl Exchange for Threads {
    fn rank(&self) -> usize {
        self.rank
    }

    fn ranks(&self) -> usize {
        self.to.len()
    }

    fn all_to_all(&mut self, values: Vec<f32>) -> Result<Vec<f32>> {
        let each = values.len() / self.ranks();
        let parts = values.chunks(each.max(1)).map(to_bytes).collect();
        Ok(to_floats(&self.exchange(parts)))
    }

    fn all_gather(&mut self, values: Vec<f32>) -> Result<Vec<f32>> {
        Ok(to_floats(&self.all_gather_bytes(to_bytes(&values))?))
    }

    fn all_gather_bytes(&mut self, bytes: Vec<u8>) -> Result<Vec<u8>> {
        let parts = vec![bytes; self.ranks()];
        Ok(self.exchange(parts))
    }
}

/// Runs a function on so many ranks and gives what each returned. Each has a pool of its own, as a
/// process has: in a shared one, ranks that wait for each other would take each other's threads.
pub fn on_ranks<T: Send>(ranks: usize, run: impl Fn(Threads) -> T + Sync) -> Vec<T> {
    let mut to: Vec<Vec<Sender<Vec<u8>>>> = (0..ranks).map(|_| Vec::new()).collect();
    let mut from: Vec<Vec<Receiver<Vec<u8>>>> = (0..ranks).map(|_| Vec::new()).collect();
    for sender in &mut to {
        for receiver in &mut from {
            let (send, receive) = channel();
            sender.push(send);
            receiver.push(receive);
        }
    }
    std::thread::scope(|scope| {
        let threads: Vec<_> = (to.into_iter().zip(from).enumerate())
            .map(|(rank, (to, from))| {
                let run = &run;
                let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build();
                let pool = pool.expect("two threads can be had");
                scope.spawn(move || pool.install(|| run(Threads { rank, to, from })))
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("the rank ends")).collect()
    })
}
