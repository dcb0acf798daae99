//! The receiving half of a stream (RFC 9000 §3.2).

mod reading;

use bytes::Bytes;
use fulmar_wire::{FrameType, ResetStream, ResetStreamAt, Stream, TransportErrorCode, VarInt};

use self::reading::Wait;
use super::RecvContext;
use super::assembler::Assembler;
use super::flow::ReceiveWindow;
use super::receive_budget::ReceiveBudget;
use crate::TransportError;
use crate::reliable::{Latest, Once};
use crate::slices::may_pin;

/// The receiving half of a stream, until the application knows how it ended.
#[derive(Debug)]
pub(super) struct RecvHalf {
    assembler: Assembler,
    window: ReceiveWindow,
    final_size: Option<u64>,
    state: State,
    /// The peer has abandoned the stream but for its beginning, which is read before the application hears of it.
    partial_reset: Option<PartialReset>,
    stop: Once<VarInt>,
    /// What the application waits for; `None` while it has not read up to a gap.
    waiting: Option<Wait>,
    /// Whether the application waits to hear how the stream ends.
    waiting_for_reset: bool,
    /// Whether a part of it came as early data.
    early: bool,
    /// Bytes that the connection counts as held here.
    counted: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Data arrives, or all of it is here and waits for the application.
    Open,
    /// The peer has reset the stream with this code, and the application does not know yet.
    Reset(VarInt),
    /// The application wants no more data. The half remains until the final size is known.
    Stopped,
}

/// A reset that leaves the beginning of the stream (draft-ietf-quic-reliable-stream-reset).
#[derive(Debug, Clone, Copy)]
struct PartialReset {
    code: VarInt,
    /// So many bytes are read all the same; those behind are not.
    reliable_size: u64,
}

/// What a frame has changed.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Arrival {
    /// The application waits, and has something to read now.
    pub(super) readable: bool,
    /// Nobody needs this half any more.
    pub(super) ended: bool,
}

impl RecvHalf {
    /// The half of a new stream with these windows, initial and largest.
    pub(super) fn new(window: u64, window_max: u64) -> Self {
        Self {
            assembler: Assembler::default(),
            window: ReceiveWindow::new(window, window_max),
            final_size: None,
            state: State::Open,
            partial_reset: None,
            stop: Once::Idle,
            waiting: Some(Wait { ordered: true }),
            waiting_for_reset: false,
            early: false,
            counted: 0,
        }
    }

    /// Counts what is held at the connection, whose window may grow to `window_max`.
    ///
    /// # Errors
    /// If there is no memory for it.
    #[inline]
    pub(super) fn count_held(
        &mut self,
        budget: &mut ReceiveBudget,
        window_max: u64,
    ) -> Result<(), TransportError> {
        let held = self.assembler.held();
        if held != self.counted {
            budget.exchange(self.counted, held, window_max)?;
            self.counted = held;
        }
        Ok(())
    }

    /// The same after something was read or dropped, which never takes more.
    #[inline]
    pub(super) fn recount_held(&mut self, budget: &mut ReceiveBudget) {
        let held = self.assembler.held();
        if held < self.counted {
            budget.release(self.counted - held);
            self.counted = held;
        }
    }

    /// Bytes that the connection counts as held here.
    pub(super) fn counted(&self) -> u64 {
        self.counted
    }

    /// What the peer may send on it.
    pub(super) fn window(&self) -> &ReceiveWindow {
        &self.window
    }

    /// The most that was read from it in a round trip.
    pub(super) fn demand(&self) -> u64 {
        self.window.demand()
    }

