//! `fulmar get`: files over HTTP/3 and its elders (`web`), or over HTTP/0.9 (here), many at once, each under its name only when it is
//! complete.

mod args;
pub(crate) mod exit;
mod fetch;
mod name;
mod place;
mod proxy;
mod resolve;
mod sessions;
mod stuck;
mod url;
mod web;

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use fulmar::{Connection, ConnectionError, SessionStore};
use serde::Serialize;
use tokio::task::JoinSet;

use crate::args::GetArgs;
use crate::authority::Authority;
use crate::duration::Span;
use crate::failure::Failure;
use crate::hq;
use crate::net::{self, CLOSE_DONE, Dialer, Figures, Transport};
use crate::progress::Bars;
use crate::qlog::{self, QlogDir};
use crate::report::{self, Output, Transfer};
use crate::signal::interrupted;
use crate::size::{Rate, Size};

pub(crate) use self::args::HttpArgs;
use self::fetch::Fetcher;
pub(crate) use self::name::local_names;
use self::place::Place;
pub(crate) use self::resolve::Resolved;
use self::stuck::Arrivals;
pub(crate) use self::url::Url;

/// How many files of one connection are fetched at once. The server may allow fewer streams; then the others wait.
const PARALLEL_MAX: usize = 64;
/// After which silence in a download the server is asked for a sign of life, if the command line says nothing else.
const ASK_AFTER: Duration = Duration::from_secs(1);
/// How often the files of a server are asked for anew, over another connection, because nothing more of them came.
const RESTARTS_MAX: u32 = 3;
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
    place: Place,
    logs: Option<Arc<QlogDir>>,
    sessions: Arc<SessionStore>,
}

/// A file that was fetched, for `--json`.
#[derive(Debug, Serialize)]
struct Fetched<'a> {
    /// Always `file`.
    kind: &'static str,
    url: String,
    file: &'a Path,
    bytes: u64,
    duration_s: f64,
}

/// Fetches all files, from all servers at once.
pub(crate) fn run(args: GetArgs, output: Output) -> Result<(), Failure> {
    if !args.quiet
        && let Some(sentence) = proxy::unused(&args.urls, |name| std::env::var(name).ok())
    {
        output.note(&sentence);
    }
    if !args.http.hq {
        return web::run(args, output);
    }
    let place = Place::of(&args)?;
    if place == Place::Stdout {
        return Err(Failure::Usage("--hq writes files, and -o - names none".to_owned()));
    }
    let groups = plan(&args.urls, &place)?;
    let bars = Bars::new(output.wants_bars() && !args.quiet);
    let logs = args.qlog.start()?;
    let sessions = sessions::load(args.session.as_deref())?;
    let job = Job { args: Arc::new(args), output, bars, place, sessions, logs: logs.clone() };
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
fn plan(urls: &[String], place: &Place) -> Result<BTreeMap<Authority, Vec<Item>>, Failure> {
    let urls =
        urls.iter().map(|text| Url::of_user(text)).collect::<Result<Vec<_>, _>>().map_err(Failure::Usage)?;
    let names = match place {
        Place::Directory(_) => local_names(&urls).map_err(Failure::Usage)?,
        // The name is for the eye only.
        Place::File(_) | Place::Stdout => urls.iter().map(ToString::to_string).collect(),
    };
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
            fetch_group(&job, &authority, items).await.unwrap_or_else(|failure| {
                job.output.complain(&failure);
                Missing { sentences: 1, files: count, exit: Some(exit::code(&failure)) }
            })
        });
    }
    let mut missing = Missing::default();
    while let Some(result) = servers.join_next().await {
        missing.add(result.map_err(|_| Failure::Thread("connection"))?);
    }
    job.bars.clear();
    match missing {
        Missing { sentences, files, exit: Some(exit) } => {
            Err(Failure::AlreadyTold { sentences, missing: files, exit })
        }
        _ => Ok(()),
    }
}

