//! Which streams have state.

use fulmar_base::{HashKey, IdMap, Rng};
use fulmar_wire::{
    Frame, MaxStreamData, ResetStream, ResetStreamAt, StopSending, StreamDataBlocked, StreamId, VarInt,
};

use super::recv::RecvHalf;
use super::send::{Reset, SendHalf};
use crate::packet::{FrameWriter, SentFrame};

/// A stream: its halves, as far as they exist and have not ended.
#[derive(Debug)]
pub(super) struct Stream {
    id: StreamId,
    pub(super) send: Option<SendHalf>,
    pub(super) recv: Option<RecvHalf>,
    /// The code with which the peer has stopped the sending half, which may have ended since.
    pub(super) stopped: Option<VarInt>,
    /// Whether the stream is in the queue of those with frames other than STREAM to write.
    pub(super) queued_control: bool,
    /// Whether a `Readable` event waits to be polled.
    pub(super) queued_readable: bool,
    /// Whether a `Writable` event waits to be polled.
    pub(super) queued_writable: bool,
}

impl Stream {
    pub(super) fn new(id: StreamId, send: Option<SendHalf>, recv: Option<RecvHalf>) -> Self {
        Self {
            id,
            send,
            recv,
            stopped: None,
            queued_control: false,
            queued_readable: false,
            queued_writable: false,
        }
    }

    /// Whether a frame other than STREAM waits to be written.
    pub(super) fn has_control(&self) -> bool {
        self.send.as_ref().is_some_and(SendHalf::has_control)
            || self.recv.as_ref().is_some_and(RecvHalf::has_control)
    }

    /// Whether it is in the queue of streams with control frames exactly if it has one.
    pub(super) fn is_control_queued_rightly(&self) -> bool {
        self.has_control() == self.queued_control
    }

    /// Whether it is in the queue of any who have something to write.
    pub(super) fn is_queued(&self) -> bool {
        let send = self.send.as_ref();
        self.queued_control || send.is_some_and(|send| send.queued_lost || send.queued_fresh)
    }

    /// Whether both halves have ended.
    pub(super) fn is_over(&self) -> bool {
        self.send.is_none() && self.recv.is_none()
    }

    /// Writes the frames other than STREAM. Returns false if the packet is full before they are all written.
    pub(super) fn write_control(&mut self, out: &mut FrameWriter<'_>) -> bool {
        let id = self.id;
        self.send.as_mut().is_none_or(|send| write_send_control(id, send, out))
            && self.recv.as_mut().is_none_or(|recv| write_recv_control(id, recv, out))
    }
}

fn write_send_control(id: StreamId, send: &mut SendHalf, out: &mut FrameWriter<'_>) -> bool {
    if let Some(Reset { code: error_code, final_size, reliable_size }) = send.reset_frame().pending() {
        let final_size = VarInt::saturating(final_size);
        let (frame, token) = match reliable_size {
            0 => (Frame::ResetStream(ResetStream { id, error_code, final_size }), SentFrame::ResetStream(id)),
            _ => (
                Frame::ResetStreamAt(ResetStreamAt {
                    id,
                    error_code,
                    final_size,
                    reliable_size: VarInt::saturating(reliable_size),
                }),
                SentFrame::ResetStreamAt { id, reliable_size },
            ),
        };
        if !out.write(&frame, token) {
            return false;
        }
        send.reset_frame().on_written();
    }
    if let Some(limit) = send.blocked_frame().pending() {
        let frame = Frame::StreamDataBlocked(StreamDataBlocked { id, limit: VarInt::saturating(limit) });
        if !out.write(&frame, SentFrame::StreamDataBlocked(id)) {
            return false;
        }
        send.blocked_frame().on_written();
    }
    true
}

fn write_recv_control(id: StreamId, recv: &mut RecvHalf, out: &mut FrameWriter<'_>) -> bool {
    if let Some(error_code) = recv.stop_frame().pending() {
        if !out.write(&Frame::StopSending(StopSending { id, error_code }), SentFrame::StopSending(id)) {
            return false;
        }
        recv.stop_frame().on_written();
    }
    if let Some(limit) = recv.limit_frame().pending() {
        let frame = Frame::MaxStreamData(MaxStreamData { id, maximum: VarInt::saturating(limit) });
        if !out.write(&frame, SentFrame::MaxStreamData(id)) {
            return false;
        }
        recv.limit_frame().on_written();
    }
    true
}

