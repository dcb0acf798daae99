//! One line for each request, on standard output.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use serde::Serialize;

use crate::duration::Span;
use crate::failure::Failure;
use crate::report::{Output, counted};
use crate::size::Size;

/// Lines that wait for a reader of standard output that is slow. Further ones are left out, and it is told how many: a server must
/// not stand still because nobody reads what it says.
const WAITING_MAX: usize = 4096;
/// How long the end of the program may be put off by such a reader.
const FLUSH_MAX: Duration = Duration::from_secs(1);

/// A request and what became of it.
#[derive(Debug, Serialize)]
pub(super) struct Request {
    /// Always `request`.
    pub(super) kind: &'static str,
    pub(super) remote: SocketAddr,
    /// As it was asked for; empty if no request came.
    pub(super) path: String,
    /// 200 if the client has acknowledged all of the file; else the digits of the code of the reset, as in HTTP.
    pub(super) status: u16,
    /// Bytes of the file that were given to the stream.
    pub(super) bytes: u64,
    /// From the beginning of the stream to its end.
    pub(super) duration_s: f64,
}

/// Writes lines in a thread of its own.
#[derive(Debug)]
pub(crate) struct AccessLog {
    lines: Mutex<Option<SyncSender<Request>>>,
    left_out: Arc<AtomicU64>,
    is_done: Mutex<Receiver<()>>,
    output: Output,
}

impl AccessLog {
    pub(crate) fn start(output: Output) -> Result<Self, Failure> {
        let (lines, waiting) = sync_channel::<Request>(WAITING_MAX);
        let (done, is_done) = channel::<()>();
        let left_out = Arc::new(AtomicU64::new(0));
        let counter = left_out.clone();
        let write = move || {
            for request in waiting {
                output.print(&request, || request.text());
                tell_left_out(&counter, output);
            }
            drop(done);
        };
        let thread = thread::Builder::new().name("access log".to_owned()).spawn(write);
        drop(thread.map_err(Failure::io("cannot start a thread"))?);
        Ok(Self { lines: Mutex::new(Some(lines)), left_out, is_done: Mutex::new(is_done), output })
    }

    pub(super) fn add(&self, request: Request) {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.as_ref().is_none_or(|lines| lines.try_send(request).is_err()) {
            self.left_out.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Writes what waits, as far as it is read.
    pub(crate) fn finish(&self) {
        drop(self.lines.lock().unwrap_or_else(PoisonError::into_inner).take());
        let is_done = self.is_done.lock().unwrap_or_else(PoisonError::into_inner);
        if is_done.recv_timeout(FLUSH_MAX) == Err(RecvTimeoutError::Timeout) {
            self.output.note("nobody has read the last lines of the log of requests");
        }
        tell_left_out(&self.left_out, self.output);
    }
}

fn tell_left_out(counter: &AtomicU64, output: Output) {
    match counter.swap(0, Ordering::Relaxed) {
        0 => {}
        count => output.note(&format!("{} left out of the log of requests", counted(count, "line"))),
    }
}

impl Request {
    fn text(&self) -> String {
        let Self { remote, path, status, bytes, duration_s, .. } = self;
        // Whatever a client asks for, nothing of it steers the terminal.
        let path = path.escape_debug();
        format!("{remote} {status} {path} {} in {}", Size(*bytes), Span(Duration::from_secs_f64(*duration_s)))
    }
}
