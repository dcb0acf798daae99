//! The sans-IO core of Fulmar.
#![forbid(unsafe_code)]

pub mod congestion;
mod crypto;
mod datagrams;
mod ecn;
mod error;
mod packet;
mod path;
mod space;
mod streams;

pub use crypto::{AeadBackend, CipherSuite, ResetKey, TlsError, restrict_suites};
pub use ecn::EcnCodepoint;
pub use error::TransportError;
pub use datagrams::{DatagramStats, SendDatagramError};
pub use path::{Rtt, TupleId};
pub use streams::{
    Chunk, ClosedStream, FinishError, ReadError, RecvHandle, SendHandle, StreamEvent, StreamStats, Streams, WriteError,
};
