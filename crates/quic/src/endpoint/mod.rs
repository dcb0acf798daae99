//! The endpoint: one UDP socket that listens and dials.

mod accept;
mod builder;
mod incoming;
mod metrics;
mod paths;

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use bytes::Bytes;
use fulmar_proto::{ClientConfig, EndpointConfig, FourTuple, ServerConfig, VarInt};
use fulmar_udp::{SocketStats, UdpSocket};

use crate::clock;
use crate::connection::{Connecting, Local};
use crate::error::ConnectError;
use crate::shared::{ConnectionRef, Shared};
use crate::sync::lock;

pub use builder::EndpointBuilder;
pub use incoming::{Incoming, IncomingFuture};
pub use metrics::{ConnectionMetrics, EndpointMetrics};

/// One UDP socket and all connections over it, incoming and outgoing.
///
/// An endpoint is a server if it has a [`ServerConfig`], and can dial if it has a [`ClientConfig`] or is given one; it can be
/// both on the same port. It is a handle: clones refer to the same endpoint.
///
/// Dropping the last handle stops accepting; connections live on until they are closed. A program that is about to exit
/// should call [`close`](Self::close) and then await [`wait_idle`](Self::wait_idle), so that the peers are told.
pub struct Endpoint {
    shared: Arc<Shared>,
}

/// Figures of an endpoint.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EndpointStats {
    /// Connections that exist. One that is over counts as long as something of the application holds it and the peer may have to be told.
    pub open_connections: usize,
    /// Connection attempts that wait for [`Endpoint::accept`].
    pub waiting_incoming: usize,
    /// Datagrams that belonged to no connection and were neither an attempt to connect nor worth an answer.
    pub dropped_datagrams: u64,
    /// Datagrams that one worker has received and handed to another, as they belong to a connection there.
    pub forwarded_datagrams: u64,
    /// The figures of its sockets, of those that were replaced or removed, too.
    pub socket: SocketStats,
}

impl Endpoint {
    /// An endpoint that accepts connections on `addr`. Use `[::]` for all addresses, IPv4 included.
    ///
    /// # Errors
    /// If the socket cannot be bound, or outside of a tokio runtime.
    pub fn server(config: ServerConfig, addr: SocketAddr) -> io::Result<Self> {
        Self::builder().server_config(config).bind(addr)
    }

    /// An endpoint that only dials, from `addr`: normally `[::]:0` or `0.0.0.0:0`.
    ///
    /// # Errors
    /// If the socket cannot be bound, or outside of a tokio runtime.
    pub fn client(addr: SocketAddr) -> io::Result<Self> {
        Self::builder().bind(addr)
    }

    /// An endpoint with everything given: its configuration, whether it is a server, and its socket.
    ///
    /// # Errors
    /// If the socket cannot be set up, or outside of a tokio runtime.
    pub fn new(
        config: EndpointConfig,
        server: Option<ServerConfig>,
        socket: std::net::UdpSocket,
    ) -> io::Result<Self> {
        let builder = Self::builder().config(config);
        let builder = match server {
            Some(server) => builder.server_config(server),
            None => builder,
        };
        builder.socket(socket)
    }

    /// Starts to configure an endpoint.
    pub fn builder() -> EndpointBuilder {
        EndpointBuilder::default()
    }

    /// Has the kernel choose the worker of each datagram, if there are several.
    fn steer(&self) {
        let Some(steering) = self.shared.steering() else { return };
        // Without it they hand datagrams to each other.
        if let Err(error) = self.shared.socket().steer(&steering.program()) {
            tracing::debug!(%error, "the kernel does not choose among the workers");
        }
    }

    fn from_shared(shared: Arc<Shared>) -> Self {
        shared.add_handle();
        Self { shared }
    }

