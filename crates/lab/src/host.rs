//! A host: an endpoint, its connections and their applications.
//!
//! It does what the loop around a socket does on a real network - hand datagrams to connections, call them when
//! their timers ring, send what they want sent - and watches that they behave.

mod client_paths;
mod outbox;
mod race;
mod session;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::BytesMut;
use fulmar_base::{Instant, Rng};
use fulmar_proto::{
    ClientConfig, Connection, ConnectionHandle, Datagram, DropReason, EarlyData, Ecn, Endpoint,
    EndpointConfig, FourTuple, Route, ServerConfig, Side, TimerReason, Transmit, TransmitBatch,
};
use fulmar_sim::{Distribution, Packet};

use self::client_paths::ClientPaths;
use self::race::{Race, Rival};
use crate::checkers::{Amplification, Flight, Kept};
use crate::{Application, Workload};

pub(crate) use self::client_paths::ClientPath;
pub(crate) use self::outbox::Outbox;
pub use self::session::{Peaks, Session};

/// What the content of applications is made of that begin before their handshake.
const EARLY_KEY: u64 = 0x0e4a_71da;
/// Datagrams in a train.
const SEGMENTS_MAX: usize = 10;
/// Timers that may ring in a connection at one instant: each kind in each packet number space, and some to spare.
const RINGS_MAX: u32 = 32;

/// A host in the [`Simulation`](crate::Simulation).
#[derive(Debug)]
pub struct Host {
    side: Side,
    address: SocketAddr,
    config: Arc<EndpointConfig>,
    endpoint: Endpoint,
    batch: TransmitBatch,
    rng: Rng,
    sessions: Vec<Session>,
    by_handle: BTreeMap<ConnectionHandle, usize>,
    /// Sessions to which something has happened.
    dirty: BTreeSet<usize>,
    /// When which session wants to be woken.
    wakes: BTreeSet<(Instant, usize)>,
    /// What the applications of accepted connections do.
    workload: Workload,
    datagrams_dropped: u64,
    /// What the endpoint keeps for connections that it does not have yet.
    kept: Kept,
    replies_sent: u64,
    /// Addresses at which it receives nothing any more.
    closed: BTreeSet<SocketAddr>,
    /// Whether a connection starts with what the one before it knew of the path.
    remembers_paths: bool,
    /// Whether applications begin before the handshake is complete, where they can.
    early_data: bool,
    /// The pairs of addresses over which its connections have paths.
    paths: Vec<ClientPath>,
}

impl Host {
    pub(crate) fn new(
        side: Side,
        address: SocketAddr,
        config: EndpointConfig,
        server: Option<ServerConfig>,
        workload: Workload,
        mut rng: Rng,
    ) -> Self {
        let config = Arc::new(config);
        Self {
            side,
            address,
            endpoint: Endpoint::new(config.clone(), server.map(Arc::new), rng.bytes()),
            config,
            batch: TransmitBatch::new(SEGMENTS_MAX),
            rng,
            sessions: Vec::new(),
            by_handle: BTreeMap::new(),
            dirty: BTreeSet::new(),
            wakes: BTreeSet::new(),
            workload,
            datagrams_dropped: 0,
            kept: Kept::default(),
            replies_sent: 0,
            closed: BTreeSet::new(),
            remembers_paths: false,
            early_data: false,
            paths: Vec::new(),
        }
    }

    /// Applications begin as early as they can.
    pub(crate) fn early_data(self, early_data: bool) -> Self {
        Self { early_data, ..self }
    }

    /// Its connections have a path over each of these pairs of addresses, as far as both ends allow.
    pub(crate) fn paths(self, paths: Vec<ClientPath>) -> Self {
        Self { paths, ..self }
    }

    pub(crate) fn remember_paths(self, remembers_paths: bool) -> Self {
        Self { remembers_paths, ..self }
    }

    /// The address of its one socket.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The socket in use is closed, and is about to be replaced: nothing is received there any more.
    pub(crate) fn close_socket(&mut self) {
        self.closed.insert(self.address);
    }

    /// Its socket is bound to another address from now on, and its connections move there. Returns how many of
    /// them refused; the server of those sees what a NAT might have done.
    pub(crate) fn rebind(&mut self, now: Instant, address: SocketAddr) -> usize {
        self.address = address;
        let mut refused = 0;
        for (number, session) in self.sessions.iter_mut().enumerate() {
            if !session.connection.is_closed() {
                if session.connection.migrate(now, None).is_err() {
                    // Whatever the connection says, the socket is another one.
                    let _ = session.connection.follow_socket(now, &|_| false);
                    refused += 1;
                }
                self.dirty.insert(number);
            }
        }
        refused
    }

    /// Its endpoint.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// All connections so far, in the order of their beginning.
    pub fn sessions(&self) -> &[Session] {
        &self.sessions
    }

