//! Packets on their way out: from frames to sealed bytes in one batch buffer.
//!
//! Owns the layout of a packet and of a datagram; knows no stream, no timer and no congestion window.

mod frame_writer;
mod sent_packet;

pub(crate) use frame_writer::FrameWriter;
pub(crate) use sent_packet::{SentFrame, SentFrames, SentPacket};
