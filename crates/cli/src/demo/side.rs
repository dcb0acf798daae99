//! The two sides of the demonstration, each to be run on a thread of its own.
//!
//! Their protocol: the client opens a stream and sends how many bytes it wants, 8 bytes big endian; the server
//! sends them and ends the stream.

use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use bytes::Bytes;
use fulmar::{
    AddressValidation, Connection, ConnectionError, Endpoint, ReadError, RecvStream, SendStream, WriteError,
};
use tokio::sync::oneshot;

use super::Progress;
use crate::args::TrustArgs;
use crate::authority::{Authority, ListenAddr};
use crate::clock::thread_cpu;
use crate::content::Content;
use crate::failure::Failure;
use crate::net::{self, Bind, CLOSE_DONE, Dialer, Figures, Inbox, Listen, PathFigures, Transport};
use crate::report::Output;
use crate::signal::Signals;
use crate::tls::{Fingerprint, Identity};

const PROTOCOL: &str = "fulmar-demo";

/// What the server has to tell.
#[derive(Debug)]
pub(super) struct Sent {
    /// Of everything; `None` if the client left before.
    pub(super) checksum: Option<u32>,
    /// The processor time of its thread.
    pub(super) cpu: Option<Duration>,
    pub(super) figures: Figures,
    /// Each path of the connection, if it has several.
    pub(super) paths: Vec<PathFigures>,
}

/// What the client has to tell.
#[derive(Debug)]
pub(super) struct Received {
    pub(super) checksum: u32,
    pub(super) bytes: u64,
    /// Whether the user had enough before everything was there.
    pub(super) interrupted: bool,
    /// From the request to the last byte.
    pub(super) duration: Duration,
    pub(super) handshake: Duration,
    /// The processor time of its thread.
    pub(super) cpu: Option<Duration>,
    pub(super) figures: Figures,
}

/// The side that sends.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) identity: Identity,
    pub(super) transport: Transport,
    pub(super) progress: Arc<Progress>,
    /// Told once where the server listens.
    pub(super) listening: mpsc::Sender<SocketAddr>,
    /// Closed when nobody will ask for anything more.
    pub(super) stopped: oneshot::Receiver<()>,
}

impl Server {
    /// Serves one request.
    pub(super) fn run(mut self) -> Result<Sent, Failure> {
        let runtime = net::runtime()?;
        runtime.block_on(async {
            let listen = Listen {
                addr: ListenAddr::One(SocketAddr::from(([127, 0, 0, 1], 0))),
                identity: &self.identity,
                protocols: &[PROTOCOL],
                transport: &self.transport,
                reset_key: None,
                validation: AddressValidation::default(),
                sealed_tickets: None,
                early_data: false,
                workers: Vec::new(),
            };
            let (endpoint, listening) = listen.bind()?;
            // If the watcher is gone, so is the client, and that is seen below.
            let _ = self.listening.send(listening.listening);
            let result = tokio::select! {
                result = serve(&endpoint, &self.progress) => result,
                _ = &mut self.stopped => {
                    Err(Failure::NotVerified("the client ended before the server".to_owned()))
                }
            };
            endpoint.close(CLOSE_DONE, b"");
            net::farewell(&endpoint).await;
            result.map(|sent| Sent { cpu: thread_cpu(), ..sent })
        })
    }
}

async fn serve(endpoint: &Endpoint, progress: &Progress) -> Result<Sent, Failure> {
    let lost = Failure::connection("the client");
    let gone = || Failure::NotVerified("the server stopped listening".to_owned());
    let incoming = endpoint.accept().await.ok_or_else(gone)?;
    let connection = net::accept(incoming).await?;
    let _ = progress.connection.set(connection.clone());
    let (mut send, mut recv) = connection.accept_bi().await.map_err(&lost)?;
    let size = read_size(&mut recv).await?;
    let checksum = send_content(&mut send, size).await?;
    // The client closes the connection when it has everything.
    connection.closed().await;
    let is_multipath = connection.is_multipath();
    let paths = connection.paths().into_iter().filter(|_| is_multipath);
    let paths = paths.filter_map(|path| path.stats().map(|stats| PathFigures::of(&stats))).collect();
    Ok(Sent { checksum, cpu: None, figures: Figures::of(&connection), paths })
}

