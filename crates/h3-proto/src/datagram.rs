//! HTTP datagrams in datagrams of the transport (RFC 9297 §2.1).

use bytes::{Buf, Bytes};

use crate::error::{Error, ErrorCode};
use crate::varint;

/// The largest quarter of a stream ID.
const QUARTER_MAX: u64 = varint::MAX / 4;

/// An HTTP datagram.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Datagram {
    /// The stream of the request that it belongs to.
    pub stream: u64,
    /// What it says: to a session this begins with what it has agreed on, such as a context ID.
    pub payload: Bytes,
    /// Its request has not come yet. It may be kept for about a round trip, or dropped (RFC 9297 §2.1).
    pub is_early: bool,
}

/// Takes the stream off the front of a datagram.
pub(crate) fn split(mut datagram: Bytes) -> Result<(u64, Bytes), Error> {
    let mut rest = &datagram[..];
    let quarter = varint::read(&mut rest).filter(|quarter| *quarter <= QUARTER_MAX);
    let broken = Error::connection(ErrorCode::DatagramError, "a datagram without the ID of a stream");
    let quarter = quarter.ok_or(broken)?;
    datagram.advance(datagram.len() - rest.len());
    Ok((quarter * 4, datagram))
}

/// Puts the stream before the payload.
pub(crate) fn join(stream: u64, payload: &[u8]) -> Bytes {
    let mut out = Vec::with_capacity(varint::len(stream / 4) + payload.len());
    varint::write(stream / 4, &mut out);
    out.extend_from_slice(payload);
    out.into()
}
