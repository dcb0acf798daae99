//! One end of a pair: its endpoint, its connection, and what is on its way to it.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::BytesMut;
use fulmar_proto::{
    Connection, ConnectionError, ConnectionHandle, Datagram, DropReason, Endpoint, EndpointConfig,
    EndpointShared, Event, FourTuple, Incoming, Instant, Route, ServerConfig, Side, TransmitBatch,
};
use fulmar_wire::{ProtectedKind, read_packet};

use super::{Flying, Wire};

/// What a server does with attempts to connect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    Accept,
    Refuse,
    /// Asks for a proof of the address, if it is not there.
    Retry,
    /// Leaves them waiting.
    Wait,
}

/// The account of an address that has not proven itself.
#[derive(Debug, Default)]
pub struct Amplification {
    pub received: u64,
    pub sent: u64,
    pub validated: bool,
    pub exceeded: bool,
}

/// One end: its endpoint and its connection.
pub struct End {
    pub side: Side,
    pub addr: SocketAddr,
    seed: u8,
    /// Further addresses at which it receives, and from which it sends if a connection says so.
    pub more_addrs: Vec<SocketAddr>,
    pub config: Arc<EndpointConfig>,
    pub server: Option<Arc<ServerConfig>>,
    pub endpoint: Endpoint,
    pub connection: Option<(ConnectionHandle, Connection)>,
    pub answer: Answer,
    pub waiting: Vec<Incoming>,
    pub events: Vec<Event>,
    /// What becomes of the datagrams that the connection sends; answers of the endpoint pass.
    pub wire: Wire,
    /// Whether what this end sends is lost.
    pub mute: bool,
    /// All datagrams that the connection has sent.
    pub sent: Vec<Vec<u8>>,
    /// How many datagrams the endpoint has answered by itself.
    pub replies: usize,
    pub dropped: Vec<DropReason>,
    /// Whether the connection has told that it can be dropped.
    pub told_drained: bool,
    pub amplification: Amplification,
    inbox: VecDeque<Flying>,
    batch: TransmitBatch,
}

impl End {
    pub fn new(
        side: Side,
        addr: &str,
        server: Option<Arc<ServerConfig>>,
        config: EndpointConfig,
        seed: u8,
    ) -> Self {
        let config = Arc::new(config);
        let seeds = [2 * seed + u8::from(side.is_server()); 32];
        Self {
            side,
            addr: addr.parse().unwrap(),
            more_addrs: Vec::new(),
            endpoint: Endpoint::new(config.clone(), server.clone(), seeds),
            seed,
            config,
            server,
            connection: None,
            answer: Answer::Accept,
            waiting: Vec::new(),
            events: Vec::new(),
            wire: Box::new(|flying| vec![flying]),
            mute: false,
            sent: Vec::new(),
            replies: 0,
            dropped: Vec::new(),
            told_drained: false,
            amplification: Amplification::default(),
            inbox: VecDeque::new(),
            batch: TransmitBatch::new(10),
        }
    }

    pub fn conn(&mut self) -> &mut Connection {
        &mut self.connection.as_mut().expect("there is a connection").1
    }

    /// Forgets everything but the configuration, as a process that is started again does.
    pub fn restart(&mut self) {
        self.endpoint = Endpoint::new(self.config.clone(), self.server.clone(), [255; 32]);
        self.connection = None;
    }

    /// Makes this one of several endpoints of a server. Before anything has arrived.
    pub fn share(&mut self, shared: Arc<EndpointShared>) {
        let seed = [u8::from(self.side.is_server()) + 2 * self.seed; 32];
        self.endpoint = Endpoint::with_shared(shared, self.config.clone(), self.server.clone(), seed);
    }

    /// Why the connection was lost, if it was.
    pub fn lost(&self) -> Option<ConnectionError> {
        self.events.iter().find_map(|event| match event {
            Event::ConnectionLost { reason } => Some(reason.clone()),
            _ => None,
        })
    }

    pub fn is_connected(&self) -> bool {
        self.events.iter().any(|event| matches!(event, Event::Connected))
    }

    pub(super) fn enqueue(&mut self, flying: Flying) {
        let index = self.inbox.partition_point(|other| other.at <= flying.at);
        self.inbox.insert(index, flying);
    }

