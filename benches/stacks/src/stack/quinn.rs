//! quinn, with ring.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use bytes::Bytes;
use quinn::congestion::{BbrConfig, CubicConfig, NewRenoConfig};
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{
    ClientConfig, Endpoint, IdleTimeout, Incoming, MtuDiscoveryConfig, ServerConfig, TransportConfig, VarInt,
};
use rustls::crypto::ring;

use super::{Connection, Dialer, Listener, Receiver, Sender, Stack};
use crate::failure::{Failure, Result};
use crate::limits::{DATAGRAMS, IDLE, STREAMS, WINDOW};
use crate::options::{Controller, Transport};
use crate::tls;

pub(crate) enum Quinn {}

impl Stack for Quinn {
    type Listener = QuinnListener;
    type Dialer = QuinnDialer;

    fn listen(transport: &Transport) -> Result<QuinnListener> {
        if transport.workers != 1 {
            return Err(Failure::Unsupported("an endpoint has one worker"));
        }
        let tls = tls::server(ring::default_provider(), transport)?;
        let tls = QuicServerConfig::try_from(tls).map_err(Failure::at("TLS"))?;
        let mut config = ServerConfig::with_crypto(Arc::new(tls));
        config.transport_config(configure(transport)?);
        let endpoint = endpoint(transport, Some(config))?;
        Ok(QuinnListener(endpoint))
    }

    fn dialer(transport: &Transport, server: SocketAddr) -> Result<QuinnDialer> {
        let mut endpoint = endpoint(transport, None)?;
        let tls = tls::client(ring::default_provider(), transport)?;
        let tls = QuicClientConfig::try_from(tls).map_err(Failure::at("TLS"))?;
        let mut config = ClientConfig::new(Arc::new(tls));
        config.transport_config(configure(transport)?);
        endpoint.set_default_client_config(config);
        Ok(QuinnDialer { endpoint, server })
    }
}

fn endpoint(transport: &Transport, server: Option<ServerConfig>) -> Result<Endpoint> {
    let mut config = quinn::EndpointConfig::default();
    config.max_udp_payload_size(transport.payload.max(1_472)).map_err(Failure::at("the size of packets"))?;
    let socket = std::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    Ok(Endpoint::new(config, server, socket, Arc::new(quinn::TokioRuntime))?)
}

fn configure(transport: &Transport) -> Result<Arc<TransportConfig>> {
    let mut config = TransportConfig::default();
    match transport.controller {
        None => {}
        Some(Controller::Newreno) => {
            config.congestion_controller_factory(Arc::new(NewRenoConfig::default()));
        }
        Some(Controller::Cubic) => {
            config.congestion_controller_factory(Arc::new(CubicConfig::default()));
        }
        Some(Controller::Bbr) => {
            config.congestion_controller_factory(Arc::new(BbrConfig::default()));
        }
        Some(Controller::Prague) => return Err(Failure::Unsupported("it has no Prague")),
    }
    let mut discovery = MtuDiscoveryConfig::default();
    discovery.upper_bound(transport.payload);
    let idle = IdleTimeout::try_from(IDLE).map_err(Failure::at("the idle timeout"))?;
    config
        .max_idle_timeout(Some(idle))
        .max_concurrent_bidi_streams(VarInt::from_u32(STREAMS))
        .stream_receive_window(VarInt::from_u32(WINDOW))
        .receive_window(VarInt::from_u32(WINDOW))
        .send_window(u64::from(WINDOW))
        .initial_mtu(transport.payload)
        .mtu_discovery_config(Some(discovery))
        .datagram_receive_buffer_size(Some(DATAGRAMS));
    Ok(Arc::new(config))
}

pub(crate) struct QuinnListener(Endpoint);

impl Listener for QuinnListener {
    type Pending = Incoming;
    type Connection = quinn::Connection;

    fn address(&self) -> Result<SocketAddr> {
        Ok(self.0.local_addr()?)
    }

    async fn accept(&mut self) -> Option<Incoming> {
        self.0.accept().await
    }

    async fn establish(pending: Incoming) -> Result<quinn::Connection> {
        let connecting = pending.accept().map_err(Failure::at("accepting"))?;
        match connecting.into_0rtt() {
            Ok((connection, _)) => Ok(connection),
            Err(connecting) => connecting.await.map_err(Failure::at("a handshake")),
        }
    }
}

#[derive(Clone)]
pub(crate) struct QuinnDialer {
    endpoint: Endpoint,
    server: SocketAddr,
}

impl QuinnDialer {
    fn connect(&self) -> Result<quinn::Connecting> {
        self.endpoint.connect(self.server, tls::SERVER_NAME).map_err(Failure::at("connecting"))
    }
}

impl Dialer for QuinnDialer {
    type Connection = quinn::Connection;

    async fn dial(&self) -> Result<quinn::Connection> {
        self.connect()?.await.map_err(Failure::at("connecting"))
    }

    async fn dial_early(&self) -> Result<quinn::Connection> {
        match self.connect()?.into_0rtt() {
            Ok((connection, _)) => Ok(connection),
            Err(connecting) => connecting.await.map_err(Failure::at("connecting")),
        }
    }
}

impl Connection for quinn::Connection {
    type Sender = quinn::SendStream;
    type Receiver = quinn::RecvStream;

    async fn open(&self) -> Result<(Self::Sender, Self::Receiver)> {
        self.open_bi().await.map_err(Failure::at("opening a stream"))
    }

    async fn accept(&self) -> Option<(Self::Sender, Self::Receiver)> {
        self.accept_bi().await.ok()
    }

    async fn send_datagram(&self, datagram: Bytes) -> Result<()> {
        self.send_datagram_wait(datagram).await.map_err(Failure::at("sending a datagram"))
    }

    async fn receive_datagram(&self) -> Result<Bytes> {
        self.read_datagram().await.map_err(Failure::at("receiving a datagram"))
    }

    fn close(&self) {
        quinn::Connection::close(self, VarInt::from_u32(0), b"");
    }
}

impl Sender for quinn::SendStream {
    async fn write(&mut self, bytes: Bytes) -> Result<()> {
        self.write_chunk(bytes).await.map_err(Failure::at("writing"))
    }

    async fn finish(&mut self) -> Result<()> {
        quinn::SendStream::finish(self).map_err(Failure::at("finishing"))
    }
}

impl Receiver for quinn::RecvStream {
    async fn read(&mut self) -> Result<Option<Bytes>> {
        let chunk = self.read_chunk(usize::MAX, true).await.map_err(Failure::at("reading"))?;
        Ok(chunk.map(|chunk| chunk.bytes))
    }
}
