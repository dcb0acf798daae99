//! NEW_CONNECTION_ID and RETIRE_CONNECTION_ID, and their forms for several paths
//! (RFC 9000 §19.15, §19.16, RFC 10069).

use super::{Malformed, path_len, put_path, put_type, type_len};
use crate::{ConnectionId, Dialect, FrameType, PathId, Reader, ResetToken, VarInt, Writer};

/// Gives the peer a connection ID to send to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewConnectionId {
    /// The path whose packets may carry the ID.
    pub path: PathId,
    /// The number of the ID among those of its path.
    pub sequence: VarInt,
    /// IDs with smaller numbers are to be retired. Not above `sequence`.
    pub retire_prior_to: VarInt,
    /// The ID, which is not empty.
    pub cid: ConnectionId,
    /// The token of a stateless reset for the ID.
    pub reset_token: ResetToken,
}

impl NewConnectionId {
    /// The bytes that [`NewConnectionId::encode`] writes.
    pub fn encoded_len(&self, dialect: Dialect) -> usize {
        type_len(Self::frame_type(dialect))
            + path_len(dialect, self.path)
            + self.sequence.size()
            + self.retire_prior_to.size()
            + 1
            + self.cid.len()
            + self.reset_token.0.len()
    }

    /// Writes the frame.
    pub fn encode(&self, dialect: Dialect, writer: &mut Writer<'_>) {
        put_type(Self::frame_type(dialect), writer);
        put_path(dialect, self.path, writer);
        writer.put_varint(self.sequence);
        writer.put_varint(self.retire_prior_to);
        writer.put_u8(self.cid.len() as u8);
        writer.put_bytes(self.cid.as_bytes());
        writer.put_bytes(&self.reset_token.0);
    }

    pub(super) fn decode(reader: &mut Reader<'_>, path: PathId) -> Result<Self, Malformed> {
        let sequence = reader.varint()?;
        let retire_prior_to = reader.varint()?;
        // RFC 9000 §19.15: both this and a length outside of 1 to 20 are FRAME_ENCODING_ERRORs.
        if retire_prior_to > sequence {
            return Err(Malformed::new("a connection ID that retires itself"));
        }
        let len = reader.u8()?.into();
        if len == 0 {
            return Err(Malformed::new("the connection ID is empty"));
        }
        let cid =
            ConnectionId::new(reader.bytes(len)?).ok_or(Malformed::new("the connection ID is too long"))?;
        let reset_token = ResetToken(reader.array()?);
        Ok(Self { path, sequence, retire_prior_to, cid, reset_token })
    }

    fn frame_type(dialect: Dialect) -> FrameType {
        match dialect {
            Dialect::SinglePath => FrameType::NEW_CONNECTION_ID,
            Dialect::Multipath => FrameType::PATH_NEW_CONNECTION_ID,
        }
    }
}

/// Promises not to send to a connection ID again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetireConnectionId {
    /// The path of the ID.
    pub path: PathId,
    /// The number of the ID among those of its path.
    pub sequence: VarInt,
}

impl RetireConnectionId {
    /// The bytes that [`RetireConnectionId::encode`] writes.
    pub fn encoded_len(&self, dialect: Dialect) -> usize {
        type_len(Self::frame_type(dialect)) + path_len(dialect, self.path) + self.sequence.size()
    }

    /// Writes the frame.
    pub fn encode(&self, dialect: Dialect, writer: &mut Writer<'_>) {
        put_type(Self::frame_type(dialect), writer);
        put_path(dialect, self.path, writer);
        writer.put_varint(self.sequence);
    }

    pub(super) fn decode(reader: &mut Reader<'_>, path: PathId) -> Result<Self, Malformed> {
        Ok(Self { path, sequence: reader.varint()? })
    }

    fn frame_type(dialect: Dialect) -> FrameType {
        match dialect {
            Dialect::SinglePath => FrameType::RETIRE_CONNECTION_ID,
            Dialect::Multipath => FrameType::PATH_RETIRE_CONNECTION_ID,
        }
    }
}
