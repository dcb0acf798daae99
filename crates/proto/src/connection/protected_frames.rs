//! Forward erasure correction of what a packet carries: where the protected frames begin and end.

use fulmar_base::Instant;

use super::spare_capacity::path_figures;
use super::write_order::Writers;
use crate::ext::Upcoming;
use crate::packet::{FrameWriter, Protection};
use crate::path::Pending;

impl Writers<'_> {
    /// Lets forward erasure correction protect what follows. An unreliable datagram that would not fit then is not protected,
    /// as it cannot be cut.
    #[inline]
    pub(super) fn begin_symbol(&mut self, out: &mut FrameWriter<'_>) {
        if self.extensions.fec.is_none() {
            return;
        }
        let is_possible = self.handshake.is_complete() && !self.handshake.sends_zero_rtt();
        let leads = self.streams_lead();
        let datagram = self.datagrams.next_frame_len().filter(|_| !leads);
        let chosen = match datagram {
            Some(_) => self.datagrams.next_protection(),
            None => self.streams.next_protection(),
        };
        let next = self.upcoming(chosen, datagram);
        if let Some(sender) = self.extensions.fec_sender().filter(|_| is_possible) {
            sender.begin(next, out);
        }
    }

    /// What comes next, for forward erasure correction.
    fn upcoming(&mut self, chosen: Option<Protection>, datagram: Option<usize>) -> Upcoming {
        Upcoming {
            chosen,
            datagram,
            backlog: self.streams.next_backlog(),
            room: self.paths.datagram_room(),
            flight: self.paths.flight_to_come(),
        }
    }

    /// The data of streams follows, whose protection may be another one than that of what was written before.
    #[inline]
    pub(super) fn switch_symbol(&mut self, out: &mut FrameWriter<'_>) {
        if self.extensions.fec.is_none() {
            return;
        }
        let chosen = self.streams.next_protection();
        // Mostly nothing changes from one frame to the next.
        if !self.extensions.fec_sender().is_some_and(|sender| sender.switches(chosen, out)) {
            return;
        }
        let next = self.upcoming(chosen, None);
        if let Some(sender) = self.extensions.fec_sender() {
            sender.switch(next, out);
        }
    }

    #[inline]
    pub(super) fn end_symbol(&mut self, now: Instant, out: &mut FrameWriter<'_>) {
        if self.extensions.fec.is_none() {
            return;
        }
        let (path, figures) = (self.path().id, path_figures(&self.path().tuple));
        if let Some(sender) = self.extensions.fec_sender() {
            sender.end_symbol(now, path, out);
            // Whether there is nothing else to send is found out when others were asked.
            sender.schedule(now, false, &figures);
            if sender.has_repairs() {
                sender.take_path(self.paths.for_repairs(self.index, sender.repair_len_max()));
                self.paths.raise(Pending::FEC);
            }
        }
    }
}
