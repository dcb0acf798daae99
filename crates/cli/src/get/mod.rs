//! `fulmar get`: files over HTTP/0.9, many at once, each under its name only when it is complete.

mod fetch;
mod name;
mod part;
mod sessions;
mod url;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use fulmar::{Connection, ConnectionError, SessionStore};
use serde::Serialize;
use tokio::task::JoinSet;

use crate::args::GetArgs;
use crate::authority::Authority;
use crate::duration::Span;
use crate::failure::Failure;
use crate::hq;
use crate::net::{self, Dialer, Figures, Transport};
use crate::progress::Bars;
use crate::qlog::{self, QlogDir};
use crate::report::{self, Output, Transfer};
use crate::signal::interrupted;
use crate::size::{Rate, Size};

use self::fetch::Fetcher;
pub(crate) use self::name::local_names;
pub(crate) use self::url::Url;

/// How many files of one connection are fetched at once. The server may allow fewer streams; then the others wait.
const PARALLEL_MAX: usize = 64;
/// After which silence in a download the server is asked for a sign of life, if the command line says nothing else.
const ASK_AFTER: Duration = Duration::from_secs(1);
/// How long the end of the program may be put off by writes under way, so that no part of a file is left behind.
const CLEANUP_MAX: Duration = Duration::from_secs(2);

/// A file to fetch.
#[derive(Debug, Clone)]
struct Item {
    url: Url,
    /// The name it gets in the output directory.
    name: String,
}

/// What the fetches of all servers have in common.
#[derive(Debug, Clone)]
struct Job {
    args: Arc<GetArgs>,
    output: Output,
    bars: Bars,
    logs: Option<Arc<QlogDir>>,
    sessions: Arc<SessionStore>,
}

/// A file that was fetched, for `--json`.
#[derive(Debug, Serialize)]
struct Fetched<'a> {
    url: String,
    file: &'a Path,
    bytes: u64,
    duration_s: f64,
}

/// Fetches all files, from all servers at once.
pub(crate) fn run(args: GetArgs, output: Output) -> Result<(), Failure> {
    let groups = plan(&args.urls)?;
    if !args.out.is_dir() {
        return Err(Failure::Usage(format!("{} is no directory", args.out.display())));
    }
    let bars = Bars::new(output.wants_bars() && !args.quiet);
    let logs = args.qlog.start()?;
    let sessions = sessions::load(args.session.as_deref())?;
    let job = Job { args: Arc::new(args), output, bars, sessions, logs: logs.clone() };
    let runtime = net::runtime()?;
    let result = runtime.block_on(async {
        tokio::select! {
            result = fetch_all(&job, groups) => result,
            result = interrupted() => Err(result.map_or_else(Failure::io("cannot wait for signals"), |()| Failure::Interrupted)),
        }
    });
    job.bars.clear();
    runtime.shutdown_timeout(CLEANUP_MAX);
    qlog::finish(logs, output);
    let saved = sessions::save(job.args.session.as_deref(), &job.sessions);
    result.and(saved)
}

/// The files of each server.
fn plan(urls: &[String]) -> Result<BTreeMap<Authority, Vec<Item>>, Failure> {
    let urls =
        urls.iter().map(|text| Url::parse(text)).collect::<Result<Vec<_>, _>>().map_err(Failure::Usage)?;
    let names = local_names(&urls).map_err(Failure::Usage)?;
    let mut groups: BTreeMap<Authority, Vec<Item>> = BTreeMap::new();
    for (url, name) in urls.into_iter().zip(names) {
        groups.entry(url.authority.clone()).or_default().push(Item { url, name });
    }
    Ok(groups)
}

/// Fetches each server's files over a connection of its own. Failures are told as they happen, one for a connection and all the
/// files that it concerns.
async fn fetch_all(job: &Job, groups: BTreeMap<Authority, Vec<Item>>) -> Result<(), Failure> {
    let mut servers = JoinSet::new();
    for (authority, items) in groups {
        let job = job.clone();
        servers.spawn(async move {
            let count = items.len();
            match fetch_group(&job, &authority, items).await {
                Ok(missing) => (missing, missing),
                Err(failure) => {
                    job.output.complain(&failure);
                    (1, count)
                }
            }
        });
    }
    let (mut sentences, mut missing) = (0, 0);
    while let Some(result) = servers.join_next().await {
        let (told, count) = result.map_err(|_| Failure::Thread("connection"))?;
        sentences += told;
        missing += count;
    }
    job.bars.clear();
    if sentences > 0 { Err(Failure::AlreadyTold { sentences, missing }) } else { Ok(()) }
}

