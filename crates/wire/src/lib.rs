//! QUIC packets, frames and transport parameters, as values and as bytes.
//!
//! This crate knows no state: it turns bytes into values that are legal in themselves, and values into bytes.
//! What can be constructed can be encoded; parsing is the only gate.
//!
//! | module | what it owns |
//! |---|---|
//! | `varint`, `reader`, `writer` | the building blocks of the encoding (RFC 9000 §16) |
//! | `ids`, `version`, `codes` | connection IDs, stream and path names, versions, error codes, frame types |
//! | `header`, `packet_number` | packets in a datagram, header protection, packet numbers (RFC 9000 §17) |
//! | `frame` | one file for each family of frames (RFC 9000 §19, RFC 9221) |
//! | `transport_params` | the table of transport parameters (RFC 9000 §18) |
#![forbid(unsafe_code)]

mod codes;
mod frame;
mod header;
mod ids;
mod packet_kind;
pub mod packet_number;
mod reader;
mod transport_params;
mod varint;
mod version;
mod writer;

pub use codes::{FrameType, TransportErrorCode};
pub use frame::{
    Ack, AckEncoder, AckFrequency, AckRanges, AckWritten, BlockRepair, CloseCode, ConnectionClose, Crypto,
    DataBlocked, Datagram, EcnCounts, FecRecovered, FecRepair, FecSid, FecWindow, Frame, FrameError, Frames,
    MaxData, MaxPathId, MaxStreamData, MaxStreams, NewConnectionId, NewToken, ObservedAddress, PathAbandon,
    PathChallenge, PathCidsBlocked, PathResponse, PathStatus, PathsBlocked, ResetStream, ResetStreamAt,
    RetireConnectionId, SourceSymbol, StopSending, Stream, StreamDataBlocked, StreamHeader, StreamsBlocked,
    SymbolAck, Timestamp, frames,
};
pub use header::{
    HeaderError, InvariantCids, LONG_LENGTH_MAX, LongHeader, LongHeaderOffsets, ProtectedKind,
    ProtectedPacket, RETRY_TAG_LEN, ShortHeader, UnprotectedBits, clear_quic_bit, negotiated_versions,
    patch_length, protect_header, read_packet, sample, unprotect_header, write_retry,
    write_version_negotiation,
};
pub use ids::{CID_LEN_MAX, ConnectionId, Dir, PathId, ResetToken, Side, StreamId};
pub use packet_kind::PacketKind;
pub use reader::{Reader, Truncated};
pub use transport_params::{
    AddressDiscovery, FecParameters, ParameterId, ParameterProblem, PreferredAddress, TimeStamps,
    TransportParameterError, TransportParameters, VersionInformation,
};
pub use varint::{VarInt, VarIntTooLarge};
pub use version::{Dialect, Version};
pub use writer::Writer;
