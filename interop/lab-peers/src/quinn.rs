//! An end that is quinn-proto.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant as Anchor};

use bytes::BytesMut;
use fulmar_base::Instant;
use fulmar_sim::{Ecn, Packet};
use quinn_proto::congestion::{BbrConfig, ControllerFactory, CubicConfig};
use quinn_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn_proto::{
    ClientConfig, Connection, ConnectionHandle, ConnectionId, ConnectionIdGenerator, DatagramEvent, Dir,
    EcnCodepoint, Endpoint, EndpointConfig, Event, ReadError, ServerConfig, StreamId, Transmit,
    TransportConfig,
};

use crate::application::{Read, Streams, seed_bytes};
use crate::network::End;
use crate::seat::{Seat, Seated};
use crate::{ALPN, server_address};

/// Datagrams in a train.
const SEGMENTS_MAX: usize = 10;
/// Bytes that are read at once.
const PIECE: usize = 65_536;
const CID_LEN: usize = 8;

pub(crate) struct QuinnEnd {
    /// quinn-proto takes the time of the system's clock; virtual time is counted from here.
    anchor: Anchor,
    endpoint: Endpoint,
    to_connect: Option<ClientConfig>,
    connection: Option<(ConnectionHandle, Connection)>,
    seat: Seat<StreamId>,
    buffer: Vec<u8>,
}

/// Connection IDs that count up, so that a run repeats.
struct CountingCids(u64);

impl ConnectionIdGenerator for CountingCids {
    fn generate_cid(&mut self) -> ConnectionId {
        self.0 += 1;
        ConnectionId::new(&self.0.to_be_bytes())
    }

    fn cid_len(&self) -> usize {
        CID_LEN
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}

impl QuinnEnd {
    pub(crate) fn new(bbr: bool, wanted: Option<u64>, seed: u64) -> Self {
        let is_client = wanted.is_some();
        let mut config = EndpointConfig::default();
        config.rng_seed(Some(seed_bytes(seed)));
        config.cid_generator(move || Box::new(CountingCids(seed << 32)));
        let transport = Arc::new(transport(bbr));
        let server = (!is_client).then(|| {
            let tls = Arc::new(fulmar_lab::crypto::server_config(&[ALPN]));
            let tls =
                QuicServerConfig::try_from(tls).expect("the lab's provider has the suite of Initial packets");
            let mut config = ServerConfig::with_crypto(Arc::new(tls));
            config.transport_config(transport.clone());
            Arc::new(config)
        });
        let to_connect = is_client.then(|| {
            let tls = Arc::new(fulmar_lab::crypto::client_config(&[ALPN]));
            let tls =
                QuicClientConfig::try_from(tls).expect("the lab's provider has the suite of Initial packets");
            let mut config = ClientConfig::new(Arc::new(tls));
            config.transport_config(transport);
            config
        });
        Self {
            anchor: Anchor::now(),
            endpoint: Endpoint::new(Arc::new(config), server, true, None),
            to_connect,
            connection: None,
            seat: Seat::new("quinn", wanted),
            buffer: Vec::new(),
        }
    }

    fn clock(&self, now: Instant) -> Anchor {
        self.anchor + (now - Instant::ZERO)
    }

    fn connect(&mut self, now: Instant) {
        let Some(config) = self.to_connect.take() else { return };
        let name = fulmar_lab::crypto::SERVER_NAME;
        match self.endpoint.connect(self.clock(now), config, server_address(), name) {
            Ok(connection) => self.connection = Some(connection),
            Err(error) => self.seat.fail(format_args!("cannot connect: {error}")),
        }
    }

    fn packets(&mut self, transmit: &Transmit) -> Vec<Packet> {
        let ecn = transmit.ecn.map_or(Ecn::NotEct, |ecn| Ecn::from_bits(ecn as u8));
        let bytes = &self.buffer[..transmit.size];
        let packets = self.seat.packets(transmit.destination, ecn, bytes, transmit.segment_size);
        self.buffer.clear();
        packets
    }

    fn run_application(&mut self) {
        let Some((_, connection)) = &mut self.connection else { return };
        while let Some(event) = connection.poll() {
            match event {
                Event::Connected => self.seat.connected = true,
                Event::ConnectionLost { reason } => {
                    self.seat.fail(format_args!("lost the connection: {reason}"));
                }
                _ => {}
            }
        }
        self.seat.run(&mut Borrowed(connection));
    }

