//! Named patterns of reliable delivery (RFC 9000 §13.3).
//!
//! A component that owes the peer a frame holds one field of such a type. The field says whether the frame
//! has to be written, and hears of the fate of every copy that was.

/// A value of which the peer must come to know the latest version: MAX_DATA and its relatives.
///
/// Newer versions replace older ones. The loss of any copy makes the latest version due again: whether a
/// newer copy is still on its way is not tracked, because such frames are small and rare, and a copy too many
/// does no harm where a copy too few stops the peer.
#[derive(Debug, Clone)]
pub(crate) struct Latest<T> {
    value: T,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The peer needs not hear of the value.
    Idle,
    /// The value waits to be written.
    Pending,
    /// The value, or an older version, was written.
    Sent,
}

impl<T: Copy> Latest<T> {
    /// A value that the peer knows already, or need not know.
    pub(crate) fn new(value: T) -> Self {
        Self { value, state: State::Idle }
    }

    /// The latest version.
    pub(crate) fn get(&self) -> T {
        self.value
    }

    /// A new version, which has to be written.
    pub(crate) fn set(&mut self, value: T) {
        self.value = value;
        self.state = State::Pending;
    }

    /// Whether the value waits to be written.
    pub(crate) fn is_pending(&self) -> bool {
        self.state == State::Pending
    }

    /// Whether no version was ever written or waits for it, since the last [`Latest::cancel`].
    pub(crate) fn is_idle(&self) -> bool {
        self.state == State::Idle
    }

    /// The value, if it waits to be written.
    pub(crate) fn pending(&self) -> Option<T> {
        self.is_pending().then_some(self.value)
    }

    /// The value was written into a packet.
    pub(crate) fn on_written(&mut self) {
        self.state = State::Sent;
    }

    /// A packet with a version of the value was lost, or a probe wants to repeat it.
    pub(crate) fn on_lost(&mut self) {
        if self.state == State::Sent {
            self.state = State::Pending;
        }
    }

    /// The peer no longer needs the value.
    pub(crate) fn cancel(&mut self) {
        self.state = State::Idle;
    }
}

/// A value that must reach the peer once: RESET_STREAM, STOP_SENDING, HANDSHAKE_DONE.
#[derive(Debug, Clone)]
pub(crate) enum Once<T> {
    /// There is nothing to say.
    Idle,
    /// The value waits to be written.
    Pending(T),
    /// The value was written and may be lost.
    Sent(T),
    /// The peer has the value.
    Acked,
}

impl<T: Copy> Once<T> {
    /// Asks for `value` to be delivered. Only the first call has an effect.
    pub(crate) fn request(&mut self, value: T) {
        if matches!(self, Self::Idle) {
            *self = Self::Pending(value);
        }
    }

    /// Whether nobody asked for a delivery yet.
    pub(crate) fn is_idle(&self) -> bool {
        matches!(self, Self::Idle)
    }

    /// The value, if it waits to be written.
    pub(crate) fn pending(&self) -> Option<T> {
        match self {
            Self::Pending(value) => Some(*value),
            Self::Idle | Self::Sent(_) | Self::Acked => None,
        }
    }

    /// The value was written into a packet.
    pub(crate) fn on_written(&mut self) {
        if let Self::Pending(value) = *self {
            *self = Self::Sent(value);
        }
    }

    /// A packet with the value was acknowledged.
    pub(crate) fn on_acked(&mut self) {
        if !self.is_idle() {
            *self = Self::Acked;
        }
    }

    /// A packet with the value was lost, or a probe wants to repeat it.
    pub(crate) fn on_lost(&mut self) {
        if let Self::Sent(value) = *self {
            *self = Self::Pending(value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_version_survives_the_loss_of_an_older_one() {
        let mut value = Latest::new(1);
        assert_eq!(value.pending(), None);
        value.on_lost();
        assert_eq!(value.pending(), None, "nothing was sent, so nothing can be lost");
        value.set(2);
        value.on_written();
        value.set(3);
        assert_eq!(value.pending(), Some(3));
        value.on_written();
        value.on_lost();
        assert_eq!(value.pending(), Some(3));
        value.cancel();
        value.on_lost();
        assert_eq!(value.pending(), None);
    }

    #[test]
    fn once_is_repeated_until_it_is_acknowledged() {
        let mut value = Once::Idle;
        value.on_acked();
        assert!(value.is_idle());
        value.request(7);
        value.request(8);
        assert_eq!(value.pending(), Some(7));
        value.on_written();
        assert_eq!(value.pending(), None);
        value.on_lost();
        assert_eq!(value.pending(), Some(7));
        value.on_written();
        value.on_acked();
        value.on_lost();
        assert!(value.pending().is_none() && !value.is_idle());
    }
}
