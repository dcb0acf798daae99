//! A connection that rests: nothing was sent or received for a while, and what it needs for that is given back.

use std::fmt;

use super::Connection;
use crate::path::PackedPath;

/// A connection that rests. Nothing can be asked of it until it is [woken](Self::wake).
pub struct Resting {
    /// Without its paths, if they are packed.
    pub(super) connection: Connection,
    pub(super) paths: Option<Box<[PackedPath]>>,
}

impl Connection {
    /// Gives back the memory that nothing needs until something is sent or received: spare places of queues; keys, which are
    /// expanded from their secrets again with the next packet, in some microseconds; and what is known of paths is packed.
    ///
    /// Most connections of a server that has many of them are silent most of the time, and take little more than a third of what they
    /// would. To be called when a connection has been silent for a while: a second is long enough for waking to cost next to
    /// nothing. At any other time it does no harm, and nothing that is sent depends on it.
    #[must_use = "the connection is in it"]
    pub fn rest(mut self) -> Resting {
        if !self.handshake.is_confirmed() {
            return Resting { connection: self, paths: None };
        }
        self.rng.rest();
        self.handshake.rest();
        self.streams.rest();
        self.extensions.rest();
        self.address_tokens.rest();
        let paths = self.paths.pack();
        Resting { connection: self, paths }
    }
}

impl Resting {
    /// The connection as it was.
    pub fn wake(self) -> Connection {
        let Self { mut connection, paths } = self;
        if let Some(paths) = paths {
            connection.paths.unpack(paths);
        }
        connection
    }
}

impl fmt::Debug for Resting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resting").finish_non_exhaustive()
    }
}
