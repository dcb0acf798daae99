//! `fulmar serve`: the files of a directory over HTTP/0.9.

mod access_log;
mod files;
mod transfers;
mod validation;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fulmar::{Endpoint, Incoming, ReadError, RecvStream, SendStream, StoppedError, VarInt, WriteError};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};
use tracing::{debug, info, warn};

use crate::args::ServeArgs;
use crate::authority::ListenAddr;
use crate::duration::Span;
use crate::failure::Failure;
use crate::hq::{self, BadRequest, RequestLine};
use crate::metrics;
use crate::net::{self, CLOSE_DONE, Listen, Transport, Workers};
use crate::qlog;
use crate::report::{Output, counted};
use crate::signal::Signals;
use crate::tls::Identity;

use self::access_log::{AccessLog, Request};
pub(crate) use self::files::root as served_directory;
use self::files::{Source, SourceError};
use self::transfers::Transfers;
use self::validation::Validation;

/// The port where none is given.
const DEFAULT_PORT: u16 = 4433;
/// How many connections are served at once; further ones are refused.
const CONNECTIONS_MAX: usize = 4096;
/// How many files are read at once, each with a block of it in memory; further requests wait for their turn. Then a turn lasts for
/// a block, or for [`PATIENCE`] if the peer does not take it, so that turns come soon, whatever some peers do.
const FILES_MAX: usize = 16;
/// How many files stay open between their turns, so that a file that is replaced is sent to its end as it was. Beyond these a file
/// is closed between its turns, and the request is reset if it is another one when it is opened again. Half of the
/// descriptors that systems commonly grant a process.
const KEPT_OPEN_MAX: usize = 512;
/// How much of a file is read at once for a peer that takes it, in bytes: enough that the way to another thread and back does
/// not count.
const BLOCK_BYTES: u64 = 128 << 10;
/// How much is read at first, and for a peer that has let a block lie: this waits in memory without a limit but that of streams.
const CRUMB_BYTES: u64 = 4 << 10;
/// How long a peer may let a block lie.
const PATIENCE: Duration = Duration::from_millis(100);
/// How often it is looked whether the keys of tokens have changed.
const KEYS_INTERVAL: Duration = Duration::from_secs(5);
/// What the log of requests says of a file that has arrived, and of one that failed for another reason than those with a code.
const STATUS_DONE: u16 = 200;
const STATUS_FAILED: u16 = 500;
/// How much of a request is read at once, in bytes.
const READ_MAX: usize = hq::REQUEST_MAX;

/// What all connections share.
#[derive(Debug)]
struct Site {
    serving: Serving,
    /// One permit per file that may be read.
    files: Semaphore,
    /// One permit per file that may stay open between its turns.
    kept_open: Semaphore,
    transfers: Transfers,
}

/// Serves until the user ends it.
pub(crate) fn run(args: &ServeArgs, output: Output) -> Result<(), Failure> {
    let root = files::root(&args.dir)?;
    let logs = args.qlog.start()?;
    let transport = Transport::from_args(&args.transport)?.with_logs(logs.clone());
    let identity = Identity::from_args(&args.identity, output)?;
    let workers = Workers::start(args.workers)?;
    let runtimes = workers.handles();
    let result = workers.block_on(async {
        let mut validation = Validation::from_args(args)?;
        let mut listen = Listen {
            addr: args.listen.unwrap_or(ListenAddr::All(DEFAULT_PORT)),
            identity: &identity,
            protocol: hq::PROTOCOL,
            transport: &transport,
            reset_key: args.reset_key,
            validation: validation.config(),
            sealed_tickets: validation.keys().filter(|_| args.sealed_tickets),
            early_data: true,
            workers: runtimes,
        };
        let (endpoint, listening) = listen.bind()?;
        if let Some(addr) = args.metrics {
            let addr = metrics::start(addr, endpoint.clone()).await?;
            info!("figures are told at http://{addr}/metrics");
        }
        output.print(&listening, || listening.text());
        let serving = Serving { root, grace: args.grace, access_log: Some(AccessLog::start(output)?) };
        serve_until_interrupted(&endpoint, serving, output, || {
            if validation.has_changed() {
                listen.validation = validation.config();
                listen.sealed_tickets = validation.keys().filter(|_| args.sealed_tickets);
                endpoint.set_server_config(Some(listen.config()?));
            }
            Ok(())
        })
        .await
    });
    qlog::finish(logs, output);
    result
}

