//! The list of tokens and their owners: who hears what became of a frame.
//!
//! A new reliable frame is a line here; the compiler names it if it is missing.

use super::address_tokens::AddressTokens;
use super::extensions::Extensions;
use super::handshake::HandshakeState;
use super::write_order::Writers;
use crate::ext::Protected;
use crate::ids::SpaceId;
use crate::packet::SentFrame;
use crate::path::{Paths, Pending};
use crate::streams::Streams;

/// What became of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// The peer has it.
    Acked,
    /// It is taken for lost: what it said is said again.
    Lost,
    /// It may still arrive, but a probe repeats what it said.
    Probed,
    /// It is lost, but forward erasure correction may make it again: what it said is held back, and said again when its
    /// symbol is given up, with [`Fate::Lost`], or not at all, with [`Fate::Acked`].
    Held,
}

/// The owners of reliable frames, borrowed once.
pub(super) struct Owners<'c> {
    pub(super) handshake: &'c mut HandshakeState,
    pub(super) paths: &'c mut Paths,
    pub(super) tokens: &'c mut AddressTokens,
    pub(super) extensions: &'c mut Extensions,
    pub(super) streams: &'c mut Streams,
}

impl<'c> Owners<'c> {
    /// Those among the writers of a packet.
    pub(super) fn of(writers: &'c mut Writers<'_>) -> Self {
        Self {
            handshake: writers.handshake,
            paths: writers.paths,
            tokens: writers.tokens,
            extensions: writers.extensions,
            streams: writers.streams,
        }
    }

    /// Hands the tokens of a packet of `space` back to the owners of its frames.
    pub(super) fn deliver(&mut self, space: SpaceId, frames: &[SentFrame], fate: Fate) {
        if fate == Fate::Held {
            // Their owners go on waiting.
            return;
        }
        for token in frames {
            let bits = self.deliver_one(space, token, fate);
            self.paths.raise(bits);
        }
    }

    /// A packet is lost whose frames were repeated before: of them, nothing was said again of repair symbols.
    pub(super) fn lose_repeated(&mut self, space: SpaceId, frames: &[SentFrame]) {
        for token in frames.iter().filter(|token| matches!(token, SentFrame::FecRepair { .. })) {
            let bits = self.deliver_one(space, token, Fate::Lost);
            self.paths.raise(bits);
        }
    }

    /// The peer has the frames of a packet that was taken for lost. What was sent again meanwhile need not be sent once more.
    pub(super) fn deliver_spurious(&mut self, space: SpaceId, frames: &[SentFrame]) {
        for token in frames {
            let bits = match token {
                // Its verdict is corrected, as what has it counts on one for each.
                SentFrame::FecRepair { first, count } => {
                    if let Some(sender) = self.extensions.fec_sender() {
                        sender.on_repair_spurious(*first, *count);
                    }
                    Pending::FEC
                }
                _ => self.deliver_one(space, token, Fate::Acked),
            };
            self.paths.raise(bits);
        }
    }

    /// The peer has these frames, although their packets are lost.
    pub(super) fn deliver_recovered(&mut self, recovered: Vec<Protected>) {
        for (path, frames) in recovered {
            self.deliver(SpaceId::Data(path), &frames, Fate::Acked);
        }
    }

    /// Says again what forward erasure correction has given up.
    pub(super) fn resend(&mut self, released: &[Protected]) {
        for (path, frames) in released {
            self.deliver(SpaceId::Data(*path), frames, Fate::Lost);
        }
    }

