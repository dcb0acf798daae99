//! The sans-IO core of Fulmar.
#![forbid(unsafe_code)]

mod error;
mod packet;
mod path;

pub use error::TransportError;
pub use path::TupleId;
