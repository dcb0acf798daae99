//! A client and a server, joined by a wire of 5 ms in each direction that a test can spoil.

#![allow(dead_code, unused_imports, unreachable_pub, reason = "each test file uses a part of it")]

mod addresses;
mod certificates;
mod end;
pub mod friends;
mod two_paths;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use fulmar_proto::{
    AddressValidation, CidGenerator, ClientConfig, ConnectionError, Dir, Ecn, EndpointConfig, EndpointShared,
    Event, FourTuple, Instant, PathEvent, RandomCids, ReadError, ResetKey, ServerConfig, SessionStore, Side,
    StreamId, TransportConfig, Version,
};

pub use addresses::{addr, appear_at, lose_first_at};
pub use certificates::{
    certificate, certificate_for, client_tls, client_tls_of_one_packet, client_tls_that_trusts,
    client_tls_with, large_chain, server_tls, server_tls_with,
};
pub use end::{Answer, End};
pub use two_paths::{OTHER, SECOND, multipath_config};

pub const CLIENT: &str = "10.0.0.1:1000";
pub const SERVER: &str = "10.0.0.2:443";
pub const ALPN: &[u8] = b"test";
pub const DELAY: Duration = Duration::from_millis(5);

/// A datagram on its way.
#[derive(Debug, Clone)]
pub struct Flying {
    /// When it leaves, and on the other side when it arrives.
    pub at: Instant,
    pub from: SocketAddr,
    /// Where it arrived, if the receiver is told.
    pub to: Option<SocketAddr>,
    pub ecn: Ecn,
    pub payload: Vec<u8>,
}

/// What becomes of a datagram that a connection sends: nothing, itself, or others in its place.
pub type Wire = Box<dyn FnMut(Flying) -> Vec<Flying>>;

/// What both ends are made of.
pub struct Setup {
    pub client: TransportConfig,
    pub server: TransportConfig,
    pub client_tls: rustls::ClientConfig,
    pub server_tls: rustls::ServerConfig,
    pub server_name: &'static str,
    pub client_versions: Vec<Version>,
    pub initial_version: Option<Version>,
    pub server_versions: Vec<Version>,
    pub early_data: bool,
    /// Where the server asks clients to move to.
    pub preferred: Option<SocketAddr>,
    /// The address that the client asks its socket to send from.
    pub client_ip: Option<IpAddr>,
    pub client_cids: Arc<dyn CidGenerator>,
    pub server_cids: Arc<dyn CidGenerator>,
    pub validation: AddressValidation,
    pub sessions: Option<Arc<SessionStore>>,
    pub answer: Answer,
    /// What the server's endpoint shares with others.
    pub server_shared: Option<Arc<EndpointShared>>,
    /// Decides the connection IDs.
    pub seed: u8,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            client: TransportConfig::default(),
            server: TransportConfig::default(),
            client_tls: client_tls(),
            server_tls: server_tls(),
            server_name: "localhost",
            client_versions: vec![Version::V1],
            initial_version: None,
            server_versions: vec![Version::V1],
            early_data: false,
            preferred: None,
            client_ip: None,
            client_cids: Arc::new(RandomCids::new(8)),
            server_cids: Arc::new(RandomCids::new(8)),
            validation: AddressValidation::default(),
            sessions: None,
            answer: Answer::Accept,
            server_shared: None,
            seed: 0,
        }
    }
}

