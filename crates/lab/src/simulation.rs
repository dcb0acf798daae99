//! The loop: packets arrive, hosts act, the time goes on.
//!
//! | file | what it owns |
//! |---|---|
//! | `addresses` | where the ends are, and how the client changes its address |
//! | `network` | the nodes and the links between them |
//! | `plan` | the connections that the client makes |
//! | `verdict` | what must be true in the end |
//! | `window` | the part of the run that its rates are about |
//! | `records` | what is told of the run |

mod addresses;
mod network;
mod plan;
mod records;
mod verdict;
mod window;

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use fulmar_base::{Instant, Rng};
use fulmar_proto::{ConfigError, Connection, ServerConfig, Side};
use fulmar_sim::{Delivery, NodeId, Packet, World};

use self::addresses::{client_addresses, client_paths, server_addresses};
use self::network::Network;
use self::plan::{Planned, plan};
use self::window::WindowWatch;
use crate::capture::{Capture, Secrets};
use crate::host::Outbox;
use crate::lab::{Lab, Limits, Shift};
use crate::{Failure, Host, RunReport, Session, Trace, Workload};

/// How often something may happen at one instant: on a link without delay that is a whole conversation.
const STEPS_AT_ONCE_MAX: u64 = 200_000;

/// The port of the server, at all of its addresses.
const SERVER_PORT: u16 = 443;

/// The code and the words that close connections in the lab.
const CLOSE_CODE: u32 = 77;
const CLOSE_REASON: &[u8] = b"the workload is done";

/// A run under way: a client and a server in a [`World`].
#[derive(Debug)]
pub struct Simulation {
    seed: u64,
    world: World,
    network: Network,
    ends: [End; 2],
    /// Changes of the client's address that are to come.
    shifts: VecDeque<(Instant, Shift)>,
    moves: u16,
    server_config: ServerConfig,
    planned: Vec<Planned>,
    trace: Trace,
    limits: Limits,
    watch_from: Option<Instant>,
    first_watched: Option<Instant>,
    capture: Option<Capture>,
    /// The side whose packets are watched, and which of them arrived when.
    watched_sender: Option<Side>,
    arrivals: Vec<(Instant, u32)>,
    window: WindowWatch,
    /// What the applications of each connection had read when the first one was done that is no preparation.
    first_end: Option<Vec<u64>>,
    steps: u64,
    steps_at_once: u64,
}

/// A host and its place in the world.
#[derive(Debug)]
struct End {
    node: NodeId,
    host: Host,
}

impl Simulation {
    pub(crate) fn new(mut lab: Lab) -> Result<Self, ConfigError> {
        let secrets = lab.capture.map(|side| (side, Arc::<Secrets>::default()));
        let log = secrets.as_ref().map(|(_, secrets)| secrets.clone());
        let (client_config, server_config) = (lab.client_config(log)?, lab.server_config()?);
        let capture = secrets.map(|(side, secrets)| Capture::new(side, secrets));
        let planned = plan(std::mem::take(&mut lab.connections), &client_config)?;
        crate::crypto::seed(lab.seed);
        let mut rng = Rng::from_u64(lab.seed);
        let mut world = World::new(rng.u64());
        let (remember_paths, early_data) = (lab.remember_paths, lab.early_data);
        let mut end = |side: Side, addresses: Vec<IpAddr>, port, server, workload| {
            let address = SocketAddr::from((addresses[0], port));
            let node = world.add_node(addresses);
            let config = lab.endpoint_config(side);
            let host = Host::new(side, address, config, server, workload, rng.fork());
            let paths = if side.is_client() { client_paths(&lab.paths) } else { Vec::new() };
            let host = host.paths(paths);
            End { node, host: host.remember_paths(remember_paths).early_data(early_data) }
        };
        let server = Some(server_config.clone());
        let ends = [
            end(Side::Client, client_addresses(&lab.paths), 1_000, None, Workload::default()),
            end(Side::Server, server_addresses(&lab.paths), SERVER_PORT, server, lab.server_workload.clone()),
        ];
        let nodes = [ends[0].node, ends[1].node];
        let network = Network::new(&mut world, &mut lab, nodes, ends[1].host.address().ip());
        let shifts = lab.shifts.iter().map(|(at, shift)| (Instant::ZERO + *at, *shift)).collect();
        Ok(Self {
            seed: lab.seed,
            world,
            network,
            ends,
            shifts,
            window: WindowWatch::default(),
            moves: 0,
            server_config,
            planned,
            trace: Trace::default(),
            limits: lab.limits,
            watch_from: lab.watch_from,
            first_watched: None,
            capture,
            watched_sender: lab.watched_sender,
            arrivals: Vec::new(),
            first_end: None,
            steps: 0,
            steps_at_once: 0,
        })
    }