async fn read_size(recv: &mut RecvStream) -> Result<u64, Failure> {
    let mut request = Vec::new();
    while let Some(chunk) =
        recv.read_chunk(8, true).await.map_err(|error| read_failure("the client", error))?
    {
        request.extend_from_slice(&chunk.bytes);
        if request.len() > 8 {
            break;
        }
    }
    let size = request.try_into().map_err(|_| Failure::NotVerified("the request is malformed".to_owned()))?;
    Ok(u64::from_be_bytes(size))
}

/// Sends everything and returns its checksum; `None` if the client hangs up before.
async fn send_content(send: &mut SendStream, size: u64) -> Result<Option<u32>, Failure> {
    let content = Content::new();
    let mut hasher = crc32fast::Hasher::new();
    for chunk in content.chunks(size) {
        hasher.update(&chunk);
        match send.write_chunk(chunk).await {
            Ok(()) => {}
            Err(WriteError::ConnectionLost(ConnectionError::ApplicationClosed { .. })) => return Ok(None),
            Err(error) => return Err(write_failure("the client", error)),
        }
    }
    let _ = send.finish();
    Ok(Some(hasher.finalize()))
}

/// The side that receives.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) address: SocketAddr,
    /// The server's certificate.
    pub(super) pin: Fingerprint,
    pub(super) size: u64,
    pub(super) transport: Transport,
    /// Where its paths begin, if it is to have several.
    pub(super) binds: Vec<Bind>,
    pub(super) progress: Arc<Progress>,
    pub(super) output: Output,
}

impl Client {
    /// Makes one request and takes the response.
    pub(super) fn run(self) -> Result<Received, Failure> {
        let runtime = net::runtime()?;
        runtime.block_on(async {
            let signals = Signals::listen().map_err(Failure::io("cannot wait for signals"))?;
            let server = Authority { host: self.address.ip().to_string(), port: self.address.port() };
            let trust = TrustArgs { insecure: false, ca: None, pin: Some(self.pin) };
            let transport = (&self.transport, &*self.binds);
            let dialer = Dialer::new(&server, &trust, None, PROTOCOL, transport, self.output).await?;
            let start = Instant::now();
            let connection = dialer.dial().await?;
            let handshake = start.elapsed();
            let received = self.receive(&connection, signals).await;
            let figures = Figures::of(&connection);
            dialer.hang_up(&connection).await;
            received.map(|received| Received { handshake, figures, cpu: thread_cpu(), ..received })
        })
    }

    /// Takes the response to its end, or until the user interrupts.
    async fn receive(&self, connection: &Connection, mut signals: Signals) -> Result<Received, Failure> {
        let peer = "the server";
        let start = Instant::now();
        let (mut send, mut recv) = connection.open_bi().await.map_err(Failure::connection(peer))?;
        send.write_all(&self.size.to_be_bytes()).await.map_err(|error| write_failure(peer, error))?;
        let _ = send.finish();
        let mut hasher = crc32fast::Hasher::new();
        let mut bytes = 0;
        let mut inbox = Inbox::new();
        let mut take = |chunk: Bytes| {
            hasher.update(&chunk);
            bytes += chunk.len() as u64;
            self.progress.received.store(bytes, Ordering::Relaxed);
        };
        let mut interrupted = false;
        while !interrupted {
            tokio::select! {
                more = inbox.take(&mut recv, &mut take) => {
                    if !more.map_err(|error| read_failure(peer, error))? {
                        break;
                    }
                }
                () = signals.next() => interrupted = true,
            }
        }
        let duration = start.elapsed();
        let checksum = hasher.finalize();
        let (handshake, cpu, figures) = (Duration::ZERO, None, Figures::default());
        Ok(Received { checksum, bytes, interrupted, duration, handshake, cpu, figures })
    }
}

fn read_failure(peer: &str, error: ReadError) -> Failure {
    match error {
        ReadError::ConnectionLost(error) => Failure::connection(peer)(error),
        error => Failure::Request { what: format!("the stream of {peer}"), why: error.to_string() },
    }
}

fn write_failure(peer: &str, error: WriteError) -> Failure {
    match error {
        WriteError::ConnectionLost(error) => Failure::connection(peer)(error),
        error => Failure::Request { what: format!("the stream to {peer}"), why: error.to_string() },
    }
}
