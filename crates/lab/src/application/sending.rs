//! One direction of a stream, at its source.

use bytes::Bytes;
use fulmar_base::Rng;
use fulmar_proto::{Connection, ResetAtError, StreamId, VarInt, WriteError};

use super::{CODES, Pace, pause};
use crate::Workload;
use crate::content::Content;
use crate::workload::draw;

/// What was sent on a stream, and what became of it.
#[derive(Debug)]
pub struct Sending {
    id: StreamId,
    /// What will be sent, if nothing comes between.
    size: u64,
    written: u64,
    /// So much of it is there to be sent.
    ready: u64,
    /// After so many bytes the stream is reset.
    reset_at: Option<u64>,
    /// Whether the connection gets buffers to keep, rather than slices to copy.
    by_chunk: bool,
    changes_priority: bool,
    end: SendingEnd,
    fate: SendingFate,
}

/// How the application ended its sending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendingEnd {
    /// It has not.
    Open,
    /// With the last byte.
    Finished,
    /// With a reset, maybe after it had finished.
    Reset {
        /// The error code.
        code: VarInt,
        /// Whether the end was written before.
        finished: bool,
        /// How many bytes the peer gets all the same.
        reliable_size: u64,
    },
}

/// What the connection told of the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendingFate {
    /// Nothing yet.
    Unknown,
    /// The peer's transport has everything.
    Acknowledged,
    /// The peer's application wants no more.
    Stopped(VarInt),
}

impl Sending {
    pub(super) fn new(id: StreamId, size: u64, workload: &Workload, rng: &mut Rng) -> Self {
        let reset_at = rng.chance(workload.reset).then(|| draw(&(0..=size), rng));
        Self {
            id,
            size,
            written: 0,
            ready: size,
            reset_at,
            by_chunk: rng.chance(0.5),
            changes_priority: rng.chance(workload.priority),
            end: SendingEnd::Open,
            fate: SendingFate::Unknown,
        }
    }

    /// A stream whose data comes into being piece by piece; there is none yet.
    pub(super) fn growing(id: StreamId, size: u64) -> Self {
        Self {
            id,
            size,
            written: 0,
            ready: 0,
            reset_at: None,
            by_chunk: true,
            changes_priority: false,
            end: SendingEnd::Open,
            fate: SendingFate::Unknown,
        }
    }

    /// More data has come into being. Returns the offset behind it.
    pub(super) fn grow(&mut self, bytes: u64) -> u64 {
        self.ready = (self.ready + bytes).min(self.size);
        self.ready
    }

    /// Bytes that the connection has taken.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// How the application ended its sending.
    pub fn end(&self) -> SendingEnd {
        self.end
    }

    /// What the connection told of the stream.
    pub fn fate(&self) -> SendingFate {
        self.fate
    }

    /// Whether nothing more will happen that this side would hear of.
    pub(super) fn is_over(&self) -> bool {
        match (self.end, self.fate) {
            (_, SendingFate::Acknowledged | SendingFate::Stopped(_)) | (SendingEnd::Reset { .. }, _) => true,
            (SendingEnd::Open | SendingEnd::Finished, SendingFate::Unknown) => false,
        }
    }

    /// Writes as much as the connection takes, or until it is time to rest; at the end, ends the stream.
    pub(super) fn write(
        &mut self,
        content: Content,
        connection: &mut Connection,
        workload: &Workload,
        rng: &mut Rng,
    ) -> Result<Pace, String> {
        if self.written == 0
            && self.end == SendingEnd::Open
            && self.fate == SendingFate::Unknown
            && let Some(protection) = workload.protection.get(self.id.index() as usize)
        {
            connection.streams().send(self.id).set_protection(*protection).map_err(|e| self.wrong(e))?;
        }
        while self.end == SendingEnd::Open && self.fate == SendingFate::Unknown {
            if self.changes_priority && rng.chance(0.5) {
                let priority = rng.below(5) as i32 - 2;
                connection.streams().send(self.id).set_priority(priority).map_err(|e| self.wrong(e))?;
            }
            if self.written == self.stop_writing_at() {
                self.finish_or_reset(connection, workload, rng)?;
                break;
            }
            if self.written == self.ready {
                break;
            }
            if !self.write_piece(content, connection, workload, rng)? {
                return Ok(Pace::Wait);
            }
            if let Some(pause) = pause(workload, rng) {
                return Ok(Pace::Rest(pause));
            }
        }
        Ok(Pace::Wait)
    }

