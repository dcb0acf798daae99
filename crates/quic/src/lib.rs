//! A QUIC transport for every link from loopback to Mars: the async API.
//!
//! This crate gives the deterministic core ([`fulmar_proto`]) a clock, a socket and tasks that wait. An [`Endpoint`] is one
//! UDP socket that listens and dials; a [`Connection`] carries streams ([`SendStream`], [`RecvStream`]) and unreliable datagrams.
//!
//! ```
//! use fulmar::{Endpoint, VarInt, tls};
//! # use std::{error::Error, net::Ipv4Addr};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn Error>> {
//! // A server needs a certificate. This one is made up on the spot, and the client trusts exactly it.
//! let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()])?;
//! let cert = made.cert.der().clone();
//! let key = rustls::pki_types::PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
//! let mut roots = rustls::RootCertStore::empty();
//! roots.add(cert.clone())?;
//!
//! // The server answers every stream with what it received.
//! let server = Endpoint::server(tls::server_config(vec![cert], key.into(), &[b"echo"])?, (Ipv4Addr::LOCALHOST, 0).into())?;
//! let addr = server.local_addr()?;
//! tokio::spawn(async move {
//!     while let Some(incoming) = server.accept().await {
//!         // Each in a task of its own: no client waits for another, and one whose handshake fails ends nothing but its task.
//!         tokio::spawn(async move {
//!             let connection = incoming.await?;
//!             while let Ok((mut send, mut recv)) = connection.accept_bi().await {
//!                 tokio::spawn(async move { tokio::io::copy(&mut recv, &mut send).await });
//!             }
//!             Ok::<_, fulmar::AcceptError>(())
//!         });
//!     }
//! });
//!
//! // The client opens a stream, writes, ends it, and reads the answer.
//! let client = Endpoint::client((Ipv4Addr::UNSPECIFIED, 0).into())?;
//! client.set_default_client_config(tls::client_config(roots, &[b"echo"])?);
//! let connection = client.connect(addr, "localhost")?.await?;
//! let (mut send, mut recv) = connection.open_bi().await?;
//! send.write_all(b"hello, Mars").await?;
//! send.finish()?;
//! assert_eq!(recv.read_to_end(1024).await?, b"hello, Mars");
//! connection.close(VarInt::ZERO, b"done");
//! client.wait_idle().await;
//! # Ok(())
//! # }
//! ```
//!
//! # How it works
//!
//! Every endpoint is served by one task, the worker, that owns the traffic of the socket: it receives in batches, routes, keeps
//! the timers of all connections, and sends datagrams in batches. There is no task per connection. Handles lock only their own
//! connection, do their operation at once, and tell the worker to send. An endpoint lives in the tokio runtime it was created
//! in; its handles can be used from anywhere. When the runtime ends, so do the connections.
//!
//! Time is that of the system. A runtime whose clock is paused (`tokio::time::pause`, `#[tokio::test(start_paused = true)]`) moves
//! no timer of an endpoint; the core, whose time is an argument, is what such tests can be made of.
//!
//! # Back-pressure
//!
//! Nothing grows without a limit. Writing waits for the peer's flow control and `TransportConfig::send_window`; opening a
//! stream waits for the peer's limit; what the peer sends is bounded by the windows, the stream limits and the datagram buffers of
//! `TransportConfig`; connection attempts by `EndpointConfig::max_incoming`. When the socket is full, the worker stops
//! asking connections for packets until it is writable again.
//!
//! # Cancellation
//!
//! Every future can be dropped at any time, for instance by `tokio::select!` or a timeout, and the operation tried again: no
//! byte, datagram, stream or connection attempt is lost. Each documents what was done when it is dropped half-way.
//!
//! # Invariants
//!
//! The code of this crate interprets no packet and no frame, and the core below it knows no clock, socket, task or lock.
//!
//! | module | what it owns |
//! |---|---|
//! | `shared` | what handles and workers share: connections, who waits for what, the table of connections |
//! | `endpoint` | the handle of an endpoint, connection attempts, figures |
//! | `worker` | the task: receive, route, time, send |
//! | `connection` | the handle of a connection |
//! | `stream` | the handles of streams |
//! | [`log`] | where the logs of connections go, and what stands in them |
//! | [`happy_eyeballs`] | the race between the addresses of a server |
//! | [`tls`] | configurations from certificates |

#![forbid(unsafe_code)]

mod clock;
mod connection;
mod endpoint;
mod error;
pub mod happy_eyeballs;
pub mod log;
mod shared;
mod stream;
mod sync;
pub mod tls;
mod worker;

pub use connection::{Connecting, Connection, DatagramOptions, DropCodes, Local, Path, WeakConnection};
pub use endpoint::{
    ConnectionMetrics, Endpoint, EndpointBuilder, EndpointMetrics, EndpointStats, Incoming, IncomingFuture,
};
pub use error::{
    AcceptError, ClosedStream, ConnectError, ConnectOverError, ReadError, ReadExactError, ReadToEndError,
    SendDatagramError, StoppedError, WriteError,
};
pub use log::{ApplicationEntry, ApplicationEvent, LogBatch, LogDelivery, LogSink};
pub use shared::Totals;
pub use stream::{Chunk, RecvStream, SendStream};

pub use fulmar_base::{Instant, Rng};
/// Congestion controllers, and what one of your own implements: see the example `controller`.
pub use fulmar_proto::congestion;
pub use fulmar_proto::congestion::CongestionControl;
pub use fulmar_proto::log::{LogEntry, LogEvent};
pub use fulmar_proto::{
    AddressDiscovery, AddressPairs, AddressValidation, AeadBackend, CidGenerator, CipherSuite, ClientConfig,
    ConfigError, ConnectionError, ConnectionId, ConnectionStats, CoupledPath, Coupling, CouplingFactory,
    CouplingKind, DatagramDropReason, DatagramId, DatagramStats, Dir, DroppedDatagram, EarlyData, Ecn,
    EmptyCids, EndpointConfig, FecCode, FecConfig, FecDialects, FecMode, FecSettingError, FecStats,
    FourTuple, FrameType, KeyUpdatePolicy, MultipathConfig, OneWayDelays, OpenPathError, PathError,
    PathEvent, PathId, PathInfo, PathManager, PathOrder, PathStats, PathUse, PathView, Priority, Protection,
    QuicLb, QuicLbConfig, QuicLbError, RandomCids, ResetAtError, ResetKey, RetryPolicy, Scheduler,
    SchedulerFactory, SchedulerKind, ServerConfig, SessionFileError, SessionStore, Side, SocketId, SpinBit,
    StreamId, StreamStats, TimeStamps, TimerReason, TimerStyle, TlsError, TokenKeys, TokenKeysError,
    TransportConfig, TransportError, TransportErrorCode, UnknownCoupling, UnknownScheduler,
    UnknownTimerStyle, VarInt, Version, Waiting, WorkerCids, aws_lc_without_quic_keys, restrict_suites,
};
/// What the core calls by the same names as this crate: its own view of a connection, which a [`PathManager`] works with (see
/// [`Connection::set_path_manager`]), and what [`ConnectError::Config`] and [`AcceptError::Config`] hold.
pub mod proto {
    pub use fulmar_proto::{AcceptError, ConnectError, Connection};
}
pub use fulmar_udp::{BufferSizes, Dscp, SocketStats, UdpSocket, open_socket};

#[cfg(doctest)]
#[doc = include_str!("../../../docs/migration.md")]
struct MigrationDocument;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/multipath.md")]
struct MultipathDocument;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/streams.md")]
struct StreamsDocument;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/extensions.md")]
struct ExtensionsDocument;
