//! Frames to the peer, and what happens when they are acknowledged or lost.

use std::ops::Range;

use fulmar_wire::{DataBlocked, Dir, Frame, MaxData, MaxStreams, StreamId, StreamsBlocked, VarInt};

use super::send::Acked;
use super::{StreamEvent, Streams};
use crate::packet::{FrameWriter, Protection, STREAM_HEADER_MAX, SentFrame};

const DIRECTIONS: [Dir; 2] = [Dir::Bi, Dir::Uni];

impl Streams {
    /// Bytes that were received and not yet read.
    pub(crate) fn unread(&self) -> u64 {
        self.window.unconsumed()
    }

    /// Whether there is a frame to write now: one of control, lost data, or new data that flow control allows.
    pub(crate) fn wants_to_send(&self) -> bool {
        // In this order, as data is asked for with each packet of a transfer.
        self.has_data_to_send() || self.has_control()
    }

    /// Whether there is lost data, or new data that flow control allows.
    pub(crate) fn has_data_to_send(&self) -> bool {
        self.has_lost() || self.has_fresh()
    }

    /// Whether there is new data that flow control allows.
    pub(crate) fn has_fresh(&self) -> bool {
        !self.fresh.is_empty() && self.credit.available() > 0
    }

    /// The urgency of the stream whose data is written next.
    pub(crate) fn next_urgency(&mut self) -> Option<u8> {
        let id = self.lost.first().or_else(|| self.fresh.first())?;
        Some(self.table.send_mut(id)?.priority().urgency())
    }

    /// The level of the stream whose data is written next; `None` if there is none that may be written now.
    pub(crate) fn next_level(&mut self) -> Option<i32> {
        let fresh = self.fresh.first().filter(|_| self.credit.available() > 0);
        let id = self.lost.first().or(fresh)?;
        Some(self.table.send_mut(id)?.priority().level())
    }

    /// How many STREAM frames were written.
    pub(crate) fn frames_written(&self) -> u64 {
        self.stats.frames_sent
    }

    /// What was chosen for the protection of the stream whose data is written next; `None` also if there is no such one.
    pub(crate) fn next_protection(&mut self) -> Option<Protection> {
        let id = self.lost.first().or_else(|| self.fresh.first())?;
        self.table.send_mut(id)?.protection
    }

    /// The bytes that at least follow what is written next, without waiting for the application or for credit: those of the stream
    /// whose turn it is.
    pub(crate) fn next_backlog(&mut self) -> u64 {
        let next = self.fresh.first().and_then(|id| self.table.send_mut(id));
        next.map_or(0, |send| send.sendable().min(self.credit.available()))
    }

    /// How long the STREAM frames of all that waits are at most, if flow control holds nothing of it back and it is lost or new data, not
    /// a copy; `None` if there is none.
    pub(crate) fn rest_len(&self) -> Option<u64> {
        if !self.has_data_to_send() || self.repeating || self.unsent > self.credit.available() {
            return None;
        }
        // What was lost of a stream may be several ranges; then the end takes one packet more.
        let frames = (self.fresh.len() + self.lost.len()) as u64;
        Some(self.waiting() + frames * STREAM_HEADER_MAX)
    }

    /// Whether there is data to send again. It does not need flow control credit.
    pub(crate) fn has_lost(&self) -> bool {
        !self.lost.is_empty()
    }

    /// Whether what is sent again is in flight, too.
    pub(crate) fn is_repeating(&self) -> bool {
        self.repeating
    }

    fn has_control(&self) -> bool {
        !self.control.is_empty()
            || self.window.is_limit_pending()
            || self.credit.is_blocked_pending()
            || DIRECTIONS
                .iter()
                .any(|&dir| self.incoming[dir].is_limit_pending() || self.outgoing[dir].is_blocked_pending())
    }

    /// Writes the frames other than STREAM, until there are no more or the packet is full.
    #[inline]
    pub(crate) fn write_control(&mut self, out: &mut FrameWriter<'_>) {
        if self.has_control() {
            // What frees the peer first, what reports our own wants last.
            let _full = self.write_limits(out) && self.write_stream_control(out) && self.write_blocked(out);
        }
    }