    /// Dials `addr` with the default client configuration. `server_name` is the name that the server's certificate must be
    /// valid for; it is also sent to the server (SNI).
    ///
    /// The handshake proceeds even while the returned future is not polled; dropping it closes the connection.
    ///
    /// # Errors
    /// If nothing can be sent at all, or the endpoint was closed. What happens on the network is reported by the returned future:
    /// [`ConnectionError::Refused`](crate::ConnectionError::Refused) within a round trip if nobody listens at the address and the
    /// network says so (on Linux), [`Unsent`](crate::ConnectionError::Unsent) at once if this machine has no route to it,
    /// [`HandshakeTimedOut`](crate::ConnectionError::HandshakeTimedOut) if nothing answers.
    pub fn connect(&self, addr: SocketAddr, server_name: &str) -> Result<Connecting, ConnectError> {
        let config = lock(&self.shared.client_config).clone().ok_or(ConnectError::NoClientConfig)?;
        self.connect_with(config, addr, server_name)
    }

    /// Dials `addr` with the given configuration. See [`connect`](Self::connect).
    ///
    /// # Errors
    /// If nothing can be sent at all.
    pub fn connect_with(
        &self,
        config: ClientConfig,
        addr: SocketAddr,
        server_name: &str,
    ) -> Result<Connecting, ConnectError> {
        self.dial(config, Local::Any.to(addr), server_name)
    }

    fn dial(
        &self,
        config: ClientConfig,
        addrs: FourTuple,
        server_name: &str,
    ) -> Result<Connecting, ConnectError> {
        let remote = addrs.remote;
        let worker = self.shared.dialling_worker();
        if !worker.can_reach(&addrs) {
            return Err(ConnectError::UnreachableAddress(remote));
        }
        let addrs = worker.canonical(addrs);
        // Whichever of the workers' sockets the kernel gives a report to, it is for this attempt.
        for worker in self.shared.workers() {
            worker.report_refusals(addrs.socket);
        }
        let mut core = lock(&worker.core);
        if core.is_closed() {
            return Err(ConnectError::EndpointClosed);
        }
        let now = core.advance(clock::now());
        let (handle, connection) = core.endpoint.connect(now, &config, addrs, server_name)?;
        let inner = worker.insert(&mut core, handle, connection);
        drop(core);
        lock(&self.shared.common.attempts).add(&inner);
        let connection = ConnectionRef::new(inner);
        connection.mark_ready();
        Ok(Connecting::new(connection))
    }

    /// Waits for the next connection attempt. Returns `None` once the endpoint is closed.
    ///
    /// Attempts beyond `EndpointConfig::max_incoming` that nobody takes are dropped; the peers try again by themselves.
    ///
    /// Cancellation safe: no attempt is lost.
    pub async fn accept(&self) -> Option<Incoming> {
        loop {
            let notified = self.shared.common.incoming.notified();
            if let Some(incoming) = self.take_waiting() {
                return Some(incoming);
            }
            if self.shared.workers().iter().all(|worker| lock(&worker.core).is_closed()) {
                return None;
            }
            notified.await;
        }
    }

    /// Takes an attempt that waits at one of the workers.
    fn take_waiting(&self) -> Option<Incoming> {
        self.shared.workers().iter().find_map(|worker| {
            let attempt = lock(&worker.core).take_waiting()?;
            // One attempt wakes one task; pass on what more has come meanwhile.
            if self.shared.workers().iter().any(|worker| lock(&worker.core).waiting_count() > 0) {
                self.shared.common.incoming.notify_one();
            }
            Some(Incoming::new(self.clone(), worker.clone(), attempt))
        })
    }

    /// Starts, changes or (with `None`) ends the acceptance of connections. Existing connections are not affected.
    pub fn set_server_config(&self, config: Option<ServerConfig>) {
        let config = config.map(Arc::new);
        for worker in self.shared.workers() {
            lock(&worker.core).set_server_config(config.clone());
        }
    }

    /// Sets the configuration that [`connect`](Self::connect) uses.
    pub fn set_default_client_config(&self, config: ClientConfig) {
        *lock(&self.shared.client_config) = Some(config);
    }

    /// Closes all connections with an application error code and a reason (of 256 bytes at most, as for
    /// [`Connection::close`](crate::Connection::close)), and accepts and dials no more: clients that try to
    /// connect are refused (CONNECTION_REFUSED) as long as there is a handle, and [`connect`](Self::connect) fails.
    ///
    /// The peers are told in the background: await [`wait_idle`](Self::wait_idle) before the program exits.
    pub fn close(&self, code: VarInt, reason: &[u8]) {
        let reason = Bytes::copy_from_slice(reason);
        for worker in self.shared.workers() {
            worker.close(code, &reason);
        }
        self.shared.common.incoming.notify_waiters();
    }