impl Setup {
    /// Both ends, of which the client's first datagrams are ready to be sent.
    pub fn dial(self) -> Pair {
        let endpoint = |key: u8| EndpointConfig::new(ResetKey::new(&[key; 32]));
        let (versions, initial_version) = (self.client_versions, self.initial_version);
        let client_endpoint =
            EndpointConfig { versions, initial_version, cid_generator: self.client_cids, ..endpoint(1) };
        let server_endpoint =
            EndpointConfig { versions: self.server_versions, cid_generator: self.server_cids, ..endpoint(2) };
        let server =
            ServerConfig::new(Arc::new(self.server_tls)).with_transport(Arc::new(self.server)).unwrap();
        let server = match self.preferred {
            Some(SocketAddr::V4(v4)) => server.with_preferred_address(Some(v4), None),
            Some(SocketAddr::V6(v6)) => server.with_preferred_address(None, Some(v6)),
            None => server,
        };
        let server = server.with_address_validation(self.validation).unwrap();
        let mut client =
            ClientConfig::new(Arc::new(self.client_tls)).with_transport(Arc::new(self.client)).unwrap();
        if let Some(sessions) = self.sessions {
            client = client.with_sessions(sessions).with_early_data(self.early_data);
        }
        let mut pair = Pair {
            now: Instant::from_millis(1),
            client: End::new(Side::Client, CLIENT, None, client_endpoint, self.seed),
            server: End::new(Side::Server, SERVER, Some(Arc::new(server)), server_endpoint, self.seed),
            strays: Vec::new(),
            stray_addrs: Vec::new(),
        };
        pair.server.answer = self.answer;
        if let Some(shared) = self.server_shared {
            pair.server.share(shared);
        }
        pair.server.more_addrs.extend(self.preferred);
        let addrs = FourTuple::new(pair.server.addr, self.client_ip);
        let connection = pair.client.endpoint.connect(pair.now, &client, addrs, self.server_name).unwrap();
        pair.client.connection = Some(connection);
        pair
    }

    /// Both ends after the handshake.
    pub fn connect(self) -> Pair {
        let mut pair = self.dial();
        pair.run_for(Duration::from_millis(100));
        pair
    }
}

/// Both ends and the time.
pub struct Pair {
    pub now: Instant,
    pub client: End,
    pub server: End,
    /// What was sent to addresses of which none is an end's.
    pub strays: Vec<Vec<u8>>,
    /// Where each of them was sent to.
    pub stray_addrs: Vec<SocketAddr>,
}

impl Pair {
    pub fn new(client: TransportConfig, server: TransportConfig) -> Self {
        Setup { client, server, ..Setup::default() }.dial()
    }

    pub fn connected() -> Self {
        Setup::default().connect()
    }

    pub fn end(&mut self, side: Side) -> &mut End {
        if side.is_client() { &mut self.client } else { &mut self.server }
    }

    /// What a side was told of paths so far.
    pub fn path_events(&mut self, side: Side) -> Vec<PathEvent> {
        let events = self.end(side).events.iter();
        events.filter_map(|event| if let Event::Path(path) = event { Some(*path) } else { None }).collect()
    }

    /// Lets the time pass.
    pub fn run_for(&mut self, duration: Duration) {
        let end = self.now + duration;
        self.run_until(end, |_| false);
    }

    /// Lets the time pass until `done`, or until the time limit; returns whether it was done.
    pub fn run_while_waiting(&mut self, limit: Duration, done: impl FnMut(&mut Self) -> bool) -> bool {
        let end = self.now + limit;
        self.run_until(end, done)
    }

    fn run_until(&mut self, end: Instant, mut done: impl FnMut(&mut Self) -> bool) -> bool {
        let mut rounds_at_once = 0;
        loop {
            self.step();
            if done(self) {
                return true;
            }
            // What `done` gave to a connection is sent.
            self.send_what_is_ready();
            if self.now >= end {
                return false;
            }
            let next = [&self.client, &self.server].into_iter().filter_map(End::next_time).min();
            let next = next.map_or(end, |at| at.min(end));
            rounds_at_once = if next > self.now { 0 } else { rounds_at_once + 1 };
            assert!(rounds_at_once < 100, "a timer rings again and again");
            self.now = next.max(self.now);
        }
    }

    /// Delivers what has arrived and sends what is ready.
    fn step(&mut self) {
        let now = self.now;
        for side in [Side::Client, Side::Server] {
            while let Some(flying) = self.end(side).take_arrived(now) {
                if let Some((to, reply)) = self.end(side).receive(now, &flying) {
                    self.fly(side, to, reply);
                }
            }
        }
        self.send_what_is_ready();
    }

