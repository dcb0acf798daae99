//! Frames from the peer: which stream they mean, and whether they may.

use bytes::Bytes;
use fulmar_wire::{
    DataBlocked, Dir, FrameType, MaxData, MaxStreamData, MaxStreams, ResetStream, ResetStreamAt, StopSending,
    Stream, StreamDataBlocked, StreamId, StreamsBlocked, TransportErrorCode,
};

use super::limits::Touch;
use super::recv::Arrival;
use super::{RecvContext, StreamEvent, Streams};
use crate::TransportError;

/// The half of a stream, on this end, that a frame is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Half {
    Send,
    Recv,
}

impl Streams {
    /// Takes a STREAM frame, which is a part of `payload` (RFC 9000 §19.8).
    pub(crate) fn on_stream(
        &mut self,
        frame: &Stream<'_>,
        payload: &Bytes,
        cx: &RecvContext,
    ) -> Result<(), TransportError> {
        self.stats.frames_received += 1;
        self.stats.bytes_received += frame.data.len() as u64;
        self.locate(frame.id, Half::Recv, FrameType::STREAM)?;
        let Some(stream) = self.table.get_mut(frame.id) else { return Ok(()) };
        let Some(recv) = &mut stream.recv else { return Ok(()) };
        let window_max = self.windows.receive_max;
        self.window.set_window_limit(self.receive_budget.window_limit(window_max));
        let arrival = recv.on_stream(frame, payload, cx, &mut self.window)?;
        recv.count_held(&mut self.receive_budget, window_max)?;
        self.stream_demand = self.stream_demand.max(recv.demand());
        self.window.tune(cx.now, cx.rtt);
        self.window.keep_beyond(recv.window());
        if arrival.ended || !stream.is_control_queued_rightly() {
            self.apply(frame.id, arrival);
        } else if arrival.readable {
            // The stream is in the right queues. More data of one that nobody waits for changes nothing else, either.
            self.push_readable(frame.id);
            self.report_blocked();
        }
        Ok(())
    }

    /// Takes a RESET_STREAM frame (RFC 9000 §19.4).
    pub(crate) fn on_reset_stream(&mut self, frame: &ResetStream) -> Result<(), TransportError> {
        self.locate(frame.id, Half::Recv, FrameType::RESET_STREAM)?;
        let Some(recv) = self.table.recv_mut(frame.id) else { return Ok(()) };
        let arrival = recv.on_reset(frame, &mut self.window)?;
        recv.recount_held(&mut self.receive_budget);
        self.apply(frame.id, arrival);
        Ok(())
    }

    /// Takes a RESET_STREAM_AT frame (draft-ietf-quic-reliable-stream-reset §4).
    pub(crate) fn on_reset_stream_at(&mut self, frame: &ResetStreamAt) -> Result<(), TransportError> {
        self.locate(frame.id, Half::Recv, FrameType::RESET_STREAM_AT)?;
        let Some(recv) = self.table.recv_mut(frame.id) else { return Ok(()) };
        let arrival = recv.on_reset_at(frame, &mut self.window)?;
        recv.recount_held(&mut self.receive_budget);
        self.apply(frame.id, arrival);
        Ok(())
    }

    /// Takes a STOP_SENDING frame (RFC 9000 §19.5).
    pub(crate) fn on_stop_sending(&mut self, frame: &StopSending) -> Result<(), TransportError> {
        self.locate(frame.id, Half::Send, FrameType::STOP_SENDING)?;
        let send = self.table.send_mut(frame.id).filter(|send| !send.is_abandoned());
        let Some(send) = send else { return Ok(()) };
        send.set_stopped(frame.error_code);
        // RFC 9000 §3.5: a RESET_STREAM frame answers, with the same code.
        self.unsent -= send.unsent();
        self.lost_bytes -= send.lost_bytes();
        let released = send.reset(frame.error_code);
        self.release(frame.id, released);
        self.sync(frame.id);
        self.events.push(StreamEvent::Stopped { id: frame.id, code: frame.error_code });
        Ok(())
    }

