//! The tokens of the packets that one ACK acknowledges, with fewer of them to look up.

use std::ops::Deref;

use smallvec::SmallVec;

use super::SentFrame;

/// Tokens in the order in which their packets are acknowledged. Stream data that follows what came before it is joined
/// to it, so that the stream of a bulk transfer is looked up once for an ACK and not once for a packet.
///
/// Limit: the tokens of the packets in flight.
#[derive(Debug, Default)]
pub(crate) struct AckedFrames(SmallVec<[SentFrame; 4]>);

impl AckedFrames {
    /// Adds the tokens of a packet.
    pub(crate) fn extend(&mut self, frames: &[SentFrame]) {
        for frame in frames {
            if !self.0.last_mut().is_some_and(|last| join(last, frame)) {
                self.0.push(frame.clone());
            }
        }
    }
}

impl Deref for AckedFrames {
    type Target = [SentFrame];

    fn deref(&self) -> &[SentFrame] {
        &self.0
    }
}

/// Joins stream data to that before it; returns false if it does not follow it.
fn join(before: &mut SentFrame, next: &SentFrame) -> bool {
    let SentFrame::Stream { id, offset, len, fin } = before else { return false };
    match *next {
        SentFrame::Stream { id: next, offset: start, len: more, fin: ends }
            if next == *id && start == *offset + u64::from(*len) && !*fin =>
        {
            let Some(sum) = len.checked_add(more) else { return false };
            (*len, *fin) = (sum, ends);
            true
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use fulmar_wire::{Dir, Side, StreamId};

    use super::*;

    fn data(id: u64, offset: u64, len: u32, fin: bool) -> SentFrame {
        SentFrame::Stream { id: StreamId::new(Side::Client, Dir::Bi, id), offset, len, fin }
    }

    #[test]
    fn data_that_follows_is_joined_and_nothing_else_is() {
        let mut acked = AckedFrames::default();
        acked.extend(&[data(0, 0, 10, false)]);
        acked.extend(&[data(0, 10, 5, false), data(1, 15, 5, false)]);
        acked.extend(&[data(1, 20, 1, true), data(1, 21, 1, false)]);
        acked.extend(&[SentFrame::MaxData, data(1, 22, 1, false)]);
        acked.extend(&[data(1, 24, 1, false)]);
        let joined = [
            data(0, 0, 15, false),
            data(1, 15, 6, true),
            data(1, 21, 1, false),
            SentFrame::MaxData,
            data(1, 22, 1, false),
            data(1, 24, 1, false),
        ];
        assert_eq!(*acked, joined);
    }

    #[test]
    fn a_range_too_long_for_a_token_is_cut() {
        let mut acked = AckedFrames::default();
        acked.extend(&[data(0, 0, u32::MAX, false), data(0, u64::from(u32::MAX), 1, false)]);
        assert_eq!(acked.len(), 2);
    }
}
