//! Options of an endpoint.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use fulmar_proto::{
    ClientConfig, EndpointConfig, EndpointShared, ResetKey, ServerConfig, Version, WorkerCids,
};
use fulmar_udp::{Dscp, UdpSocket};
use tokio::runtime::Handle;

use super::Endpoint;
use crate::clock;
use crate::log::{LogDelivery, LogSink, Logging};
use crate::shared::{Common, Shared};
use crate::tls;
use crate::worker::Worker;

/// How many clients a server remembers the paths to, each with some hundred bytes.
const KNOWN_PATHS_MAX: usize = 1_024;
/// How long a worker looks for the next datagram at most: some times what a wait asleep costs. Between two ends on one virtual machine that
/// is 15 to 40 microseconds of a round trip at each end, and up to 30 of the processor.
const BUSY_POLL: Duration = Duration::from_micros(100);

/// Collects what an endpoint needs; everything but the socket has a default.
pub struct EndpointBuilder {
    config: Option<EndpointConfig>,
    server: Option<ServerConfig>,
    client: Option<ClientConfig>,
    logging: Option<Logging>,
    versions: Option<Vec<Version>>,
    initial_version: Option<Version>,
    dscp: Dscp,
    known_paths_max: usize,
    busy_poll: Duration,
    workers: usize,
    runtimes: Vec<Handle>,
}

impl Default for EndpointBuilder {
    fn default() -> Self {
        Self {
            config: None,
            server: None,
            client: None,
            logging: None,
            versions: None,
            initial_version: None,
            dscp: Dscp::default(),
            known_paths_max: KNOWN_PATHS_MAX,
            busy_poll: BUSY_POLL,
            workers: 1,
            runtimes: Vec::new(),
        }
    }
}

impl EndpointBuilder {
    /// The endpoint's own configuration, but for its `epoch`, which comes from the clock. Default:
    /// [`EndpointConfig::new`] with a random key for stateless resets.
    #[must_use]
    pub fn config(mut self, config: EndpointConfig) -> Self {
        self.config = Some(config);
        self
    }

    /// The versions of QUIC that are spoken, the preferred one first, instead of those of the configuration.
    #[must_use]
    pub fn versions(mut self, versions: Vec<Version>) -> Self {
        self.versions = Some(versions);
        self
    }

    /// The version in which connections begin that this endpoint dials, if that is not the preferred one.
    #[must_use]
    pub fn initial_version(mut self, version: Version) -> Self {
        self.initial_version = Some(version);
        self
    }

    /// Makes the endpoint a server.
    #[must_use]
    pub fn server_config(mut self, config: ServerConfig) -> Self {
        self.server = Some(config);
        self
    }

    /// The configuration that [`Endpoint::connect`] uses.
    #[must_use]
    pub fn client_config(mut self, config: ClientConfig) -> Self {
        self.client = Some(config);
        self
    }

    /// Hands the logs of all connections that keep one (`TransportConfig::log_entries`) to `sink`.
    #[must_use]
    pub fn log_sink(mut self, sink: Arc<dyn LogSink>, delivery: LogDelivery) -> Self {
        self.logging = Some(Logging { sink, delivery });
        self
    }

    /// The differentiated services code point of all that the endpoint sends (RFC 2474), beside the ECN bits. Default 0: the
    /// usual treatment. Only Linux can.
    #[must_use]
    pub fn dscp(mut self, dscp: Dscp) -> Self {
        self.dscp = dscp;
        self
    }

    /// Of how many clients a server remembers, by their IP addresses, what the path to them has carried: the next connection from
    /// there begins with that, as carefully as RFC 9959 asks. It is good for an hour; when there are more, the oldest is forgotten.
    /// Default 1,024; 0 remembers none. A client remembers with a [`SessionStore`](crate::SessionStore).
    #[must_use]
    pub fn known_paths(mut self, max: usize) -> Self {
        self.known_paths_max = max;
        self
    }

    /// How long a worker keeps looking at its socket for the next datagrams of a connection at most before it sleeps. It looks where they
    /// mostly come within half of that, so that they would be there sooner than it is asleep and woken again: questions and answers
    /// between programs on one machine, or in one rack. That takes the processor's time meanwhile. Whether it helps is found out by
    /// trying, in vain ever less often. Bulk, and several connections at a time, are slept for. Default 100 microseconds; zero always
    /// sleeps.
    #[must_use]
    pub fn busy_poll(mut self, time: Duration) -> Self {
        self.busy_poll = time;
        self
    }

