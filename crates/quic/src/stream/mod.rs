//! Streams as the application holds them.

mod recv;
mod send;

pub use recv::{Chunk, RecvStream};
pub use send::SendStream;
