//! Whether datagrams or the data of streams go first into a packet: by their levels, and of the same level in turns.

use fulmar_base::Instant;

use super::write_order::Writers;
use crate::datagrams::Datagrams;
use crate::packet::FrameWriter;
use crate::path::Pending;
use crate::streams::{QUANTUM_BYTES, Streams};

/// Whether the data of streams goes before the datagrams that wait: that of a higher level does (RFC 9221 §5.1), and of the same
/// level when datagrams have had their turn.
pub(super) fn streams_lead(streams: &mut Streams, datagrams: &Datagrams) -> bool {
    // Asked with each packet, and most connections have no datagrams.
    let Some(priority) = datagrams.next_priority() else { return false };
    let Some(level) = streams.next_level() else { return false };
    let turn = datagrams.turn.bytes(streams.frames_written());
    level > priority || level == priority && turn >= QUANTUM_BYTES
}

impl Writers<'_> {
    /// Whether the data of streams may be written here, and goes before the datagrams that wait.
    pub(super) fn streams_lead(&mut self) -> bool {
        streams_lead(self.streams, self.datagrams) && self.path().due().has(Pending::STREAMS)
    }

    pub(super) fn write_leading_streams(&mut self, out: &mut FrameWriter<'_>) {
        if self.streams_lead() {
            self.streams.write_data(out);
        }
    }

    pub(super) fn write_datagrams(&mut self, now: Instant, out: &mut FrameWriter<'_>) {
        let room = out.space();
        self.fill_with_datagrams(now, out);
        if self.path().due().has(Pending::STREAMS) && self.streams.has_data_to_send() {
            self.datagrams.turn.charge(room - out.space(), self.streams.frames_written());
        }
    }
}