    fn send_what_is_ready(&mut self) {
        let now = self.now;
        for side in [Side::Client, Side::Server] {
            for (to, flying) in self.end(side).drain(now) {
                self.post(side, to, flying);
            }
        }
    }

    /// Sends what a connection says through the wire.
    fn post(&mut self, from: Side, to: SocketAddr, flying: Flying) {
        for flying in (self.end(from).wire)(flying) {
            self.fly(from, to, flying);
        }
    }

    fn fly(&mut self, from: Side, to: SocketAddr, mut flying: Flying) {
        flying.at += DELAY;
        let receiver = self.end(!from);
        let arrives = receiver.addr == to || receiver.more_addrs.contains(&to);
        if !receiver.more_addrs.is_empty() {
            flying.to = Some(to);
        }
        match arrives {
            true => self.end(!from).enqueue(flying),
            false => {
                self.strays.push(flying.payload);
                self.stray_addrs.push(to);
            }
        }
    }

    /// Lets a datagram of a stranger, or of one end in the name of the other, arrive at an end now.
    pub fn inject(&mut self, to: Side, from: SocketAddr, payload: Vec<u8>) {
        let flying = Flying { at: self.now, from, to: None, ecn: Ecn::NotEct, payload };
        let now = self.now;
        if let Some((to_addr, reply)) = self.end(to).receive(now, &flying) {
            self.fly(to, to_addr, reply);
        }
        self.send_what_is_ready();
    }

    /// Why the connection of an end was lost, if it was.
    pub fn lost(&mut self, side: Side) -> Option<ConnectionError> {
        self.end(side).lost()
    }

    /// Sends `len` bytes from one end on a stream of its own, and checks what arrives at the other.
    #[track_caller]
    pub fn transfer(&mut self, from: Side, len: usize, limit: Duration) {
        let data: Vec<u8> = (0..len).map(|i| (i * 7 + i / 251) as u8).collect();
        let id = self.end(from).conn().streams().open(Dir::Uni).expect("a stream is allowed");
        let (mut written, mut finished, mut read) = (0, false, Vec::new());
        let done = self.run_while_waiting(limit, |pair| {
            let streams = pair.end(from).conn().streams();
            while written < data.len()
                && let Ok(n) = streams.send(id).write(&data[written..])
            {
                written += n;
            }
            if written == data.len() && !finished {
                streams.send(id).finish().unwrap();
                finished = true;
            }
            read_available(pair.end(!from), id, &mut read)
        });
        assert!(
            done,
            "{} of {len} bytes arrived; {:?}, {:?}",
            read.len(),
            self.client.lost(),
            self.server.lost()
        );
        assert!(read == data, "other bytes arrived than were sent");
    }

    /// Closes from the client's side and waits until both ends have forgotten the connection.
    #[track_caller]
    pub fn close_and_forget(&mut self) {
        let now = self.now;
        assert!(!self.client.told_drained && !self.server.told_drained);
        self.client.conn().close(now, 0u32.into(), bytes::Bytes::new());
        self.run_for(Duration::from_secs(10));
        for end in [&mut self.client, &mut self.server] {
            assert!(end.conn().is_drained() && end.told_drained);
            assert_eq!(end.endpoint.open_connections(), 0);
        }
    }
}

/// Reads what is there; returns whether the stream has ended.
pub fn read_available(end: &mut End, id: StreamId, read: &mut Vec<u8>) -> bool {
    let streams = end.conn().streams();
    while streams.accept(id.dir()).is_some() {}
    loop {
        match streams.recv(id).read(usize::MAX, true) {
            Ok(Some(chunk)) => read.extend_from_slice(&chunk.bytes),
            Ok(None) => return true,
            Err(ReadError::Blocked | ReadError::ClosedStream) => return false,
            Err(error) => panic!("{error}"),
        }
    }
}