/// Fetches the files of one server, and returns what could not be fetched, each of which was told. An error concerns all of them.
async fn fetch_group(job: &Job, authority: &Authority, items: Vec<Item>) -> Result<Missing, Failure> {
    let args = &job.args;
    let start = Instant::now();
    let mut transport = args.transport.clone();
    // Who only receives would have nothing to send, and nothing could tell it that the server has forgotten it.
    transport.keep_alive = transport.keep_alive.or(args.hold.is_none().then_some(ASK_AFTER));
    let transport = Transport::from_args(&transport)?.with_logs(job.logs.clone());
    let transport = transport.with_paths(&args.paths);
    let mut dialer = Dialer::new(
        authority,
        &args.trust,
        args.cipher,
        hq::PROTOCOL,
        (&transport, &args.paths.bind),
        job.output,
    )
    .await?;
    dialer.remember(job.sessions.clone());
    let mut connection = dialer.dial().await?;
    let (first, others) = sessions::split(args, items);
    let handshake = start.elapsed();
    let mut result = fetch_over(job, &dialer, &mut connection, handshake, first).await;
    if let Ok(missing) = &mut result
        && !others.is_empty()
    {
        // The first connection ends before the second begins.
        dialer.hang_up(&connection).await;
        let start = Instant::now();
        let mut second = if args.early { dialer.dial_early().await } else { dialer.dial().await }?;
        missing.add(fetch_over(job, &dialer, &mut second, start.elapsed(), others).await?);
        dialer.hang_up(&second).await;
    }
    dialer.hang_up(&connection).await;
    result
}

/// Fetches files over a connection, which is replaced where nothing more comes over it, and tells of it.
async fn fetch_over(
    job: &Job,
    dialer: &Dialer,
    connection: &mut Connection,
    mut handshake: Duration,
    items: Vec<Item>,
) -> Result<Missing, Failure> {
    let start = Instant::now();
    let work = Arc::new(Work::new(items));
    let mut restarts = 0;
    while let Some((other, took)) =
        fetch_items(job, dialer, connection, &work, restarts < RESTARTS_MAX).await?
    {
        job.output.note(&format!(
            "{} sends nothing more; what is missing is asked for again over another connection",
            dialer.peer
        ));
        connection.close(CLOSE_DONE, b"");
        (*connection, handshake) = (other, took);
        work.begin_anew();
        restarts += 1;
    }
    let summary = Summary { duration: start.elapsed(), ..work.summary() };
    job.summarise(dialer, connection, handshake, &summary);
    hold(&dialer.peer, connection, job.args.hold).await.map(|()| summary.missing)
}

/// What could not be fetched.
#[derive(Debug, Default, Clone, Copy)]
struct Missing {
    /// How many sentences tell of it.
    sentences: usize,
    files: usize,
    /// That of the first failure, if there was one.
    exit: Option<u8>,
}

impl Missing {
    fn add(&mut self, other: Self) {
        self.sentences += other.sentences;
        self.files += other.files;
        self.exit = self.exit.or(other.exit);
    }
}

/// What came of the files of one server.
#[derive(Debug, Default, Clone, Copy)]
struct Summary {
    files: u64,
    bytes: u64,
    duration: Duration,
    missing: Missing,
}

/// The files of one server and what has become of them.
#[derive(Debug)]
struct Work(Mutex<Files>);

#[derive(Debug)]
struct Files {
    waiting: VecDeque<Item>,
    /// Those that are being fetched. Their names differ.
    under_way: Vec<Item>,
    summary: Summary,
}

impl Work {
    fn new(items: Vec<Item>) -> Self {
        Self(Mutex::new(Files { waiting: items.into(), under_way: Vec::new(), summary: Summary::default() }))
    }