/// How to serve.
#[derive(Debug)]
pub(crate) struct Serving {
    /// The directory, canonical.
    pub(crate) root: PathBuf,
    /// How long transfers under way may take when the server is told to stop.
    pub(crate) grace: Duration,
    /// Where requests are told.
    pub(crate) access_log: Option<AccessLog>,
}

/// Serves files to whoever connects to `endpoint` until a signal comes, and calls `look_again` every [`KEYS_INTERVAL`].
pub(crate) async fn serve_until_interrupted(
    endpoint: &Endpoint,
    serving: Serving,
    output: Output,
    mut look_again: impl FnMut() -> Result<(), Failure>,
) -> Result<(), Failure> {
    let site = Arc::new(Site {
        serving,
        files: Semaphore::new(FILES_MAX),
        kept_open: Semaphore::new(KEPT_OPEN_MAX),
        transfers: Transfers::default(),
    });
    let connections = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let mut signals = Signals::listen().map_err(Failure::io("cannot wait for signals"))?;
    let mut interval = tokio::time::interval(KEYS_INTERVAL);
    loop {
        tokio::select! {
            incoming = endpoint.accept() => match incoming {
                Some(incoming) => admit(incoming, &site, &connections),
                None => break,
            },
            _ = interval.tick() => look_again()?,
            () = signals.next() => break,
        }
    }
    stop(endpoint, &site, &mut signals, output).await;
    if let Some(log) = &site.serving.access_log {
        log.finish();
    }
    Ok(())
}

/// Lets the transfers under way end, within limits, and then closes all connections.
async fn stop(endpoint: &Endpoint, site: &Site, signals: &mut Signals, output: Output) {
    let Site { transfers, serving: Serving { grace, .. }, .. } = site;
    let count = |transfers: &Transfers| counted(transfers.count() as u64, "transfer");
    if transfers.count() > 0 && !grace.is_zero() {
        let left = count(transfers);
        output.note(&format!(
            "stopping after {left}, in {} at most; a second signal ends at once",
            Span(*grace)
        ));
        tokio::select! {
            () = transfers.ended() => {}
            () = sleep(*grace) => {}
            () = signals.next() => {}
            () = refuse_all(endpoint) => {}
        }
    }
    if transfers.count() > 0 {
        output.note(&format!("{} cut short", count(transfers)));
    }
    endpoint.close(CLOSE_DONE, b"the server is stopping");
    tokio::select! {
        () = net::farewell(endpoint) => {}
        () = signals.next() => {}
    }
}

/// Tells clients at once that they are not served, so that they try elsewhere.
async fn refuse_all(endpoint: &Endpoint) {
    while let Some(incoming) = endpoint.accept().await {
        incoming.refuse();
    }
}

/// Starts to serve a connection, if there is room for it.
fn admit(incoming: Incoming, site: &Arc<Site>, connections: &Arc<Semaphore>) {
    let Ok(permit) = connections.clone().try_acquire_owned() else {
        warn!(remote = %incoming.remote_address(), "connection refused: {CONNECTIONS_MAX} are open");
        incoming.refuse();
        return;
    };
    let site = site.clone();
    let runtime = incoming.runtime().clone();
    runtime.spawn(async move {
        if let Err(failure) = serve_connection(incoming, &site).await {
            info!("{failure}");
        }
        drop(permit);
    });
}

/// Serves each stream of a connection in a task of its own, until the connection ends. The peer can open no more of
/// them than the stream limit of the transport allows.
async fn serve_connection(incoming: Incoming, site: &Arc<Site>) -> Result<(), Failure> {
    // Files can be read as often as one likes.
    let connection = net::accept_early(incoming).await?;
    let remote = connection.remote_address();
    info!(%remote, "connection accepted");
    loop {
        match connection.accept_bi().await {
            Ok((send, recv)) => drop(tokio::spawn(serve_stream(remote, send, recv, site.clone()))),
            Err(error) => {
                info!(%remote, "connection ended: {error}");
                return Ok(());
            }
        }
    }
}