    /// Waits until all connections are gone. A closed connection stays for three probe timeouts, so that the peer surely
    /// learns of it (RFC 9000 §10.2).
    ///
    /// Cancellation safe.
    pub async fn wait_idle(&self) {
        loop {
            let notified = self.shared.common.idle.notified();
            if self.shared.workers().iter().all(|worker| worker.is_idle()) {
                return;
            }
            notified.await;
        }
    }

    /// The address that the socket is bound to.
    ///
    /// # Errors
    /// Those of the operating system.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.shared.socket().local_addr()
    }

    /// The figures of this endpoint.
    pub fn stats(&self) -> EndpointStats {
        metrics::stats_of(self.shared.workers())
    }

    /// The figures of the endpoint, of all its connections together, and of each.
    ///
    /// The work is linear in the number of connections, each of which is locked for a moment.
    pub fn metrics(&self) -> EndpointMetrics {
        EndpointMetrics::of(self.shared.workers())
    }

    /// The socket, for its figures and abilities.
    pub fn socket(&self) -> Arc<UdpSocket> {
        self.shared.socket()
    }

    /// Goes over to another socket, for instance because the network has changed: connections that this endpoint has
    /// dialled move there, under fresh connection IDs, and tell their servers at once (RFC 9000 §9). Paths from an address
    /// ([`Local::Ip`]) stay at that, if the new socket can send from there; those that cannot go over to whatever address the socket has.
    ///
    /// Datagrams that are still on their way to the old socket are received for three probe timeouts of the connections, at
    /// most for three seconds. Nothing is sent from there any more.
    ///
    /// A connection whose server wants no migration, or has given no connection ID for it, uses the new socket all
    /// the same; if the server takes the change for that of a NAT, it lives on. Connections that were accepted depend on
    /// clients that still send to the old address: do not call this on a server that cannot be reached at the
    /// old one.
    ///
    /// # Errors
    /// If the socket cannot be set up, or outside of a tokio runtime, and `InvalidInput` if the endpoint has several workers. Then
    /// nothing has changed.
    pub fn rebind(&self, socket: std::net::UdpSocket) -> io::Result<()> {
        tokio::runtime::Handle::try_current().map_err(io::Error::other)?;
        self.replace_sockets(vec![socket])
    }

    /// Goes over to other sockets, one for each worker.
    fn replace_sockets(&self, sockets: Vec<std::net::UdpSocket>) -> io::Result<()> {
        let workers = self.shared.workers();
        if sockets.len() != workers.len() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "each worker needs a socket"));
        }
        let dscp = self.shared.socket().dscp();
        let sockets = sockets.into_iter().zip(workers);
        let sockets =
            sockets.map(|(socket, worker)| builder::register(socket, &worker.runtime)?.with_dscp(dscp));
        let sockets = sockets.collect::<io::Result<Vec<_>>>()?;
        for (worker, socket) in workers.iter().zip(sockets) {
            let bound = socket.local_addr().map(|addr| addr.ip());
            let has = |ip| bound.as_ref().is_ok_and(|bound| is_address_of(*bound, ip));
            worker.replace_socket(socket);
            let connections = lock(&worker.core).connections();
            for connection in connections {
                connection.on_rebound(&has);
            }
        }
        self.steer();
        Ok(())
    }
}

/// Whether a socket that is bound to `bound` can send from `ip`: to all addresses, from each that this machine has.
fn is_address_of(bound: IpAddr, ip: IpAddr) -> bool {
    let is_any = bound.is_unspecified() && (bound.is_ipv6() || ip.is_ipv4());
    bound == ip || (is_any && std::net::UdpSocket::bind((ip, 0)).is_ok())
}

impl Clone for Endpoint {
    fn clone(&self) -> Self {
        Self::from_shared(self.shared.clone())
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.shared.remove_handle();
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint").field("local_addr", &self.local_addr().ok()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
