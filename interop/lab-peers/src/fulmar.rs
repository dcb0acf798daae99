//! An end that is Fulmar.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::BytesMut;
use fulmar_base::Instant;
use fulmar_proto::congestion::{BbrConfig, CongestionControl, CubicConfig};
use fulmar_proto::{
    ClientConfig, Connection, ConnectionHandle, Datagram, Dir, Ecn, Endpoint, EndpointConfig, Event,
    FourTuple, ReadError, ResetKey, Route, ServerConfig, StreamId, TransmitBatch, TransportConfig,
};
use fulmar_sim::Packet;

use crate::application::{Read, Streams, seed_bytes};
use crate::network::End;
use crate::seat::{Seat, Seated};
use crate::{ALPN, server_address};

/// Datagrams in a train.
const SEGMENTS_MAX: usize = 10;
/// Bytes that are read at once.
const PIECE: usize = 65_536;

pub(crate) struct FulmarEnd {
    endpoint: Endpoint,
    batch: TransmitBatch,
    /// The client's configuration, until it has connected.
    to_connect: Option<ClientConfig>,
    handle: Option<ConnectionHandle>,
    connection: Option<Connection>,
    seat: Seat<StreamId>,
}

impl FulmarEnd {
    pub(crate) fn new(bbr: bool, wanted: Option<u64>, seed: u64) -> Self {
        let congestion = match bbr {
            true => CongestionControl::Bbr(BbrConfig::default()),
            false => CongestionControl::Cubic(CubicConfig::default()),
        };
        let transport = Arc::new(TransportConfig { congestion, ..TransportConfig::default() });
        let is_client = wanted.is_some();
        let config = Arc::new(EndpointConfig::new(ResetKey::new(&[u8::from(is_client); 32])));
        let server = (!is_client).then(|| {
            let tls = Arc::new(fulmar_lab::crypto::server_config(&[ALPN]));
            let config = ServerConfig::new(tls).with_transport(transport.clone());
            Arc::new(config.expect("the default configuration makes sense"))
        });
        let to_connect = is_client.then(|| {
            let tls = Arc::new(fulmar_lab::crypto::client_config(&[ALPN]));
            ClientConfig::new(tls).with_transport(transport).expect("the default configuration makes sense")
        });
        Self {
            endpoint: Endpoint::new(config, server, seed_bytes(seed)),
            batch: TransmitBatch::new(SEGMENTS_MAX),
            to_connect,
            handle: None,
            connection: None,
            seat: Seat::new("Fulmar", wanted),
        }
    }

    fn connect(&mut self, now: Instant) {
        let Some(config) = self.to_connect.take() else { return };
        let addrs = FourTuple::new(server_address(), None);
        match self.endpoint.connect(now, &config, addrs, fulmar_lab::crypto::SERVER_NAME) {
            Ok((handle, connection)) => {
                self.handle = Some(handle);
                self.connection = Some(connection);
            }
            Err(error) => self.seat.fail(format_args!("cannot connect: {error}")),
        }
    }

    /// The packets of the batch.
    fn packets(&self, transmit: &fulmar_proto::Transmit) -> Vec<Packet> {
        let ecn = fulmar_sim::Ecn::from_bits(transmit.ecn.bits());
        self.seat.packets(transmit.addrs.remote, ecn, self.batch.bytes(), transmit.segment_size)
    }

    fn run_application(&mut self) {
        let Some(connection) = &mut self.connection else { return };
        while let Some(event) = connection.poll_event() {
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
}

impl End for FulmarEnd {
    fn replace_socket(&mut self, now: Instant, address: SocketAddr) {
        self.seat.address = address;
        if let Some(connection) = &mut self.connection
            && connection.follow_socket(now, &|_| false).is_err()
        {
            connection.ping();
        }
    }

    fn seat(&self) -> &dyn Seated {
        &self.seat
    }

    fn receive(&mut self, now: Instant, packet: &Packet) {
        let addrs = FourTuple::new(packet.source, None);
        let ecn = Ecn::from_bits(packet.ecn.bits());
        let datagram = Datagram { addrs, ecn, payload: BytesMut::from(packet.payload.as_slice()) };
        match self.endpoint.handle_datagram(now, datagram, &mut self.batch) {
            Route::Connection(_, datagram) => {
                if let Some(connection) = &mut self.connection {
                    connection.handle_datagram(now, datagram);
                }
            }
            Route::Incoming(incoming) => match self.endpoint.accept(now, incoming) {
                Ok((handle, connection)) => {
                    self.handle = Some(handle);
                    self.connection = Some(connection);
                }
                Err(error) => self.seat.fail(format_args!("cannot accept: {error}")),
            },
            Route::Reply(transmit) => {
                let packets = self.packets(&transmit);
                self.seat.replies.extend(packets);
            }
            Route::Dropped(_) => {}
        }
    }

    fn service(&mut self, now: Instant, out: &mut Vec<Packet>) {
        self.connect(now);
        out.append(&mut self.seat.replies);
        loop {
            self.run_application();
            let Some(connection) = &mut self.connection else { return };
            if connection.poll_timeout().is_some_and(|(at, _)| at <= now) {
                connection.handle_timeout(now);
            }
            let mut sent = false;
            while let Some(connection) = &mut self.connection
                && let Some(transmit) = connection.poll_transmit(now, &mut self.batch)
            {
                out.extend(self.packets(&transmit));
                sent = true;
            }
            let Some(connection) = &mut self.connection else { return };
            let handle_due = connection.poll_timeout().is_some_and(|(at, _)| at <= now);
            while let Some(event) = connection.poll_endpoint_event()
                && let Some(handle) = self.handle
            {
                self.endpoint.handle_event(handle, event);
            }
            if !sent && !handle_due {
                return;
            }
        }
    }

    fn next_wake(&mut self) -> Option<Instant> {
        self.connection.as_ref()?.poll_timeout().map(|(at, _)| at)
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
        match self.0.streams().recv(id).read(PIECE, true) {
            Ok(Some(chunk)) => Read::Data(chunk.bytes),
            Ok(None) => Read::End,
            Err(ReadError::Blocked) => Read::Blocked,
            Err(error) => Read::Wrong(error.to_string()),
        }
    }

    fn write(&mut self, id: StreamId, data: &[u8]) -> usize {
        self.0.streams().send(id).write(data).unwrap_or(0)
    }

    fn finish(&mut self, id: StreamId) {
        // A stream that the peer has stopped needs no end.
        let _ = self.0.streams().send(id).finish();
    }
}
