//! `lstep-mpi`: `lstep train` as one of several processes that MPI has started.
//!
//! Everything but moving bytes is the library's and the command's. MPI is called by the main thread
//! alone, which any MPI allows; training runs on another one and hands buffers over. A process that
//! fails ends the job, so that a launcher can start it again: the run goes on from its folder.

mod funnel;

use funnel::Funnel;
use lstep_cli::RankEnd;
use mpi::Threading;
use mpi::traits::*;
use std::process::ExitCode;
use std::time::Duration;

fn main() -> ExitCode {
    let Some((universe, provided)) = mpi::initialize_with_threading(Threading::Funneled) else {
        eprintln!("lstep-mpi: MPI has been initialized before");
        return ExitCode::from(2);
    };
    let world = universe.world();
    if provided < Threading::Funneled {
        eprintln!("lstep-mpi: this MPI does not allow threads beside it: use another one");
        world.abort(2);
    }
    let (funnel, service) = Funnel::new(world.rank() as usize, world.size() as usize);
    let training =
        std::thread::spawn(move || lstep_cli::train_on_ranks(std::env::args_os(), funnel));
    service.run(&world);
    // A panic has been told by its thread.
    let end = training.join().unwrap_or(RankEnd { code: 101, together: false });
    if !end.together {
        world.abort(end.code.into());
    }
    // The first rank still evaluates; waiting in MPI would keep the other cores busy.
    let mut ended = world.immediate_barrier();
    while let Err(request) = ended.test() {
        ended = request;
        std::thread::sleep(Duration::from_millis(20));
    }
    ExitCode::from(end.code)
}
