//! HTTP/0.9 over QUIC, as the interoperability tests of QUIC use it (ALPN `hq-interop`): a request is one line,
//! `GET /path`, on a bidirectional stream; the response is the bytes of the file and the end of the stream.
//!
//! There are no status codes. A server that cannot answer resets the stream with one of the codes below.

mod path;

use std::path::PathBuf;

use fulmar::VarInt;

pub(crate) use self::path::{percent_decode, relative};

/// The name of the protocol in ALPN.
pub(crate) const PROTOCOL: &str = "hq-interop";

/// The request is malformed, or names what is never served.
pub(crate) const BAD_REQUEST: VarInt = VarInt::from_u32(0x400);
/// There is no such file.
pub(crate) const NOT_FOUND: VarInt = VarInt::from_u32(0x404);
/// The file cannot be read.
pub(crate) const READ_FAILED: VarInt = VarInt::from_u32(0x500);
/// The file was changed while it was sent: what was sent of it is worth nothing.
pub(crate) const CHANGED: VarInt = VarInt::from_u32(0x409);
/// The client does not want the rest.
pub(crate) const CANCELLED: VarInt = VarInt::from_u32(0x499);

/// How long a request may be, in bytes.
pub(crate) const REQUEST_MAX: usize = 8 << 10;

/// Why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BadRequest {
    #[error("the request is longer than {REQUEST_MAX} bytes")]
    TooLong,
    #[error("the request is no GET with a path")]
    NotGet,
    #[error("the path is malformed")]
    Malformed,
    #[error("the path leads out of the directory")]
    Outside,
}

/// The request for `target`, a path that begins with a slash.
pub(crate) fn request(target: &str) -> String {
    format!("GET {target}\r\n")
}

/// Collects the bytes of a request until it is complete.
#[derive(Debug, Default)]
pub(crate) struct RequestLine {
    line: Vec<u8>,
}

impl RequestLine {
    /// Takes bytes of the stream; true when the line is complete. What follows the line is no part of it.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<bool, BadRequest> {
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let part = &bytes[..end.unwrap_or(bytes.len())];
        if self.line.len() + part.len() > REQUEST_MAX {
            return Err(BadRequest::TooLong);
        }
        self.line.extend_from_slice(part);
        Ok(end.is_some())
    }

    /// What was asked for, as far as the request has come, for people.
    pub(crate) fn target(&self) -> String {
        let line = self.line.strip_suffix(b"\r").unwrap_or(&self.line);
        String::from_utf8_lossy(line.strip_prefix(b"GET ").unwrap_or(line)).into_owned()
    }

    /// The file that a complete request names, relative to the directory that is served. It has no `..` and
    /// nothing else that could lead out, but symbolic links are the file system's matter.
    pub(crate) fn path(&self) -> Result<PathBuf, BadRequest> {
        let line = self.line.strip_suffix(b"\r").unwrap_or(&self.line);
        let target = line.strip_prefix(b"GET ").ok_or(BadRequest::NotGet)?;
        relative(target)
    }
}

#[cfg(test)]
mod tests;
