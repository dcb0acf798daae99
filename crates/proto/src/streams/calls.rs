//! The application's calls, which come through the handles.

use fulmar_wire::{StreamId, VarInt};

use super::priority::Priority;
use super::send::Source;
use super::{Chunk, ClosedStream, FinishError, ReadError, ResetAtError, Streams, WriteError};

impl Streams {
    pub(super) fn check_writable(&mut self, id: StreamId) -> Result<(), WriteError> {
        self.table.send_mut(id).ok_or(WriteError::ClosedStream)?.check_writable()
    }

    /// How much may be written to a stream now, at least one byte. If there is no room, a `Writable` event follows when
    /// there is.
    pub(super) fn room(&mut self, id: StreamId) -> Result<u64, WriteError> {
        let send = self.table.send_mut(id).ok_or(WriteError::ClosedStream)?;
        send.check_writable()?;
        let (credit_room, held, priority) = (send.credit_room(), send.held(), send.priority());
        let unsent_room = send.unsent_room();
        let budget_room = self.budget_room(held, priority);
        let room = credit_room.min(budget_room).min(unsent_room);
        if room > 0 {
            return Ok(room);
        }
        let send = self.table.send_mut(id).ok_or(WriteError::ClosedStream)?;
        send.write_blocked = true;
        if credit_room == 0 {
            send.on_credit_blocked();
        }
        if budget_room == 0 && !std::mem::replace(&mut send.queued_waiting, true) {
            self.budget.wait(id);
        }
        self.sync(id);
        Err(WriteError::Blocked)
    }

    /// Appends data of at least one byte.
    pub(super) fn write(&mut self, id: StreamId, source: Source<'_>) -> Result<usize, WriteError> {
        let room = self.room(id)?;
        let send = self.table.send_mut(id).ok_or(WriteError::ClosedStream)?;
        let finishes = matches!(&source, Source::LastChunk(chunk) if chunk.len() as u64 <= room);
        let written = send.write(source, room);
        if finishes {
            send.finish();
        }
        self.budget.hold(written as u64);
        self.unsent += written as u64;
        self.sync(id);
        Ok(written)
    }

    pub(super) fn finish(&mut self, id: StreamId) -> Result<(), FinishError> {
        let send = self.table.send_mut(id).ok_or(FinishError::ClosedStream)?;
        send.check_writable().map_err(|error| match error {
            WriteError::Stopped(code) => FinishError::Stopped(code),
            WriteError::Blocked | WriteError::ClosedStream => FinishError::ClosedStream,
        })?;
        send.finish();
        self.sync(id);
        Ok(())
    }

    pub(super) fn reset(&mut self, id: StreamId, code: VarInt) -> Result<(), ClosedStream> {
        let send = self.table.send_mut(id).filter(|send| !send.is_abandoned()).ok_or(ClosedStream)?;
        self.unsent -= send.unsent();
        self.lost_bytes -= send.lost_bytes();
        let released = send.reset(code);
        self.release(id, released);
        self.sync(id);
        Ok(())
    }

    pub(super) fn reset_at(
        &mut self,
        id: StreamId,
        code: VarInt,
        reliable_size: u64,
    ) -> Result<(), ResetAtError> {
        if !self.peer.reset_stream_at {
            return Err(ResetAtError::UnsupportedByPeer);
        }
        let send = self.table.send_mut(id).filter(|send| !send.is_abandoned());
        let send = send.ok_or(ResetAtError::ClosedStream)?;
        let before = (send.unsent(), send.lost_bytes());
        let released = send.reset_at(code, reliable_size);
        self.unsent -= before.0 - send.unsent();
        self.lost_bytes -= before.1 - send.lost_bytes();
        self.release(id, released);
        self.sync(id);
        Ok(())
    }

    pub(super) fn set_priority(&mut self, id: StreamId, priority: Priority) -> Result<(), ClosedStream> {
        let send = self.table.send_mut(id).ok_or(ClosedStream)?;
        if send.priority() == priority {
            return Ok(());
        }
        send.set_priority(priority);
        // The queues know the old priority.
        self.lost.set(id, priority, false, &mut send.queued_lost);
        self.fresh.set(id, priority, false, &mut send.queued_fresh);
        self.sync(id);
        Ok(())
    }

    pub(super) fn set_unsent_max(&mut self, id: StreamId, bytes: u64) -> Result<(), ClosedStream> {
        self.table.send_mut(id).ok_or(ClosedStream)?.unsent_max = bytes.max(1);
        // Whoever waits may have room now.
        self.wake_writer(id, &mut None);
        Ok(())
    }

    pub(super) fn read(
        &mut self,
        id: StreamId,
        max_len: usize,
        ordered: bool,
    ) -> Result<Option<Chunk>, ReadError> {
        let stream = self.table.get_mut(id).ok_or(ReadError::ClosedStream)?;
        let recv = stream.recv.as_mut().ok_or(ReadError::ClosedStream)?;
        self.window.set_window_limit(self.receive_budget.window_limit(self.windows.receive_max));
        let result = recv.read(max_len, ordered, &mut self.window);
        if let Err(ReadError::Blocked | ReadError::ClosedStream) = result {
            // Nothing was read.
            return result;
        }
        recv.recount_held(&mut self.receive_budget);
        match result {
            Ok(Some(_)) if stream.is_control_queued_rightly() => {}
            Ok(Some(_)) => self.sync(id),
            Ok(None) | Err(_) => self.drop_recv(id),
        }
        result
    }

    pub(super) fn stop(&mut self, id: StreamId, code: VarInt) -> Result<(), ClosedStream> {
        let recv = self.table.recv_mut(id).filter(|recv| !recv.is_stopped()).ok_or(ClosedStream)?;
        let ended = recv.stop(code, &mut self.window);
        recv.recount_held(&mut self.receive_budget);
        if ended {
            self.drop_recv(id);
        } else {
            self.sync(id);
        }
        Ok(())
    }
}
