//! One line for each request, on standard output: in the common log format, or an object.

use std::fmt::Write as _;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, SystemTime};

use fulmar_qlog::rfc3339;
use http::Method;
use serde::{Serialize, Serializer};

use crate::failure::Failure;
use crate::report::{Output, counted};

/// Lines that wait for a reader of standard output that is slow. Further ones are left out, and it is told how many: a server must
/// not stand still because nobody reads what it says.
const WAITING_MAX: usize = 4096;
/// How long lines are gathered before they are written. Were the thread woken for each request, waking it would cost a server that is
/// asked for small files about as much as the answers.
const GATHER: Duration = Duration::from_millis(10);
/// How long the end of the program may be put off by such a reader.
const FLUSH_MAX: Duration = Duration::from_secs(1);

/// A request and what became of it.
#[derive(Debug, Serialize)]
pub(crate) struct Request<'a> {
    /// Always `request`.
    pub(super) kind: &'static str,
    /// When it was over.
    #[serde(serialize_with = "as_rfc3339")]
    pub(super) time: SystemTime,
    pub(super) remote: SocketAddr,
    /// `HTTP/3.0`, `HTTP/2.0`, `HTTP/1.1`, `HTTP/1.0` or `HTTP/0.9`.
    pub(super) protocol: &'static str,
    #[serde(serialize_with = "as_text")]
    pub(super) method: Method,
    /// As it was asked for; empty if no request came.
    pub(super) path: &'a str,
    /// That of the response, and 499 if the client had gone before. Of HTTP/0.9 200 if the client has acknowledged all of the file,
    /// else the digits of the code of the reset.
    pub(super) status: u16,
    /// Bytes of the body that were given to the stream.
    pub(super) bytes: u64,
    /// From the request to the end of the body.
    pub(super) duration_s: f64,
}

/// Writes lines in a thread of its own.
#[derive(Debug)]
pub(crate) struct AccessLog {
    queue: Arc<Queue>,
    left_out: Arc<AtomicU64>,
    is_done: Mutex<Receiver<()>>,
    output: Output,
}

/// What waits to be written.
#[derive(Debug, Default)]
struct Queue {
    waiting: Mutex<Waiting>,
    /// There is a first line, or there will be no more.
    has_some: Condvar,
}

/// Requests without their paths, and these behind one another: no request takes memory of its own, which another thread would have to
/// give back.
#[derive(Debug, Default)]
struct Requests {
    all: Vec<(usize, Request<'static>)>,
    paths: String,
}

#[derive(Debug, Default)]
struct Waiting {
    requests: Requests,
    is_over: bool,
}

impl AccessLog {
    pub(crate) fn start(output: Output) -> Result<Self, Failure> {
        let (done, is_done) = channel::<()>();
        let (queue, left_out) = (Arc::<Queue>::default(), Arc::<AtomicU64>::default());
        let (source, counter) = (queue.clone(), left_out.clone());
        let write = move || {
            let (mut requests, mut words) = (Requests::default(), Words::default());
            while source.wait() {
                thread::sleep(GATHER);
                source.take(&mut requests);
                output.print_all(requests.iter(), |request, line| request.write(&mut words, line));
                requests.clear();
                tell_left_out(&counter, output);
            }
            drop(done);
        };
        let thread = thread::Builder::new().name("access log".to_owned()).spawn(write);
        drop(thread.map_err(Failure::io("cannot start a thread"))?);
        Ok(Self { queue, left_out, is_done: Mutex::new(is_done), output })
    }

    pub(super) fn add(&self, request: Request<'_>) {
        if !self.queue.add(request) {
            self.left_out.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Writes what waits, as far as it is read.
    pub(crate) fn finish(&self) {
        self.queue.end();
        let is_done = self.is_done.lock().unwrap_or_else(PoisonError::into_inner);
        if is_done.recv_timeout(FLUSH_MAX) == Err(RecvTimeoutError::Timeout) {
            self.output.note("nobody has read the last lines of the log of requests");
        }
        tell_left_out(&self.left_out, self.output);
    }
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether there was room.
    fn add(&self, request: Request<'_>) -> bool {
        let mut waiting = self.lock();
        if waiting.is_over || waiting.requests.all.len() >= WAITING_MAX {
            return false;
        }
        waiting.requests.add(request);
        let is_first = waiting.requests.all.len() == 1;
        drop(waiting);
        if is_first {
            self.has_some.notify_one();
        }
        true
    }

    /// Waits until there is something. Returns false if there will be nothing any more.
    fn wait(&self) -> bool {
        let is_idle = |waiting: &mut Waiting| waiting.requests.all.is_empty() && !waiting.is_over;
        let waiting = self.has_some.wait_while(self.lock(), is_idle).unwrap_or_else(PoisonError::into_inner);
        !waiting.requests.all.is_empty()
    }

    /// Exchanges what waits for what is empty.
    fn take(&self, empty: &mut Requests) {
        std::mem::swap(&mut self.lock().requests, empty);
    }

    /// Nothing more is taken.
    fn end(&self) {
        self.lock().is_over = true;
        self.has_some.notify_one();
    }
}

impl Requests {
    fn add(&mut self, request: Request<'_>) {
        self.paths.push_str(request.path);
        self.all.push((request.path.len(), request.with_path("")));
    }

    fn iter(&self) -> impl Iterator<Item = Request<'_>> {
        let mut paths = &*self.paths;
        self.all.iter().map(move |(len, request)| {
            let (path, rest) = paths.split_at(*len);
            paths = rest;
            request.with_path(path)
        })
    }

    fn clear(&mut self) {
        self.all.clear();
        self.paths.clear();
        self.paths.shrink_to(PATHS_KEPT);
    }
}

/// How much memory for paths is kept, in bytes.
const PATHS_KEPT: usize = 256 * 1024;

fn tell_left_out(counter: &AtomicU64, output: Output) {
    match counter.swap(0, Ordering::Relaxed) {
        0 => {}
        count => output.note(&format!("{} left out of the log of requests", counted(count, "line"))),
    }
}

impl Request<'_> {
    /// The same with another path.
    fn with_path<'a>(&self, path: &'a str) -> Request<'a> {
        let Self { kind, time, remote, protocol, ref method, status, bytes, duration_s, .. } = *self;
        Request { kind, time, remote, protocol, method: method.clone(), path, status, bytes, duration_s }
    }

    /// Appends a line in the common log format.
    fn write(&self, words: &mut Words, line: &mut String) {
        let Self { time, remote, protocol, method, path, status, bytes, .. } = self;
        words.write_beginning(remote.ip(), *time, line);
        line.push_str(method.as_str());
        line.push(' ');
        // Whatever a client asks for, nothing of it steers the terminal or looks like another field.
        let is_plain = |byte: u8| matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\'' | b'\\');
        if path.bytes().all(is_plain) {
            line.push_str(path);
        } else {
            let _ = write!(line, "{}", path.escape_debug());
        }
        line.push(' ');
        line.push_str(protocol);
        let _ = write!(line, "\" {status} {bytes}");
    }
}

