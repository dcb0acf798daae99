//! The tokens that a server gives to its client for later connections (RFC 9000 §8.1.3).

use fulmar_wire::{Frame, NewToken};

use crate::packet::{FrameWriter, SentFrame};
use crate::reliable::Once;

/// The NEW_TOKEN frames of a connection. There are at most eight, see `AddressValidation::tokens_per_connection`.
#[derive(Debug, Default)]
pub(super) struct AddressTokens {
    tokens: Vec<(Vec<u8>, Once<()>)>,
}

impl AddressTokens {
    /// Gives a token to the client.
    pub(super) fn give(&mut self, token: Vec<u8>) {
        self.tokens.push((token, Once::Pending(())));
    }

    /// Whether a token waits.
    pub(super) fn wants_to_send(&self) -> bool {
        self.tokens.iter().any(|(_, fate)| fate.pending().is_some())
    }

    /// Writes the tokens that wait.
    pub(super) fn write(&mut self, out: &mut FrameWriter<'_>) {
        for (index, (token, fate)) in self.tokens.iter_mut().enumerate() {
            if fate.pending().is_some() {
                let sent = SentFrame::NewToken { index: index as u8 };
                if !out.write(&Frame::NewToken(NewToken { token }), sent) {
                    return;
                }
                fate.on_written();
            }
        }
    }

    pub(super) fn on_acked(&mut self, index: u8) {
        if let Some((_, fate)) = self.tokens.get_mut(usize::from(index)) {
            fate.on_acked();
        }
    }

    pub(super) fn on_lost(&mut self, index: u8) {
        if let Some((_, fate)) = self.tokens.get_mut(usize::from(index)) {
            fate.on_lost();
        }
    }
}
