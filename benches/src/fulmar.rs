//! Two ends of Fulmar's core, joined by memory.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use fulmar_proto::{
    AeadBackend, ClientConfig, Connection, ConnectionHandle, Datagram, Dir, Ecn, Endpoint, EndpointConfig,
    FecConfig, FourTuple, Instant, ResetKey, Route, ServerConfig, StreamId, TransmitBatch, TransportConfig,
    aws_lc_without_quic_keys,
};

use crate::train::Train;
use crate::{CLIENT, DELAY, PAYLOAD, SEGMENTS, SERVER, WINDOW, tls};

/// What a request says, and how many bytes answer it.
const QUESTION: &[u8] = b"GET /a/thing/of/a/kilobyte";
const ANSWER: usize = 1_024;

/// What all connections of a benchmark have in common, made once.
pub struct Setup {
    server: Arc<ServerConfig>,
    client: ClientConfig,
}

struct Side {
    peer: SocketAddr,
    endpoint: Endpoint,
    connection: Option<(ConnectionHandle, Connection)>,
    batch: TransmitBatch,
    /// What this side has sent and the other has not received yet.
    on_the_way: Option<Train>,
}

/// Both sides, connected.
pub struct Pair {
    now: Instant,
    client: Side,
    server: Side,
    chunk: Bytes,
}

impl Side {
    fn new(peer: &str, server: Option<Arc<ServerConfig>>) -> Self {
        let config = Arc::new(EndpointConfig::new(ResetKey::new(&[1; 32])));
        Self {
            peer: peer.parse().expect("an address"),
            endpoint: Endpoint::new(config, server, [peer.len() as u8; 32]),
            connection: None,
            batch: TransmitBatch::new(SEGMENTS),
            on_the_way: None,
        }
    }

    fn connection(&mut self) -> &mut Connection {
        &mut self.connection.as_mut().expect("there is a connection").1
    }

    /// Sends the next train, if one is ready, and takes care of what else the core asks for.
    fn pump(&mut self, now: Instant) {
        let Some((handle, connection)) = &mut self.connection else { return };
        if connection.poll_timeout().is_some_and(|(at, _)| at <= now) {
            connection.handle_timeout(now);
        }
        let transmit = connection.poll_transmit(now, &mut self.batch);
        self.on_the_way = transmit.map(|transmit| Train::new(self.batch.bytes(), transmit.segment_size));
        while connection.poll_event().is_some() {}
        while let Some(event) = connection.poll_endpoint_event() {
            self.endpoint.handle_event(*handle, event);
        }
    }

    fn receive_train(&mut self, now: Instant, train: Option<Train>) {
        for payload in train.into_iter().flatten() {
            self.receive(now, Datagram { addrs: FourTuple::new(self.peer, None), ecn: Ecn::NotEct, payload });
        }
    }

    fn receive(&mut self, now: Instant, datagram: Datagram) {
        match self.endpoint.handle_datagram(now, datagram, &mut self.batch) {
            Route::Connection(_, datagram) => self.connection().handle_datagram(now, datagram),
            Route::Incoming(incoming) => {
                self.connection = Some(self.endpoint.accept(now, incoming).expect("a server"));
            }
            Route::Reply(_) | Route::Dropped(_) => {}
        }
    }
}

impl Default for Setup {
    /// A log of nothing, and windows and packets of the size that the other core has.
    fn default() -> Self {
        let window = u64::from(WINDOW);
        Self::new(TransportConfig {
            stream_receive_window: window,
            stream_receive_window_max: window,
            receive_window: window,
            receive_window_max: window,
            send_window: window,
            initial_mtu: PAYLOAD,
            mtu_max: PAYLOAD,
            ..TransportConfig::default()
        })
    }
}

impl Setup {
    fn new(transport: TransportConfig) -> Self {
        let transport = Arc::new(transport);
        let (server, client) = tls::configs(aws_lc_without_quic_keys());
        let server = ServerConfig::new(Arc::new(server)).with_transport(transport.clone());
        let client = ClientConfig::new(Arc::new(client)).with_transport(transport);
        Self {
            server: Arc::new(server.expect("a valid configuration")),
            client: client.expect("a valid configuration"),
        }
    }

    /// Lets both ends seal and open packets with this implementation, whatever the processor.
    #[must_use]
    pub fn with_aead(self, aead: AeadBackend) -> Self {
        let server = Arc::unwrap_or_clone(self.server).with_aead(aead);
        Self { server: Arc::new(server), client: self.client.with_aead(aead) }
    }

    /// Connects a new client to a new server by a full handshake.
    pub fn connect(&self) -> Pair {
        let mut pair = Pair {
            now: Instant::from_millis(1),
            client: Side::new(SERVER, None),
            server: Side::new(CLIENT, Some(self.server.clone())),
            chunk: Bytes::from(vec![7; 64 * 1024]),
        };
        let addrs = FourTuple::new(pair.client.peer, None);
        let connected = pair.client.endpoint.connect(pair.now, &self.client, addrs, "localhost");
        pair.client.connection = Some(connected.expect("a connection"));
        while pair.client.connection().is_handshaking() || pair.server.connection().is_handshaking() {
            pair.step();
        }
        pair
    }
}