    /// Returns who may have something to send now.
    fn deliver_one(&mut self, space: SpaceId, token: &SentFrame, fate: Fate) -> Pending {
        let acked = fate == Fate::Acked;
        match token {
            // A newer acknowledgement says the same and more, so a lost one is not repeated.
            SentFrame::Ack { path, largest } => {
                let acknowledged = match space {
                    SpaceId::Data(_) => self.paths.get_mut(*path).map(|path| &mut path.space),
                    _ => self.handshake.spaces.get_mut(space),
                };
                if let Some(space) = acknowledged.filter(|_| acked) {
                    space.on_ack_acked(*largest);
                }
                Pending::NONE
            }
            SentFrame::Crypto { offset, len } => {
                let tls = &mut self.handshake.tls;
                match acked {
                    true => tls.crypto.on_acked(space.level(), *offset, *len),
                    false => tls.crypto.on_lost(space.level(), *offset, *len),
                }
                Pending::HANDSHAKE
            }
            SentFrame::Stream { .. }
            | SentFrame::ResetStream(_)
            | SentFrame::ResetStreamAt { .. }
            | SentFrame::StopSending(_)
            | SentFrame::MaxData
            | SentFrame::MaxStreamData(_)
            | SentFrame::MaxStreams(_)
            | SentFrame::DataBlocked
            | SentFrame::StreamDataBlocked(_)
            | SentFrame::StreamsBlocked(_) => {
                if !acked && let Some(multipath) = &mut self.paths.multipath {
                    // What waits now is not only what was queued for one of the paths.
                    multipath.repeats_on = None;
                }
                match fate {
                    Fate::Acked => self.streams.on_acked(token),
                    Fate::Lost | Fate::Held => self.streams.on_lost(token),
                    Fate::Probed => self.streams.on_probe(token),
                }
                Pending::STREAMS
            }
            SentFrame::NewConnectionId { path, sequence } => {
                match self.paths.local_cids_mut(*path) {
                    Some(cids) if acked => cids.on_acked(*sequence),
                    Some(cids) => cids.on_lost(*sequence),
                    None => {}
                }
                Pending::LOCAL_CIDS.with(Pending::MULTIPATH)
            }
            SentFrame::RetireConnectionId { path, sequence } => {
                match self.paths.remote_cids_mut(*path) {
                    Some(cids) if acked => cids.on_acked(*sequence),
                    Some(cids) => cids.on_lost(*sequence),
                    None => {}
                }
                Pending::REMOTE_CIDS.with(Pending::MULTIPATH)
            }
            SentFrame::PathAbandon(_) | SentFrame::PathStatus(_) | SentFrame::MaxPathId => {
                if let Some(multipath) = &mut self.paths.multipath {
                    multipath.on_delivery(token, acked);
                }
                Pending::MULTIPATH
            }
            SentFrame::HandshakeDone => {
                match acked {
                    true => self.handshake.tls.on_done_acked(),
                    false => self.handshake.tls.on_done_lost(),
                }
                Pending::HANDSHAKE
            }
            SentFrame::NewToken { number } => {
                match acked {
                    true => self.tokens.on_acked(*number),
                    false => self.tokens.on_lost(*number),
                }
                Pending::TOKENS
            }
            SentFrame::AckFrequency { sequence } => {
                match &mut self.extensions.ack_frequency {
                    Some(extension) if acked => extension.on_acked(*sequence),
                    Some(extension) => extension.on_lost(*sequence),
                    None => {}
                }
                Pending::DATA
            }
            SentFrame::ObservedAddress { path, sequence } => {
                for tuple in self.paths.get_mut(*path).into_iter().flat_map(|path| path.tuples_mut()) {
                    tuple.observation.on_delivery(*sequence, acked);
                }
                Pending::ADDRESS
            }
            SentFrame::FecRepair { first, count } => {
                if let Some(sender) = self.extensions.fec_sender().filter(|_| fate != Fate::Probed) {
                    sender.on_repair_delivery(*first, *count, acked);
                }
                Pending::FEC
            }
            SentFrame::FecRecovered(report) => {
                if let Some(fec) = self.extensions.fec.as_mut().filter(|_| !acked) {
                    fec.on_report_lost(*report);
                }
                Pending::FEC
            }
            // A PING has done what it could.
            SentFrame::Ping => Pending::NONE,
        }
    }
}