/// How a line begins, which is made anew once a second and for another client: the requests of one that come together have the same.
#[derive(Debug, Default)]
struct Words {
    of: Option<(IpAddr, u64)>,
    beginning: String,
}

impl Words {
    fn write_beginning(&mut self, remote: IpAddr, time: SystemTime, line: &mut String) {
        let of = Some((remote, since_1970(time).as_secs()));
        if self.of != of {
            self.of = of;
            self.beginning = format!("{} - - [{}] \"", remote.to_canonical(), common_time(time));
        }
        line.push_str(&self.beginning);
    }
}

fn since_1970(time: SystemTime) -> Duration {
    time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}

fn as_text<S: Serializer>(method: &Method, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(method.as_str())
}

fn as_rfc3339<S: Serializer>(time: &SystemTime, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&rfc3339(since_1970(*time)))
}

/// `01/Nov/2026:12:00:00 +0000`.
fn common_time(time: SystemTime) -> String {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let time = rfc3339(since_1970(time));
    let month = time[5..7].parse().ok().and_then(|month: usize| MONTHS.get(month - 1));
    format!("{}/{}/{}:{} +0000", &time[8..10], month.unwrap_or(&"Jan"), &time[..4], &time[11..19])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(path: &str) -> Request<'_> {
        Request {
            kind: "request",
            time: SystemTime::UNIX_EPOCH + Duration::from_millis(1_795_284_245_250),
            remote: ([127, 0, 0, 1], 5_000).into(),
            protocol: "HTTP/3.0",
            method: Method::GET,
            path,
            status: 206,
            bytes: 1_000,
            duration_s: 0.5,
        }
    }

    #[test]
    fn lines_are_in_the_common_log_format() {
        let line = "127.0.0.1 - - [21/Nov/2026:18:04:05 +0000] \"GET /a?b HTTP/3.0\" 206 1000";
        let mut words = Words::default();
        let mut text = |request: &Request| {
            let mut line = String::new();
            request.write(&mut words, &mut line);
            line
        };
        assert_eq!(text(&request("/a?b")), line);
        let mut later = request("/a?b");
        later.time += Duration::from_millis(700);
        assert_eq!(text(&later), line);
        later.time += Duration::from_millis(100);
        assert_eq!(text(&later), line.replace(":05 ", ":06 "));
        later.remote = ([127, 0, 0, 2], 5_000).into();
        assert_eq!(text(&later), line.replace(":05 ", ":06 ").replace(".1 ", ".2 "));
        let steering = text(&request("/\u{1b}[2J\"\n"));
        assert!(steering.contains(r#""GET /\u{1b}[2J\"\n HTTP/3.0""#), "{steering}");
    }

    #[test]
    fn each_request_has_its_own_path() {
        let mut requests = Requests::default();
        for path in ["/a", "", "/\u{e4}", "/b"] {
            requests.add(request(path));
        }
        assert_eq!(
            requests.iter().map(|request| request.path).collect::<Vec<_>>(),
            ["/a", "", "/\u{e4}", "/b"]
        );
        requests.clear();
        requests.add(request("/c"));
        assert_eq!(requests.iter().map(|request| request.path).collect::<Vec<_>>(), ["/c"]);
    }

    #[test]
    fn objects_tell_the_time_and_the_protocol() {
        let object = serde_json::to_value(request("/a")).expect("an object");
        assert_eq!(object["time"], "2026-11-21T18:04:05.250Z");
        assert_eq!(object["protocol"], "HTTP/3.0");
    }
}
