//! Buffers handed from the thread that trains to the thread that owns MPI, and back.

use lstep::error::{Error, InputFault, Result};
use lstep::model::Exchange;
use mpi::topology::SimpleCommunicator;
use mpi::traits::*;
use std::sync::mpsc::{Receiver, Sender, channel};

/// What MPI is to move.
enum Request {
    Slices(Vec<f32>),
    Gather(Vec<f32>),
    GatherBytes(Vec<u8>),
}

/// What it has moved here.
enum Reply {
    Floats(Vec<f32>),
    Bytes(Vec<u8>),
}

/// The training thread's end.
pub struct Funnel {
    rank: usize,
    ranks: usize,
    requests: Sender<Request>,
    replies: Receiver<Reply>,
}

/// The end of the thread that owns MPI.
pub struct Service {
    requests: Receiver<Request>,
    replies: Sender<Reply>,
}

impl Funnel {
    /// Both ends, for one of some ranks.
    pub fn new(rank: usize, ranks: usize) -> (Funnel, Service) {
        let (to, requests) = channel();
        let (replies, from) = channel();
        (Funnel { rank, ranks, requests: to, replies: from }, Service { requests, replies })
    }

    fn ask(&self, request: Request) -> Result<Reply> {
        let gone = |_| {
            let problem = "does not answer any more";
            Error::from(InputFault::new("MPI", problem, "start the job again with --resume"))
        };
        self.requests.send(request).map_err(|_| gone(std::sync::mpsc::RecvError))?;
        self.replies.recv().map_err(gone)
    }

    fn floats(&self, request: Request) -> Result<Vec<f32>> {
        match self.ask(request)? {
            Reply::Floats(values) => Ok(values),
            Reply::Bytes(_) => unreachable!("floats are answered with floats"),
        }
    }
}

impl Exchange for Funnel {
    fn rank(&self) -> usize {
        self.rank
    }

    fn ranks(&self) -> usize {
        self.ranks
    }

    fn all_to_all(&mut self, values: Vec<f32>) -> Result<Vec<f32>> {
        self.floats(Request::Slices(values))
    }

    fn all_gather(&mut self, values: Vec<f32>) -> Result<Vec<f32>> {
        self.floats(Request::Gather(values))
    }

    fn all_gather_bytes(&mut self, bytes: Vec<u8>) -> Result<Vec<u8>> {
        match self.ask(Request::GatherBytes(bytes))? {
            Reply::Bytes(bytes) => Ok(bytes),
            Reply::Floats(_) => unreachable!("bytes are answered with bytes"),
        }
    }
}

impl Service {
    /// Moves bytes until the training thread has ended.
    pub fn run(self, world: &SimpleCommunicator) {
        let ranks = world.size() as usize;
        for request in self.requests {
            let reply = match request {
                Request::Slices(values) => {
                    let mut received = vec![0.0; values.len()];
                    world.all_to_all_into(&values[..], &mut received[..]);
                    Reply::Floats(received)
                }
                Request::Gather(values) => {
                    let mut received = vec![0.0; values.len() * ranks];
                    world.all_gather_into(&values[..], &mut received[..]);
                    Reply::Floats(received)
                }
                Request::GatherBytes(bytes) => {
                    let mut received = vec![0; bytes.len() * ranks];
                    world.all_gather_into(&bytes[..], &mut received[..]);
                    Reply::Bytes(received)
                }
            };
            if self.replies.send(reply).is_err() {
                return;
            }
        }
    }
}