    /// The virtual time.
    pub fn now(&self) -> Instant {
        self.world.now()
    }

    /// The client.
    pub fn client(&self) -> &Host {
        &self.ends[0].host
    }

    /// The server.
    pub fn server(&self) -> &Host {
        &self.ends[1].host
    }

    /// A connection of the client, to do something with it that its application does not do.
    ///
    /// # Panics
    /// Panics if there were not so many connections.
    pub fn client_connection(&mut self, session: usize) -> &mut Connection {
        self.ends[0].host.connection_mut(session)
    }

    /// A connection of the server.
    ///
    /// # Panics
    /// Panics if there were not so many connections.
    pub fn server_connection(&mut self, session: usize) -> &mut Connection {
        self.ends[1].host.connection_mut(session)
    }

    /// What happened to the packets from one side to the other, on all paths together.
    pub fn link_stats(&self, from: Side) -> fulmar_sim::LinkStats {
        self.network.stats(&self.world, from)
    }

    /// Whether both ends of every connection that has begun know that its handshake is confirmed, or have forgotten
    /// it.
    fn are_handshakes_over(&self) -> bool {
        let is_over = |session: &Session| {
            session.connection().is_drained()
                || (session.application().is_confirmed() && !session.connection().is_closed())
        };
        let clients = self.client().sessions();
        (0..clients.len()).all(|client| {
            let server = self.peer_of(client).map(|server| &self.server().sessions()[server]);
            is_over(&clients[client]) && server.map_or(clients[client].connection().is_drained(), is_over)
        })
    }

    /// The server forgets everything but its keys and its configuration.
    pub fn restart_server(&mut self) {
        self.ends[1].host.restart(Some(self.server_config.clone()));
    }

    /// The client sends bytes that are no connection's.
    pub fn send_from_client(&mut self, payload: &[u8]) {
        let (source, destination) = (self.client().address(), self.server().address());
        let packet = Packet::new(source, destination, fulmar_sim::Ecn::NotEct, payload.to_vec());
        self.world.send(self.ends[0].node, packet);
    }

    /// Lets the time pass.
    ///
    /// # Errors
    /// Something happened that must not.
    pub fn run_for(&mut self, duration: Duration) -> Result<(), Failure> {
        let end = self.now() + duration;
        self.act()?;
        while self.now() < end {
            self.pass(end);
            self.act()?;
        }
        Ok(())
    }

    /// Lets the time pass until `done`, at most for `duration`.
    ///
    /// # Errors
    /// Something happened that must not, or the time is over.
    pub fn run_until(&mut self, duration: Duration, done: impl Fn(&Self) -> bool) -> Result<(), Failure> {
        match self.passes_until(duration, done)? {
            true => Ok(()),
            false => Err(self.failure("hangs: what must happen did not happen in time")),
        }
    }

    /// Lets the time pass until `done`, at most for `duration`. Returns whether it came to that.
    fn passes_until(&mut self, duration: Duration, done: impl Fn(&Self) -> bool) -> Result<bool, Failure> {
        let end = self.now() + duration;
        loop {
            self.act()?;
            if done(self) {
                return Ok(true);
            }
            if self.now() >= end {
                return Ok(false);
            }
            self.pass(end);
        }
    }

    /// Lets it all happen, and looks back.
    ///
    /// # Errors
    /// Something happened that must not, or something that must happen did not.
    pub fn run(mut self) -> Result<RunReport, Failure> {
        let outcome = self.run_to_the_end();
        let capture = self.capture.as_ref().map(Capture::finish);
        match outcome {
            Ok(()) => Ok(RunReport { capture, ..self.report() }),
            Err(failure) => Err(Failure { capture, ..failure }),
        }
    }

    fn run_to_the_end(&mut self) -> Result<(), Failure> {
        let limit = self.limits.time;
        if !self.passes_until(limit, Self::is_over)? {
            let limit = limit.as_secs_f64();
            let what =
                format!("hangs, or needs more time: it is not over after {limit} s, the limit (`limit_s`)");
            return Err(self.failure(&what));
        }
        self.check_end().map_err(|what| self.failure(&what))
    }

