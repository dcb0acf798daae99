//! CONNECTION_CLOSE (RFC 9000 §19.19).

use super::{Malformed, put_type};
use crate::{FrameType, Reader, TransportErrorCode, VarInt, Writer};

/// Who closes a connection, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CloseCode {
    /// The transport.
    Transport {
        /// The error.
        code: TransportErrorCode,
        /// The type of the frame that caused it; [`FrameType::PADDING`] if none did.
        frame: FrameType,
    },
    /// The application, with a code of its own.
    Application(VarInt),
}

/// Closes the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionClose<'a> {
    /// Who closes it, and why.
    pub code: CloseCode,
    /// Words for people. Should be UTF-8, but nobody checks.
    pub reason: &'a [u8],
}

impl<'a> ConnectionClose<'a> {
    /// The type, which tells who closes.
    pub fn frame_type(&self) -> FrameType {
        match self.code {
            CloseCode::Transport { .. } => FrameType::CONNECTION_CLOSE,
            CloseCode::Application(_) => FrameType::APPLICATION_CLOSE,
        }
    }

    /// The bytes that [`ConnectionClose::encode`] writes.
    pub fn encoded_len(&self) -> usize {
        let code_len = match self.code {
            CloseCode::Transport { code, frame } => {
                VarInt::saturating(code.0).size() + VarInt::saturating(frame.0).size()
            }
            CloseCode::Application(code) => code.size(),
        };
        1 + code_len + super::prefixed_len(self.reason)
    }

    /// Writes the frame.
    pub fn encode(&self, writer: &mut Writer<'_>) {
        put_type(self.frame_type(), writer);
        match self.code {
            CloseCode::Transport { code, frame } => {
                writer.put_varint(VarInt::saturating(code.0));
                writer.put_varint(VarInt::saturating(frame.0));
            }
            CloseCode::Application(code) => writer.put_varint(code),
        }
        writer.put_length_prefixed(self.reason);
    }

    pub(super) fn decode_transport(reader: &mut Reader<'a>) -> Result<Self, Malformed> {
        let code = TransportErrorCode(reader.varint()?.get());
        let frame = FrameType(reader.varint()?.get());
        Ok(Self { code: CloseCode::Transport { code, frame }, reason: reader.length_prefixed()? })
    }

    pub(super) fn decode_application(reader: &mut Reader<'a>) -> Result<Self, Malformed> {
        let code = CloseCode::Application(reader.varint()?);
        Ok(Self { code, reason: reader.length_prefixed()? })
    }
}