    /// Takes the data of a STREAM frame, which is a part of `payload`. `connection` is the window of all
    /// streams together.
    #[inline]
    pub(super) fn on_stream(
        &mut self,
        frame: &Stream<'_>,
        payload: &Bytes,
        cx: &RecvContext,
        connection: &mut ReceiveWindow,
    ) -> Result<Arrival, TransportError> {
        let end = frame.offset.get() + frame.data.len() as u64;
        self.accept(end, frame.fin, FrameType::STREAM, connection)?;
        self.early |= cx.early;
        if self.state != State::Open {
            return Ok(self.discard_rest(connection));
        }
        let data = &frame.data[..self.wanted(frame)];
        let kept = may_pin(connection.unconsumed()).then_some(payload);
        self.assembler.insert(frame.offset.get(), data, kept);
        if self.final_size.is_none() {
            self.window.tune(cx.now, cx.rtt);
        }
        Ok(Arrival { readable: self.take_readable(), ended: false })
    }

    /// How many bytes of a frame are before the end of what is still read.
    fn wanted(&self, frame: &Stream<'_>) -> usize {
        let end = self.partial_reset.map_or(u64::MAX, |partial| partial.reliable_size);
        let wanted = usize::try_from(end.saturating_sub(frame.offset.get())).unwrap_or(usize::MAX);
        frame.data.len().min(wanted)
    }

    /// Whether a part of the data came as early data.
    pub(super) fn is_early(&self) -> bool {
        self.early
    }

    /// The peer has abandoned the stream.
    pub(super) fn on_reset(
        &mut self,
        frame: &ResetStream,
        connection: &mut ReceiveWindow,
    ) -> Result<Arrival, TransportError> {
        let final_size = frame.final_size.get();
        let was_complete = self.final_size.is_some_and(|size| self.assembler.is_complete(size));
        self.accept(final_size, true, FrameType::RESET_STREAM, connection)?;
        check_code(
            self.partial_reset.map(|partial| partial.code),
            frame.error_code,
            FrameType::RESET_STREAM,
        )?;
        match self.state {
            // RFC 9000 §3.2: once all data and the end are here, the reset says nothing new.
            State::Open if was_complete => return Ok(Arrival::default()),
            State::Open => self.state = State::Reset(frame.error_code),
            State::Reset(_) | State::Stopped => {}
        }
        self.assembler = Assembler::default();
        Ok(self.discard_rest(connection))
    }

    /// The peer has abandoned the stream but for its beginning.
    pub(super) fn on_reset_at(
        &mut self,
        frame: &ResetStreamAt,
        connection: &mut ReceiveWindow,
    ) -> Result<Arrival, TransportError> {
        let ResetStreamAt { id, error_code, final_size, reliable_size } = *frame;
        let was_complete = self.final_size.is_some_and(|size| self.assembler.is_complete(size));
        self.accept(final_size.get(), true, FrameType::RESET_STREAM_AT, connection)?;
        let known = match self.state {
            State::Reset(code) => Some(code),
            State::Open | State::Stopped => self.partial_reset.map(|partial| partial.code),
        };
        check_code(known, error_code, FrameType::RESET_STREAM_AT)?;
        if reliable_size == VarInt::ZERO {
            // Draft §5: that is the same as RESET_STREAM.
            return self.on_reset(&ResetStream { id, error_code, final_size }, connection);
        }
        match self.state {
            // The application hears of the end of the stream.
            State::Open if was_complete => return Ok(Arrival::default()),
            State::Open => {}
            State::Reset(_) | State::Stopped => return Ok(self.discard_rest(connection)),
        }
        // Draft §5.2: a frame that promises more is an older one.
        let reliable_size = reliable_size.get();
        if self.partial_reset.is_none_or(|partial| reliable_size < partial.reliable_size) {
            self.partial_reset = Some(PartialReset { code: error_code, reliable_size });
            self.assembler.truncate(reliable_size);
        }
        Ok(Arrival { readable: self.take_readable(), ended: false })
    }

    /// The code of the reset that ends the stream here, if everything before it was read.
    fn partial_reset_code(&self) -> Option<VarInt> {
        self.partial_reset
            .filter(|partial| self.assembler.is_read_to(partial.reliable_size))
            .map(|partial| partial.code)
    }

