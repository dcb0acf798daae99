//! One datagram comes, one leaves, and so on.

/// After so many turns in which one datagram came, and none or one left, it is a conversation.
const TURNS: u32 = 16;

/// What the worker has seen of its latest turns.
#[derive(Default)]
pub(super) struct Conversation {
    /// Turns since more than one datagram at a time was received or sent.
    turns: u32,
}

impl Conversation {
    /// Whether datagrams come one by one: see [`UdpSocket::try_recv_lone`](fulmar_udp::UdpSocket::try_recv_lone).
    pub(super) fn is_on(&self) -> bool {
        self.turns >= TURNS
    }

    /// Something was received, a single datagram or more.
    pub(super) fn on_received(&mut self, is_lone: bool) {
        self.turns = if is_lone { self.turns.saturating_add(1) } else { 0 };
    }

    /// A datagram left, or several at once.
    pub(super) fn on_sent(&mut self, is_lone: bool) {
        if !is_lone {
            self.turns = 0;
        }
    }
}

#[cfg(test)]
mod tests;