    /// A connection, to do something with it that its application does not do. The session is woken afterwards.
    ///
    /// # Panics
    /// Panics if there were not so many connections.
    pub fn connection_mut(&mut self, session: usize) -> &mut Connection {
        self.dirty.insert(session);
        &mut self.sessions[session].connection
    }

    /// Datagrams that the endpoint had no use for.
    pub fn datagrams_dropped(&self) -> u64 {
        self.datagrams_dropped
    }

    /// Answers that the endpoint gave without a connection.
    pub fn replies_sent(&self) -> u64 {
        self.replies_sent
    }

    /// The state of the host and its connections, for a failure's report.
    pub(crate) fn describe(&self) -> String {
        let mut text = format!("{:?}: {} connections open\n", self.side, self.endpoint.open_connections());
        for (number, session) in self.sessions.iter().enumerate() {
            text.push_str(&format!("  connection {number}: {}\n", session.describe()));
        }
        text
    }

    /// The host forgets all of its connections, as a machine that starts anew. Its configuration stays.
    pub(crate) fn restart(&mut self, server: Option<ServerConfig>) {
        self.endpoint = Endpoint::new(self.config.clone(), server.map(Arc::new), self.rng.bytes());
        self.by_handle.clear();
        self.dirty.clear();
        self.wakes.clear();
        self.sessions.clear();
    }

    /// Begins a connection between these addresses. Returns the number of its session.
    pub(crate) fn connect(
        &mut self,
        now: Instant,
        config: &ClientConfig,
        addrs: FourTuple,
        workload: Workload,
    ) -> Result<usize, String> {
        let (handle, connection) = self
            .endpoint
            .connect(now, config, addrs, crate::crypto::SERVER_NAME)
            .map_err(|error| format!("cannot connect: {error}"))?;
        let number = self.add_session(now, handle, connection, workload);
        // Data that has gone out before the handshake belongs to this one attempt.
        let others: VecDeque<FourTuple> =
            self.paths.iter().map(|path| path.addrs).filter(|pair| *pair != addrs).collect();
        let is_early = self.early_data && self.sessions[number].connection.early_data() == EarlyData::Offered;
        if config.transport().multipath.is_some() && !others.is_empty() && !is_early {
            self.sessions[number].race = Some(Race::new(now, config, others));
        }
        Ok(number)
    }

    /// Begins one more attempt at a connection whose handshake takes long, if it is time and there is another path.
    fn attempt_elsewhere(&mut self, now: Instant, number: usize) -> Result<(), String> {
        let race = self.sessions[number].race.as_mut();
        let Some((config, addrs)) = race.and_then(|race| race.next_attempt(now)) else { return Ok(()) };
        let (handle, connection) = self
            .endpoint
            .connect(now, &config, addrs, crate::crypto::SERVER_NAME)
            .map_err(|error| format!("cannot connect: {error}"))?;
        self.by_handle.insert(handle, number);
        self.sessions[number].rivals.push(Rival { handle, connection, started: now });
        Ok(())
    }

    fn add_session(
        &mut self,
        now: Instant,
        handle: ConnectionHandle,
        mut connection: Connection,
        workload: Workload,
    ) -> usize {
        let number = self.sessions.len();
        let churn = workload.churn;
        let mut application = Application::new(self.side, workload, self.rng.fork());
        if self.early_data {
            application.begin_early(now, &connection, EARLY_KEY);
        }
        let last = self.sessions.last().filter(|_| self.remembers_paths);
        if let Some(saved) = last.and_then(|session| session.connection.congestion_parameters()) {
            connection.resume_congestion(saved);
        }
        let own = connection.paths().next().map(|path| path.addrs);
        self.by_handle.insert(handle, number);
        self.dirty.insert(number);
        self.sessions.push(Session {
            handle,
            connection,
            application,
            manager: ClientPaths::new(&self.paths, churn, own),
            amplification: self.side.is_server().then(Amplification::default),
            flight: Flight::default(),
            peaks: Peaks::default(),
            rtts: Distribution::default(),
            started: now,
            attempted: now,
            race: None,
            rivals: Vec::new(),
            wake: None,
        });
        number
    }

