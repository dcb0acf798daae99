//! What the application reads of a stream, and when it is told that there is something.

use fulmar_wire::VarInt;

use super::super::flow::ReceiveWindow;
use super::super::handles::{Chunk, ReadError};
use super::{RecvHalf, State};

#[derive(Debug, Clone, Copy)]
pub(super) struct Wait {
    pub(super) ordered: bool,
}

impl RecvHalf {
    /// Reads for the application; see [`RecvHandle::read`](super::super::RecvHandle::read). What ends the half is remembered by the
    /// caller: after `Ok(None)` and [`ReadError::Reset`] nobody needs it any more.
    #[inline]
    pub(in crate::streams) fn read(
        &mut self,
        max_len: usize,
        ordered: bool,
        connection: &mut ReceiveWindow,
    ) -> Result<Option<Chunk>, ReadError> {
        match self.state {
            State::Stopped => return Err(ReadError::ClosedStream),
            State::Reset(code) => return Err(ReadError::Reset(code)),
            State::Open => {}
        }
        if let Some((offset, bytes)) = self.assembler.read(max_len, ordered) {
            self.consume(bytes.len() as u64, connection);
            let fin = self.final_size == Some(self.window.consumed()) && self.partial_reset.is_none();
            return Ok(Some(Chunk { offset, bytes, fin }));
        }
        if let Some(code) = self.partial_reset_code() {
            self.discard_rest(connection);
            return Err(ReadError::Reset(code));
        }
        if self.final_size == Some(self.window.consumed()) {
            return Ok(None);
        }
        self.waiting = Some(Wait { ordered });
        Err(ReadError::Blocked)
    }

    /// The code of the peer's reset, or `None` if there will be none. What comes before the reset may be unread.
    pub(in crate::streams) fn received_reset(&mut self) -> Result<Option<VarInt>, ReadError> {
        if self.state == State::Stopped {
            return Err(ReadError::ClosedStream);
        }
        let end = self.known_end();
        self.waiting_for_reset = end.is_none();
        end.ok_or(ReadError::Blocked)
    }

    /// How the stream ends, if that is known: with this code, or with all of its data.
    fn known_end(&self) -> Option<Option<VarInt>> {
        let complete = self.final_size.is_some_and(|size| self.assembler.is_complete(size));
        match (self.state, self.partial_reset) {
            (State::Reset(code), _) => Some(Some(code)),
            (_, Some(partial)) => Some(Some(partial.code)),
            (_, None) => complete.then_some(None),
        }
    }

    /// Whether to wake the application. It is woken once for each time that it was told to wait.
    pub(super) fn take_readable(&mut self) -> bool {
        let reset = self.waiting_for_reset && self.known_end().is_some();
        self.waiting_for_reset &= !reset;
        self.take_data_readable() || reset
    }

    fn take_data_readable(&mut self) -> bool {
        let Some(wait) = self.waiting else { return false };
        let readable = match self.state {
            State::Open => {
                self.assembler.is_readable(wait.ordered)
                    || self.partial_reset_code().is_some()
                    || self.final_size == Some(self.window.consumed())
            }
            State::Reset(_) => true,
            State::Stopped => false,
        };
        if readable {
            self.waiting = None;
        }
        readable
    }
}
