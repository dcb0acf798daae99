//! The sans-IO core of Fulmar.
#![forbid(unsafe_code)]

pub mod congestion;
mod crypto;
mod datagram;
mod error;
mod packet;
mod path;
mod space;

pub use crypto::{AeadBackend, CipherSuite, ResetKey, TlsError, restrict_suites};
pub use datagram::{Datagram, Ecn, FourTuple, Transmit, TransmitBatch};
pub use error::TransportError;
pub use path::{Rtt, TupleId};