/// Answers one request, by a file or a reset, and tells of it.
async fn serve_stream(remote: SocketAddr, mut send: SendStream, mut recv: RecvStream, site: Arc<Site>) {
    let _under_way = site.transfers.begin();
    let start = Instant::now();
    let mut line = RequestLine::default();
    let status = match answer(&mut send, &mut recv, &mut line, &site).await {
        Ok(()) => STATUS_DONE,
        Err(refusal) => {
            info!(%remote, "request not answered: {refusal}");
            // A stream that is closed already needs no reset.
            let _ = send.reset(refusal.code());
            refusal.status()
        }
    };
    if let Some(log) = &site.serving.access_log {
        let (path, bytes, duration_s) = (line.target(), send.bytes_written(), start.elapsed().as_secs_f64());
        log.add(Request { kind: "request", remote, path, status, bytes, duration_s });
    }
}

/// Why a request got no whole file.
#[derive(Debug, thiserror::Error)]
enum Refusal {
    #[error("{0}")]
    Request(#[from] BadRequest),
    #[error("{path}: {error}")]
    File { path: String, error: SourceError },
    #[error("{0}")]
    Read(#[from] ReadError),
    #[error("{0}")]
    Write(#[from] WriteError),
    #[error("{0}")]
    Unfinished(#[from] StoppedError),
    #[error("the client wants no more of it")]
    Stopped,
}

impl Refusal {
    /// What the client is told.
    fn code(&self) -> VarInt {
        use std::io::ErrorKind;
        match self {
            Self::Request(_) => hq::BAD_REQUEST,
            Self::File { error: SourceError::Changed, .. } => hq::CHANGED,
            Self::File { error: SourceError::Io(error), .. } => match error.kind() {
                ErrorKind::NotFound
                | ErrorKind::PermissionDenied
                | ErrorKind::NotADirectory
                | ErrorKind::InvalidFilename => hq::NOT_FOUND,
                _ => hq::READ_FAILED,
            },
            Self::Read(_) | Self::Write(_) | Self::Unfinished(_) | Self::Stopped => hq::CANCELLED,
        }
    }

    /// The same as a status of HTTP: the codes are chosen so that their hexadecimal digits are those.
    fn status(&self) -> u16 {
        let digits = format!("{:x}", self.code().get());
        digits.parse().unwrap_or(STATUS_FAILED)
    }
}

/// Sends the file that is asked for, and waits until the client has all of it.
async fn answer(
    send: &mut SendStream,
    recv: &mut RecvStream,
    line: &mut RequestLine,
    site: &Site,
) -> Result<(), Refusal> {
    read_request(recv, line).await?;
    let path = line.path()?;
    debug!(path = %path.display(), "request");
    let failed = |error| Refusal::File { path: path.display().to_string(), error };
    let mut source = Source::new(site.serving.root.clone(), path.clone());
    let kept_open = site.kept_open.try_acquire().ok();
    let (mut permit, mut max) = (None, CRUMB_BYTES);
    loop {
        if permit.is_none() {
            // The semaphore is never closed, so there is always a permit in the end.
            permit = site.files.acquire().await.ok();
        }
        let start = send.bytes_written();
        let (back, block) = source.read(start, max).await.map_err(failed)?;
        source = back;
        let mut end_turn = |permit: &mut Option<_>| {
            *permit = None;
            if kept_open.is_none() {
                source.close();
            }
        };
        let is_crumb = max == CRUMB_BYTES;
        if is_crumb {
            end_turn(&mut permit);
        }
        // What is written is copied, so that a piece of a block does not keep all of it in memory.
        match timeout(PATIENCE, send.write_all(&block.bytes)).await {
            Ok(result) => {
                result?;
                max = BLOCK_BYTES;
                // Where others wait, it is their turn: a long file shall not keep short ones waiting.
                if site.files.available_permits() == 0 {
                    end_turn(&mut permit);
                }
            }
            Err(_) if is_crumb => {
                let taken = (send.bytes_written() - start) as usize;
                send.write_all(&block.bytes[taken..]).await?;
            }
            // Nobody else shall wait for this peer. What it has not taken is read again.
            Err(_) => {
                end_turn(&mut permit);
                max = CRUMB_BYTES;
                continue;
            }
        }
        if block.is_last {
            break;
        }
    }
    // The peer may have stopped the stream; then it has no end to be told.
    let _ = send.finish();
    match send.stopped().await? {
        Some(_) => Err(Refusal::Stopped),
        None => Ok(()),
    }
}

async fn read_request(recv: &mut RecvStream, line: &mut RequestLine) -> Result<(), Refusal> {
    while let Some(chunk) = recv.read_chunk(READ_MAX, true).await? {
        if line.push(&chunk.bytes)? {
            break;
        }
    }
    Ok(())
}
