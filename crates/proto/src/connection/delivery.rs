//! The list of tokens and their owners: who hears that a frame was acknowledged or lost.
//!
//! A new reliable frame is a line in each of the three lists.

use super::Connection;
use super::spaces::SpaceId;
use crate::packet::SentFrame;

impl Connection {
    /// The frames of an acknowledged packet.
    pub(super) fn deliver_acked(&mut self, space: SpaceId, frames: &[SentFrame]) {
        for token in frames {
            match token {
                SentFrame::Ack { largest } => {
                    if let Some(space) = self.space_mut(space) {
                        space.on_ack_acked(*largest);
                    }
                }
                SentFrame::Crypto { offset, len } => {
                    self.handshake.on_crypto_acked(space.level(), *offset, *len);
                }
                SentFrame::Stream { .. }
                | SentFrame::ResetStream(_)
                | SentFrame::StopSending(_)
                | SentFrame::MaxData
                | SentFrame::MaxStreamData(_)
                | SentFrame::MaxStreams(_)
                | SentFrame::DataBlocked
                | SentFrame::StreamDataBlocked(_)
                | SentFrame::StreamsBlocked(_) => self.streams.on_acked(token),
                SentFrame::NewConnectionId { sequence, .. } => self.path.local_cids.on_acked(*sequence),
                SentFrame::RetireConnectionId { sequence, .. } => self.path.remote_cids.on_acked(*sequence),
                SentFrame::HandshakeDone => self.handshake.on_done_acked(),
                SentFrame::Ping => {}
            }
        }
    }

    /// The frames of a lost packet.
    pub(super) fn deliver_lost(&mut self, space: SpaceId, frames: &[SentFrame]) {
        for token in frames {
            match token {
                // A newer acknowledgement says the same and more; a PING has done what it could.
                SentFrame::Ack { .. } | SentFrame::Ping => {}
                SentFrame::Crypto { offset, len } => {
                    self.handshake.on_crypto_lost(space.level(), *offset, *len);
                }
                SentFrame::Stream { .. }
                | SentFrame::ResetStream(_)
                | SentFrame::StopSending(_)
                | SentFrame::MaxData
                | SentFrame::MaxStreamData(_)
                | SentFrame::MaxStreams(_)
                | SentFrame::DataBlocked
                | SentFrame::StreamDataBlocked(_)
                | SentFrame::StreamsBlocked(_) => self.streams.on_lost(token),
                SentFrame::NewConnectionId { sequence, .. } => self.path.local_cids.on_lost(*sequence),
                SentFrame::RetireConnectionId { sequence, .. } => self.path.remote_cids.on_lost(*sequence),
                SentFrame::HandshakeDone => self.handshake.on_done_lost(),
            }
        }
    }

    /// The frames of a packet that a probe repeats, although it may still arrive.
    pub(super) fn deliver_probe(&mut self, space: SpaceId, frames: &[SentFrame]) {
        for token in frames {
            match token {
                SentFrame::Ack { .. } | SentFrame::Ping => {}
                SentFrame::Crypto { offset, len } => {
                    self.handshake.on_crypto_lost(space.level(), *offset, *len);
                }
                SentFrame::Stream { .. }
                | SentFrame::ResetStream(_)
                | SentFrame::StopSending(_)
                | SentFrame::MaxData
                | SentFrame::MaxStreamData(_)
                | SentFrame::MaxStreams(_)
                | SentFrame::DataBlocked
                | SentFrame::StreamDataBlocked(_)
                | SentFrame::StreamsBlocked(_) => self.streams.on_probe(token),
                SentFrame::NewConnectionId { sequence, .. } => self.path.local_cids.on_lost(*sequence),
                SentFrame::RetireConnectionId { sequence, .. } => self.path.remote_cids.on_lost(*sequence),
                SentFrame::HandshakeDone => self.handshake.on_done_lost(),
            }
        }
    }
}