    fn write_limits(&mut self, out: &mut FrameWriter<'_>) -> bool {
        if let Some(limit) = self.window.limit_frame().pending() {
            let frame = Frame::MaxData(MaxData { maximum: VarInt::saturating(limit) });
            if !out.write(&frame, SentFrame::MaxData) {
                return false;
            }
            self.window.limit_frame().on_written();
        }
        for dir in DIRECTIONS {
            let limit = self.incoming[dir].limit_frame();
            if let Some(maximum) = limit.pending() {
                let frame = Frame::MaxStreams(MaxStreams { dir, maximum: VarInt::saturating(maximum) });
                if !out.write(&frame, SentFrame::MaxStreams(dir)) {
                    return false;
                }
                limit.on_written();
            }
        }
        true
    }

    fn write_stream_control(&mut self, out: &mut FrameWriter<'_>) -> bool {
        while let Some(&id) = self.control.front() {
            if let Some(stream) = self.table.get_mut(id) {
                if !stream.write_control(out) {
                    return false;
                }
                stream.queued_control = false;
            }
            self.control.pop_front();
        }
        true
    }

    fn write_blocked(&mut self, out: &mut FrameWriter<'_>) -> bool {
        if let Some(limit) = self.credit.blocked_frame().pending() {
            let frame = Frame::DataBlocked(DataBlocked { limit: VarInt::saturating(limit) });
            if !out.write(&frame, SentFrame::DataBlocked) {
                return false;
            }
            self.credit.blocked_frame().on_written();
        }
        for dir in DIRECTIONS {
            let blocked = self.outgoing[dir].blocked_frame();
            if let Some(limit) = blocked.pending() {
                let frame = Frame::StreamsBlocked(StreamsBlocked { dir, limit: VarInt::saturating(limit) });
                if !out.write(&frame, SentFrame::StreamsBlocked(dir)) {
                    return false;
                }
                blocked.on_written();
            }
        }
        true
    }

    /// Writes STREAM frames: lost data first, then new data, each by priority (see
    /// [`super::priority::PriorityQueue`]), until there is no more, the packet is full, or it takes no data of the next stream's
    /// protection.
    pub(crate) fn write_data(&mut self, out: &mut FrameWriter<'_>) {
        if self.write_lost(out) {
            self.write_fresh(out);
        }
    }

    /// Returns false if the packet is full.
    fn write_lost(&mut self, out: &mut FrameWriter<'_>) -> bool {
        while let Some(id) = self.lost.first() {
            let Some(send) = self.table.send_mut(id) else {
                debug_assert!(false, "a half leaves the queues before it ends");
                self.lost.pop();
                continue;
            };
            if !out.takes(send.protection) {
                return false;
            }
            let Some(len) = send.write_lost(id, out) else { return false };
            self.lost_bytes -= len as u64;
            self.stats.frames_sent += 1;
            self.stats.bytes_retransmitted += len as u64;
            match self.repeating {
                true => out.mark_copied(self.repeated_copy),
                false => out.mark_resent(),
            }
            if send.has_lost() {
                self.lost.charge(len);
            } else {
                send.queued_lost = false;
                self.lost.pop();
            }
        }
        self.repeating = false;
        true
    }

    fn write_fresh(&mut self, out: &mut FrameWriter<'_>) {
        while let Some(id) = self.fresh.first() {
            let allowed = self.credit.available();
            if allowed == 0 {
                self.report_blocked();
                return;
            }
            let Some(send) = self.table.send_mut(id) else {
                debug_assert!(false, "a half leaves the queues before it ends");
                self.fresh.pop();
                continue;
            };
            if !out.takes(send.protection) {
                return;
            }
            let Some(len) = send.write_new(id, allowed, out) else { return };
            self.credit.spend(len as u64);
            self.unsent -= len as u64;
            self.stats.frames_sent += 1;
            self.stats.bytes_sent += len as u64;
            let is_sent_enough = send.is_sent_enough();
            if send.has_new() {
                self.fresh.charge(len);
            } else {
                send.queued_fresh = false;
                self.fresh.pop();
                self.ends_sent = self.ends_sent.wrapping_add(send.is_end_sent().into());
                if send.is_partially_reset() {
                    // The last bytes that are delivered have left: RESET_STREAM_AT can follow.
                    self.sync(id);
                }
            }
            if is_sent_enough {
                self.wake_writer(id, &mut None);
            }
        }
    }

