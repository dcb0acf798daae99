//! One line for each request, on standard output: in the common log format, or an object.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, SystemTime};

use fulmar_qlog::rfc3339;
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
pub(crate) struct Request {
    /// Always `request`.
    pub(super) kind: &'static str,
    /// When it was over.
    #[serde(serialize_with = "as_rfc3339")]
    pub(super) time: SystemTime,
    pub(super) remote: SocketAddr,
    /// `HTTP/3.0`, `HTTP/2.0`, `HTTP/1.1`, `HTTP/1.0` or `HTTP/0.9`.
    pub(super) protocol: &'static str,
    pub(super) method: String,
    /// As it was asked for; empty if no request came.
    pub(super) path: String,
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
            let (mut requests, mut clock) = (Vec::new(), Clock::default());
            while let Ok(first) = waiting.recv() {
                thread::sleep(GATHER);
                requests.push(first);
                requests.extend(waiting.try_iter().take(WAITING_MAX));
                output.print_all(&requests, |request| request.text(clock.at(request.time)));
                requests.clear();
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
    /// A line in the common log format, with the time in words.
    fn text(&self, time: &str) -> String {
        let Self { remote, protocol, method, path, status, bytes, .. } = self;
        // Whatever a client asks for, nothing of it steers the terminal or looks like another field.
        let path = path.escape_debug();
        format!("{} - - [{time}] \"{method} {path} {protocol}\" {status} {bytes}", remote.ip().to_canonical())
    }
}

/// Times in words, which are made anew once a second: the requests of a second have one.
#[derive(Debug, Default)]
struct Clock {
    second: Option<u64>,
    words: String,
}

impl Clock {
    fn at(&mut self, time: SystemTime) -> &str {
        let second = Some(since_1970(time).as_secs());
        if self.second != second {
            (self.second, self.words) = (second, common_time(time));
        }
        &self.words
    }
}

fn since_1970(time: SystemTime) -> Duration {
    time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
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

    fn request(path: &str) -> Request {
        Request {
            kind: "request",
            time: SystemTime::UNIX_EPOCH + Duration::from_millis(1_795_284_245_250),
            remote: ([127, 0, 0, 1], 5_000).into(),
            protocol: "HTTP/3.0",
            method: "GET".to_owned(),
            path: path.to_owned(),
            status: 206,
            bytes: 1_000,
            duration_s: 0.5,
        }
    }

    #[test]
    fn lines_are_in_the_common_log_format() {
        let line = "127.0.0.1 - - [21/Nov/2026:18:04:05 +0000] \"GET /a?b HTTP/3.0\" 206 1000";
        let mut clock = Clock::default();
        let mut text = |request: &Request| request.text(clock.at(request.time));
        assert_eq!(text(&request("/a?b")), line);
        let mut later = request("/a?b");
        later.time += Duration::from_millis(700);
        assert_eq!(text(&later), line);
        later.time += Duration::from_millis(100);
        assert_eq!(text(&later), line.replace(":05 ", ":06 "));
        let steering = text(&request("/\u{1b}[2J\"\n"));
        assert!(steering.contains(r#""GET /\u{1b}[2J\"\n HTTP/3.0""#), "{steering}");
    }

    #[test]
    fn objects_tell_the_time_and_the_protocol() {
        let object = serde_json::to_value(request("/a")).expect("an object");
        assert_eq!(object["time"], "2026-11-21T18:04:05.250Z");
        assert_eq!(object["protocol"], "HTTP/3.0");
    }
}
