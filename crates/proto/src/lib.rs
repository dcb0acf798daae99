//! The sans-IO core of Fulmar.
#![forbid(unsafe_code)]

mod crypto;
pub mod congestion;
mod ecn;
mod error;
mod packet;
mod path;
mod space;

pub use crypto::{AeadBackend, CipherSuite, ResetKey, TlsError, restrict_suites};
pub use ecn::EcnCodepoint;
pub use error::TransportError;
pub use path::{Rtt, TupleId};
