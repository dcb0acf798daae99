//! `fulmar serve`: the files of a directory over HTTP/0.9.

mod files;
mod validation;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use fulmar::{Endpoint, Incoming, ReadError, RecvStream, SendStream, VarInt, WriteError};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tracing::{debug, info, warn};

use crate::args::ServeArgs;
use crate::failure::Failure;
use crate::hq::{self, BadRequest, RequestLine};
use crate::metrics;
use crate::net::{self, CLOSE_DONE, Listen, Transport};
use crate::qlog;
use crate::report::Output;
use crate::signal::interrupted;
use crate::tls::Identity;

pub(crate) use self::files::root as served_directory;
use self::files::{Source, SourceError};
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
/// How much of a request is read at once, in bytes.
const READ_MAX: usize = hq::REQUEST_MAX;

/// What all connections share.
#[derive(Debug)]
struct Site {
    /// The directory, canonical.
    root: PathBuf,
    /// One permit per file that may be read.
    files: Semaphore,
    /// One permit per file that may stay open between its turns.
    kept_open: Semaphore,
}

/// Serves until the user ends it.
pub(crate) fn run(args: &ServeArgs, output: Output) -> Result<(), Failure> {
    let root = files::root(&args.dir)?;
    let logs = args.qlog.start()?;
    let transport = Transport::from_args(&args.transport)?.with_logs(logs.clone());
    let identity = Identity::from_args(&args.identity, output)?;
    let runtime = net::runtime()?;
    let result = runtime.block_on(async {
        let mut validation = Validation::from_args(args)?;
        let mut listen = Listen {
            addr: args.listen,
            default_port: DEFAULT_PORT,
            identity: &identity,
            protocol: hq::PROTOCOL,
            transport: &transport,
            reset_key: args.reset_key,
            validation: validation.config(),
            sealed_tickets: validation.keys().filter(|_| args.sealed_tickets),
            early_data: true,
        };
        let (endpoint, listening) = listen.bind()?;
        if let Some(addr) = args.metrics {
            let addr = metrics::start(addr, endpoint.clone()).await?;
            info!("figures are told at http://{addr}/metrics");
        }
        output.print(&listening, || listening.text());
        serve_until_interrupted(&endpoint, root, || {
            if validation.has_changed() {
                listen.validation = validation.config();
                listen.sealed_tickets = validation.keys().filter(|_| args.sealed_tickets);
                endpoint.set_server_config(Some(listen.config()?));
            }
            Ok(())
        })
        .await
    });
    // A read from a slow disk must not hold up the end.
    runtime.shutdown_background();
    qlog::finish(logs, output);
    result
}

/// Serves the files below `root`, which is canonical, to whoever connects to `endpoint`, and calls `look_again` every
/// [`KEYS_INTERVAL`].
pub(crate) async fn serve_until_interrupted(
    endpoint: &Endpoint,
    root: PathBuf,
    mut look_again: impl FnMut() -> Result<(), Failure>,
) -> Result<(), Failure> {
    let site =
        Arc::new(Site { root, files: Semaphore::new(FILES_MAX), kept_open: Semaphore::new(KEPT_OPEN_MAX) });
    let connections = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let mut end = std::pin::pin!(interrupted());
    let mut interval = tokio::time::interval(KEYS_INTERVAL);
    loop {
        tokio::select! {
            incoming = endpoint.accept() => match incoming {
                Some(incoming) => admit(incoming, &site, &connections),
                None => break,
            },
            _ = interval.tick() => look_again()?,
            result = &mut end => {
                result.map_err(Failure::io("cannot wait for signals"))?;
                break;
            }
        }
    }
    endpoint.close(CLOSE_DONE, b"the server is stopping");
    net::farewell(endpoint).await;
    Ok(())
}

/// Starts to serve a connection, if there is room for it.
fn admit(incoming: Incoming, site: &Arc<Site>, connections: &Arc<Semaphore>) {
    let Ok(permit) = connections.clone().try_acquire_owned() else {
        warn!(remote = %incoming.remote_address(), "connection refused: {CONNECTIONS_MAX} are open");
        incoming.refuse();
        return;
    };
    let site = site.clone();
    tokio::spawn(async move {
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
            Ok((send, recv)) => drop(tokio::spawn(serve_stream(send, recv, site.clone()))),
            Err(error) => {
                info!(%remote, "connection ended: {error}");
                return Ok(());
            }
        }
    }
}

/// Answers one request, by a file or a reset.
async fn serve_stream(mut send: SendStream, mut recv: RecvStream, site: Arc<Site>) {
    match answer(&mut send, &mut recv, &site).await {
        Ok(bytes) => debug!(bytes, "file sent"),
        Err(refusal) => {
            info!("request not answered: {refusal}");
            // A stream that is closed already needs no reset.
            let _ = send.reset(refusal.code());
        }
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
            Self::Read(_) | Self::Write(_) => hq::CANCELLED,
        }
    }
}

async fn answer(send: &mut SendStream, recv: &mut RecvStream, site: &Arc<Site>) -> Result<u64, Refusal> {
    let path = read_request(recv).await?.path()?;
    info!(path = %path.display(), "request");
    let failed = |error| Refusal::File { path: path.display().to_string(), error };
    let mut source = Source::new(site.root.clone(), path.clone());
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
    let sent = send.bytes_written();
    let _ = send.finish();
    Ok(sent)
}

async fn read_request(recv: &mut RecvStream) -> Result<RequestLine, Refusal> {
    let mut line = RequestLine::default();
    while let Some(chunk) = recv.read_chunk(READ_MAX, true).await? {
        if line.push(&chunk.bytes)? {
            break;
        }
    }
    Ok(line)
}
