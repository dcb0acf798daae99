//! A connection that rests: nothing was sent or received for a while, and what it needs for that is given back.

use super::Connection;

impl Connection {
    /// Gives back the memory that nothing needs until something is sent or received: spare places of queues; keys, which are
    /// expanded from their secrets again with the next packet, in some microseconds; and what is known of paths is packed, until
    /// somebody asks the connection for anything that has to do with it. So this is the last thing to be called.
    ///
    /// Most connections of a server that has many of them are silent most of the time, and take little more than half of what they
    /// would. To be called when a connection has been silent for a while: a second is long enough for waking to cost next to
    /// nothing. At any other time it does no harm, and nothing that is sent depends on it.
    pub fn rest(&mut self) {
        if !self.handshake.is_confirmed() {
            return;
        }
        self.rng.rest();
        self.handshake.rest();
        self.streams.rest();
        self.extensions.rest();
        self.address_tokens.rest();
        // Last: they wake when somebody looks at them.
        self.paths.rest();
    }
}
