//! One file: a request, its response, and a file on disk.

use std::sync::Arc;
use std::time::{Duration, Instant};

use fulmar::{Connection, ReadError, RecvStream, SendStream, VarInt, WriteError};
use indicatif::ProgressBar;
use tokio::task::{JoinHandle, spawn_blocking};
use tracing::debug;

use super::stuck::Arrivals;
use super::{Item, Job};
use crate::duration::Span;
use crate::failure::Failure;
use crate::hq;
use crate::net::Inbox;
use crate::part::PartFile;
use crate::size::Size;

/// How much is collected before it is written, in bytes: enough that the way to another thread and back does not
/// count. Twice as much may be in memory for each file, one half being written.
const BATCH_BYTES: usize = 256 << 10;

/// Fetches files over one connection.
#[derive(Debug)]
pub(super) struct Fetcher {
    job: Job,
    peer: String,
    connection: Connection,
    arrivals: Arc<Arrivals>,
}

impl Fetcher {
    pub(super) fn new(job: &Job, peer: &str, connection: &Connection, arrivals: &Arc<Arrivals>) -> Self {
        Self {
            job: job.clone(),
            peer: peer.to_owned(),
            connection: connection.clone(),
            arrivals: arrivals.clone(),
        }
    }

    /// Fetches one file and tells how many bytes it has. On failure nothing of it is left on disk.
    pub(super) async fn fetch(&self, item: &Item) -> Result<u64, Failure> {
        let start = Instant::now();
        let destination = self.job.destination(item);
        // The file comes first: where it cannot be written, there is no use in asking for it.
        let creating = blocking(move || PartFile::create(destination));
        let part = self.arrivals.while_on_disk(creating.finish()).await?;
        let (mut send, mut recv) =
            self.connection.open_bi().await.map_err(Failure::connection(&self.peer))?;
        self.ask(&mut send, item).await?;
        let bar = self.job.bars.open_ended(&item.name);
        let output = self.job.output;
        output.narrate(|| format!("stream {}: GET {}", recv.id(), item.url.target));
        let mut arrival = Arrival { start, first: None };
        let result = self.receive(item, &mut recv, part, &bar, &mut arrival).await;
        bar.finish_and_clear();
        match &result {
            Ok(bytes) => {
                output.narrate(|| {
                    let (whole, first) = (Span(start.elapsed()), Span(arrival.first.unwrap_or_default()));
                    format!("stream {}: {} in {whole}, the first after {first}", recv.id(), Size(*bytes))
                });
                self.job.fetched(item, *bytes, start.elapsed());
            }
            // The stream may have ended on its own, and then there is nothing to stop.
            Err(_) => drop(recv.stop(hq::CANCELLED)),
        }
        result
    }

    async fn ask(&self, send: &mut SendStream, item: &Item) -> Result<(), Failure> {
        match send.write_all(hq::request(&item.url.target).as_bytes()).await {
            Ok(()) => {}
            Err(WriteError::ConnectionLost(error)) => return Err(Failure::connection(&self.peer)(error)),
            // A server may have heard enough and answer nevertheless, so the response decides.
            Err(error) => debug!("request cut short: {error}"),
        }
        let _ = send.finish();
        Ok(())
    }

    /// Takes the response and writes it, one batch while the next one arrives.
    async fn receive(
        &self,
        item: &Item,
        recv: &mut RecvStream,
        mut part: PartFile,
        bar: &ProgressBar,
        arrival: &mut Arrival,
    ) -> Result<u64, Failure> {
        let mut bytes = 0;
        let mut spare = Vec::new();
        let mut batch = self.read_batch(item, recv, bar, Vec::new(), arrival).await?;
        while !batch.last {
            bytes += batch.bytes.len() as u64;
            let writing = blocking(move || part.write(&batch.bytes).map(|()| (part, batch.bytes)));
            // When reading fails, the write goes on without us, and its end removes the part.
            batch = self.read_batch(item, recv, bar, spare, arrival).await?;
            (part, spare) = self.arrivals.while_on_disk(writing.finish()).await?;
        }
        bytes += batch.bytes.len() as u64;
        let writing = blocking(move || part.write(&batch.bytes).and_then(|()| part.commit()));
        self.arrivals.while_on_disk(writing.finish()).await?;
        Ok(bytes)
    }

    /// Collects a batch, or the rest of the response, in `bytes`.
    ///
    /// The bytes are copied here: kept as they came they would keep the receive buffers, and to write them as many
    /// small slices costs the kernel several times what the copy does.
    async fn read_batch(
        &self,
        item: &Item,
        recv: &mut RecvStream,
        bar: &ProgressBar,
        mut bytes: Vec<u8>,
        arrival: &mut Arrival,
    ) -> Result<Batch, Failure> {
        bytes.clear();
        let mut inbox = Inbox::new();
        while bytes.len() < BATCH_BYTES {
            let before = bytes.len();
            let more = inbox.take(recv, |chunk| bytes.extend_from_slice(&chunk)).await;
            if !more.map_err(|error| self.not_answered(item, error))? {
                return Ok(Batch { bytes, last: true });
            }
            arrival.first.get_or_insert_with(|| arrival.start.elapsed());
            bar.inc((bytes.len() - before) as u64);
            self.arrivals.add(bytes.len() - before);
        }
        Ok(Batch { bytes, last: false })
    }

    fn not_answered(&self, item: &Item, error: ReadError) -> Failure {
        let why = match error {
            ReadError::ConnectionLost(error) => return Failure::connection(&self.peer)(error),
            ReadError::Reset(code) => reset_in_words(code),
            error => error.to_string(),
        };
        Failure::Request { what: item.url.to_string(), why }
    }
}

/// Bytes on their way to the disk.
#[derive(Debug)]
struct Batch {
    bytes: Vec<u8>,
    /// Whether the response ends with this batch.
    last: bool,
}

/// When a response came.
#[derive(Debug)]
struct Arrival {
    /// When it was asked for.
    start: Instant,
    /// How long the first bytes took.
    first: Option<Duration>,
}

fn reset_in_words(code: VarInt) -> String {
    match code {
        hq::NOT_FOUND => "the server has no such file".to_owned(),
        hq::BAD_REQUEST => "the server refuses the request".to_owned(),
        hq::READ_FAILED => "the server cannot read the file".to_owned(),
        hq::CHANGED => "the file was changed while the server sent it, so nothing of it is kept".to_owned(),
        code => format!("the server reset the stream with code {code}"),
    }
}

/// Work with files, off the runtime's thread.
struct Blocking<T>(JoinHandle<Result<T, Failure>>);

/// Starts `work` at once.
fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T, Failure> + Send + 'static) -> Blocking<T> {
    Blocking(spawn_blocking(work))
}

impl<T> Blocking<T> {
    async fn finish(self) -> Result<T, Failure> {
        self.0.await.unwrap_or(Err(Failure::Thread("disk")))
    }
}
