//! The frames that manage paths: PATH_ABANDON, PATH_STATUS_AVAILABLE, PATH_STATUS_BACKUP, MAX_PATH_ID,
//! PATHS_BLOCKED and PATH_CIDS_BLOCKED (RFC 10069 §4).

use super::decode::read_path;
use super::{Malformed, put_type, type_len};
use crate::{FrameType, PathId, Reader, VarInt, Writer};

/// Ends a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathAbandon {
    /// The path.
    pub path: PathId,
    /// Why: a transport error code.
    pub code: VarInt,
}

/// Says whether the peer should send on a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathStatus {
    /// The path.
    pub path: PathId,
    /// The number of this statement among those about the path: a smaller one is outdated.
    pub sequence: VarInt,
    /// Whether the path may be used like others; otherwise it should be used only where no other works.
    pub available: bool,
}

/// Raises the largest path ID that the peer may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MaxPathId {
    /// The largest path ID.
    pub max: PathId,
}

/// Tells that the largest path ID keeps this end from opening a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathsBlocked {
    /// The largest path ID that was allowed when the frame was sent.
    pub max: PathId,
}

/// Tells that this end has no connection ID for a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathCidsBlocked {
    /// The path.
    pub path: PathId,
    /// The sequence number of the connection ID that is expected next.
    pub next_sequence: VarInt,
}

impl PathAbandon {
    pub(super) fn encoded_len(&self) -> usize {
        type_len(FrameType::PATH_ABANDON) + VarInt::from(self.path.0).size() + self.code.size()
    }

    pub(super) fn encode(&self, writer: &mut Writer<'_>) {
        put(FrameType::PATH_ABANDON, self.path, Some(self.code), writer);
    }

    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self { path: read_path(reader)?, code: reader.varint()? })
    }
}

impl PathStatus {
    pub(super) fn frame_type(&self) -> FrameType {
        if self.available { FrameType::PATH_STATUS_AVAILABLE } else { FrameType::PATH_STATUS_BACKUP }
    }

    pub(super) fn encoded_len(&self) -> usize {
        type_len(self.frame_type()) + VarInt::from(self.path.0).size() + self.sequence.size()
    }

    pub(super) fn encode(&self, writer: &mut Writer<'_>) {
        put(self.frame_type(), self.path, Some(self.sequence), writer);
    }

    pub(super) fn decode(reader: &mut Reader<'_>, available: bool) -> Result<Self, Malformed> {
        Ok(Self { path: read_path(reader)?, sequence: reader.varint()?, available })
    }
}

impl MaxPathId {
    pub(super) fn encoded_len(&self) -> usize {
        type_len(FrameType::MAX_PATH_ID) + VarInt::from(self.max.0).size()
    }

    pub(super) fn encode(&self, writer: &mut Writer<'_>) {
        put(FrameType::MAX_PATH_ID, self.max, None, writer);
    }

    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self { max: read_path(reader)? })
    }
}

impl PathsBlocked {
    pub(super) fn encoded_len(&self) -> usize {
        type_len(FrameType::PATHS_BLOCKED) + VarInt::from(self.max.0).size()
    }

    pub(super) fn encode(&self, writer: &mut Writer<'_>) {
        put(FrameType::PATHS_BLOCKED, self.max, None, writer);
    }

    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self { max: read_path(reader)? })
    }
}

impl PathCidsBlocked {
    pub(super) fn encoded_len(&self) -> usize {
        type_len(FrameType::PATH_CIDS_BLOCKED) + VarInt::from(self.path.0).size() + self.next_sequence.size()
    }

    pub(super) fn encode(&self, writer: &mut Writer<'_>) {
        put(FrameType::PATH_CIDS_BLOCKED, self.path, Some(self.next_sequence), writer);
    }

    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self { path: read_path(reader)?, next_sequence: reader.varint()? })
    }
}

/// All of them are a path ID and one number at most.
fn put(frame_type: FrameType, path: PathId, number: Option<VarInt>, writer: &mut Writer<'_>) {
    put_type(frame_type, writer);
    writer.put_varint(path.0.into());
    if let Some(number) = number {
        writer.put_varint(number);
    }
}
