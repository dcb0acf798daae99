//! The list of tokens and their owners: who hears what became of a frame.
//!
//! A new reliable frame is a line here; the compiler names it if it is missing.

use super::Connection;
use crate::ids::SpaceId;
use crate::packet::SentFrame;

/// What became of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// The peer has it.
    Acked,
    /// It is taken for lost: what it said is said again.
    Lost,
    /// It may still arrive, but a probe repeats what it said.
    Probed,
}

impl Connection {
    /// Hands the tokens of a packet back to the owners of its frames.
    pub(super) fn deliver(&mut self, space: SpaceId, frames: &[SentFrame], fate: Fate) {
        let acked = fate == Fate::Acked;
        for token in frames {
            match token {
                // A newer acknowledgement says the same and more, so a lost one is not repeated.
                SentFrame::Ack { largest } => {
                    if let Some(space) = self.space_mut(space).filter(|_| acked) {
                        space.on_ack_acked(*largest);
                    }
                }
                SentFrame::Crypto { offset, len } if acked => {
                    self.handshake.on_crypto_acked(space.level(), *offset, *len);
                }
                SentFrame::Crypto { offset, len } => {
                    self.handshake.on_crypto_lost(space.level(), *offset, *len);
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
                | SentFrame::StreamsBlocked(_) => match fate {
                    Fate::Acked => self.streams.on_acked(token),
                    Fate::Lost => self.streams.on_lost(token),
                    Fate::Probed => self.streams.on_probe(token),
                },
                SentFrame::NewConnectionId { sequence, .. } if acked => {
                    self.path.local_cids.on_acked(*sequence);
                }
                SentFrame::NewConnectionId { sequence, .. } => self.path.local_cids.on_lost(*sequence),
                SentFrame::RetireConnectionId { sequence, .. } if acked => {
                    self.path.remote_cids.on_acked(*sequence);
                }
                SentFrame::RetireConnectionId { sequence, .. } => self.path.remote_cids.on_lost(*sequence),
                SentFrame::HandshakeDone if acked => self.handshake.on_done_acked(),
                SentFrame::HandshakeDone => self.handshake.on_done_lost(),
                SentFrame::NewToken { number } if acked => self.address_tokens.on_acked(*number),
                SentFrame::NewToken { number } => self.address_tokens.on_lost(*number),
                SentFrame::AckFrequency { sequence } => {
                    if let Some(extension) = &mut self.ack_frequency {
                        match acked {
                            true => extension.on_acked(*sequence),
                            false => extension.on_lost(*sequence),
                        }
                    }
                }
                SentFrame::ObservedAddress { sequence } => {
                    for tuple in self.path.tuples_mut() {
                        tuple.observation.on_delivery(*sequence, acked);
                    }
                }
                // A PING has done what it could.
                SentFrame::Ping => {}
            }
        }
    }
}
