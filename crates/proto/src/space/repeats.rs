//! Which packets without a verdict are to be repeated: by a probe, as copies where there is room, or over another tuple.

use super::NumberSpace;
use crate::ids::TupleId;
use crate::packet::{SentFrame, SentPacket};

impl NumberSpace {
    /// The packets that a probe should repeat: the oldest that elicit an ACK and that no probe repeats yet
    /// (RFC 9002 §6.2.4). From now on their probe answers for their frames.
    pub(crate) fn take_for_probe(&mut self) -> impl Iterator<Item = &SentPacket> {
        let repeatable = |packet: &SentPacket| packet.ack_eliciting && !packet.repeated;
        self.sent.iter_mut().map(|(_, packet)| packet).filter(move |packet| repeatable(packet)).map(
            |packet| {
                packet.repeated = true;
                &*packet
            },
        )
    }

    /// Whether [`NumberSpace::take_resent`] may find something.
    #[inline]
    pub(crate) fn has_resent(&self) -> bool {
        self.resends
    }

    /// What was sent again so far has all the copies that it needs.
    pub(crate) fn forget_resent(&mut self) {
        self.resends = false;
    }

    /// The packets that hold the newest of so many copies of data that was lost before, and need one more, like
    /// [`NumberSpace::take_for_probe`].
    pub(crate) fn take_resent(
        &mut self,
        copies: u8,
        needs: impl Fn(&SentPacket) -> bool,
    ) -> impl Iterator<Item = &SentPacket> {
        let sent = self.sent.iter_mut().map(|(_, packet)| packet);
        sent.filter(move |packet| packet.resends == copies && !packet.repeated && needs(packet)).map(
            |packet| {
                packet.repeated = true;
                &*packet
            },
        )
    }

    /// The packets with stream data that are the only copy of it and need one, like [`NumberSpace::take_for_probe`].
    pub(crate) fn take_uncopied(
        &mut self,
        needs: impl Fn(&SentPacket) -> bool,
    ) -> impl Iterator<Item = &SentPacket> {
        let any = std::mem::take(&mut self.uncopied);
        let sent = any.then(|| self.sent.iter_mut()).into_iter().flatten().map(|(_, packet)| packet);
        let has_data =
            |packet: &SentPacket| packet.frames.iter().any(|frame| matches!(frame, SentFrame::Stream { .. }));
        let is_only = move |packet: &SentPacket| !packet.copies && !packet.repeated && has_data(packet);
        sent.filter(move |packet| is_only(packet) && needs(packet)).map(|packet| {
            packet.repeated = true;
            &*packet
        })
    }

    /// The packets with stream data that are the only copy of it and wanted, by the packet and the bytes of those before it, oldest first,
    /// as many as `budget` bytes hold; like [`NumberSpace::take_for_probe`]. They are looked through when others were sent or
    /// lost since.
    pub(crate) fn take_slow(
        &mut self,
        budget: u64,
        wanted: impl Fn(&SentPacket, u64) -> bool,
        frames: &mut Vec<SentFrame>,
    ) {
        if !std::mem::take(&mut self.unseen) {
            return;
        }
        let mut taken = 0;
        for (_, packet) in self.sent.iter_mut() {
            if !packet.copies
                && !packet.repeated
                && wanted(packet, taken)
                && packet.frames.iter().any(|frame| matches!(frame, SentFrame::Stream { .. }))
            {
                taken += u64::from(packet.size);
                if taken > budget {
                    self.unseen = true;
                    return;
                }
                packet.repeated = true;
                frames.extend(packet.frames.iter().cloned());
            }
        }
    }

    /// The packets without a verdict that left over other tuples than this one, like
    /// [`NumberSpace::take_for_probe`].
    pub(crate) fn take_for_move(&mut self, tuple: TupleId) -> impl Iterator<Item = &SentPacket> {
        let repeatable =
            move |packet: &SentPacket| packet.ack_eliciting && !packet.repeated && packet.tuple != tuple;
        self.sent.iter_mut().map(|(_, packet)| packet).filter(move |packet| repeatable(packet)).map(
            |packet| {
                packet.repeated = true;
                &*packet
            },
        )
    }
}
