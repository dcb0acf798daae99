//! PATH_CHALLENGE and PATH_RESPONSE (RFC 9000 §19.17, §19.18).

use super::{Malformed, put_type};
use crate::{FrameType, Reader, Writer};

/// Asks the peer to prove that it receives on a network path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathChallenge {
    /// Bytes nobody can guess.
    pub data: [u8; 8],
}

impl PathChallenge {
    /// The bytes that [`PathChallenge::encode`] writes.
    pub fn encoded_len(&self) -> usize {
        1 + self.data.len()
    }

    /// Writes the frame.
    pub fn encode(&self, writer: &mut Writer<'_>) {
        put_type(FrameType::PATH_CHALLENGE, writer);
        writer.put_bytes(&self.data);
    }

    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self { data: reader.array()? })
    }
}

/// Answers a [`PathChallenge`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathResponse {
    /// The bytes of the challenge.
    pub data: [u8; 8],
}

impl PathResponse {
    /// The bytes that [`PathResponse::encode`] writes.
    pub fn encoded_len(&self) -> usize {
        1 + self.data.len()
    }

    /// Writes the frame.
    pub fn encode(&self, writer: &mut Writer<'_>) {
        put_type(FrameType::PATH_RESPONSE, writer);
        writer.put_bytes(&self.data);
    }

    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self { data: reader.array()? })
    }
}
