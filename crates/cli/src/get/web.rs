//! `fulmar get` over HTTP/3, and over HTTP/2 and HTTP/1.1 where UDP does not come through.

mod clients;
mod credentials;
mod exchange;
mod limit;
mod narration;
mod pace;
mod part_of;
mod redirect;
mod request;
mod sink;
mod unpack;

use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use http::Method;
use serde::Serialize;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

use self::clients::Clients;
use self::exchange::{Done, Exchange};
use self::limit::Limit;
use self::request::Asked;
use super::place::Place;
use super::{ASK_AFTER, CLEANUP_MAX, HttpArgs, Item, Url, exit, local_names, sessions};
use crate::args::GetArgs;
use crate::duration::Span;
use crate::failure::{EXIT_FAILURE, Failure};
use crate::net::{self, ConnectionFigures, PathFigures, Transport};
use crate::progress::Bars;
use crate::qlog;
use crate::report::{self, Output};
use crate::signal::interrupted;
use crate::size::{Rate, Size};

/// What all transfers have in common.
struct Job {
    args: GetArgs,
    asked: Asked,
    clients: Clients,
    output: Output,
    bars: Bars,
    place: Place,
    /// Whether the user has ended the program.
    ended: watch::Sender<bool>,
}

/// A URL that was fetched, for `--json`.
#[derive(Debug, Serialize)]
struct Fetched<'a> {
    kind: &'static str,
    url: String,
    /// Where it was found in the end.
    final_url: String,
    file: Option<&'a Path>,
    status: u16,
    version: String,
    bytes: u64,
    /// How much of the file was there before.
    resumed_at: u64,
    duration_s: f64,
    timing: Timing,
}

/// Seconds since the first attempt for the last request began, but for the total.
#[derive(Debug, Serialize)]
struct Timing {
    dns_s: f64,
    handshake_s: f64,
    first_byte_s: f64,
    total_s: f64,
    is_reused: bool,
    is_early: bool,
}

#[derive(Debug, Serialize)]
struct Summary {
    kind: &'static str,
    files: u64,
    missing: usize,
    bytes: u64,
    duration_s: f64,
    /// The QUIC connections that are there at the end; none where all went over TCP.
    connections: Vec<ConnectionFigures>,
    /// Those of connections that have several at the end.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    paths: Vec<PathFigures>,
}

/// Fetches all URLs.
pub(super) fn run(mut args: GetArgs, output: Output) -> Result<(), Failure> {
    // What answers HEAD has no body: an empty file would be all that comes of it.
    args.http.head |= args.http.request.as_deref() == Some(Method::HEAD.as_str());
    let place = Place::of(&args)?;
    if output.is_json() && (place == Place::Stdout || args.http.head || args.http.include) {
        return Err(Failure::Usage("--json and the response cannot both go to standard output".to_owned()));
    }
    let items = plan(&args, &place)?;
    let asked = Asked::from_args(&args.http)?;
    if items.len() > 1 && !asked.is_repeatable() {
        return Err(Failure::Usage("what is piped in can be sent to one URL only".to_owned()));
    }
    let bars = Bars::new(output.wants_bars() && !args.quiet);
    let logs = args.qlog.start()?;
    let store = sessions::load(args.session.as_deref())?;
    let mut transport = args.transport.clone();
    transport.keep_alive = transport.keep_alive.or(Some(ASK_AFTER));
    let transport = Transport::from_args(&transport)?.with_logs(logs.clone());
    let transport = match args.http.limit_rate {
        Some(rate) => transport.with_slow_readers(rate, at_once(&args, &place, items.len())),
        None => transport,
    };
    let transport = transport.with_paths(&args.paths);
    let runtime = net::runtime()?;
    let session = args.session.clone();
    let result = runtime.block_on(async {
        let clients = Clients::new(&args, transport, store.clone(), output)?;
        let job = Arc::new(Job {
            args,
            asked,
            clients,
            output,
            bars: bars.clone(),
            place,
            ended: watch::Sender::new(false),
        });
        let mut fetching = std::pin::pin!(fetch_all(&job, items));
        let result = tokio::select! {
            result = &mut fetching => result,
            result = interrupted() => {
                // What has come is written down, for -C -.
                job.ended.send_replace(true);
                let _ = timeout(CLEANUP_MAX, fetching).await;
                Err(result.map_or_else(Failure::io("cannot wait for signals"), |()| Failure::Interrupted))
            }
        };
        job.output.narrate(|| job.clients.closing());
        job.clients.close().await;
        result
    });
    bars.clear();
    runtime.shutdown_timeout(CLEANUP_MAX);
    qlog::finish(logs, output);
    let saved = sessions::save(session.as_deref(), &store);
    result.and(saved)
}

fn plan(args: &GetArgs, place: &Place) -> Result<Vec<Item>, Failure> {
    let urls = args.urls.iter().map(|text| Url::of_user(text)).collect::<Result<Vec<_>, _>>();
    let mut urls = urls.map_err(Failure::Usage)?;
    if let Some(name) = args.http.upload_file.as_deref().and_then(Path::file_name) {
        urls.iter_mut().for_each(|url| url.name_in_directory(name.as_encoded_bytes()));
    }
    let names = match place {
        Place::Directory(_) if !args.http.head => local_names(&urls)
            .map_err(|why| Failure::Usage(format!("{why}: name a file with -o, or - for standard output")))?,
        _ => urls.iter().map(Url::to_string).collect(),
    };
    Ok(urls.into_iter().zip(names).map(|(url, name)| Item { url, name }).collect())
}

