//! The sans-IO core of Fulmar: endpoints and connections as state machines.
//!
//! # The contract
//!
//! The core has no clock, no socket, no thread and no randomness of its own. Time comes in as an argument
//! ([`Instant`], never going back), datagrams come in and go out as bytes, and a seed decides every random
//! choice, so the same inputs give the same outputs: the code that runs in the lab in virtual time is the code
//! that runs on a socket.
//!
//! - An [`Endpoint`] belongs to a socket. [`Endpoint::handle_datagram`] says to which connection a datagram
//!   belongs, or that somebody wants to connect, or what to answer.
//! - The caller owns the [`Connection`]s, under the [`ConnectionHandle`]s that the endpoint gives out.
//! - After every call into a connection, the caller drains [`Connection::poll_transmit`],
//!   [`Connection::poll_endpoint_event`] and [`Connection::poll_event`], and calls
//!   [`Connection::handle_timeout`] when [`Connection::poll_timeout`] says so.
//!
//! # Code map
//!
//! | module | what it owns |
//! |---|---|
//! | `endpoint` | the tables from connection IDs to connections; answers that need no connection |
//! | `path_manager` | who opens the paths of a client |
//! | `connection` | a connection and how its components meet: the lists `dispatch`, `write_order`, `delivery` |
//! | `path` | paths and tuples: connection IDs, addresses, ECN, datagram size |
//! | `events` | what the core tells the application and the endpoint |
//! | `tokens` | the address tokens of Retry packets and for later connections |
//! | `config` | everything that can be configured |
//! | `sessions` | what a client remembers of servers |
//! | `ext` | extensions, each in a component of its own |
//! | `streams`, `datagrams` | the data of the application |
//! | `space` | a packet number space: acknowledgements, loss detection; knows paths and tuples by their ids only |
//! | `packet` | packets on their way out |
//! | `coupling` | how the windows of several paths grow together |
//! | `congestion` | controllers, the pacer, the delivery rate |
//! | `log` | the memory of a connection: what it did and saw lately |
//! | `ids` | the ids of packet number spaces and tuples |
//! | `crypto` | everything that knows a secret |
//! | `scheduler` | which path carries data, where there are several |
//! | `rtt` | the round-trip time, and the choice of timers that follow from it |
//! | `cids` | who makes connection IDs |
//! | `slices`, `reliable`, `datagram`, `error` | small values and patterns that several modules share |
//! | `packed` | state in a few bytes, while a connection rests |
//!
//! A module uses only modules below it in this table. `cargo xtask layers` checks that.
#![forbid(unsafe_code)]

// The tests of the crate drive it through the same helper as those outside of it.
#[cfg(test)]
extern crate self as fulmar_proto;

mod cids;
mod config;
pub mod congestion;
mod connection;
mod coupling;
mod crypto;
mod datagram;
mod datagrams;
mod endpoint;
mod error;
mod events;
mod ext;
mod ids;
pub mod log;
mod memory;
mod packed;
mod packet;
mod path;
mod path_manager;
mod reliable;
mod rtt;
mod scheduler;
mod sessions;
mod slices;
mod space;
mod streams;
mod tokens;

pub use cids::{CidGenerator, EmptyCids, QuicLb, QuicLbConfig, QuicLbError, RandomCids, WorkerCids};
pub use config::{
    AddressValidation, ClientConfig, ConfigError, EndpointConfig, MultipathConfig, RetryPolicy, ServerConfig,
    SpinBit, TransportConfig,
};
pub use connection::{
    Connection, ConnectionStats, EarlyData, MigrateError, OpenPathError, PathError, PathInfo, PathStats,
    Resting, TimerReason,
};
pub use coupling::{CoupledPath, Coupling, CouplingFactory, CouplingKind, UnknownCoupling};
pub use crypto::{
    AeadBackend, CipherSuite, KeyUpdatePolicy, ResetKey, TlsError, TokenKeys, TokenKeysError,
    aws_lc_without_quic_keys, restrict_suites, sealed_tickets,
};
pub use datagram::{Datagram, Ecn, FourTuple, SocketId, Transmit, TransmitBatch};
pub use datagrams::{
    DatagramDropReason, DatagramId, DatagramOptions, DatagramStats, DroppedDatagram, SendDatagramError,
};
pub use endpoint::{
    AcceptError, AcceptProgress, AcceptWork, Accepting, ConnectError, ConnectionHandle, Destination,
    DropReason, Endpoint, EndpointShared, Incoming, Recognized, RetryError, Route,
};
pub use error::TransportError;
pub use events::{ConnectionError, EndpointEvent, Event, PathEvent, PathUse};
pub use ext::{FecCode, FecConfig, FecDialects, FecMode, FecSettingError, FecStats, OneWayDelays};
pub use fulmar_base::{Instant, Rng};
pub use fulmar_wire::{
    AddressDiscovery, ConnectionId, Dir, FrameType, PacketKind, PathId, ResetToken, Side, StreamId,
    TimeStamps, TransportErrorCode, TransportParameters, VarInt, Version,
};
pub use ids::{SpaceId, TupleId};
pub use packet::Protection;
pub use path_manager::{AddressPairs, PathManager};
pub use rtt::{INITIAL_RTT, Rtt, TimerStyle, UnknownTimerStyle};
pub use scheduler::{
    PathOrder, PathView, Scheduler, SchedulerFactory, SchedulerKind, UnknownScheduler, Waiting,
};
pub use sessions::{SessionFileError, SessionStore};
pub use slices::UNREAD_SHARED_MAX;
pub use streams::{
    Chunk, ClosedStream, FinishError, Priority, ReadError, RecvHandle, ResetAtError, SendHandle, StreamEvent,
    StreamStats, Streams, WriteError,
};

#[cfg(doctest)]
#[doc = include_str!("../../../docs/connection-ids.md")]
struct ConnectionIdsDocument;