    pub(super) fn take_arrived(&mut self, now: Instant) -> Option<Flying> {
        let arrived = self.inbox.front().is_some_and(|flying| flying.at <= now);
        if arrived { self.inbox.pop_front() } else { None }
    }

    /// When something will happen here next.
    pub(super) fn next_time(&self) -> Option<Instant> {
        let timer = self.connection.as_ref().and_then(|(_, connection)| connection.poll_timeout());
        timer.map(|(at, _)| at).into_iter().chain(self.inbox.front().map(|flying| flying.at)).min()
    }

    /// Takes a datagram; returns what the endpoint answers by itself, and to whom.
    pub(super) fn receive(&mut self, now: Instant, flying: &Flying) -> Option<(SocketAddr, Flying)> {
        self.account_received(flying);
        let addrs = FourTuple::new(flying.from, flying.to.map(|to| to.ip()));
        let payload = BytesMut::from(&flying.payload[..]);
        let datagram = Datagram { addrs, ecn: flying.ecn, payload };
        let reply = match self.endpoint.handle_datagram(now, datagram, &mut self.batch) {
            Route::Connection(handle, datagram) => {
                let (known, connection) = self.connection.as_mut().expect("routed to a connection");
                assert_eq!(*known, handle);
                connection.handle_datagram(now, datagram);
                return None;
            }
            Route::Incoming(incoming) => match self.answer {
                Answer::Retry if !incoming.is_validated() => {
                    let retry = self.endpoint.retry(now, incoming, &mut self.batch);
                    retry.expect("no Retry was followed").expect("this is a server")
                }
                Answer::Accept | Answer::Retry if self.connection.is_none() => {
                    self.connection = Some(self.endpoint.accept(now, incoming).expect("accepted"));
                    return None;
                }
                Answer::Accept | Answer::Retry | Answer::Refuse => {
                    self.endpoint.refuse(incoming, &mut self.batch)
                }
                Answer::Wait => {
                    self.waiting.push(incoming);
                    return None;
                }
            },
            Route::Reply(transmit) => transmit,
            Route::Dropped(reason) => {
                self.dropped.push(reason);
                return None;
            }
        };
        self.replies += 1;
        let payload = self.batch.bytes()[..reply.len].to_vec();
        Some((reply.addrs.remote, Flying { at: now, from: self.addr, to: None, ecn: reply.ecn, payload }))
    }

    /// Takes out what the connection has to say.
    pub(super) fn drain(&mut self, now: Instant) -> Vec<(SocketAddr, Flying)> {
        let mut out = Vec::new();
        let Some((handle, connection)) = &mut self.connection else { return out };
        if connection.poll_timeout().is_some_and(|(at, _)| at <= now) {
            connection.handle_timeout(now);
        }
        while let Some(transmit) = connection.poll_transmit(now, &mut self.batch) {
            let segment = transmit.segment_size.unwrap_or(transmit.len);
            for payload in self.batch.bytes().chunks(segment) {
                let from = match transmit.addrs.local_ip {
                    Some(ip) => SocketAddr::new(ip, self.addr.port()),
                    None => self.addr,
                };
                let flying = Flying { at: now, from, to: None, ecn: transmit.ecn, payload: payload.to_vec() };
                out.push((transmit.addrs.remote, flying));
            }
        }
        while let Some(event) = connection.poll_event() {
            self.events.push(event);
        }
        while let Some(event) = connection.poll_endpoint_event() {
            self.told_drained |= event.is_drained();
            self.endpoint.handle_event(*handle, event);
        }
        for (_, flying) in &out {
            self.amplification.on_sent(flying.payload.len());
            self.sent.push(flying.payload.clone());
        }
        if self.mute { Vec::new() } else { out }
    }

    fn account_received(&mut self, flying: &Flying) {
        self.amplification.received += flying.payload.len() as u64;
        let mut rest = &flying.payload[..];
        while let Ok(packet) = read_packet(rest, 8) {
            // RFC 9000 §8.1: only somebody who has received the server's Initial packet can send one of these.
            self.amplification.validated |= matches!(packet.kind, ProtectedKind::Handshake { .. });
            rest = &rest[packet.len..];
        }
    }
}

impl Amplification {
    fn on_sent(&mut self, len: usize) {
        self.sent += len as u64;
        self.exceeded |= !self.validated && self.sent > 3 * self.received;
    }
}
