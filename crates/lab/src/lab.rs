//! What a run is made of.

mod configs;
mod connecting;

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use fulmar_base::Instant;
use fulmar_proto::{CidGenerator, ConfigError, RetryPolicy, Side, TransportConfig, Version};
use fulmar_sim::{LinkConfig, NatConfig};

pub use self::connecting::{Close, Connecting, Role};
use crate::{Failure, RunReport, Simulation, Workload};

/// A client and a server, the link between them, and what they do. The seed decides everything that is left to
/// chance.
///
/// ```
/// use std::time::Duration;
/// use fulmar_lab::{Connecting, Lab, Workload};
/// use fulmar_sim::LinkConfig;
///
/// let link = LinkConfig::with_rate(10_000_000, Duration::from_millis(20), Duration::from_millis(50));
/// let report = Lab::new(7)
///     .link(link.clone(), link)
///     .connection(Connecting::new(Workload::upload(100_000)))
///     .run()?;
/// assert_eq!(report.connections[0].server.bytes_read, 100_000);
/// # Ok::<(), fulmar_lab::Failure>(())
/// ```
#[derive(Debug, Clone)]
pub struct Lab {
    pub(crate) seed: u64,
    pub(crate) up: LinkConfig,
    pub(crate) down: LinkConfig,
    pub(crate) hops: Vec<(LinkConfig, LinkConfig)>,
    pub(crate) paths: Vec<LabPath>,
    pub(crate) client: TransportConfig,
    pub(crate) server: TransportConfig,
    pub(crate) client_versions: Vec<Version>,
    pub(crate) server_versions: Option<Vec<Version>>,
    pub(crate) server_workload: Workload,
    pub(crate) connections: Vec<Connecting>,
    pub(crate) limits: Limits,
    pub(crate) watch_from: Option<Instant>,
    pub(crate) log_entries: usize,
    pub(crate) nat: Option<NatConfig>,
    pub(crate) shifts: Vec<(Duration, Shift)>,
    pub(crate) watched_sender: Option<Side>,
    pub(crate) capture: Option<Side>,
    pub(crate) remember_paths: bool,
    pub(crate) initial_version: Option<Version>,
    pub(crate) retry: RetryPolicy,
    pub(crate) resume: bool,
    pub(crate) early_data: bool,
    pub(crate) cids: [Option<Arc<dyn CidGenerator>>; 2],
}

/// The address of the server, where a path does not have another one.
pub(crate) const SERVER_ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));

/// A link between an address of the client and one of the server.
#[derive(Debug, Clone)]
pub struct LabPath {
    /// What it is called in reports.
    pub name: String,
    /// The client's address, which no other path has.
    pub client: IpAddr,
    /// The server's address.
    pub server: IpAddr,
    /// From the client to the server.
    pub up: LinkConfig,
    /// From the server to the client.
    pub down: LinkConfig,
    /// Whether the client wants it as a backup.
    pub is_backup: bool,
    /// When the client abandons it, after the beginning of the run, if it is open then and not the only one.
    pub abandoned_at: Option<Duration>,
}

/// Paths that a client opens and abandons beside its work, over the pairs of addresses on which the connection did not begin. Those
/// are not kept open then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Churn {
    /// How many, one after another.
    pub paths: u32,
    /// How long each is open.
    pub each: Duration,
}

/// What changes the client's address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shift {
    /// The NAT before the client forgets its mappings; neither the client nor the server is told.
    Rebinding,
    /// The client moves to another address of its own, and its connections with it. It still receives at the old
    /// one.
    Move,
    /// As [`Shift::Move`], but the client leaves no socket behind: what is on its way to the old address is lost.
    Leap,
}

/// When a run is given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Virtual time.
    pub time: Duration,
    /// How often the time may stop because something happens.
    pub steps: u64,
}

impl Default for Limits {
    /// An hour of virtual time, or ten million steps.
    fn default() -> Self {
        Self { time: Duration::from_secs(3_600), steps: 10_000_000 }
    }
}

