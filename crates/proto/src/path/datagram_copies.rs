//! Copies of datagrams that have left on one path, and leave on others, too.

use std::collections::VecDeque;

use bytes::Bytes;
use fulmar_base::Instant;
use fulmar_wire::{Datagram, Frame, PathId};

use crate::packet::FrameWriter;

/// How many copies wait for their paths. A copy is of use if it leaves about when the original does: when there are more,
/// the oldest is forgotten.
const COPIES_MAX: usize = 64;

/// The copies, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct DatagramCopies(VecDeque<Waiting>);

#[derive(Debug)]
struct Waiting {
    path: PathId,
    data: Bytes,
    deadline: Option<Instant>,
}

impl DatagramCopies {
    /// Whether there are any for a path.
    #[inline]
    pub(crate) fn are_for(&self, path: PathId) -> bool {
        self.0.iter().any(|waiting| waiting.path == path)
    }

    /// Adds one for each of some paths.
    pub(crate) fn add(&mut self, data: &Bytes, deadline: Option<Instant>, paths: &[PathId]) {
        for path in paths {
            if self.0.len() >= COPIES_MAX {
                self.0.pop_front();
            }
            self.0.push_back(Waiting { path: *path, data: data.clone(), deadline });
        }
    }

    pub(crate) fn forget(&mut self, path: PathId) {
        self.0.retain(|waiting| waiting.path != path);
    }

    /// Writes those for a path that fit. Forgets those that are late, or do not fit an empty packet of the path, which has room
    /// for `payload` bytes.
    pub(crate) fn write(&mut self, now: Instant, path: PathId, out: &mut FrameWriter<'_>, payload: usize) {
        self.0.retain(|waiting| {
            let is_late = waiting.deadline.is_some_and(|deadline| deadline <= now);
            if is_late || waiting.path != path {
                return !is_late;
            }
            let datagram = Datagram { data: &waiting.data };
            datagram.encoded_len() <= payload && !out.write_untracked(&Frame::Datagram(datagram))
        });
    }
}
