//! s2n-quic, with rustls.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use bytes::Bytes;
use rustls::crypto::aws_lc_rs;
use s2n_quic::application::Error as Code;
use s2n_quic::client::Connect;
use s2n_quic::connection::{Handle, StreamAcceptor};
use s2n_quic::provider::congestion_controller::{Bbr, Cubic};
use s2n_quic::provider::io::tokio::Provider as Io;
use s2n_quic::provider::limits::Limits;
use s2n_quic::provider::tls::rustls as provider;
use s2n_quic::stream::{ReceiveStream, SendStream};
use s2n_quic::{Client, Server};
use tokio::sync::Mutex;

use super::{Connection, Dialer, Listener, Receiver, Sender, Stack};
use crate::failure::{Failure, Result};
use crate::limits::{IDLE, STREAMS, WINDOW};
use crate::options::{Controller, Transport};
use crate::tls;

/// Headers of IPv4 and UDP, which s2n-quic counts, too.
const IP_AND_UDP: u16 = 28;
const NO_DATAGRAMS: Failure = Failure::Unsupported("datagrams are not part of its stable interface");
const NO_EARLY_DATA: Failure = Failure::Unsupported("it has no 0-RTT");

pub(crate) enum S2n {}

impl Stack for S2n {
    type Listener = Server;
    type Dialer = S2nDialer;

    fn listen(transport: &Transport) -> Result<Server> {
        if transport.workers != 1 {
            return Err(Failure::Unsupported("an endpoint has one worker"));
        }
        let mut tls = tls::server(aws_lc_rs::default_provider(), transport)?;
        tls.max_early_data_size = 0;
        let builder = Server::builder()
            .with_tls(provider::Server::from(tls))
            .map_err(Failure::at("TLS"))?
            .with_io(io(transport)?)
            .map_err(Failure::at("the socket"))?
            .with_limits(limits()?)
            .map_err(Failure::at("the limits"))?;
        let started = match transport.controller {
            None | Some(Controller::Cubic) => {
                let builder = builder.with_congestion_controller(Cubic::default());
                builder.map_err(Failure::at("the controller"))?.start()
            }
            Some(Controller::Bbr) => {
                let builder = builder.with_congestion_controller(Bbr::default());
                builder.map_err(Failure::at("the controller"))?.start()
            }
            Some(Controller::Newreno) => return Err(Failure::Unsupported("it has no NewReno")),
            Some(Controller::Prague) => return Err(Failure::Unsupported("it has no Prague")),
        };
        started.map_err(Failure::at("the server"))
    }

    fn dialer(transport: &Transport, server: SocketAddr) -> Result<S2nDialer> {
        let mut tls = tls::client(aws_lc_rs::default_provider(), transport)?;
        tls.enable_early_data = false;
        let builder = Client::builder()
            .with_tls(provider::Client::from(tls))
            .map_err(Failure::at("TLS"))?
            .with_io(io(transport)?)
            .map_err(Failure::at("the socket"))?
            .with_limits(limits()?)
            .map_err(Failure::at("the limits"))?;
        // Of a download the server's controller counts; for the others both ends are given the same.
        let started = match transport.controller {
            Some(Controller::Bbr) => {
                let builder = builder.with_congestion_controller(Bbr::default());
                builder.map_err(Failure::at("the controller"))?.start()
            }
            _ => builder.start(),
        };
        Ok(S2nDialer { client: started.map_err(Failure::at("the client"))?, server })
    }
}

fn io(transport: &Transport) -> Result<Io> {
    let mtu = transport.payload + IP_AND_UDP;
    Ok(Io::builder()
        .with_receive_address((Ipv4Addr::LOCALHOST, 0).into())?
        .with_max_mtu(mtu)?
        .with_initial_mtu(mtu)?
        .build()?)
}

fn limits() -> Result<Limits> {
    let window = u64::from(WINDOW);
    let streams = u64::from(STREAMS);
    Limits::new()
        .with_data_window(window)
        .and_then(|limits| limits.with_bidirectional_local_data_window(window))
        .and_then(|limits| limits.with_bidirectional_remote_data_window(window))
        .and_then(|limits| limits.with_max_send_buffer_size(WINDOW))
        .and_then(|limits| limits.with_max_open_local_bidirectional_streams(streams))
        .and_then(|limits| limits.with_max_open_remote_bidirectional_streams(streams))
        .and_then(|limits| limits.with_max_idle_timeout(IDLE))
        .map_err(Failure::at("the limits"))
}

impl Listener for Server {
    type Pending = s2n_quic::Connection;
    type Connection = S2nConnection;

    fn address(&self) -> Result<SocketAddr> {
        Ok(self.local_addr()?)
    }

    async fn accept(&mut self) -> Option<s2n_quic::Connection> {
        Server::accept(self).await
    }

    async fn establish(pending: s2n_quic::Connection) -> Result<S2nConnection> {
        Ok(S2nConnection::new(pending))
    }
}

#[derive(Clone)]
pub(crate) struct S2nDialer {
    client: Client,
    server: SocketAddr,
}

impl Dialer for S2nDialer {
    type Connection = S2nConnection;

    async fn dial(&self) -> Result<S2nConnection> {
        let connect = Connect::new(self.server).with_server_name(tls::SERVER_NAME);
        let connection = self.client.connect(connect).await.map_err(Failure::at("connecting"))?;
        Ok(S2nConnection::new(connection))
    }

    async fn dial_early(&self) -> Result<S2nConnection> {
        Err(NO_EARLY_DATA)
    }
}

#[derive(Clone)]
pub(crate) struct S2nConnection {
    handle: Handle,
    acceptor: Arc<Mutex<StreamAcceptor>>,
}

impl S2nConnection {
    fn new(connection: s2n_quic::Connection) -> Self {
        let (handle, acceptor) = connection.split();
        Self { handle, acceptor: Arc::new(Mutex::new(acceptor)) }
    }
}

impl Connection for S2nConnection {
    type Sender = SendStream;
    type Receiver = ReceiveStream;

    async fn open(&self) -> Result<(SendStream, ReceiveStream)> {
        let mut handle = self.handle.clone();
        let stream = handle.open_bidirectional_stream().await.map_err(Failure::at("opening a stream"))?;
        let (receiver, sender) = stream.split();
        Ok((sender, receiver))
    }

    async fn accept(&self) -> Option<(SendStream, ReceiveStream)> {
        let stream = self.acceptor.lock().await.accept_bidirectional_stream().await.ok()??;
        let (receiver, sender) = stream.split();
        Some((sender, receiver))
    }

    async fn send_datagram(&self, _: Bytes) -> Result<()> {
        Err(NO_DATAGRAMS)
    }

    async fn receive_datagram(&self) -> Result<Bytes> {
        Err(NO_DATAGRAMS)
    }

    fn close(&self) {
        self.handle.close(Code::UNKNOWN);
    }
}

impl Sender for SendStream {
    async fn write(&mut self, bytes: Bytes) -> Result<()> {
        self.send(bytes).await.map_err(Failure::at("writing"))
    }

    async fn finish(&mut self) -> Result<()> {
        SendStream::finish(self).map_err(Failure::at("finishing"))
    }
}

impl Receiver for ReceiveStream {
    async fn read(&mut self) -> Result<Option<Bytes>> {
        self.receive().await.map_err(Failure::at("reading"))
    }
}
