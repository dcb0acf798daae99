//! The sans-IO core of Fulmar.
#![forbid(unsafe_code)]

mod crypto;
mod error;
mod packet;
mod path;

pub use crypto::{AeadBackend, CipherSuite, ResetKey, TlsError, restrict_suites};
pub use error::TransportError;
pub use path::TupleId;
