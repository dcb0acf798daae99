//! What is said when this end closes the connection (RFC 9000 §10.2).

use bytes::Bytes;
use fulmar_wire::{CloseCode, ConnectionClose, Frame, FrameType, TransportErrorCode};

use crate::packet::FrameWriter;

/// The longest reason that is sent, in bytes, so that the frame fits any packet.
const REASON_MAX: usize = 256;

/// The CONNECTION_CLOSE of this end, and when it is repeated.
#[derive(Debug)]
pub(super) struct Close {
    code: CloseCode,
    reason: Bytes,
    pending: bool,
    /// Datagrams that came since the frame was last sent, and how many must come before it is sent again.
    received: u32,
    threshold: u32,
}

impl Close {
    pub(super) fn new(code: CloseCode, reason: Bytes) -> Self {
        let len = reason.len().min(REASON_MAX);
        Self { code, reason: reason.slice(..len), pending: true, received: 0, threshold: 1 }
    }

    /// Whether the frame should be sent.
    pub(super) fn is_pending(&self) -> bool {
        self.pending
    }

    /// A datagram came although the connection is closed. The answers get rarer, each time twice as many
    /// datagrams are needed (RFC 9000 §10.2.1), so that two ends never keep each other busy.
    pub(super) fn on_datagram(&mut self) {
        self.received += 1;
        if self.received >= self.threshold {
            self.received = 0;
            self.threshold = self.threshold.saturating_mul(2);
            self.pending = true;
        }
    }

    /// The frame was sent in every space that has keys.
    pub(super) fn on_sent(&mut self) {
        self.pending = false;
    }

    /// Writes the frame for an Initial or Handshake packet (`early`) or a 1-RTT packet.
    pub(super) fn write(&self, early: bool, out: &mut FrameWriter<'_>) {
        let hidden =
            CloseCode::Transport { code: TransportErrorCode::APPLICATION_ERROR, frame: FrameType::PADDING };
        // RFC 9000 §10.2.3: an application's code and words could reveal its state before the handshake has
        // proven who listens.
        let (code, reason): (_, &[u8]) = match self.code {
            CloseCode::Application(_) if early => (hidden, &[]),
            code => (code, &self.reason),
        };
        out.write_untracked(&Frame::ConnectionClose(ConnectionClose { code, reason }));
    }
}