    /// The packet with this frame was acknowledged. Tokens of other components are ignored.
    pub(crate) fn on_acked(&mut self, token: &SentFrame) {
        match *token {
            SentFrame::Stream { id, offset, len, fin } => {
                self.on_stream_acked(id, offset..offset + u64::from(len), fin);
            }
            // RFC 9000 §3.1: the acknowledgement of RESET_STREAM ends the half.
            SentFrame::ResetStream(id) => self.drop_send(id),
            SentFrame::ResetStreamAt { id, reliable_size } => {
                if let Some(send) = self.table.send_mut(id) {
                    let acked = send.on_reset_at_acked(reliable_size);
                    self.apply_acked(id, &acked);
                }
            }
            SentFrame::StopSending(id) => {
                if let Some(recv) = self.table.recv_mut(id) {
                    recv.stop_frame().on_acked();
                    self.sync(id);
                }
            }
            // What tells a latest value needs no acknowledgement.
            _ => {}
        }
    }

    /// The peer has these bytes of a stream, and its end if `fin`: one STREAM frame, or several that follow one another.
    pub(crate) fn on_stream_acked(&mut self, id: StreamId, range: Range<u64>, fin: bool) {
        let Some(send) = self.table.send_mut(id) else { return };
        let before = send.lost_bytes();
        let acked = send.on_acked(range, fin);
        self.lost_bytes -= before - send.lost_bytes();
        self.apply_acked(id, &acked);
    }

    /// Applies what an acknowledgement has changed for the sending half.
    fn apply_acked(&mut self, id: StreamId, acked: &Acked) {
        self.release(id, acked.released);
        match self.table.get_mut(id) {
            // What was waiting to be sent again may have arrived after all.
            Some(stream) if stream.is_queued() => self.sync(id),
            _ => self.report_blocked(),
        }
        if acked.finished {
            self.events.push(StreamEvent::Finished(id));
            self.drop_send(id);
        }
    }

    /// The packet with this frame was lost. Tokens of other components are ignored.
    pub(crate) fn on_lost(&mut self, token: &SentFrame) {
        match *token {
            SentFrame::MaxData => self.window.on_limit_lost(),
            SentFrame::MaxStreams(dir) => self.incoming[dir].on_limit_lost(),
            SentFrame::DataBlocked => self.credit.blocked_frame().on_lost(),
            SentFrame::StreamsBlocked(dir) => self.outgoing[dir].blocked_frame().on_lost(),
            SentFrame::Stream { id, .. }
            | SentFrame::ResetStream(id)
            | SentFrame::ResetStreamAt { id, .. }
            | SentFrame::StreamDataBlocked(id)
            | SentFrame::StopSending(id)
            | SentFrame::MaxStreamData(id) => self.on_stream_frame_lost(id, token),
            _ => {}
        }
    }

    fn on_stream_frame_lost(&mut self, id: StreamId, token: &SentFrame) {
        let Some(stream) = self.table.get_mut(id) else { return };
        match (token, &mut stream.send, &mut stream.recv) {
            (&SentFrame::Stream { offset, len, fin, .. }, Some(send), _) => {
                let before = send.lost_bytes();
                send.on_lost(offset..offset + u64::from(len), fin);
                self.lost_bytes += send.lost_bytes() - before;
            }
            (SentFrame::ResetStream(_), Some(send), _) => send.reset_frame().on_lost(),
            (&SentFrame::ResetStreamAt { reliable_size, .. }, Some(send), _) => {
                send.on_reset_at_lost(reliable_size);
            }
            (SentFrame::StreamDataBlocked(_), Some(send), _) => send.blocked_frame().on_lost(),
            (SentFrame::StopSending(_), _, Some(recv)) => recv.stop_frame().on_lost(),
            (SentFrame::MaxStreamData(_), _, Some(recv)) => recv.on_limit_lost(),
            _ => return,
        }
        self.sync(id);
    }

    /// A probe wants to repeat this frame, which is in flight, not lost (RFC 9002 §6.2.4): whatever the peer
    /// has not acknowledged of it waits to be written again. Tokens of other components are ignored.
    pub(crate) fn on_probe(&mut self, token: &SentFrame) {
        // What is repeated is decided in the same way: nothing is forgotten of the first copy, whose
        // acknowledgement or loss may still come.
        self.on_lost(token);
        self.repeating = self.has_lost();
        self.repeated_copy = 0;
    }

    /// What is repeated was lost before: it leaves as copy number `copy`.
    pub(crate) fn repeat_as_copy(&mut self, copy: u8) {
        self.repeated_copy = copy;
    }
}