/// Fetches the files of one server, and returns how many could not be fetched, each of which was told. An error concerns all of them.
async fn fetch_group(job: &Job, authority: &Authority, items: Vec<Item>) -> Result<usize, Failure> {
    let args = &job.args;
    let start = Instant::now();
    let mut transport = args.transport.clone();
    // Who only receives would have nothing to send, and nothing could tell it that the server has forgotten it.
    transport.keep_alive = transport.keep_alive.or(args.hold.is_none().then_some(ASK_AFTER));
    let transport = Transport::from_args(&transport)?.with_logs(job.logs.clone());
    let mut dialer =
        Dialer::new(authority, &args.trust, args.cipher, hq::PROTOCOL, &transport, job.output).await?;
    dialer.remember(job.sessions.clone());
    let connection = dialer.dial().await?;
    let (first, others) = sessions::split(args, items);
    let handshake = start.elapsed();
    let mut result = fetch_over(job, &dialer, &connection, handshake, first).await;
    if let Ok(missing) = &mut result
        && !others.is_empty()
    {
        // The first connection ends before the second begins.
        dialer.hang_up(&connection).await;
        let start = Instant::now();
        let second = if args.early { dialer.dial_early().await } else { dialer.dial().await }?;
        *missing += fetch_over(job, &dialer, &second, start.elapsed(), others).await?;
        dialer.hang_up(&second).await;
    }
    dialer.hang_up(&connection).await;
    result
}

/// Fetches files over one connection, and tells of it.
async fn fetch_over(
    job: &Job,
    dialer: &Dialer,
    connection: &Connection,
    handshake: Duration,
    items: Vec<Item>,
) -> Result<usize, Failure> {
    let summary = fetch_items(job, &dialer.peer, connection, items).await?;
    job.summarise(connection, handshake, &summary);
    hold(&dialer.peer, connection, job.args.hold).await.map(|()| summary.missing)
}

/// What came of the files of one server.
#[derive(Debug, Default)]
struct Summary {
    files: u64,
    bytes: u64,
    duration: Duration,
    /// How many files could not be fetched.
    missing: usize,
}

/// Fetches files by a fixed number of workers. The end of the connection is one failure, however many files it
/// concerns.
async fn fetch_items(
    job: &Job,
    peer: &str,
    connection: &Connection,
    items: Vec<Item>,
) -> Result<Summary, Failure> {
    let start = Instant::now();
    let workers_max = items.len().min(PARALLEL_MAX);
    let queue = Arc::new(Mutex::new(items.into_iter()));
    let mut workers = JoinSet::new();
    for _ in 0..workers_max {
        let (fetcher, job) = (Fetcher::new(job, peer, connection), job.clone());
        let queue = queue.clone();
        workers.spawn(async move {
            let mut summary = Summary::default();
            loop {
                let item = queue.lock().unwrap_or_else(PoisonError::into_inner).next();
                let Some(item) = item else { return Ok(summary) };
                match fetcher.fetch(&item).await {
                    Ok(bytes) => {
                        summary.files += 1;
                        summary.bytes += bytes;
                    }
                    Err(failure @ Failure::Connection { .. }) => return Err(failure),
                    Err(failure) => {
                        job.output.complain_of(&failure, Some(item.url.to_string()));
                        summary.missing += 1;
                    }
                }
            }
        });
    }
    let mut total = Summary::default();
    while let Some(result) = workers.join_next().await {
        // The first failure of the connection ends all: to drop the others removes their parts.
        let summary = result.unwrap_or(Err(Failure::Thread("download")))?;
        total.files += summary.files;
        total.bytes += summary.bytes;
        total.missing += summary.missing;
    }
    total.duration = start.elapsed();
    Ok(total)
}

/// Keeps the connection open for a time, or until it falls silent for good.
async fn hold(peer: &str, connection: &Connection, time: Option<Duration>) -> Result<(), Failure> {
    let Some(time) = time else { return Ok(()) };
    tokio::select! {
        error = connection.closed() => match error {
            ConnectionError::TimedOut => Ok(()),
            error => Err(Failure::connection(peer)(error)),
        },
        () = tokio::time::sleep(time) => Ok(()),
    }
}

impl Job {
    fn destination(&self, name: &str) -> PathBuf {
        self.args.out.join(name)
    }

    /// Tells of one file.
    fn fetched(&self, item: &Item, bytes: u64, duration: Duration) {
        self.bars.finished(&item.name, bytes);
        if self.output.is_json() {
            let file = &self.destination(&item.name);
            let url = item.url.to_string();
            self.output.print(&Fetched { url, file, bytes, duration_s: duration.as_secs_f64() }, String::new);
        }
    }

    /// Tells of all files of one server.
    fn summarise(&self, connection: &Connection, handshake: Duration, summary: &Summary) {
        if self.args.quiet && !self.output.is_json() {
            return;
        }
        let figures = Figures::of(connection);
        let Summary { files, bytes, duration, .. } = *summary;
        let transfer = Transfer::of("get", (bytes, duration), handshake, &figures, None);
        let rate = Rate { bytes, duration };
        let print = || {
            self.output.print(&transfer, || {
                let files = report::counted(files, "file");
                format!("{files}, {} in {} ({rate})", Size(bytes), Span(duration))
            });
        };
        self.bars.suspend(print);
    }
}
