//! The life of a connection as `tracing` shows it: a span for each connection and events at the level of debugging, with the target
//! `fulmar::connection`. Nothing is told of packets and streams: that is what the log of the connection and qlog are for.

use fulmar_proto::{Connection, ConnectionError, ConnectionStats, PathEvent};
use tracing::{Level, Span, debug, debug_span, enabled};

const TARGET: &str = "fulmar::connection";

/// Tells of one connection. It costs next to nothing where nobody listens.
pub(crate) struct Life(Span);

impl Life {
    /// A connection that is dialled or accepted.
    pub(crate) fn begin(id: u64, connection: &Connection) -> Self {
        let span = debug_span!(
            target: TARGET,
            "connection",
            id,
            side = ?connection.side(),
            remote = %connection.remote_address(),
            cid = %connection.original_cid(),
        );
        debug!(target: TARGET, parent: &span, "begins");
        Self(span)
    }

    /// The handshake is complete.
    pub(crate) fn connected(&self, connection: &Connection) {
        let Some(stats) = figures(connection) else { return };
        debug!(
            target: TARGET,
            parent: &self.0,
            version = %stats.version,
            cipher_suite = stats.cipher_suite.map(tracing::field::display),
            alpn = connection.alpn().map(|alpn| alpn.escape_ascii().to_string()),
            resumed = stats.resumed,
            early_data = ?connection.early_data(),
            retried = stats.retried,
            handshake = ?stats.handshake_duration,
            "connected"
        );
    }

    /// The peer has confirmed the handshake.
    pub(crate) fn confirmed(&self) {
        debug!(target: TARGET, parent: &self.0, "handshake confirmed");
    }

    /// Addresses were changed, tried or told.
    pub(crate) fn path(&self, event: &PathEvent) {
        debug!(target: TARGET, parent: &self.0, ?event, "path");
    }

    /// The application can do nothing more with it.
    pub(crate) fn over(&self, reason: &ConnectionError) {
        debug!(target: TARGET, parent: &self.0, %reason, "over");
    }

    /// The endpoint has forgotten it.
    pub(crate) fn forgotten(&self, connection: &Connection) {
        let Some(stats) = figures(connection) else { return };
        debug!(
            target: TARGET,
            parent: &self.0,
            bytes_sent = stats.bytes_sent,
            bytes_received = stats.bytes_received,
            packets_sent = stats.packets_sent,
            packets_lost = stats.packets_lost,
            probe_timeouts = stats.pto_count,
            rtt = ?stats.rtt,
            mtu = stats.mtu,
            "forgotten"
        );
    }
}

/// The figures of a connection, if anybody listens: they are not gathered in vain.
fn figures(connection: &Connection) -> Option<ConnectionStats> {
    enabled!(target: TARGET, Level::DEBUG).then(|| connection.stats())
}