    /// Checks that the stream may reach `end`, and end there if `fin`, and counts what is new of it.
    fn accept(
        &mut self,
        end: u64,
        fin: bool,
        frame: FrameType,
        connection: &mut ReceiveWindow,
    ) -> Result<(), TransportError> {
        let error = |code, reason| Err(TransportError::new(code, reason).with_frame(frame));
        // RFC 9000 §4.5: no data beyond the final size, and no other final size.
        match self.final_size {
            Some(size) if end > size => {
                return error(TransportErrorCode::FINAL_SIZE_ERROR, "data beyond the end of the stream");
            }
            Some(size) if fin && end != size => {
                return error(TransportErrorCode::FINAL_SIZE_ERROR, "the end of the stream has moved");
            }
            None if fin && end < self.window.received() => {
                return error(
                    TransportErrorCode::FINAL_SIZE_ERROR,
                    "the stream ends before data it has sent",
                );
            }
            Some(_) | None => {}
        }
        let new = end.saturating_sub(self.window.received());
        // RFC 9000 §4.1: more than allowed, on the stream or in all.
        if !self.window.allows(new) {
            return error(TransportErrorCode::FLOW_CONTROL_ERROR, "more data than the stream's limit");
        }
        if !connection.allows(new) {
            return error(TransportErrorCode::FLOW_CONTROL_ERROR, "more data than the connection's limit");
        }
        self.window.receive(new);
        connection.receive(new);
        if fin {
            self.final_size = Some(end);
            // The peer needs no more credit for this stream.
            self.window.limit_frame().cancel();
        }
        Ok(())
    }

    /// Gives the connection's credit for data back that nobody will read.
    fn discard_rest(&mut self, connection: &mut ReceiveWindow) -> Arrival {
        self.consume(self.window.unconsumed(), connection);
        // The peer has ended the stream, or needs no more credit to do so.
        self.window.limit_frame().cancel();
        let ended = self.state == State::Stopped && self.final_size.is_some();
        Arrival { readable: self.take_readable(), ended }
    }

    fn consume(&mut self, bytes: u64, connection: &mut ReceiveWindow) {
        self.window.consume(bytes);
        if self.final_size.is_some() {
            self.window.limit_frame().cancel();
        }
        connection.consume(bytes);
        connection.announce_with(&self.window);
    }

    /// The application wants no more data. Returns whether nobody needs this half any more.
    pub(super) fn stop(&mut self, code: VarInt, connection: &mut ReceiveWindow) -> bool {
        if self.final_size.is_none() {
            // RFC 9000 §3.5: STOP_SENDING is of use only while the peer may still be sending.
            self.stop.request(code);
        }
        self.state = State::Stopped;
        self.assembler = Assembler::default();
        self.discard_rest(connection).ended
    }

    /// Whether the application has ended its interest.
    pub(super) fn is_stopped(&self) -> bool {
        self.state == State::Stopped
    }

    /// The STOP_SENDING frame.
    pub(super) fn stop_frame(&mut self) -> &mut Once<VarInt> {
        &mut self.stop
    }

    /// A packet with MAX_STREAM_DATA was lost.
    pub(super) fn on_limit_lost(&mut self) {
        self.window.on_limit_lost();
    }

    /// The MAX_STREAM_DATA frame.
    pub(super) fn limit_frame(&mut self) -> &mut Latest<u64> {
        self.window.limit_frame()
    }

    /// Whether a frame of this half waits to be written.
    pub(super) fn has_control(&self) -> bool {
        self.window.is_limit_pending() || self.stop.pending().is_some()
    }
}

/// Draft §5.2: the code of a partial reset does not change.
fn check_code(known: Option<VarInt>, code: VarInt, frame: FrameType) -> Result<(), TransportError> {
    if known.is_none_or(|known| known == code) {
        return Ok(());
    }
    let reason = "the code of a reset has changed";
    Err(TransportError::new(TransportErrorCode::STREAM_STATE_ERROR, reason).with_frame(frame))
}

#[cfg(test)]
mod tests;