    fn files(&self) -> MutexGuard<'_, Files> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next(&self) -> Option<Item> {
        let mut files = self.files();
        let item = files.waiting.pop_front()?;
        files.under_way.push(item.clone());
        Some(item)
    }

    /// A file is there with so many bytes, or cannot be fetched, which has this exit code.
    fn end(&self, item: &Item, result: Result<u64, u8>) {
        let mut files = self.files();
        files.under_way.retain(|other| other.name != item.name);
        let summary = &mut files.summary;
        match result {
            Ok(bytes) => (summary.files, summary.bytes) = (summary.files + 1, summary.bytes + bytes),
            Err(exit) => summary.missing.add(Missing { sentences: 1, files: 1, exit: Some(exit) }),
        }
    }

    /// What is under way is fetched from its beginning: HTTP/0.9 has no ranges.
    fn begin_anew(&self) {
        let Files { waiting, under_way, .. } = &mut *self.files();
        under_way.drain(..).rev().for_each(|item| waiting.push_front(item));
    }

    fn summary(&self) -> Summary {
        self.files().summary
    }
}

/// Fetches files by a fixed number of workers. The end of the connection is one failure, however many files it
/// concerns. If nothing more comes over the connection, the workers end, and another one is returned that `may_restart`.
async fn fetch_items(
    job: &Job,
    dialer: &Dialer,
    connection: &Connection,
    work: &Arc<Work>,
    may_restart: bool,
) -> Result<Option<(Connection, Duration)>, Failure> {
    let arrivals = Arc::new(Arrivals::default());
    let workers_max = work.files().waiting.len().min(PARALLEL_MAX);
    let mut workers = JoinSet::new();
    for _ in 0..workers_max {
        let fetcher = Fetcher::new(job, &dialer.peer, connection, &arrivals);
        workers.spawn(fetch_some(job.clone(), fetcher, work.clone()));
    }
    let mut replacement = std::pin::pin!(stuck::replacement(dialer, connection, &arrivals));
    loop {
        tokio::select! {
            // The first failure of the connection ends all: to drop the others removes their parts.
            result = workers.join_next() => match result {
                Some(result) => result.unwrap_or(Err(Failure::Thread("download")))?,
                None => return Ok(None),
            },
            other = &mut replacement, if may_restart => {
                workers.shutdown().await;
                return Ok(Some(other));
            }
        }
    }
}

/// Fetches one file after the other. Fails if the connection does.
async fn fetch_some(job: Job, fetcher: Fetcher, work: Arc<Work>) -> Result<(), Failure> {
    while let Some(item) = work.next() {
        match fetcher.fetch(&item).await {
            Ok(bytes) => work.end(&item, Ok(bytes)),
            Err(failure @ Failure::Connection { .. }) => return Err(failure),
            Err(failure) => {
                job.output.complain_of(&failure, Some(item.url.to_string()));
                work.end(&item, Err(exit::code(&failure)));
            }
        }
    }
    Ok(())
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
    /// The file for an item. Standard output is none of the places, see [`run`].
    fn destination(&self, item: &Item) -> PathBuf {
        self.place.file(item).unwrap_or_default()
    }

    /// Tells of one file.
    fn fetched(&self, item: &Item, bytes: u64, duration: Duration) {
        self.bars.finished(&item.name, bytes);
        if self.output.is_json() {
            let file = &self.destination(item);
            let url = item.url.to_string();
            let duration_s = duration.as_secs_f64();
            self.output.print(&Fetched { kind: "file", url, file, bytes, duration_s }, String::new);
        }
    }

    /// Tells of all files of one server.
    fn summarise(&self, dialer: &Dialer, connection: &Connection, handshake: Duration, summary: &Summary) {
        if self.args.quiet && !self.output.is_json() {
            return;
        }
        let figures = Figures::of(connection);
        let Summary { files, bytes, duration, .. } = *summary;
        let paths = dialer.path_figures(connection);
        let transfer =
            Transfer { paths, ..Transfer::of("get", (bytes, duration), handshake, &figures, None) };
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
