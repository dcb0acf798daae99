//! Resets of a stream: of all of it, or of all but its beginning (RFC 9000 §3.1, draft-ietf-quic-reliable-stream-reset).

use fulmar_wire::VarInt;

use super::super::send_buffer::SendBuffer;
use super::{Acked, Fin, SendHalf};
use crate::reliable::Once;

/// What RESET_STREAM or RESET_STREAM_AT says.
#[derive(Debug, Clone, Copy)]
pub(in crate::streams) struct Reset {
    pub(in crate::streams) code: VarInt,
    pub(in crate::streams) final_size: u64,
    /// So many bytes are delivered all the same; if none, the frame is RESET_STREAM.
    pub(in crate::streams) reliable_size: u64,
}

/// A reset that leaves the beginning of the stream (draft-ietf-quic-reliable-stream-reset).
#[derive(Debug, Clone, Copy)]
pub(super) struct PartialReset {
    pub(super) code: VarInt,
    /// How many bytes are delivered.
    pub(super) reliable_size: u64,
}

impl SendHalf {
    /// Abandons the stream. Returns how many bytes need no longer be held.
    pub(in crate::streams) fn reset(&mut self, code: VarInt) -> u64 {
        let released = self.buffer.held();
        // Draft §5.2: the code of a partial reset does not change.
        let code = self.partial_reset.take().map_or(code, |partial| partial.code);
        // RFC 9000 §4.5: the final size is what was sent, and counts in flow control.
        self.reset = Once::Pending(Reset { code, final_size: self.buffer.next(), reliable_size: 0 });
        self.buffer = SendBuffer::default();
        self.write_blocked = false;
        self.credit.blocked_frame().cancel();
        released
    }

    /// Abandons the stream but for its first `reliable_size` bytes, as far as they were written. That may become less
    /// later, but not more; the first code holds. Returns how many bytes need no longer be held.
    pub(in crate::streams) fn reset_at(&mut self, code: VarInt, reliable_size: u64) -> u64 {
        let code = self.partial_reset.map_or(code, |partial| partial.code);
        let reliable_size = reliable_size.min(self.buffer.end());
        if self.partial_reset.is_some_and(|partial| partial.reliable_size <= reliable_size) {
            return 0;
        }
        if reliable_size == 0 {
            return self.reset(code);
        }
        let held = self.buffer.held();
        self.partial_reset = Some(PartialReset { code, reliable_size });
        self.buffer.abandon_from(reliable_size);
        if self.fin == Fin::Pending {
            self.fin = Fin::Open;
        }
        self.write_blocked = false;
        self.announce_partial_reset();
        held - self.buffer.held()
    }

    /// Asks for RESET_STREAM_AT, if nothing has to be sent before it.
    pub(super) fn announce_partial_reset(&mut self) {
        if let Some(PartialReset { code, reliable_size }) =
            self.partial_reset.filter(|_| self.buffer.unsent() == 0)
        {
            self.reset = Once::Pending(Reset { code, final_size: self.buffer.next(), reliable_size });
        }
    }

    /// Whether the stream was abandoned, wholly or but for its beginning.
    pub(in crate::streams) fn is_reset(&self) -> bool {
        self.is_abandoned() || self.partial_reset.is_some()
    }

    /// Whether nothing of the stream has to arrive any more.
    pub(in crate::streams) fn is_abandoned(&self) -> bool {
        self.partial_reset.is_none() && !self.reset.is_idle()
    }

    /// Whether it was abandoned but for its beginning.
    pub(in crate::streams) fn is_partially_reset(&self) -> bool {
        self.partial_reset.is_some()
    }

    /// The peer has RESET_STREAM_AT with this reliable size.
    pub(in crate::streams) fn on_reset_at_acked(&mut self, reliable_size: u64) -> Acked {
        if self.partial_reset.is_none_or(|partial| partial.reliable_size != reliable_size) {
            return Acked::default();
        }
        self.reset.on_acked();
        self.conclude(0)
    }

    /// RESET_STREAM_AT with this reliable size was lost, or a probe wants to repeat it.
    pub(in crate::streams) fn on_reset_at_lost(&mut self, reliable_size: u64) {
        if self.partial_reset.is_some_and(|partial| partial.reliable_size == reliable_size) {
            self.reset.on_lost();
        }
    }

    /// The RESET_STREAM frame.
    pub(in crate::streams) fn reset_frame(&mut self) -> &mut Once<Reset> {
        &mut self.reset
    }
}
