//! Answers to the peer's path challenges (RFC 9000 §8.2.2).

use std::collections::VecDeque;

use fulmar_wire::{Frame, PathResponse};

use crate::packed::packed;
use crate::packet::FrameWriter;

/// How many challenges wait for their answer; when full, the oldest is forgotten. The peer repeats a challenge
/// that matters, and a flood of them costs nothing.
const RESPONSES_MAX: usize = 4;

/// The challenges that have to be answered on the tuple they came from.
#[derive(Debug, Default)]
pub(crate) struct PathResponses {
    pending: VecDeque<[u8; 8]>,
}

packed!(PathResponses { pending });

impl PathResponses {
    /// A challenge arrived.
    pub(crate) fn on_challenge(&mut self, data: [u8; 8]) {
        if self.pending.len() == RESPONSES_MAX {
            self.pending.pop_front();
        }
        self.pending.push_back(data);
    }

    pub(crate) fn rest(&mut self) {
        self.pending.shrink_to_fit();
    }

    pub(crate) fn wants_to_send(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Writes the answers. They are never repeated (RFC 9000 §13.3): the peer asks again.
    pub(crate) fn write(&mut self, out: &mut FrameWriter<'_>) {
        while let Some(&data) = self.pending.front() {
            if !out.write_untracked(&Frame::PathResponse(PathResponse { data })) {
                return;
            }
            self.pending.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use fulmar_wire::Dialect;

    use super::*;

    #[test]
    fn of_many_challenges_the_newest_are_answered() {
        let mut responses = PathResponses::default();
        for n in 0..100 {
            responses.on_challenge([n; 8]);
        }
        let mut payload = [0; 1_000];
        let mut out = FrameWriter::new(&mut payload, Dialect::SinglePath);
        responses.write(&mut out);
        assert_eq!(out.finish().len, RESPONSES_MAX * 9);
        assert!(payload.windows(8).any(|bytes| bytes == [99; 8]) && !responses.wants_to_send());
    }
}
