//! The connection of the core, which rests at times.

use std::mem;
use std::ops::{Deref, DerefMut};

use fulmar_proto::{Connection, Resting};

/// A connection that is awake for whoever has the lock, and may rest when nobody has it.
pub(crate) enum Proto {
    Awake(Connection),
    Resting(Resting),
    /// While it changes from one to the other.
    Changing,
}

impl Proto {
    /// Lets it rest. The lock is to be released behind this.
    pub(crate) fn rest(&mut self) {
        *self = match mem::replace(self, Self::Changing) {
            Self::Awake(connection) => Self::Resting(connection.rest()),
            other => other,
        };
    }

    /// Wakes it, if it rests: for whoever takes the lock.
    #[inline]
    pub(super) fn wake(&mut self) {
        if let Self::Resting(_) = self {
            self.wake_from_rest();
        }
    }

    #[cold]
    fn wake_from_rest(&mut self) {
        *self = match mem::replace(self, Self::Changing) {
            Self::Resting(resting) => Self::Awake(resting.wake()),
            other => other,
        };
    }
}

/// Why there is a connection: see [`Proto::wake`].
const AWAKE: &str = "whoever takes the lock wakes the connection";

impl Deref for Proto {
    type Target = Connection;

    #[inline]
    fn deref(&self) -> &Connection {
        match self {
            Self::Awake(connection) => connection,
            Self::Resting(_) | Self::Changing => unreachable!("{AWAKE}"),
        }
    }
}

impl DerefMut for Proto {
    #[inline]
    fn deref_mut(&mut self) -> &mut Connection {
        match self {
            Self::Awake(connection) => connection,
            Self::Resting(_) | Self::Changing => unreachable!("{AWAKE}"),
        }
    }
}