    /// A packet arrived.
    pub(crate) fn receive(&mut self, packet: &Packet, outbox: &mut Outbox<'_>) -> Result<(), String> {
        if self.closed.contains(&packet.destination) {
            return Ok(());
        }
        let addrs = FourTuple::new(packet.source, Some(packet.destination.ip()));
        let ecn = Ecn::from_bits(packet.ecn.bits());
        let datagram = Datagram { addrs, ecn, payload: BytesMut::from(packet.payload.as_slice()) };
        match self.endpoint.handle_datagram(outbox.now, datagram, &mut self.batch) {
            Route::Connection(handle, datagram) => {
                let number = self.session_of(handle)?;
                self.dirty.insert(number);
                let session = &mut self.sessions[number];
                session.note_received(&packet.payload, self.config.cid_generator.cid_len());
                session.connection_of(handle).handle_datagram(outbox.now, datagram);
            }
            Route::Incoming(incoming) => {
                let validated = incoming.is_validated();
                let accepted = self.endpoint.accept(outbox.now, incoming);
                let (handle, connection) = accepted.map_err(|error| format!("cannot accept: {error}"))?;
                let workload = self.workload.clone();
                let number = self.add_session(outbox.now, handle, connection, workload);
                if let Some(amplification) =
                    self.sessions[number].amplification.as_mut().filter(|_| validated)
                {
                    amplification.validate();
                }
                let cid_len = self.config.cid_generator.cid_len();
                for payload in self.kept.take(packet.source, &packet.payload, cid_len) {
                    self.sessions[number].note_received(&payload, cid_len);
                }
                self.sessions[number].note_received(&packet.payload, cid_len);
            }
            Route::Reply(transmit) => self.reply(&transmit, packet, outbox)?,
            Route::Dropped(reason) => {
                self.datagrams_dropped += 1;
                if reason == DropReason::Buffered {
                    self.kept.keep(packet.source, &packet.payload, self.config.cid_generator.cid_len());
                }
            }
        }
        Ok(())
    }

    fn reply(&mut self, transmit: &Transmit, to: &Packet, outbox: &mut Outbox<'_>) -> Result<(), String> {
        self.replies_sent += 1;
        // RFC 9000 §8.1 and §10.3.3: answers without state must not amplify.
        if transmit.len > to.payload.len() {
            return Err(format!("an answer of {} bytes to {}", transmit.len, to.payload.len()));
        }
        outbox.send(to.destination, transmit.addrs.remote, transmit.ecn, self.batch.bytes());
        Ok(())
    }

    fn session_of(&self, handle: ConnectionHandle) -> Result<usize, String> {
        let number = self.by_handle.get(&handle).copied();
        number.ok_or_else(|| format!("a datagram was routed to {handle:?}, which does not exist"))
    }

    /// When a connection or an application wants to be woken.
    pub(crate) fn next_wake(&self) -> Option<Instant> {
        self.wakes.first().map(|(at, _)| *at)
    }

    /// Lets all sessions go on to which something happened, or whose time has come.
    pub(crate) fn service(&mut self, outbox: &mut Outbox<'_>) -> Result<(), String> {
        while let Some(&(at, number)) = self.wakes.first()
            && at <= outbox.now
        {
            self.wakes.remove(&(at, number));
            self.dirty.insert(number);
        }
        while let Some(number) = self.dirty.pop_first() {
            self.service_session(number, outbox)
                .map_err(|what| format!("{what} ({:?} connection {number})", self.side))?;
        }
        Ok(())
    }

    fn service_session(&mut self, number: usize, outbox: &mut Outbox<'_>) -> Result<(), String> {
        self.attempt_elsewhere(outbox.now, number)?;
        let session = &mut self.sessions[number];
        if let Some(at) = session.wake.take() {
            self.wakes.remove(&(at, number));
        }
        for ring in 0.. {
            session.decide_race(outbox.now);
            session.application.run(outbox.now, &mut session.connection)?;
            session.manage_paths(outbox.now);
            session.transmit(self.address, &mut self.batch, outbox)?;
            session.service_rivals(self.address, &mut self.batch, outbox)?;
            // Sending may have ended the connection.
            session.application.run(outbox.now, &mut session.connection)?;
            let rivals = session.rivals.iter_mut().map(|rival| (rival.handle, &mut rival.connection));
            for (handle, connection) in rivals.chain([(session.handle, &mut session.connection)]) {
                while let Some(event) = connection.poll_endpoint_event() {
                    if event.is_drained() {
                        self.by_handle.remove(&handle);
                    }
                    self.endpoint.handle_event(handle, event);
                }
            }
            match session.connection.poll_timeout() {
                // Whoever set it should have acted at once. Only a probe may be overdue: an acknowledgement ends the backoff and
                // shortens the timeout, which began when the last packet was sent (RFC 9002 §6.2.1).
                Some((at, reason)) if at < outbox.now && reason != TimerReason::Probe => {
                    let late = outbox.now.saturating_since(at);
                    return Err(format!("the timer {reason:?} lies {late:?} in the past"));
                }
                Some((at, _)) if at <= outbox.now && ring < RINGS_MAX => {
                    session.connection.handle_timeout(outbox.now);
                }
                Some((at, reason)) if at <= outbox.now => {
                    return Err(format!("spins: the timer {reason:?} rings without end"));
                }
                _ => break,
            }
        }
        session.wake = session.next_wake();
        if let Some(at) = session.wake {
            self.wakes.insert((at, number));
        }
        Ok(())
    }
}