    /// Takes a MAX_DATA frame (RFC 9000 §19.9).
    pub(crate) fn on_max_data(&mut self, frame: &MaxData) {
        self.credit.raise(frame.maximum.get());
    }

    /// Takes a MAX_STREAM_DATA frame (RFC 9000 §19.10).
    pub(crate) fn on_max_stream_data(&mut self, frame: &MaxStreamData) -> Result<(), TransportError> {
        self.locate(frame.id, Half::Send, FrameType::MAX_STREAM_DATA)?;
        let Some(send) = self.table.send_mut(frame.id) else { return Ok(()) };
        if send.raise_limit(frame.maximum.get()) {
            self.wake_writer(frame.id, &mut None);
            self.sync(frame.id);
        }
        Ok(())
    }

    /// Takes a MAX_STREAMS frame (RFC 9000 §19.11).
    pub(crate) fn on_max_streams(&mut self, frame: &MaxStreams) {
        self.raise_stream_limit(frame.dir, frame.maximum.get());
    }

    /// Takes a DATA_BLOCKED frame (RFC 9000 §19.12). It is information only: credit follows consumption.
    pub(crate) fn on_data_blocked(&mut self, _frame: &DataBlocked) {
        self.stats.blocked_frames_received += 1;
    }

    /// Takes a STREAM_DATA_BLOCKED frame (RFC 9000 §19.13).
    pub(crate) fn on_stream_data_blocked(&mut self, frame: &StreamDataBlocked) -> Result<(), TransportError> {
        self.stats.blocked_frames_received += 1;
        self.locate(frame.id, Half::Recv, FrameType::STREAM_DATA_BLOCKED)
    }

    /// Takes a STREAMS_BLOCKED frame (RFC 9000 §19.14).
    pub(crate) fn on_streams_blocked(&mut self, _frame: &StreamsBlocked) {
        self.stats.blocked_frames_received += 1;
    }

    /// Applies what a frame has changed for the receiving half.
    fn apply(&mut self, id: StreamId, arrival: Arrival) {
        if arrival.readable {
            self.push_readable(id);
        }
        if arrival.ended {
            self.drop_recv(id);
        } else {
            self.sync(id);
        }
    }

    /// Checks that the peer may send a frame for this half of this stream, and opens the stream if it is a
    /// new one of the peer. A stream that has ended has no state afterwards: its frames are ignored.
    fn locate(&mut self, id: StreamId, half: Half, frame: FrameType) -> Result<(), TransportError> {
        let is_local = id.initiator() == self.side;
        // RFC 9000 §19.4, §19.5, §19.8, §19.10 and §19.13: frames for a half that this end does not have.
        if id.dir() == Dir::Uni && is_local == (half == Half::Recv) {
            let reason = "a frame for the wrong direction of a unidirectional stream";
            return Err(TransportError::new(TransportErrorCode::STREAM_STATE_ERROR, reason).with_frame(frame));
        }
        if self.table.contains(id) {
            return Ok(());
        }
        if is_local {
            // RFC 9000 §19.4, §19.5, §19.8 and §19.10: frames for a stream that this end has not opened.
            if self.outgoing[id.dir()].was_opened(id.index()) {
                return Ok(());
            }
            let reason = "a frame for a stream of this end that was not opened";
            return Err(TransportError::new(TransportErrorCode::STREAM_STATE_ERROR, reason).with_frame(frame));
        }
        match self.incoming[id.dir()].touch(id.index()) {
            Touch::Known => Ok(()),
            Touch::Create { news } => {
                self.create(id);
                if news {
                    self.events.set_opened(id.dir());
                }
                Ok(())
            }
            Touch::BeyondLimit => {
                // RFC 9000 §4.6: a stream ID beyond the limit.
                let reason = "more streams than allowed";
                Err(TransportError::new(TransportErrorCode::STREAM_LIMIT_ERROR, reason).with_frame(frame))
            }
        }
    }
}
