//! Files over HTTP/0.9, as the QUIC interop runner knows it: a request is a line, the response a file or a reset.

use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant, SystemTime};

use fulmar::{Connection, ReadError, RecvStream, SendStream, StoppedError, VarInt, WriteError};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tracing::{debug, info};

use super::access_log::Request;
use super::buffers::Buffers;
use super::directory::Directory;
use super::files::{Block, Source, SourceError};
use super::told::Tale;
use crate::hq::{self, BadRequest, RequestLine};

/// How many reads wait for a disk at once, each in a thread; others wait for their turn.
const DISK_READS_MAX: usize = 16;
/// How many files stay open between two reads, so that a file that is replaced is sent to its end as it was. Beyond these a file
/// is closed meanwhile, and the request is reset if it is another one when it is opened again.
const KEPT_OPEN_MAX: usize = 128;
/// How much of a file is read at once, in bytes: enough that the way to another thread and back does not count. Nothing is read that
/// there is no room to send, so that a peer that takes nothing has nothing of a file in memory.
const BLOCK_BYTES: u64 = 128 << 10;
/// What the log of requests says of a file that has arrived, and of one that failed for another reason than those with a code.
const STATUS_DONE: u16 = 200;
const STATUS_FAILED: u16 = 500;
/// How long a client may take to end a request that has its answer.
const END_PATIENCE: Duration = Duration::from_secs(5);
/// How much of a request is read at once, in bytes.
const READ_MAX: usize = hq::REQUEST_MAX;

/// What all connections share.
#[derive(Debug)]
pub(super) struct Plain {
    root: Directory,
    tale: Tale,
    /// One permit per read that may wait for a disk.
    disk: Semaphore,
    /// One permit per file that may stay open between two reads.
    kept_open: Semaphore,
    buffers: Buffers,
}

impl Plain {
    pub(super) fn new(root: Directory, tale: Tale) -> Self {
        let [disk, kept_open] = [DISK_READS_MAX, KEPT_OPEN_MAX].map(Semaphore::new);
        Self { root, tale, disk, kept_open, buffers: Buffers::default() }
    }
}

/// Serves each stream of a connection in a task of its own, until the connection ends. The peer can open no more of
/// them than the stream limit of the transport allows.
pub(super) async fn serve_connection(connection: &Connection, plain: &Arc<Plain>) {
    let remote = connection.remote_address();
    loop {
        match connection.accept_bi().await {
            Ok((send, recv)) => drop(tokio::spawn(serve_stream(remote, send, recv, plain.clone()))),
            Err(error) => return info!(%remote, "connection ended: {error}"),
        }
    }
}

/// Answers one request, by a file or a reset, and tells of it.
async fn serve_stream(remote: SocketAddr, mut send: SendStream, mut recv: RecvStream, plain: Arc<Plain>) {
    let under_way = plain.tale.transfers.begin();
    let start = Instant::now();
    let mut line = RequestLine::default();
    let status = match answer(&mut send, &mut recv, &mut line, &plain).await {
        Ok(()) => STATUS_DONE,
        Err(refusal) => {
            info!(%remote, "request not answered: {refusal}");
            // A stream that is closed already needs no reset.
            let _ = send.reset(refusal.code());
            refusal.status()
        }
    };
    let bytes = send.bytes_written();
    plain.tale.figures.count("HTTP/0.9", status, bytes);
    if let Some(log) = &plain.tale.log {
        let (path, duration_s) = (line.target(), start.elapsed().as_secs_f64());
        let (time, method) = (SystemTime::now(), http::Method::GET);
        log.add(Request {
            kind: "request",
            time,
            remote,
            protocol: "HTTP/0.9",
            method,
            path: &path,
            status,
            bytes,
            duration_s,
        });
    }
    // Nobody who stops the server waits for this.
    drop(under_way);
    await_end(&mut recv).await;
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
    plain: &Plain,
) -> Result<(), Refusal> {
    read_request(recv, line).await?;
    let path = line.path()?;
    debug!(path = %path.display(), "request");
    let failed = |error| Refusal::File { path: path.display().to_string(), error };
    let mut source = Source::new(plain.root.clone(), path.clone());
    let kept_open = plain.kept_open.try_acquire().ok();
    // An empty file needs no room.
    let mut room = at_once(send.ready()).await.transpose()?.unwrap_or(0);
    loop {
        let (start, max, buffer) = (send.bytes_written(), room.min(BLOCK_BYTES), plain.buffers.take());
        let (back, Block { bytes, is_last }) =
            source.read(start, max, &plain.disk, buffer).await.map_err(failed)?;
        source = back;
        if kept_open.is_none() {
            source.close();
        }
        // What is written is copied, so that a piece of a block does not keep all of it in memory. What there is no room for after all
        // is read again.
        let written = at_once(send.write(&bytes)).await.transpose()?.unwrap_or(0);
        let is_done = is_last && written == bytes.len();
        plain.buffers.put(bytes);
        if is_done {
            break;
        }
        room = send.ready().await?;
    }
    // The peer may have stopped the stream; then it has no end to be told.
    let _ = send.finish();
    match send.stopped().await? {
        Some(_) => Err(Refusal::Stopped),
        None => Ok(()),
    }
}

/// What a future gives without being waited for.
async fn at_once<T>(future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    poll_fn(|cx| match future.as_mut().poll(cx) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => Poll::Ready(None),
    })
    .await
}

async fn read_request(recv: &mut RecvStream, line: &mut RequestLine) -> Result<(), Refusal> {
    while let Some(chunk) = recv.read_chunk(READ_MAX, true).await? {
        if line.push(&chunk.bytes)? {
            break;
        }
    }
    Ok(())
}

/// Reads on to the end of a request that has its answer. A client may be slower to end the request than the server to answer it,
/// and one that is told to stop meanwhile takes that for a failure (quic-go's `Close` of a stream returns an error). A client that
/// writes more than another request is told.
async fn await_end(recv: &mut RecvStream) {
    let end = async {
        let mut rest = 0;
        while let Ok(Some(chunk)) = recv.read_chunk(READ_MAX, true).await {
            rest += chunk.bytes.len();
            if rest > hq::REQUEST_MAX {
                break;
            }
        }
    };
    // What then has not ended is stopped when the stream is dropped.
    let _ = timeout(END_PATIENCE, end).await;
}