    /// How many workers serve the endpoint, each with a socket and connections of its own: as many as processor cores are to be
    /// busy with it. Default 1; at most [`WorkerCids::WORKERS_MAX`].
    ///
    /// The workers are tasks of the runtime in which the endpoint is bound, which needs as many threads, or each of a runtime of its
    /// own: see [`runtimes`](Self::runtimes). Connection IDs become a byte
    /// longer, which names the worker ([`WorkerCids`]), so that a connection stays where it is when its client moves. On Linux the
    /// kernel reads it; elsewhere, and where the kernel does not do that, workers hand datagrams to each other.
    ///
    /// ```no_run
    /// # fn example(config: fulmar::ServerConfig) -> std::io::Result<()> {
    /// let endpoint = fulmar::Endpoint::builder()
    ///     .server_config(config)
    ///     .workers(4)
    ///     .bind(([0, 0, 0, 0], 4433).into())?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = workers;
        self
    }

    /// Has a worker in each of these runtimes, instead of several in the one in which the endpoint is bound. With a thread for each
    /// of the runtimes, and what serves a connection spawned in the one of its worker ([`Incoming::runtime`](super::Incoming::runtime)),
    /// no thread waits for another. A runtime of the current thread has to run (`block_on`) as long as the endpoint is used.
    #[must_use]
    pub fn runtimes(mut self, runtimes: Vec<Handle>) -> Self {
        self.workers = runtimes.len();
        self.runtimes = runtimes;
        self
    }

    /// Binds a socket to `addr`, or one for each worker, with large kernel buffers and, for `[::]`, for IPv4 as well, and starts the endpoint.
    ///
    /// # Errors
    /// If the socket cannot be bound or takes no code point, if the operating system gives no random numbers, or outside of a tokio
    /// runtime. `InvalidInput` if there cannot be as many workers, or the connection IDs of the configuration have no room for a
    /// byte more; `Unsupported` for several workers where sockets cannot share a port.
    pub fn bind(mut self, addr: SocketAddr) -> io::Result<Endpoint> {
        let here = runtime()?;
        if !(1..=WorkerCids::WORKERS_MAX).contains(&self.workers) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "an endpoint has 1 to 64 workers"));
        }
        self.runtimes.resize(self.workers, here);
        let sockets = UdpSocket::bind_group(addr, self.workers)?;
        let endpoint = self.start(sockets)?;
        endpoint.steer();
        Ok(endpoint)
    }

    /// Starts the endpoint on a bound socket, with one worker.
    ///
    /// # Errors
    /// If the socket cannot be set up, if the operating system gives no random numbers, or outside of a tokio runtime.
    /// `InvalidInput` if there are to be several workers.
    pub fn socket(mut self, socket: std::net::UdpSocket) -> io::Result<Endpoint> {
        let here = runtime()?;
        if self.workers != 1 {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "one socket is for one worker"));
        }
        self.runtimes.resize(1, here);
        self.start(vec![socket])
    }

    /// Starts a worker for each socket, and there is a runtime for each.
    pub(super) fn start(self, sockets: Vec<std::net::UdpSocket>) -> io::Result<Endpoint> {
        let config = match self.config {
            Some(config) => config,
            None => EndpointConfig::new(ResetKey::new(&tls::random_bytes()?)),
        };
        let versions = self.versions.unwrap_or(config.versions);
        let initial_version = self.initial_version.or(config.initial_version);
        let config = EndpointConfig { epoch: clock::unix_epoch(), versions, initial_version, ..config };
        let (config, server) = (Arc::new(config), self.server.map(Arc::new));
        let common = EndpointShared::new(&config);
        let mut workers = Vec::with_capacity(sockets.len());
        let mut cid_len = config.cid_generator.cid_len();
        let are_several = sockets.len() > 1;
        if are_several && !WorkerCids::INNER_LEN.contains(&cid_len) {
            let reason = "connection IDs of 4 to 19 bytes have room for the worker";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
        }
        cid_len += usize::from(are_several);
        for ((socket, runtime), worker) in sockets.into_iter().zip(self.runtimes).zip(0..) {
            let socket = register(socket, &runtime)?;
            let config = if are_several { Arc::new(of_worker(&config, worker)) } else { config.clone() };
            let (common, seed) = (common.clone(), tls::random_bytes()?);
            let core = fulmar_proto::Endpoint::with_shared(common, config, server.clone(), seed);
            workers.push((socket.with_dscp(self.dscp)?, core, runtime));
        }
        let shared_by_all = Common::new(self.logging, self.known_paths_max, self.busy_poll);
        let shared = Arc::new(Shared::new(workers, cid_len, self.client, shared_by_all));
        // A worker ends when there is no handle, so the first one comes before it.
        let endpoint = Endpoint::from_shared(shared.clone());
        for worker in shared.workers() {
            // Its timer is one of the runtime in which it is made.
            let _context = worker.runtime.enter();
            tokio::spawn(Worker::new(worker.clone()));
        }
        Ok(endpoint)
    }
}

impl fmt::Debug for EndpointBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            config,
            server,
            client,
            logging,
            versions,
            initial_version,
            dscp,
            known_paths_max,
            busy_poll,
            workers,
            runtimes: _,
        } = self;
        f.debug_struct("EndpointBuilder")
            .field("config", config)
            .field("server", server)
            .field("client", client)
            .field("versions", versions)
            .field("initial_version", initial_version)
            .field("dscp", dscp)
            .field("known_paths_max", known_paths_max)
            .field("busy_poll", busy_poll)
            .field("workers", workers)
            .field("logging", &logging.as_ref().map(|logging| logging.delivery))
            .finish()
    }
}

/// The configuration of one of several workers, whose connection IDs name it.
fn of_worker(config: &EndpointConfig, worker: u8) -> EndpointConfig {
    let cid_generator = Arc::new(WorkerCids::new(config.cid_generator.clone(), worker));
    EndpointConfig { cid_generator, ..config.clone() }
}

/// A socket for the worker that lives in `runtime`.
pub(super) fn register(socket: std::net::UdpSocket, runtime: &Handle) -> io::Result<UdpSocket> {
    let _context = runtime.enter();
    UdpSocket::from_std(socket)
}

/// The runtime that the endpoint's worker will live in, unless others are given.
fn runtime() -> io::Result<Handle> {
    Handle::try_current().map_err(io::Error::other)
}
