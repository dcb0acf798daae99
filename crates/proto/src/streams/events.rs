//! What streams tell the application.

use std::collections::VecDeque;

use fulmar_wire::{Dir, StreamId, VarInt};

use super::limits::PerDir;

/// Something happened to a stream.
///
/// Events are edges: `Readable` and `Writable` come once after each time that the application was told to
/// wait, with [`ReadError::Blocked`](super::ReadError::Blocked) or
/// [`WriteError::Blocked`](super::WriteError::Blocked). A new stream counts as waiting for data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamEvent {
    /// The peer has opened streams of this direction: accept until there are no more.
    Opened {
        /// The direction.
        dir: Dir,
    },
    /// The peer allows more streams of this direction, after an attempt to open one has failed.
    Available {
        /// The direction.
        dir: Dir,
    },
    /// There is data, the end of the stream, or a reset to be read.
    Readable(StreamId),
    /// There is room to write.
    Writable(StreamId),
    /// The peer has acknowledged all data and the end of the stream.
    Finished(StreamId),
    /// The peer wants no more data on the stream, which was reset in answer (RFC 9000 §3.5).
    Stopped {
        /// The stream.
        id: StreamId,
        /// The code of the peer's application.
        code: VarInt,
    },
}

/// Events that wait to be polled.
///
/// There is at most one event of each kind for a direction or a stream: flags here and in the stream see to
/// that. A stream that ends leaves at most its last events behind, and ends only with the application's help,
/// so a peer alone cannot make the queue grow.
#[derive(Debug, Default)]
pub(super) struct Events {
    opened: PerDir<bool>,
    available: PerDir<bool>,
    queue: VecDeque<StreamEvent>,
}

impl Events {
    pub(super) fn set_opened(&mut self, dir: Dir) {
        self.opened[dir] = true;
    }

    pub(super) fn set_available(&mut self, dir: Dir) {
        self.available[dir] = true;
    }

    /// Adds an event that the stream has only one of.
    pub(super) fn push(&mut self, event: StreamEvent) {
        self.queue.push_back(event);
    }

    pub(super) fn rest(&mut self) {
        self.queue.shrink_to_fit();
    }

    pub(super) fn poll(&mut self) -> Option<StreamEvent> {
        for dir in [Dir::Bi, Dir::Uni] {
            if std::mem::take(&mut self.opened[dir]) {
                return Some(StreamEvent::Opened { dir });
            }
            if std::mem::take(&mut self.available[dir]) {
                return Some(StreamEvent::Available { dir });
            }
        }
        self.queue.pop_front()
    }
}
