//! One direction of a stream, at its end.

use fulmar_base::{Instant, RangeSet, Rng};
use fulmar_proto::{Chunk, Connection, ReadError, StreamId, VarInt};

use super::{CODES, Pace, pause};
use crate::Workload;
use crate::content::Content;
use crate::workload::draw;

/// Streams that will be stopped are stopped after at most so many bytes.
const STOP_AFTER_MAX: u64 = 1 << 16;

/// What was received on a stream.
#[derive(Debug)]
pub struct Receiving {
    id: StreamId,
    /// The offsets that were read.
    read: RangeSet,
    bytes: u64,
    unordered: bool,
    /// After so many bytes the stream is stopped.
    stop_after: Option<u64>,
    end: ReceivingEnd,
    /// The last chunk has told that nothing comes after it.
    is_complete: bool,
    /// How far the application had read, and since when; nothing if it keeps no record.
    progress: Vec<(u64, Instant)>,
}

/// How a stream ended for its receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReceivingEnd {
    /// It has not.
    Open,
    /// Everything was read.
    Finished,
    /// The peer has reset it.
    Reset(VarInt),
    /// The application wanted no more.
    Stopped(VarInt),
}

impl Receiving {
    pub(super) fn new(id: StreamId, workload: &Workload, rng: &mut Rng) -> Self {
        let stop_after = rng.chance(workload.stop).then(|| draw(&(0..=STOP_AFTER_MAX), rng));
        let unordered = rng.chance(workload.unordered);
        Self {
            id,
            read: RangeSet::new(),
            bytes: 0,
            unordered,
            stop_after,
            end: ReceivingEnd::Open,
            is_complete: false,
            progress: Vec::new(),
        }
    }

    /// Bytes that were read.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// How many bytes from the beginning on were read without a gap.
    pub fn read_from_start(&self) -> u64 {
        self.read.first().filter(|range| range.start == 0).map_or(0, |range| range.end)
    }

    /// The offset after the last byte that was read.
    pub fn read_end(&self) -> u64 {
        self.read.max().map_or(0, |last| last + 1)
    }

    /// When everything before `offset` had been read; `None` if it was not, or if no times are kept.
    pub fn read_at(&self, offset: u64) -> Option<Instant> {
        let index = self.progress.partition_point(|(read, _)| *read < offset);
        self.progress.get(index).map(|(_, at)| *at)
    }

    pub(super) fn note_time(&mut self, now: Instant) {
        let read = self.read_from_start();
        if self.progress.last().is_none_or(|(before, _)| *before < read) {
            self.progress.push((read, now));
        }
    }

    /// How the stream ended.
    pub fn end(&self) -> ReceivingEnd {
        self.end
    }

    pub(super) fn is_over(&self) -> bool {
        self.end != ReceivingEnd::Open
    }

    /// Reads until there is nothing more now, or until it is time to rest.
    pub(super) fn read(
        &mut self,
        content: Content,
        connection: &mut Connection,
        workload: &Workload,
        rng: &mut Rng,
    ) -> Result<Pace, String> {
        while self.end == ReceivingEnd::Open {
            let mut handle = connection.streams().recv(self.id);
            if self.stop_after.is_some_and(|after| self.bytes >= after) {
                let code = VarInt::saturating(rng.below(CODES));
                handle
                    .stop(code)
                    .map_err(|error| format!("stream {} cannot be stopped: {error}", self.id))?;
                self.end = ReceivingEnd::Stopped(code);
                break;
            }
            let len = draw(&workload.read_piece, rng).max(1);
            // An application may change its mind.
            let ordered = !self.unordered || rng.chance(0.1);
            match handle.read(len as usize, ordered) {
                Err(ReadError::Blocked | ReadError::Reset(_)) if self.is_complete => {
                    return Err(format!("stream {} has told its end, and does not end", self.id));
                }
                Ok(Some(chunk)) => self.on_chunk(&chunk, len, ordered, content)?,
                Ok(None) => self.end = ReceivingEnd::Finished,
                Err(ReadError::Reset(code)) => self.end = ReceivingEnd::Reset(code),
                Err(ReadError::Blocked) => return Ok(Pace::Wait),
                Err(error @ ReadError::ClosedStream) => {
                    return Err(format!("stream {} cannot be read: {error}", self.id));
                }
            }
            if let Some(pause) = pause(workload, rng) {
                return Ok(Pace::Rest(pause));
            }
        }
        Ok(Pace::Wait)
    }

    fn on_chunk(&mut self, chunk: &Chunk, len: u64, ordered: bool, content: Content) -> Result<(), String> {
        let (id, start, end) = (self.id, chunk.offset, chunk.offset + chunk.bytes.len() as u64);
        if chunk.bytes.is_empty() || chunk.bytes.len() as u64 > len {
            return Err(format!("stream {id} gave {} bytes when asked for {len}", chunk.bytes.len()));
        }
        if self.is_complete {
            return Err(format!("stream {id} gave {start}..{end} after it had told its end"));
        }
        self.is_complete = chunk.fin;
        // Ordered reading continues at the first byte that was not read.
        let first_unread = self.read_from_start();
        if ordered && start != first_unread {
            return Err(format!("stream {id} gave offset {start} when {first_unread} was next"));
        }
        if let Some(twice) = self.read.iter().find(|range| range.start < end && start < range.end) {
            return Err(format!("stream {id} gave {start}..{end} after it had given {twice:?}"));
        }
        self.read.insert(start..end);
        self.bytes += end - start;
        match content.first_difference(start, &chunk.bytes) {
            None => Ok(()),
            Some(offset) => Err(format!("stream {id} gave a wrong byte at offset {offset}")),
        }
    }
}