    /// Whether all planned connections have come and gone.
    fn is_over(&self) -> bool {
        let started = self.planned.iter().all(|planned| planned.session.is_some());
        started && self.ends.iter().all(|end| end.host.endpoint().open_connections() == 0)
    }

    /// Everything that happens at this instant.
    fn act(&mut self) -> Result<(), Failure> {
        self.try_act().map_err(|what| self.failure(&what))
    }

    fn try_act(&mut self) -> Result<(), String> {
        self.start_connections()?;
        loop {
            let mut quiet = true;
            while let Some(delivery) = self.world.poll_delivery() {
                quiet = false;
                self.deliver(&delivery)?;
                self.world.buffers().put(delivery.packet.payload);
            }
            for end in [0, 1] {
                self.service(end)?;
            }
            self.close_connections();
            self.shift_client();
            for end in [0, 1] {
                self.service(end)?;
            }
            self.count_step()?;
            if quiet {
                self.watch_window();
                return Ok(());
            }
        }
    }

    fn count_step(&mut self) -> Result<(), String> {
        self.steps += 1;
        self.steps_at_once += 1;
        if self.steps > self.limits.steps || self.steps_at_once > STEPS_AT_ONCE_MAX {
            return Err(format!("{} steps, {} of them at one instant", self.steps, self.steps_at_once));
        }
        Ok(())
    }

    /// Moves the time to the next thing that happens, at most to `end`.
    fn pass(&mut self, end: Instant) {
        let starts = (0..self.planned.len()).filter_map(|number| self.start_time(number));
        // A cut that is due and was not made waits for the server to know of the connection.
        let cuts = self.planned.iter().filter_map(|planned| self.cut_time(planned));
        let cuts = cuts.filter(|at| *at > self.now());
        let now = self.now();
        let shifts = self.shifts.front().map(|(at, _)| *at).filter(|at| *at > now);
        let wakes = self.ends.iter().filter_map(|end| end.host.next_wake());
        let next = starts.chain(cuts).chain(shifts).chain(wakes).min().unwrap_or(Instant::FAR_FUTURE);
        let before = self.now();
        if self.world.advance(next.clamp(before, end)) > before {
            self.steps_at_once = 0;
        }
    }

    fn deliver(&mut self, delivery: &Delivery) -> Result<(), String> {
        self.trace.on_delivered(delivery);
        if self.first_watched.is_none() && self.watch_from.is_some_and(|from| from <= delivery.at) {
            self.first_watched = Some(delivery.at);
        }
        let end = usize::from(delivery.node == self.ends[1].node);
        if self.watched_sender.is_some_and(|sender| index(sender) != end) {
            self.arrivals.push((delivery.at, delivery.packet.payload.len() as u32));
        }
        if let Some(capture) = &mut self.capture {
            capture.on_packet(SIDES[end], delivery.at, &delivery.packet);
        }
        self.with_outbox(end, |host, outbox| host.receive(&delivery.packet, outbox))
    }

    fn service(&mut self, end: usize) -> Result<(), String> {
        self.with_outbox(end, Host::service)
    }

    fn with_outbox(
        &mut self,
        end: usize,
        action: impl FnOnce(&mut Host, &mut Outbox<'_>) -> Result<(), String>,
    ) -> Result<(), String> {
        let Self { world, trace, ends, capture, .. } = self;
        let End { node, host } = &mut ends[end];
        let now = world.now();
        let side = SIDES[end];
        action(host, &mut Outbox { now, node: *node, world, trace, side, capture })
    }

    /// The server's session of the connection that is the client's session `client`.
    pub fn peer_of(&self, client: usize) -> Option<usize> {
        let key = self.client().sessions().get(client)?.application().key()?;
        self.server().sessions().iter().position(|session| session.application().key() == Some(key))
    }

    fn failure(&self, what: &str) -> Failure {
        let state = self.ends.iter().map(|end| end.host.describe()).collect::<Vec<_>>().join("\n");
        Failure::new(self.seed, self.now(), what, state)
    }
}

/// The sides by the index of their ends.
const SIDES: [Side; 2] = [Side::Client, Side::Server];

fn index(side: Side) -> usize {
    usize::from(side.is_server())
}