    /// What the endpoint and the connection have to tell each other.
    fn exchange_events(&mut self) {
        let Some((handle, connection)) = &mut self.connection else { return };
        while let Some(event) = connection.poll_endpoint_events() {
            if let Some(event) = self.endpoint.handle_event(*handle, event) {
                connection.handle_event(event);
            }
        }
    }
}

/// Windows as large as those that Fulmar's grow to, so that neither stack waits for credit.
fn transport(bbr: bool) -> TransportConfig {
    let mut config = TransportConfig::default();
    let factory: Arc<dyn ControllerFactory + Send + Sync> = match bbr {
        true => Arc::new(BbrConfig::default()),
        false => Arc::new(CubicConfig::default()),
    };
    config.congestion_controller_factory(factory);
    config
        .stream_receive_window((16_u32 << 20).into())
        .receive_window((16_u32 << 20).into())
        .send_window(16 << 20);
    config
}

impl End for QuinnEnd {
    fn replace_socket(&mut self, _: Instant, address: SocketAddr) {
        self.seat.address = address;
        if let Some((_, connection)) = &mut self.connection {
            connection.local_address_changed();
        }
    }

    fn seat(&self) -> &dyn Seated {
        &self.seat
    }

    fn receive(&mut self, now: Instant, packet: &Packet) {
        let clock = self.clock(now);
        let data = BytesMut::from(packet.payload.as_slice());
        let (remote, ecn) = (packet.source, EcnCodepoint::from_bits(packet.ecn.bits()));
        self.buffer.clear();
        match self.endpoint.handle(clock, remote, None::<IpAddr>, ecn, data, &mut self.buffer) {
            Some(DatagramEvent::ConnectionEvent(_, event)) => {
                if let Some((_, connection)) = &mut self.connection {
                    connection.handle_event(event);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => {
                match self.endpoint.accept(incoming, clock, &mut self.buffer, None) {
                    Ok(connection) => self.connection = Some(connection),
                    Err(error) => self.seat.fail(format_args!("cannot accept: {}", error.cause)),
                }
            }
            Some(DatagramEvent::Response(transmit)) => {
                let packets = self.packets(&transmit);
                self.seat.replies.extend(packets);
            }
            None => {}
        }
    }

    fn service(&mut self, now: Instant, out: &mut Vec<Packet>) {
        self.connect(now);
        out.append(&mut self.seat.replies);
        let clock = self.clock(now);
        loop {
            self.run_application();
            self.exchange_events();
            let mut sent = false;
            while let Some((_, connection)) = &mut self.connection
                && let Some(transmit) = connection.poll_transmit(clock, SEGMENTS_MAX, &mut self.buffer)
            {
                out.extend(self.packets(&transmit));
                sent = true;
            }
            self.buffer.clear();
            let Some((_, connection)) = &mut self.connection else { return };
            let rings = connection.poll_timeout().is_some_and(|at| at <= clock);
            if rings {
                connection.handle_timeout(clock);
            }
            if !sent && !rings {
                return;
            }
        }
    }

    fn next_wake(&mut self) -> Option<Instant> {
        let at = self.connection.as_mut()?.1.poll_timeout()?;
        Some(Instant::ZERO + at.saturating_duration_since(self.anchor))
    }
}

struct Borrowed<'a>(&'a mut Connection);

impl Streams for Borrowed<'_> {
    type Id = StreamId;

    fn open(&mut self) -> Option<StreamId> {
        self.0.streams().open(Dir::Bi)
    }

    fn accept(&mut self) -> Option<StreamId> {
        self.0.streams().accept(Dir::Bi)
    }

    fn read(&mut self, id: StreamId) -> Read {
        let mut stream = self.0.recv_stream(id);
        let mut chunks = match stream.read(true) {
            Ok(chunks) => chunks,
            Err(error) => return Read::Wrong(error.to_string()),
        };
        let read = match chunks.next(PIECE) {
            Ok(Some(chunk)) => Read::Data(chunk.bytes),
            Ok(None) => Read::End,
            Err(ReadError::Blocked) => Read::Blocked,
            Err(error) => Read::Wrong(error.to_string()),
        };
        // Whether credit is to be announced is asked in `poll_transmit`, which follows in any case.
        let _ = chunks.finalize();
        read
    }

    fn write(&mut self, id: StreamId, data: &[u8]) -> usize {
        self.0.send_stream(id).write(data).unwrap_or(0)
    }

    fn finish(&mut self, id: StreamId) {
        // A stream that the peer has stopped needs no end.
        let _ = self.0.send_stream(id).finish();
    }
}
