//! `fulmar perf`: the protocol `perf` (draft-banks-quic-performance), both sides.
//!
//! The first 8 bytes of a bidirectional stream, big endian, are the number of bytes the server shall send back.
//! The server takes the client's side of the stream to its end, whatever it holds, and answers with that many
//! bytes and the end of the stream. What the bytes are is left open; here they are zeros.

pub(crate) mod client;
mod handshakes;
mod latency;
mod load;
mod requests;
pub(crate) mod server;
mod transfer;

use bytes::Bytes;
use fulmar::{ReadError, RecvStream, SendStream, VarInt, WriteError};

use crate::failure::Failure;
use crate::net::Inbox;

/// The name of the protocol in ALPN.
pub(crate) const PROTOCOL: &str = "perf";

/// The port where none is given.
const DEFAULT_PORT: u16 = 4434;
/// A stream ended before its 8 bytes were complete.
const MALFORMED_REQUEST: VarInt = VarInt::from_u32(1);
/// The time of a measurement is over.
const TIME_OVER: VarInt = VarInt::from_u32(0);

/// How much is given to a stream at once, in bytes.
const BLOCK_BYTES: usize = 256 << 10;

/// What all content is cut from, so that making it costs nothing.
static ZEROS: [u8; BLOCK_BYTES] = [0; BLOCK_BYTES];

/// Sends `size` zeros; tells each time how many more the stream has taken.
async fn send_zeros(send: &mut SendStream, size: u64, mut taken: impl FnMut(u64)) -> Result<(), WriteError> {
    let mut left = size;
    while left > 0 {
        let len = left.min(BLOCK_BYTES as u64) as usize;
        send.write_chunk(Bytes::from_static(&ZEROS[..len])).await?;
        left -= len as u64;
        taken(len as u64);
    }
    Ok(())
}

/// Takes a stream to its end and drops what it holds; tells each time how much more it was.
async fn drain(recv: &mut RecvStream, mut received: impl FnMut(u64)) -> Result<(), ReadError> {
    let mut inbox = Inbox::new();
    while inbox.take(recv, |chunk| received(chunk.len() as u64)).await? {}
    Ok(())
}

fn read_failure(peer: &str, error: ReadError) -> Failure {
    match error {
        ReadError::ConnectionLost(error) => Failure::connection(peer)(error),
        ReadError::Reset(code) => Failure::Request {
            what: peer.to_owned(),
            why: format!("the server reset the stream with code {code}"),
        },
        error => Failure::Request { what: peer.to_owned(), why: error.to_string() },
    }
}

fn write_failure(peer: &str, error: WriteError) -> Failure {
    match error {
        WriteError::ConnectionLost(error) => Failure::connection(peer)(error),
        WriteError::Stopped(code) => Failure::Request {
            what: peer.to_owned(),
            why: format!("the server stopped the stream with code {code}"),
        },
        error => Failure::Request { what: peer.to_owned(), why: error.to_string() },
    }
}
