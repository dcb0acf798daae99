//! Packets on their way out: from frames to sealed bytes in one batch buffer.
//!
//! Owns the layout of a packet and of a datagram; knows no stream, no timer and no congestion window.

mod acked_frames;
mod frame_writer;
mod packet_builder;
mod protection;
mod sent_packet;

pub(crate) use acked_frames::AckedFrames;
pub(crate) use frame_writer::{FrameWriter, Payload, STREAM_HEADER_MAX, SymbolHeader};
pub(crate) use packet_builder::{HeaderFields, OpenPacket, Sealer};
pub use protection::Protection;
pub(crate) use protection::Protections;
pub(crate) use sent_packet::{SentFrame, SentFrames, SentPacket, SymbolId};