/// The streams that have state, by ID.
///
/// They lie in the slots of one array, which are used again, so that opening a stream allocates nothing once there have been as
/// many at a time. A stream is large, so it is not moved out of its slot when it is over: what takes the slot replaces it.
/// Limit: the array has as many slots as there ever were streams at a time, which the
/// limits of both ends for concurrent streams bound. When no stream is left, at most [`SPARE_MAX`] times as many are kept as
/// there were since that was so before.
///
/// IDs become sparse when one stream outlives thousands of others, hence a map from ID to slot. Frames for the same
/// stream come in rows, hence the guess: the slot where the last stream was found.
#[derive(Debug)]
pub(super) struct Table {
    slots: Vec<Stream>,
    /// Slots whose streams are over. The last one is taken next.
    free: Vec<u32>,
    by_id: IdMap,
    /// Never a free slot.
    guess: u32,
    /// The most streams since there were none.
    peak: u32,
}

/// See [`Table`].
const SPARE_MAX: usize = 4;

/// The guess while there is none.
const NO_SLOT: u32 = u32::MAX;

impl Table {
    pub(super) fn new(rng: &mut Rng) -> Self {
        let by_id = IdMap::new(HashKey::new(rng));
        Self { slots: Vec::new(), free: Vec::new(), by_id, guess: NO_SLOT, peak: 0 }
    }

    /// The number of streams.
    pub(super) fn len(&self) -> usize {
        self.by_id.len()
    }

    #[inline]
    pub(super) fn get_mut(&mut self, id: StreamId) -> Option<&mut Stream> {
        match self.contains(id) {
            true => self.slots.get_mut(self.guess as usize),
            false => None,
        }
    }

    /// The sending half of a stream.
    pub(super) fn send_mut(&mut self, id: StreamId) -> Option<&mut SendHalf> {
        self.get_mut(id)?.send.as_mut()
    }

    /// The receiving half of a stream.
    pub(super) fn recv_mut(&mut self, id: StreamId) -> Option<&mut RecvHalf> {
        self.get_mut(id)?.recv.as_mut()
    }

    /// Whether there is such a stream. If so, the guess is right from now on.
    #[inline]
    pub(super) fn contains(&mut self, id: StreamId) -> bool {
        self.slots.get(self.guess as usize).is_some_and(|stream| stream.id == id) || self.look_up(id)
    }

    fn look_up(&mut self, id: StreamId) -> bool {
        let found = self.by_id.get(id.as_u64());
        self.guess = found.map_or(self.guess, |slot| slot as u32);
        found.is_some()
    }

    /// Adds a stream whose ID is new.
    #[inline]
    pub(super) fn insert(&mut self, stream: Stream) {
        let id = stream.id;
        let slot = match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = stream;
                slot
            }
            None => self.push(stream),
        };
        self.by_id.insert(id.as_u64(), slot as usize);
        self.peak = self.peak.max(self.len() as u32);
        self.guess = slot;
    }

    fn push(&mut self, stream: Stream) -> u32 {
        if self.slots.len() == self.slots.capacity() {
            // A stream is large: a connection that has one at a time has room for one.
            self.slots.reserve_exact(self.slots.len().max(1));
        }
        self.slots.push(stream);
        u32::try_from(self.slots.len() - 1).expect("fewer than 2^32 streams")
    }

    /// Forgets a stream that is over.
    pub(super) fn remove(&mut self, id: StreamId) {
        if let Some(slot) = self.by_id.remove(id.as_u64()) {
            debug_assert!(self.slots[slot].is_over(), "it holds nothing any more");
            self.free.push(slot as u32);
            self.guess = NO_SLOT;
            if self.by_id.is_empty() {
                self.on_empty();
            }
        }
    }

    /// Keeps no slot beyond those of the streams that there are, unless they lie behind others that are free.
    pub(super) fn rest(&mut self) {
        if self.by_id.is_empty() {
            self.clear(0);
        }
        let len = self.slots.iter().rposition(|stream| !stream.is_over()).map_or(0, |last| last + 1);
        if len < self.slots.len() {
            self.slots.truncate(len);
            self.free.retain(|slot| (*slot as usize) < len);
            // The first ones are taken next, so that the last ones can be given back later.
            self.free.sort_unstable_by(|a, b| b.cmp(a));
        }
        self.slots.shrink_to_fit();
        self.free.shrink_to_fit();
    }

    fn on_empty(&mut self) {
        if self.slots.capacity() > SPARE_MAX * self.peak as usize {
            self.clear(self.peak as usize);
        }
        self.peak = 0;
    }

    /// Gives the memory of all slots back, and keeps room for so many streams. There is none now.
    fn clear(&mut self, capacity: usize) {
        self.slots = Vec::with_capacity(capacity);
        self.free = Vec::new();
        self.by_id.clear();
    }

    /// The sending halves, in the order of [`iter_mut`](Self::iter_mut).
    pub(super) fn sending(&self) -> impl Iterator<Item = &SendHalf> {
        self.slots.iter().filter_map(|stream| stream.send.as_ref())
    }

    /// All streams, in an order that depends only on the order of insertions and removals.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (StreamId, &mut Stream)> {
        self.slots.iter_mut().filter(|stream| !stream.is_over()).map(|stream| (stream.id, stream))
    }
}

#[cfg(test)]
mod tests;