/// How many of so many URLs are fetched at a time. On standard output they come one after the other, as they were named.
fn at_once(args: &GetArgs, place: &Place, urls: usize) -> usize {
    let in_a_row = *place == Place::Stdout || args.http.head || args.http.include;
    if in_a_row { 1 } else { usize::from(args.http.parallel).min(urls) }
}

/// Fetches some at a time. Failures are told as they happen.
async fn fetch_all(job: &Arc<Job>, items: Vec<Item>) -> Result<(), Failure> {
    let start = Instant::now();
    let at_once = at_once(&job.args, &job.place, items.len());
    let waiting = Arc::new(Mutex::new(VecDeque::from(items)));
    let mut workers = JoinSet::new();
    for _ in 0..at_once {
        let (job, waiting) = (Arc::clone(job), Arc::clone(&waiting));
        workers.spawn(async move {
            let mut total = Total::default();
            loop {
                let next = waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
                let Some(item) = next else { return total };
                match fetch(&job, &item).await {
                    Ok(bytes) => (total.files, total.bytes) = (total.files + 1, total.bytes + bytes),
                    // What follows would have no reader either.
                    Err(Failure::ReaderGone) => return total,
                    Err(Failure::Interrupted) => {
                        total.is_interrupted = true;
                        return total;
                    }
                    Err(failure) => {
                        job.output.complain_of(&failure, Some(item.url.to_string()));
                        total.missing += 1;
                        total.exit.get_or_insert(exit::code(&failure));
                    }
                }
            }
        });
    }
    let mut total = Total::default();
    while let Some(part) = workers.join_next().await {
        total.add(part.map_err(|_| Failure::Thread("download"))?);
    }
    job.bars.clear();
    if total.is_interrupted {
        return Err(Failure::Interrupted);
    }
    summarise(job, &total, start.elapsed());
    match total.exit {
        Some(exit) => Err(Failure::AlreadyTold { sentences: total.missing, missing: total.missing, exit }),
        None => Ok(()),
    }
}

#[derive(Debug, Default)]
struct Total {
    files: u64,
    bytes: u64,
    missing: usize,
    exit: Option<u8>,
    is_interrupted: bool,
}

impl Total {
    fn add(&mut self, other: Self) {
        self.files += other.files;
        self.bytes += other.bytes;
        self.missing += other.missing;
        self.exit = self.exit.or(other.exit);
        self.is_interrupted |= other.is_interrupted;
    }
}

/// Fetches one URL, tells of it, and returns how many bytes came.
async fn fetch(job: &Job, item: &Item) -> Result<u64, Failure> {
    let start = Instant::now();
    let limit = Limit::new(&item.url, job.args.http.max_time, job.ended.subscribe());
    let done = Exchange::new(job, item, limit).run().await?;
    job.output.narrate(|| {
        let (bytes, whole) = (Size(done.bytes), Span(start.elapsed()));
        format!("{}: {bytes} in {whole}, the first after {}", done.url, Span(done.first_byte))
    });
    tell(job, item, &done, start.elapsed());
    Ok(done.bytes)
}

fn tell(job: &Job, item: &Item, done: &Done, duration: Duration) {
    let file = job.place.file(item);
    if file.is_some() && !job.args.http.head {
        job.bars.finished(&item.name, done.resumed_at + done.bytes);
    }
    if job.output.is_json() {
        let seconds = |time: Duration| time.as_secs_f64();
        let timing = Timing {
            dns_s: seconds(done.info.resolved_in),
            handshake_s: seconds(done.info.connected_in),
            first_byte_s: seconds(done.first_byte),
            total_s: seconds(duration),
            is_reused: done.info.is_reused,
            is_early: done.info.is_early,
        };
        let fetched = Fetched {
            kind: "file",
            url: item.url.to_string(),
            final_url: done.url.to_string(),
            file: file.as_deref(),
            status: done.status.as_u16(),
            version: format!("{:?}", done.version),
            bytes: done.bytes,
            resumed_at: done.resumed_at,
            duration_s: seconds(duration),
            timing,
        };
        job.output.print(&fetched, String::new);
    }
}

fn summarise(job: &Job, total: &Total, duration: Duration) {
    let HttpArgs { head, include, .. } = job.args.http;
    let is_silent = job.args.quiet || job.place == Place::Stdout || head || include;
    if is_silent && !job.output.is_json() {
        return;
    }
    let &Total { files, bytes, missing, .. } = total;
    let duration_s = duration.as_secs_f64();
    let (connections, paths) = (job.clients.connection_figures(), job.clients.path_figures());
    let summary = Summary { kind: "summary", files, missing, bytes, duration_s, connections, paths };
    job.output.print(&summary, || {
        let files = report::counted(files, "file");
        format!("{files}, {} in {} ({})", Size(bytes), Span(duration), Rate { bytes, duration })
    });
}

/// A failure that is of no kind of its own.
fn other(what: String, why: String) -> Failure {
    Failure::Http { what, why, exit: EXIT_FAILURE }
}
