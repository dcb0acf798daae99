//! Answers that handles give to connection attempts, and that their worker sends.

use std::collections::VecDeque;
use std::mem;

use fulmar_proto::Transmit;

/// Answers that wait for the worker. When full, an answer is lost: the peer will ask again.
const REPLIES_MAX: usize = 1_024;

/// The answers that wait, in the order in which they were given.
#[derive(Default)]
pub(crate) struct Replies {
    waiting: VecDeque<Reply>,
    /// The worker has taken some, and not sent all of them yet.
    are_being_sent: bool,
    /// There is no worker any more.
    is_closed: bool,
}

/// An answer, which fits a datagram.
pub(crate) struct Reply {
    pub(crate) transmit: Transmit,
    pub(crate) contents: Box<[u8]>,
}

impl Replies {
    /// Adds an answer whose bytes are `contents`.
    pub(crate) fn push(&mut self, transmit: Transmit, contents: &[u8]) {
        if self.waiting.len() < REPLIES_MAX && !self.is_closed {
            self.waiting.push_back(Reply { transmit, contents: contents[..transmit.len].into() });
        }
    }

    /// Takes all of them, to be sent.
    pub(crate) fn take(&mut self) -> VecDeque<Reply> {
        self.are_being_sent = !self.waiting.is_empty();
        mem::take(&mut self.waiting)
    }

    /// What was taken was sent.
    pub(crate) fn on_sent(&mut self) {
        self.are_being_sent = false;
    }

    /// Whether all were sent.
    pub(crate) fn are_sent(&self) -> bool {
        self.waiting.is_empty() && !self.are_being_sent
    }

    /// Nobody sends any more.
    pub(crate) fn close(&mut self) {
        *self = Self { is_closed: true, ..Self::default() };
    }
}

#[cfg(test)]
mod tests {
    use fulmar_proto::{Ecn, FourTuple};

    use super::*;

    #[test]
    fn answers_leave_in_order_and_those_that_find_no_room_are_lost() {
        let addrs = FourTuple::new(([127, 0, 0, 1], 1).into(), None);
        let transmit = Transmit { addrs, ecn: Ecn::NotEct, len: 4, segment_size: None };
        let mut replies = Replies::default();
        for number in 0..2 * REPLIES_MAX as u32 {
            replies.push(transmit, &number.to_be_bytes());
        }
        let taken = replies.take();
        assert_eq!(taken.len(), REPLIES_MAX);
        for (number, reply) in (0_u32..).zip(&taken) {
            assert_eq!(reply.contents[..], number.to_be_bytes());
        }
        assert!(!replies.are_sent());
        replies.on_sent();
        assert!(replies.are_sent() && replies.take().is_empty());
        replies.close();
        replies.push(transmit, &[0; 4]);
        assert!(replies.are_sent());
    }
}
