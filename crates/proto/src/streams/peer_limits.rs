//! What the peer allows: from when its transport parameters are known, and anew where it did not take early data.

use fulmar_wire::{Dir, Side, StreamId, VarInt};

use super::Streams;
use super::config::InitialLimits;
use super::flow::SendCredit;
use super::send::SendHalf;

impl Streams {
    /// The peer's limits are known, from its transport parameters. Called again, limits only grow.
    pub(crate) fn apply_peer_limits(&mut self, limits: &InitialLimits) {
        self.peer = *limits;
        let mut raised = Vec::new();
        for (id, stream) in self.table.iter_mut() {
            let limit = send_limit(self.side, limits, id);
            if stream.send.as_mut().is_some_and(|send| send.raise_limit(limit)) {
                raised.push(id);
            }
        }
        self.credit.raise(limits.max_data);
        let mut held = None;
        for id in raised {
            self.wake_writer(id, &mut held);
            self.sync(id);
        }
        self.raise_stream_limit(Dir::Bi, limits.max_streams_bidi);
        self.raise_stream_limit(Dir::Uni, limits.max_streams_uni);
    }

    /// The peer has nothing of what was sent, and its limits are these, which may be lower than those that were known:
    /// early data was not taken. Everything is sent anew; what is beyond a limit waits.
    pub(crate) fn restart(&mut self, limits: &InitialLimits) {
        self.peer = *limits;
        self.credit = SendCredit::new(limits.max_data);
        for (dir, limit) in [(Dir::Bi, limits.max_streams_bidi), (Dir::Uni, limits.max_streams_uni)] {
            if self.outgoing[dir].restart(limit) {
                self.events.set_available(dir);
            }
        }
        let mut restarted = Vec::new();
        for (id, stream) in self.table.iter_mut() {
            if let Some(send) = &mut stream.send {
                // Whoever takes no RESET_STREAM_AT gets the whole reset.
                let is_lost = send.is_partially_reset() && !limits.reset_stream_at;
                let released = if is_lost { send.reset(VarInt::ZERO) } else { 0 };
                send.restart(send_limit(self.side, limits, id));
                restarted.push((id, released));
            }
        }
        self.unsent = self.table.sending().map(SendHalf::unsent).sum();
        self.lost_bytes = 0;
        for (id, released) in restarted {
            self.budget.release(released);
            self.wake_writer(id, &mut None);
            self.sync(id);
        }
    }

    pub(super) fn raise_stream_limit(&mut self, dir: Dir, limit: u64) {
        let held_back = self.outgoing[dir].ahead();
        if self.outgoing[dir].raise(limit) {
            self.events.set_available(dir);
        }
        let still = self.outgoing[dir].ahead();
        for index in held_back.start..still.start.min(held_back.end) {
            self.sync(StreamId::new(self.side, dir, index));
        }
    }
}

/// What a peer with these limits allows at first on a stream.
pub(super) fn send_limit(side: Side, peer: &InitialLimits, id: StreamId) -> u64 {
    match (id.dir(), id.initiator() == side) {
        (Dir::Bi, true) => peer.max_stream_data_bidi_remote,
        (Dir::Bi, false) => peer.max_stream_data_bidi_local,
        (Dir::Uni, _) => peer.max_stream_data_uni,
    }
}
