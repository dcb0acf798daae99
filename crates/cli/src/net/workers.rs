//! The threads of a server's workers.

use std::thread;

use fulmar::WorkerCids;
use tokio::runtime::{Handle, Runtime};
use tokio::sync::oneshot;

use super::runtime;
use crate::failure::Failure;

/// A runtime for each worker of a server, each with a thread. What serves a connection runs in the thread of its worker, so that
/// none of them waits for another.
pub(crate) struct Workers {
    /// That of the thread in which the server was started.
    main: Runtime,
    handles: Vec<Handle>,
    /// The other threads end when these are dropped.
    _ends: Vec<oneshot::Sender<()>>,
}

impl Workers {
    /// As many as were asked for, or as there are processor cores that this program may use. Other systems than Linux do not spread
    /// datagrams over sockets as workers need it: there it is one.
    pub(crate) fn start(asked: Option<u8>) -> Result<Self, Failure> {
        let cores = || match cfg!(target_os = "linux") {
            true => thread::available_parallelism().map_or(1, usize::from).min(WorkerCids::WORKERS_MAX),
            false => 1,
        };
        let main = runtime()?;
        let (mut handles, mut ends) = (vec![main.handle().clone()], Vec::new());
        for number in 1..asked.map_or_else(cores, usize::from) {
            let runtime = runtime()?;
            handles.push(runtime.handle().clone());
            let (end, ended) = oneshot::channel::<()>();
            let thread = thread::Builder::new().name(format!("worker {number}"));
            thread
                .spawn(move || {
                    // It ends with the sender.
                    let _ = runtime.block_on(ended);
                    // A read from a slow disk must not hold up the end.
                    runtime.shutdown_background();
                })
                .map_err(Failure::io("cannot start a thread"))?;
            ends.push(end);
        }
        Ok(Self { main, handles, _ends: ends })
    }

    /// The runtimes.
    pub(crate) fn handles(&self) -> Vec<Handle> {
        self.handles.clone()
    }

    /// Runs what the thread of the first worker does beside its work, to its end.
    pub(crate) fn block_on<T>(self, main: impl Future<Output = T>) -> T {
        let result = self.main.block_on(main);
        self.main.shutdown_background();
        result
    }
}
