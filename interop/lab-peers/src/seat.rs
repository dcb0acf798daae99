//! What an end has besides its stack: an address, an application, and what both have come to.

use std::net::SocketAddr;

use fulmar_sim::{Ecn, Packet};

use crate::application::{Application, Streams};
use crate::{client_address, server_address};

/// The place of a stack at one end of the link.
#[derive(Debug)]
pub(crate) struct Seat<Id> {
    /// The name of the stack, for messages.
    stack: &'static str,
    application: Application<Id>,
    /// The address of the socket.
    pub(crate) address: SocketAddr,
    /// Whether the handshake is complete.
    pub(crate) connected: bool,
    failure: Option<String>,
    /// What the endpoint has answered, to be sent.
    pub(crate) replies: Vec<Packet>,
}

impl<Id: Copy> Seat<Id> {
    /// The seat of a client that wants so many bytes, or of a server.
    pub(crate) fn new(stack: &'static str, wanted: Option<u64>) -> Self {
        let address = if wanted.is_some() { client_address() } else { server_address() };
        let application = Application::new(wanted);
        Self { stack, application, address, connected: false, failure: None, replies: Vec::new() }
    }

    /// Something went wrong.
    pub(crate) fn fail(&mut self, what: impl std::fmt::Display) {
        self.failure = Some(format!("{}: {what}", self.stack));
    }

    /// Lets the application go on, once there is a connection.
    pub(crate) fn run(&mut self, streams: &mut impl Streams<Id = Id>) {
        if self.connected
            && let Err(what) = self.application.run(streams)
        {
            self.fail(what);
        }
    }

    /// The packets of a train of `bytes`, each of `segment` bytes.
    pub(crate) fn packets(
        &self,
        remote: SocketAddr,
        ecn: Ecn,
        bytes: &[u8],
        segment: Option<usize>,
    ) -> Vec<Packet> {
        let segments = bytes.chunks(segment.unwrap_or(bytes.len()).max(1));
        segments.map(|bytes| Packet::new(self.address, remote, ecn, bytes.to_vec())).collect()
    }
}

/// What everybody may ask of a seat.
pub trait Seated {
    /// Where the end sends from and receives.
    fn address(&self) -> SocketAddr;
    /// Bytes of the download that arrived here and were right.
    fn bytes_read(&self) -> u64;
    /// Whether the application of a client has everything.
    fn is_done(&self) -> bool;
    /// What went wrong, if something did.
    fn failure(&self) -> Option<&str>;
}

impl<Id: Copy> Seated for Seat<Id> {
    fn address(&self) -> SocketAddr {
        self.address
    }

    fn bytes_read(&self) -> u64 {
        self.application.bytes_read()
    }

    fn is_done(&self) -> bool {
        self.application.is_done()
    }

    fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }
}
