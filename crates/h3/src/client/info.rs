//! What the client tells of how a response came.

use std::net::SocketAddr;
use std::time::Duration;

/// How a request reached its server, among the extensions of the response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConnectionInfo {
    /// The address of the server.
    pub remote: SocketAddr,
    /// How long it took to find its addresses; nothing on a connection that was there.
    pub resolved_in: Duration,
    /// How long it took to connect, with what was tried in vain; nothing on a connection that was there.
    pub connected_in: Duration,
    /// Whether the connection was there, from an earlier request.
    pub is_reused: bool,
    /// Whether the request left as early data (0-RTT).
    pub is_early: bool,
}
