//! The figures of an endpoint and of its connections, at one time.

use std::net::SocketAddr;
use std::sync::Arc;

use fulmar_proto::{ConnectionStats, PathStats, Side};

use super::EndpointStats;
use crate::shared::{Core, Totals, WorkerShared};
use crate::sync::lock;

/// The figures of an endpoint.
#[derive(Debug, Clone)]
#[non_exhaustive]
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
#[non_exhaustive]
pub struct ConnectionMetrics {
    /// Its number, which no other of the endpoint has.
    pub id: u64,
    /// This end.
    pub side: Side,
    /// The peer's address.
    pub remote: SocketAddr,
    /// Its figures.
    pub stats: ConnectionStats,
    /// Each of its paths by itself.
    pub paths: Vec<PathStats>,
}

/// The figures of an endpoint with these workers.
pub(super) fn stats_of(workers: &[Arc<WorkerShared>]) -> EndpointStats {
    let mut stats = EndpointStats::default();
    for worker in workers {
        stats.add(worker, &lock(&worker.core));
    }
    stats
}

impl EndpointStats {
    /// Adds the figures of a worker.
    fn add(&mut self, worker: &WorkerShared, core: &Core) {
        self.open_connections += core.connection_count();
        self.waiting_incoming += core.waiting_count();
        self.dropped_datagrams += core.dropped_datagrams;
        self.forwarded_datagrams += worker.forwarded();
        self.socket += worker.socket_stats();
    }
}

impl EndpointMetrics {
    pub(super) fn of(workers: &[Arc<WorkerShared>]) -> Self {
        let (mut endpoint, mut totals) = (EndpointStats::default(), Totals::default());
        let mut connections = Vec::new();
        for worker in workers {
            let core = lock(&worker.core);
            endpoint.add(worker, &core);
            totals += core.past;
            connections.extend(core.connections());
        }
        let mut connections: Vec<ConnectionMetrics> = connections
            .iter()
            .map(|connection| {
                let proto = &connection.lock().proto;
                let (side, remote, stats) = (proto.side(), proto.remote_address(), proto.stats());
                totals.add(&stats);
                let paths = proto.path_stats().collect();
                ConnectionMetrics { id: connection.id(), side, remote, stats, paths }
            })
            .collect();
        connections.sort_by_key(|connection| connection.id);
        Self { endpoint, totals, connections }
    }
}
