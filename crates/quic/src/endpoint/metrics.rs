//! The figures of an endpoint and of its connections, at one time.

use std::net::SocketAddr;
use std::sync::Arc;

use fulmar_proto::{ConnectionStats, Side};

use super::EndpointStats;
use crate::shared::{Inner, Totals};

/// The figures of an endpoint.
#[derive(Debug, Clone)]
pub struct EndpointMetrics {
    /// Those of the endpoint itself.
    pub endpoint: EndpointStats,
    /// Counters of all connections since the endpoint began, of those that are gone, too. They never fall.
    pub totals: Totals,
    /// Each connection that exists, in the order of their beginning.
    pub connections: Vec<ConnectionMetrics>,
}

/// The figures of a connection and of its path.
#[derive(Debug, Clone)]
pub struct ConnectionMetrics {
    /// Its number, which no other of the endpoint has.
    pub id: u64,
    /// This end.
    pub side: Side,
    /// The peer's address.
    pub remote: SocketAddr,
    /// Its figures.
    pub stats: ConnectionStats,
}

impl EndpointMetrics {
    pub(crate) fn of(endpoint: EndpointStats, past: Totals, connections: &[Arc<Inner>]) -> Self {
        let mut totals = past;
        let mut connections: Vec<ConnectionMetrics> = connections
            .iter()
            .map(|connection| {
                let proto = &connection.lock().proto;
                let (side, remote, stats) = (proto.side(), proto.remote_address(), proto.stats());
                totals.add(&stats);
                ConnectionMetrics { id: connection.id(), side, remote, stats }
            })
            .collect();
        connections.sort_by_key(|connection| connection.id);
        Self { endpoint, totals, connections }
    }
}
