//! Fulmar.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use bytes::Bytes;
use fulmar::congestion::{BbrConfig, CubicConfig, NewRenoConfig, PragueConfig};
use fulmar::{
    ClientConfig, CongestionControl, Endpoint, Incoming, ServerConfig, SessionStore, TransportConfig, VarInt,
    aws_lc_without_quic_keys,
};

use super::{Connection, Dialer, Listener, Receiver, Sender, Stack};
use crate::failure::{Failure, Result};
use crate::limits::{DATAGRAMS, IDLE, STREAMS, WINDOW};
use crate::options::{Controller, Transport};
use crate::tls;

/// Servers whose sessions a client keeps.
const SERVERS_MAX: usize = 16;
/// Sessions that a server keeps: as many as rustls is given for the others.
const SESSIONS_MAX: usize = 4_096;

pub(crate) enum Fulmar {}

impl Stack for Fulmar {
    type Listener = Endpoint;
    type Dialer = FulmarDialer;

    fn listen(transport: &Transport) -> Result<Endpoint> {
        let tls = tls::server(aws_lc_without_quic_keys(), transport)?;
        let config = ServerConfig::new(Arc::new(tls))
            .with_transport(configure(transport))
            .map_err(Failure::at("the configuration"))?
            .with_stored_sessions(SESSIONS_MAX)
            .with_early_data(true);
        let endpoint = Endpoint::builder().server_config(config).workers(transport.workers as usize);
        Ok(endpoint.bind((Ipv4Addr::LOCALHOST, 0).into())?)
    }

    fn dialer(transport: &Transport, server: SocketAddr) -> Result<FulmarDialer> {
        let endpoint = Endpoint::client((Ipv4Addr::LOCALHOST, 0).into())?;
        let tls = tls::client(aws_lc_without_quic_keys(), transport)?;
        let config = ClientConfig::new(Arc::new(tls))
            .with_transport(configure(transport))
            .map_err(Failure::at("the configuration"))?
            .with_sessions(SessionStore::new(SERVERS_MAX));
        Ok(FulmarDialer { endpoint, config, server })
    }
}

fn configure(transport: &Transport) -> Arc<TransportConfig> {
    let defaults = TransportConfig::default();
    let window = u64::from(WINDOW);
    Arc::new(TransportConfig {
        max_idle_timeout: Some(IDLE),
        max_concurrent_bidi_streams: u64::from(STREAMS),
        stream_receive_window: window,
        stream_receive_window_max: window,
        receive_window: window,
        receive_window_max: window,
        send_window: window,
        congestion: transport.controller.map_or(defaults.congestion, |controller| match controller {
            Controller::Newreno => CongestionControl::NewReno(NewRenoConfig::default()),
            Controller::Cubic => CongestionControl::Cubic(CubicConfig::default()),
            Controller::Bbr => CongestionControl::Bbr(BbrConfig::default()),
            Controller::Prague => CongestionControl::Prague(PragueConfig::default()),
        }),
        initial_mtu: transport.payload,
        mtu_max: transport.payload,
        datagram_receive_buffer: Some(DATAGRAMS),
        ..TransportConfig::default()
    })
}

impl Listener for Endpoint {
    type Pending = Incoming;
    type Connection = fulmar::Connection;

    fn address(&self) -> Result<SocketAddr> {
        Ok(self.local_addr()?)
    }

    async fn accept(&mut self) -> Option<Incoming> {
        Endpoint::accept(self).await
    }

    async fn establish(pending: Incoming) -> Result<fulmar::Connection> {
        let connecting = pending.accept().map_err(Failure::at("accepting"))?;
        // Questions that come before the end of the handshake are answered at once.
        match connecting.into_0rtt() {
            Ok(connection) => Ok(connection),
            Err(connecting) => connecting.await.map_err(Failure::at("a handshake")),
        }
    }
}

#[derive(Clone)]
pub(crate) struct FulmarDialer {
    endpoint: Endpoint,
    config: ClientConfig,
    server: SocketAddr,
}

impl FulmarDialer {
    fn connect(&self, early: bool) -> Result<fulmar::Connecting> {
        let config = self.config.clone().with_early_data(early);
        let connecting = self.endpoint.connect_with(config, self.server, tls::SERVER_NAME);
        connecting.map_err(Failure::at("connecting"))
    }
}

impl Dialer for FulmarDialer {
    type Connection = fulmar::Connection;

    async fn dial(&self) -> Result<fulmar::Connection> {
        self.connect(false)?.await.map_err(Failure::at("connecting"))
    }

    async fn dial_early(&self) -> Result<fulmar::Connection> {
        match self.connect(true)?.into_0rtt() {
            Ok(connection) => Ok(connection),
            Err(connecting) => connecting.await.map_err(Failure::at("connecting")),
        }
    }
}

impl Connection for fulmar::Connection {
    type Sender = fulmar::SendStream;
    type Receiver = fulmar::RecvStream;

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
        fulmar::Connection::close(self, VarInt::ZERO, b"");
    }
}

impl Sender for fulmar::SendStream {
    async fn write(&mut self, bytes: Bytes) -> Result<()> {
        self.write_chunk(bytes).await.map_err(Failure::at("writing"))
    }

    async fn finish(&mut self) -> Result<()> {
        fulmar::SendStream::finish(self).map_err(Failure::at("finishing"))
    }
}

impl Receiver for fulmar::RecvStream {
    async fn read(&mut self) -> Result<Option<Bytes>> {
        let chunk = self.read_chunk(usize::MAX, true).await.map_err(Failure::at("reading"))?;
        Ok(chunk.map(|chunk| chunk.bytes))
    }
}