    fn stop_writing_at(&self) -> u64 {
        self.reset_at.map_or(self.size, |at| at.min(self.size))
    }

    /// Returns false if the application has to wait.
    fn write_piece(
        &mut self,
        content: Content,
        connection: &mut Connection,
        workload: &Workload,
        rng: &mut Rng,
    ) -> Result<bool, String> {
        let len = draw(&workload.write_piece, rng)
            .max(1)
            .min(self.stop_writing_at().min(self.ready) - self.written);
        let mut piece = vec![0; len as usize];
        content.fill(self.written, &mut piece);
        let mut handle = connection.streams().send(self.id);
        let result = match self.by_chunk {
            true => handle.write_chunk(&mut Bytes::from(piece)),
            false => handle.write(&piece),
        };
        match result {
            Ok(taken) if taken == 0 || taken as u64 > len => {
                Err(format!("{taken} of {len} bytes were taken on stream {}", self.id))
            }
            Ok(taken) => {
                self.written += taken as u64;
                Ok(true)
            }
            Err(WriteError::Blocked) => Ok(false),
            // The event comes, or is on its way already.
            Err(WriteError::Stopped(_)) => Ok(false),
            Err(error @ WriteError::ClosedStream) => Err(self.wrong(error)),
        }
    }

    fn finish_or_reset(
        &mut self,
        connection: &mut Connection,
        workload: &Workload,
        rng: &mut Rng,
    ) -> Result<(), String> {
        let mut handle = connection.streams().send(self.id);
        let finishes = match self.reset_at {
            None => true,
            // A reset may come after the end was written, as long as it is not known to have arrived.
            Some(at) => at == self.size && rng.chance(0.5),
        };
        if finishes {
            handle.finish().map_err(|e| self.wrong(e))?;
            self.end = SendingEnd::Finished;
        }
        if self.reset_at.is_some() {
            let code = VarInt::saturating(rng.below(CODES));
            let leaves_some = self.written > 0 && workload.reset_at > 0.0 && rng.chance(workload.reset_at);
            let mut reliable_size = if leaves_some { 1 + rng.below(self.written) } else { 0 };
            let partial = match reliable_size {
                0 => Err(ResetAtError::UnsupportedByPeer),
                _ => handle.reset_at(code, reliable_size),
            };
            match partial {
                Ok(()) => {}
                Err(ResetAtError::UnsupportedByPeer) => {
                    reliable_size = 0;
                    handle.reset(code).map_err(|e| self.wrong(e))?;
                }
                Err(error) => return Err(self.wrong(error)),
            }
            self.end = SendingEnd::Reset { code, finished: finishes, reliable_size };
        }
        Ok(())
    }

    pub(super) fn on_finished(&mut self) -> Result<(), String> {
        let may_finish = match self.end {
            SendingEnd::Finished => true,
            SendingEnd::Reset { reliable_size, .. } => reliable_size > 0,
            SendingEnd::Open => false,
        };
        if !may_finish || self.fate != SendingFate::Unknown {
            return Err(format!("stream {} is told to be finished when it is {self:?}", self.id));
        }
        self.fate = SendingFate::Acknowledged;
        Ok(())
    }

    pub(super) fn on_stopped(&mut self, code: VarInt) -> Result<(), String> {
        if self.fate != SendingFate::Unknown {
            return Err(format!("stream {} is told to be stopped when it is {self:?}", self.id));
        }
        self.fate = SendingFate::Stopped(code);
        Ok(())
    }

    fn wrong(&self, error: impl std::fmt::Display) -> String {
        format!("stream {} refuses the application: {error}, in {self:?}", self.id)
    }
}