impl Lab {
    /// A perfect link, default configurations and no connections.
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            up: LinkConfig::default(),
            down: LinkConfig::default(),
            hops: Vec::new(),
            paths: Vec::new(),
            client: TransportConfig::default(),
            server: TransportConfig::default(),
            client_versions: vec![Version::V1],
            server_versions: None,
            server_workload: Workload::default(),
            connections: Vec::new(),
            limits: Limits::default(),
            watch_from: None,
            log_entries: 0,
            nat: None,
            shifts: Vec::new(),
            watched_sender: None,
            capture: None,
            remember_paths: false,
            initial_version: None,
            retry: RetryPolicy::default(),
            resume: false,
            early_data: false,
            cids: [None, None],
        }
    }

    /// The link: from the client to the server, and back.
    #[must_use]
    pub fn link(self, up: LinkConfig, down: LinkConfig) -> Self {
        Self { up, down, ..self }
    }

    /// One more link between that and the server, behind a router: from the client to the server, and back.
    #[must_use]
    pub fn hop(mut self, up: LinkConfig, down: LinkConfig) -> Self {
        self.hops.push((up, down));
        self
    }

    /// One more path, beside the others. Connections begin on the first one, if they do not say otherwise. With paths, what [`link`](Self::link)
    /// says does not count, and [`hop`](Self::hop)s lie behind all of them.
    #[must_use]
    pub fn path(mut self, path: LabPath) -> Self {
        self.paths.push(path);
        self
    }

    /// The client's configuration.
    #[must_use]
    pub fn client(self, client: TransportConfig) -> Self {
        Self { client, ..self }
    }

    /// The server's configuration.
    #[must_use]
    pub fn server(self, server: TransportConfig) -> Self {
        Self { server, ..self }
    }

    /// One configuration for both sides.
    #[must_use]
    pub fn both(self, config: TransportConfig) -> Self {
        Self { client: config.clone(), server: config, ..self }
    }

    /// The versions that the client speaks; it starts with the first one.
    #[must_use]
    pub fn client_versions(self, client_versions: Vec<Version>) -> Self {
        Self { client_versions, ..self }
    }

    /// The versions that the server speaks; without a word, those of an endpoint by default.
    #[must_use]
    pub fn server_versions(self, server_versions: Vec<Version>) -> Self {
        Self { server_versions: Some(server_versions), ..self }
    }

    /// The version in which the client begins, if it is not the first of its versions.
    #[must_use]
    pub fn initial_version(self, version: Version) -> Self {
        Self { initial_version: Some(version), ..self }
    }

    /// When the server asks for a proof of the client's address.
    #[must_use]
    pub fn retry(self, retry: RetryPolicy) -> Self {
        Self { retry, ..self }
    }

    /// The client remembers the server from one connection to the next, and resumes its sessions.
    #[must_use]
    pub fn resume(self) -> Self {
        Self { resume: true, ..self }
    }

    /// As [`Lab::resume`], and the client's application begins before the handshake is complete where it can (0-RTT).
    #[must_use]
    pub fn early_data(self) -> Self {
        Self { resume: true, early_data: true, ..self }
    }

    /// What makes the connection IDs of one side; without a word, they are 8 random bytes.
    #[must_use]
    pub fn cids(mut self, side: Side, generator: Arc<dyn CidGenerator>) -> Self {
        self.cids[usize::from(side.is_server())] = Some(generator);
        self
    }

    /// What the server does with each connection.
    #[must_use]
    pub fn server_workload(self, server_workload: Workload) -> Self {
        Self { server_workload, ..self }
    }

    /// One more connection.
    #[must_use]
    pub fn connection(mut self, connecting: Connecting) -> Self {
        self.connections.push(connecting);
        self
    }

    /// When the run is given up.
    #[must_use]
    pub fn limits(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    /// Reports the first packet that reaches its end at this time or later.
    #[must_use]
    pub fn watch_from(self, at: Instant) -> Self {
        Self { watch_from: Some(at), ..self }
    }

    /// Records what the ends note, up to so many entries each, and the course of the link:
    /// [`RunReport::recording`]. That changes nothing in the run.
    #[must_use]
    pub fn recorded(mut self, log_entries: usize) -> Self {
        self.log_entries = log_entries;
        self.client.log_entries = log_entries;
        self.server.log_entries = log_entries;
        for own in self.connections.iter_mut().filter_map(|connecting| connecting.transport.as_mut()) {
            Arc::make_mut(own).log_entries = log_entries;
        }
        self
    }

    /// Puts a NAT between the client and the link.
    #[must_use]
    pub fn nat(self, nat: NatConfig) -> Self {
        Self { nat: Some(nat), ..self }
    }

    /// Changes the client's address so long after the beginning of the run, or later, when every connection that
    /// has begun has completed its handshake: until then both ends rely on their addresses (RFC 9000 §9).
    #[must_use]
    pub fn shift(mut self, at: Duration, shift: Shift) -> Self {
        self.shifts.push((at, shift));
        self.shifts.sort_by_key(|(at, _)| *at);
        self
    }

    /// Reports when which packet of this side reached its end.
    #[must_use]
    pub fn watch_packets_of(self, sender: Side) -> Self {
        Self { watched_sender: Some(sender), ..self }
    }

    /// Keeps the packets that this side sends and receives, with the secrets that open them, for the report.
    #[must_use]
    pub fn capture_at(self, side: Side) -> Self {
        Self { capture: Some(side), ..self }
    }

    /// Each connection starts, at both ends, with the congestion control parameters that the one before it has
    /// learned (RFC 9959), and the client shows the address tokens that it was given.
    #[must_use]
    pub fn remember_paths(self) -> Self {
        Self { remember_paths: true, ..self }
    }

    /// The world at its beginning, to be driven by hand.
    ///
    /// # Errors
    /// A configuration makes no sense.
    pub fn start(self) -> Result<Simulation, ConfigError> {
        Simulation::new(self)
    }

    /// Lets it all happen: until every connection has ended and both endpoints have forgotten them.
    ///
    /// # Errors
    /// Something happened that must not, or something that must happen did not.
    pub fn run(self) -> Result<RunReport, Failure> {
        let seed = self.seed;
        match self.start() {
            Ok(simulation) => simulation.run(),
            Err(error) => Err(Failure::before_start(seed, error.to_string())),
        }
    }
}
