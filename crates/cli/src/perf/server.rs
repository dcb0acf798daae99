//! The side that answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use fulmar::{AddressValidation, Incoming, ReadError, RecvStream, SendStream, WriteError};
use serde::Serialize;
use tokio::sync::Semaphore;
use tracing::{debug, info, warn};

use super::{DEFAULT_PORT, MALFORMED_REQUEST, PROTOCOL, TIME_OVER, drain, send_zeros};
use crate::args::PerfServerArgs;
use crate::authority::ListenAddr;
use crate::clock::process_cpu;
use crate::duration::Span;
use crate::failure::Failure;
use crate::net::{self, CLOSE_DONE, Figures, Listen, Transport, Workers};
use crate::report::{self, Output, counted};
use crate::signal::interrupted;
use crate::size::Size;
use crate::tls::Identity;

/// How many connections are served at once; further ones are refused.
const CONNECTIONS_MAX: usize = 16_384;

/// What one connection did, told when it is over.
#[derive(Debug, Serialize)]
struct Served {
    remote: String,
    bytes_sent: u64,
    bytes_received: u64,
    streams: u64,
    duration_s: f64,
    packets_sent: u64,
    packets_lost: u64,
    rtt_min_us: u64,
    /// Processor time of the whole process while the connection was open.
    cpu_s: Option<f64>,
}

/// Counts of content, without what the protocols below add.
#[derive(Debug, Default)]
struct Counters {
    sent: AtomicU64,
    received: AtomicU64,
    streams: AtomicU64,
}

impl Counters {
    fn sent(&self, bytes: u64) {
        self.sent.fetch_add(bytes, Ordering::Relaxed);
    }

    fn received(&self, bytes: u64) {
        self.received.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// Answers until the user ends it.
pub(crate) fn run(args: &PerfServerArgs, output: Output) -> Result<(), Failure> {
    let transport = Transport::from_args(&args.transport)?;
    let identity = Identity::from_args(&args.identity, output)?;
    let workers = Workers::start(args.workers)?;
    let runtimes = workers.handles();
    workers.block_on(async {
        let listen = Listen {
            addr: args.listen.unwrap_or(ListenAddr::All(DEFAULT_PORT)),
            identity: &identity,
            protocols: &[PROTOCOL],
            transport: &transport,
            reset_key: None,
            validation: AddressValidation::default(),
            sealed_tickets: None,
            early_data: false,
            workers: runtimes,
        };
        let (endpoint, listening) = listen.bind()?;
        output.print(&listening, || listening.text());
        let connections = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        let mut end = std::pin::pin!(interrupted());
        loop {
            tokio::select! {
                incoming = endpoint.accept() => match incoming {
                    Some(incoming) => admit(incoming, &connections, output),
                    None => break,
                },
                result = &mut end => {
                    result.map_err(Failure::io("cannot wait for signals"))?;
                    break;
                }
            }
        }
        endpoint.close(CLOSE_DONE, b"the server is stopping");
        net::farewell(&endpoint).await;
        Ok(())
    })
}

/// Starts to serve a connection, if there is room for it.
fn admit(incoming: Incoming, connections: &Arc<Semaphore>, output: Output) {
    let Ok(permit) = connections.clone().try_acquire_owned() else {
        warn!(remote = %incoming.remote_address(), "connection refused: {CONNECTIONS_MAX} are open");
        incoming.refuse();
        return;
    };
    let runtime = incoming.runtime().clone();
    runtime.spawn(async move {
        match serve_connection(incoming).await {
            // A connection without a stream was a handshake; thousands of those are no news.
            Ok(served) if served.streams > 0 => output.print(&served, || served.text()),
            Ok(served) => debug!(remote = served.remote, "handshake only"),
            Err(failure) => info!("{failure}"),
        }
        drop(permit);
    });
}

/// Serves each stream of a connection in a task of its own. The peer can open no more of them than the stream
/// limit of the transport allows.
async fn serve_connection(incoming: Incoming) -> Result<Served, Failure> {
    let (start, cpu_before) = (Instant::now(), process_cpu());
    let connection = net::accept(incoming).await?;
    let counters = Arc::new(Counters::default());
    while let Ok((send, recv)) = connection.accept_bi().await {
        counters.streams.fetch_add(1, Ordering::Relaxed);
        tokio::spawn(serve_stream(send, recv, counters.clone()));
    }
    let figures = Figures::of(&connection);
    let cpu = process_cpu().zip(cpu_before).map(|(after, before)| after.saturating_sub(before));
    Ok(Served {
        remote: connection.remote_address().to_string(),
        bytes_sent: counters.sent.load(Ordering::Relaxed),
        bytes_received: counters.received.load(Ordering::Relaxed),
        streams: counters.streams.load(Ordering::Relaxed),
        duration_s: start.elapsed().as_secs_f64(),
        packets_sent: figures.packets_sent,
        packets_lost: figures.packets_lost,
        rtt_min_us: report::micros(figures.rtt_min),
        cpu_s: cpu.map(|cpu| cpu.as_secs_f64()),
    })
}

async fn serve_stream(mut send: SendStream, mut recv: RecvStream, counters: Arc<Counters>) {
    let (code, why) = match answer(&mut send, &mut recv, &counters).await {
        Ok(()) => return,
        Err(Ended::Malformed) => (MALFORMED_REQUEST, "the request is malformed".to_owned()),
        Err(Ended::Read(error)) => (TIME_OVER, error.to_string()),
        Err(Ended::Write(error)) => (TIME_OVER, error.to_string()),
    };
    debug!("stream ended early: {why}");
    // A stream that is closed already needs no reset.
    let _ = send.reset(code);
}

/// Why a stream got no whole answer.
enum Ended {
    Malformed,
    Read(ReadError),
    Write(WriteError),
}

async fn answer(send: &mut SendStream, recv: &mut RecvStream, counters: &Counters) -> Result<(), Ended> {
    let size = read_size(recv, counters).await?;
    drain(recv, |bytes| counters.received(bytes)).await.map_err(Ended::Read)?;
    send_zeros(send, size, |bytes| counters.sent(bytes)).await.map_err(Ended::Write)?;
    // The peer may have stopped the stream; then it has no end to be told.
    let _ = send.finish();
    Ok(())
}

/// Reads the 8 bytes that ask for a response.
async fn read_size(recv: &mut RecvStream, counters: &Counters) -> Result<u64, Ended> {
    let mut size = [0; 8];
    let mut filled = 0;
    while filled < size.len() {
        let missing = size.len() - filled;
        let chunk = recv.read_chunk(missing, true).await.map_err(Ended::Read)?.ok_or(Ended::Malformed)?;
        size[filled..filled + chunk.bytes.len()].copy_from_slice(&chunk.bytes);
        filled += chunk.bytes.len();
        counters.received(chunk.bytes.len() as u64);
    }
    Ok(u64::from_be_bytes(size))
}

impl Served {
    fn text(&self) -> String {
        format!(
            "{}: {} sent and {} received on {} in {}, {} sent, {} lost",
            self.remote,
            Size(self.bytes_sent),
            Size(self.bytes_received),
            counted(self.streams, "stream"),
            Span(Duration::from_secs_f64(self.duration_s)),
            counted(self.packets_sent, "packet"),
            self.packets_lost,
        )
    }
}
