//! Packets that mean nothing any more: what was sent in a space is taken out of flight, and the space is discarded.

use fulmar_base::Instant;
use fulmar_wire::PacketKind;

use super::delivery::Owners;
use super::handshake::HandshakeState;
use super::recovery::{Recovery, space_and_tuples};
use crate::ids::SpaceId;
use crate::log::{ConnectionLog, LogEvent};
use crate::packet::SentFrames;
use crate::path::{Path, Tuple};
use crate::space::NumberSpace;

impl Recovery<'_> {
    /// Takes all packets of a space out of flight, because a Retry or a rejection made them void. Returns the tokens of
    /// their frames.
    pub(super) fn forget_sent(&mut self, space: SpaceId) -> Vec<SentFrames> {
        space_and_tuples(self.owners.paths, self.owners.handshake, space)
            .map(|(numbers, tuples)| forget_sent(numbers, tuples.used))
            .unwrap_or_default()
    }

    /// The peer's keys of a handshake level are not needed any more (RFC 9001 §4.9).
    pub(super) fn discard_space(&mut self, space: SpaceId) {
        let Owners { handshake, paths, .. } = &mut self.owners;
        discard_space(self.now, space, handshake, paths.primary_mut(), self.log.as_deref_mut());
    }
}

fn forget_sent(numbers: &mut NumberSpace, tuple: &mut Tuple) -> Vec<SentFrames> {
    let mut frames = Vec::new();
    for (_, packet) in numbers.discard() {
        if packet.in_flight && packet.tuple == tuple.id {
            tuple.congestion.packet_discarded(&packet.for_congestion());
        }
        frames.push(packet.frames);
    }
    frames
}

/// See [`Recovery::discard_space`]. `path` is the one of the handshake.
pub(super) fn discard_space(
    now: Instant,
    space: SpaceId,
    handshake: &mut HandshakeState,
    path: &mut Path,
    log: Option<&mut ConnectionLog>,
) {
    if !handshake.discard_keys(space) {
        return;
    }
    if let Some(numbers) = handshake.spaces.get_mut(space) {
        forget_sent(numbers, &mut path.tuple);
    }
    handshake.spaces.discard(space);
    if let Some(log) = log {
        let kind = if space == SpaceId::Initial { PacketKind::Initial } else { PacketKind::Handshake };
        log.push(now, LogEvent::KeysDiscarded(kind));
    }
    // RFC 9002 §6.2.2: the timeout starts anew.
    path.pto.restart(now);
}
