//! TLS over TCP, with ring: one stream in each connection.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};

use bytes::{Bytes, BytesMut};
use rustls::crypto::ring;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::{TlsAcceptor, TlsConnector, TlsStream};

use super::{Connection, Dialer, Listener, Receiver, Sender, Stack};
use crate::failure::{Failure, Result};
use crate::options::Transport;
use crate::tls;

/// Bytes that are read at a time.
const READ: usize = 64 * 1024;
/// Connections that wait to be accepted.
const BACKLOG: u32 = 1_024;
const ONE_STREAM: Failure = Failure::Unsupported("a TCP connection has one stream");

pub(crate) enum Tcp {}

impl Stack for Tcp {
    type Listener = TcpServer;
    type Dialer = TcpDialer;

    const REUSES_STREAM: bool = true;

    fn listen(transport: &Transport) -> Result<TcpServer> {
        check(transport)?;
        let tls = tls::server(ring::default_provider(), transport)?;
        let socket = tokio::net::TcpSocket::new_v4()?;
        socket.bind((Ipv4Addr::LOCALHOST, 0).into())?;
        Ok(TcpServer { listener: socket.listen(BACKLOG)?, acceptor: TlsAcceptor::from(Arc::new(tls)) })
    }

    fn dialer(transport: &Transport, server: SocketAddr) -> Result<TcpDialer> {
        check(transport)?;
        let mut tls = tls::client(ring::default_provider(), transport)?;
        tls.enable_early_data = false;
        Ok(TcpDialer { connector: TlsConnector::from(Arc::new(tls)), server })
    }
}

fn check(transport: &Transport) -> Result<()> {
    match transport.controller {
        None if transport.workers == 1 => Ok(()),
        None => Err(Failure::Unsupported("workers are not a matter of TCP")),
        Some(_) => Err(Failure::Unsupported("the controller of TCP is the kernel's")),
    }
}

pub(crate) struct TcpServer {
    listener: TcpListener,
    acceptor: TlsAcceptor,
}

impl Listener for TcpServer {
    type Pending = (TlsAcceptor, TcpStream);
    type Connection = TcpConnection;

    fn address(&self) -> Result<SocketAddr> {
        Ok(self.listener.local_addr()?)
    }

    async fn accept(&mut self) -> Option<Self::Pending> {
        let (stream, _) = self.listener.accept().await.ok()?;
        Some((self.acceptor.clone(), stream))
    }

    async fn establish((acceptor, stream): Self::Pending) -> Result<TcpConnection> {
        stream.set_nodelay(true)?;
        Ok(TcpConnection::new(acceptor.accept(stream).await?.into()))
    }
}

#[derive(Clone)]
pub(crate) struct TcpDialer {
    connector: TlsConnector,
    server: SocketAddr,
}

impl Dialer for TcpDialer {
    type Connection = TcpConnection;

    async fn dial(&self) -> Result<TcpConnection> {
        let name = ServerName::try_from(tls::SERVER_NAME).map_err(Failure::at("the name"))?;
        let stream = TcpStream::connect(self.server).await?;
        stream.set_nodelay(true)?;
        Ok(TcpConnection::new(self.connector.connect(name, stream).await?.into()))
    }

    async fn dial_early(&self) -> Result<TcpConnection> {
        Err(Failure::Unsupported("0-RTT over TCP is not measured"))
    }
}

type Halves = (TcpSender, TcpReceiver);

#[derive(Clone)]
pub(crate) struct TcpConnection(Arc<Mutex<Option<Halves>>>);

impl TcpConnection {
    fn new(stream: TlsStream<TcpStream>) -> Self {
        let (receiver, sender) = tokio::io::split(stream);
        let receiver = TcpReceiver { stream: receiver, buffer: BytesMut::new() };
        Self(Arc::new(Mutex::new(Some((TcpSender(sender), receiver)))))
    }

    fn take(&self) -> Option<Halves> {
        self.0.lock().ok()?.take()
    }
}

impl Connection for TcpConnection {
    type Sender = TcpSender;
    type Receiver = TcpReceiver;

    async fn open(&self) -> Result<Halves> {
        self.take().ok_or(ONE_STREAM)
    }

    async fn accept(&self) -> Option<Halves> {
        self.take()
    }

    async fn send_datagram(&self, _: Bytes) -> Result<()> {
        Err(Failure::Unsupported("TCP has no datagrams"))
    }

    async fn receive_datagram(&self) -> Result<Bytes> {
        Err(Failure::Unsupported("TCP has no datagrams"))
    }

    fn close(&self) {
        self.take();
    }
}

pub(crate) struct TcpSender(WriteHalf<TlsStream<TcpStream>>);

impl Sender for TcpSender {
    async fn write(&mut self, bytes: Bytes) -> Result<()> {
        self.0.write_all(&bytes).await?;
        Ok(self.0.flush().await?)
    }

    async fn finish(&mut self) -> Result<()> {
        Ok(self.0.shutdown().await?)
    }
}

pub(crate) struct TcpReceiver {
    stream: ReadHalf<TlsStream<TcpStream>>,
    buffer: BytesMut,
}

impl Receiver for TcpReceiver {
    async fn read(&mut self) -> Result<Option<Bytes>> {
        self.buffer.reserve(READ);
        if self.stream.read_buf(&mut self.buffer).await? == 0 {
            return Ok(None);
        }
        Ok(Some(self.buffer.split().freeze()))
    }
}