impl Default for Pair {
    fn default() -> Self {
        Self::new()
    }
}

impl Pair {
    /// Connects a client to a server.
    pub fn new() -> Self {
        Self::with_log(0)
    }

    /// Connects a client to a server, each of which keeps a log of so many entries.
    pub fn with_log(log_entries: usize) -> Self {
        Setup::new(TransportConfig { log_entries, ..TransportConfig::default() }).connect()
    }

    /// Connects a client to a server, both of which protect the ends of transfers by erasure correction.
    pub fn with_fec() -> Self {
        Setup::new(TransportConfig { fec: Some(FecConfig::default()), ..TransportConfig::default() })
            .connect()
    }

    fn step(&mut self) {
        let trains = (self.client.on_the_way.take(), self.server.on_the_way.take());
        self.server.receive_train(self.now, trains.0);
        self.client.receive_train(self.now, trains.1);
        self.client.pump(self.now);
        self.server.pump(self.now);
        self.now += DELAY;
    }

    /// Sends `bytes` from the client to the server on a stream of their own.
    pub fn upload(&mut self, bytes: u64) {
        let id = self.client.connection().streams().open(Dir::Uni).expect("a stream");
        let (mut left, mut received) = (bytes, 0);
        while received < bytes {
            self.write(id, &mut left);
            self.step();
            received += self.read(id);
        }
        self.server.connection().streams().accept(Dir::Uni);
    }

    fn write(&mut self, id: StreamId, left: &mut u64) {
        let mut stream = self.client.connection().streams().send(id);
        while *left > 0 {
            let mut chunk = self.chunk.slice(..self.chunk.len().min(*left as usize));
            match stream.write_chunk(&mut chunk) {
                Ok(written) => *left -= written as u64,
                Err(_) => return,
            }
            if *left == 0 {
                let _ = stream.finish();
            }
        }
    }

    fn read(&mut self, id: StreamId) -> u64 {
        let mut stream = self.server.connection().streams().recv(id);
        let mut bytes = 0;
        while let Ok(Some(chunk)) = stream.read(usize::MAX, true) {
            bytes += chunk.bytes.len() as u64;
        }
        bytes
    }

    /// Sends `count` small questions, `concurrent` at a time, each on a stream of its own, and has them answered.
    pub fn requests(&mut self, count: u64, concurrent: u64) {
        let (mut asked, mut answered) = (0, 0);
        let mut questions = Vec::new();
        let mut open: Vec<(StreamId, usize)> = Vec::with_capacity(concurrent as usize);
        let answer = self.chunk.slice(..ANSWER);
        while answered < count {
            while asked < count && (open.len() as u64) < concurrent {
                let Some(id) = self.client.connection().streams().open(Dir::Bi) else { break };
                send_all(self.client.connection(), id, Bytes::from_static(QUESTION));
                open.push((id, 0));
                asked += 1;
            }
            self.step();
            self.answer(&mut questions, &answer);
            for (id, received) in &mut open {
                *received += read_all(self.client.connection(), *id).0;
            }
            let before = open.len();
            open.retain(|(_, received)| *received < ANSWER);
            answered += (before - open.len()) as u64;
        }
    }

    /// The server answers every question that is whole. One at the end of a packet may go on in the next.
    fn answer(&mut self, asked: &mut Vec<(StreamId, usize)>, answer: &Bytes) {
        let server = self.server.connection();
        while let Some(id) = server.streams().accept(Dir::Bi) {
            asked.push((id, 0));
        }
        asked.retain_mut(|(id, received)| {
            let (more, ended) = read_all(server, *id);
            *received += more;
            if ended {
                assert_eq!(*received, QUESTION.len(), "what was asked arrives");
                send_all(server, *id, answer.clone());
            }
            !ended
        });
    }

    /// Lets a time without traffic pass, so that late acknowledgements and tickets are out and what they need is freed.
    pub fn rest(&mut self) {
        const STEPS: u32 = 500;
        for _ in 0..STEPS {
            self.step();
            self.now += Duration::from_millis(10);
        }
    }

    /// Gives up the ends' connections, the client's and the server's, to be measured when they are dropped.
    pub fn into_connections(mut self) -> (Connection, Connection) {
        let mut take =
            |side: fn(&mut Self) -> &mut Side| side(&mut self).connection.take().expect("connected").1;
        (take(|pair| &mut pair.client), take(|pair| &mut pair.server))
    }
}

fn send_all(connection: &mut Connection, id: StreamId, mut bytes: Bytes) {
    let streams = connection.streams();
    let mut stream = streams.send(id);
    let len = bytes.len();
    assert_eq!(stream.write_chunk(&mut bytes), Ok(len), "there is room for a small thing");
    stream.finish().expect("it was not finished before");
}

/// How many bytes there were, and whether the stream has ended.
fn read_all(connection: &mut Connection, id: StreamId) -> (usize, bool) {
    let streams = connection.streams();
    let mut stream = streams.recv(id);
    let mut bytes = 0;
    loop {
        match stream.read(usize::MAX, true) {
            Ok(Some(chunk)) => bytes += chunk.bytes.len(),
            Ok(None) => return (bytes, true),
            Err(_) => return (bytes, false),
        }
    }
}
