//! The sans-IO core of Fulmar.
#![forbid(unsafe_code)]

pub mod congestion;
mod ecn;
mod crypto;
mod error;
mod packet;
mod path;
mod space;

pub use ecn::EcnCodepoint;
pub use crypto::{AeadBackend, CipherSuite, ResetKey, TlsError, restrict_suites};
pub use error::TransportError;
pub use path::{Rtt, TupleId};
