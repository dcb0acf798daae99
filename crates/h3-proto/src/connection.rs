//! A connection of HTTP/3: its streams, and what they have in common.

mod control;
mod lifecycle;
mod logging;
mod output;
mod receiving;
mod sending;
mod side_stream;

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use fulmar_base::Instant;
use fulmar_qpack::{Decoder, Encoder, PeerSettings};

use self::control::Control;
use self::output::Output;
use self::receiving::{RecvSide, Shared};
use self::sending::SendSide;
use self::side_stream::SideStream;
use crate::config::Config;
use crate::datagram::{self, Datagram};
use crate::error::{Error, ErrorCode, SendError};
use crate::event::{Event, Received};
use crate::limits::{Bucket, Useless};
use crate::log::{Log, LogEvent};
use crate::priority::Priority;
use crate::settings::Settings;

pub use self::output::{CONTROL_WAITING_MAX, Critical, ENCODER_WAITING_MAX};
pub use self::sending::DataHeader;

/// The most priorities that are kept for requests that have not come. Others are forgotten.
pub const EARLY_PRIORITIES_MAX: usize = 64;

/// Which end this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// It makes requests.
    Client,
    /// It answers them.
    Server,
}

/// One end of a connection of HTTP/3.
///
/// It knows no transport: streams are named by their QUIC stream IDs, and bytes come and go as values. Its owner
///
/// - writes what [`take_output`](Self::take_output) gives to three unidirectional streams of its own, after every call;
/// - says which streams the peer has opened ([`accept`](Self::accept)), what came on them ([`receive`](Self::receive)) and how they
///   ended ([`on_reset`](Self::on_reset), [`on_stop_sending`](Self::on_stop_sending));
/// - asks [`poll_unblocked`](Self::poll_unblocked) after it has received something on a unidirectional stream;
/// - writes what `send_*` gives to the stream that it names, in that order, and bodies behind their
///   [`send_data`](Self::send_data).
///
/// An [`Error`] says whether the connection is to be closed or a stream reset and stopped; no other call is needed then.
///
/// Bodies are never kept: what is not read stays in the transport, whose flow control holds the peer back.
#[derive(Debug)]
pub struct Connection {
    role: Role,
    config: Arc<Config>,
    encoder: Encoder,
    shared: Shared,
    peer: Peer,
    /// The streams of requests, until both of their sides are over.
    requests: BTreeMap<u64, Request>,
    /// Other streams of the peer.
    side_streams: BTreeMap<u64, SideStream>,
    output: Output,
    /// The first ID of a request that has not come.
    next_request: u64,
    /// Requests with this ID and above are not taken any more.
    refused_from: Option<u64>,
    early_priorities: BTreeMap<u64, Priority>,
    requests_left: Option<Bucket>,
    resets_left: Bucket,
    /// The latest time that this was told.
    now: Instant,
}

/// What is known of the other end.
#[derive(Debug, Default)]
struct Peer {
    settings: Option<Settings>,
    /// What a client sent early data by.
    remembered: Option<Settings>,
    has_control: bool,
    has_encoder: bool,
    has_decoder: bool,
    control: Control,
    /// From its last GOAWAY.
    going_away: Option<u64>,
}

/// The two sides of the stream of a request.
#[derive(Debug)]
struct Request {
    recv: RecvSide,
    send: SendSide,
    /// When the client had begun it, as its server sees that.
    begun_at: Instant,
    /// The peer has given it up, which was counted.
    is_counted: bool,
}

impl Connection {
    /// A client. If it sends requests as early data, it has to say which settings it remembers of the server
    /// (RFC 9114 §7.2.4.2); when the server refuses early data, it begins again with a new `Connection`.
    #[must_use]
    pub fn client(config: Arc<Config>, remembered: Option<Settings>) -> Self {
        let mut connection = Self::new(Role::Client, config);
        if let Some(settings) = remembered {
            // The encoder has no settings to contradict yet.
            let _ = connection.encoder.on_settings(qpack_settings(&settings));
            connection.peer.settings = Some(settings.clone());
            connection.peer.remembered = Some(settings);
        }
        connection
    }

    /// A server.
    #[must_use]
    pub fn server(config: Arc<Config>) -> Self {
        Self::new(Role::Server, config)
    }

    fn new(role: Role, config: Arc<Config>) -> Self {
        Self {
            role,
            encoder: Encoder::new(config.encoder.clone()),
            shared: Shared {
                role,
                decoder: Decoder::new(config.decoder.clone()),
                useless: Useless::new(config.useless_max),
                partial_bytes: 0,
                log: Log::default(),
                config: Arc::clone(&config),
            },
            peer: Peer::default(),
            requests: BTreeMap::new(),
            side_streams: BTreeMap::new(),
            output: Output::new(role, &config),
            next_request: 0,
            refused_from: None,
            early_priorities: BTreeMap::new(),
            requests_left: config.requests.map(Bucket::new),
            resets_left: Bucket::new(config.resets),
            now: Instant::ZERO,
            config,
        }
    }

    /// Which end this is.
    #[must_use]
    pub fn role(&self) -> Role {
        self.role
    }

    /// What this end offers and limits.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The settings of the peer, once they have come; before that those that a client remembers.
    #[must_use]
    pub fn peer_settings(&self) -> Option<&Settings> {
        self.peer.settings.as_ref()
    }

    /// Takes bytes of a stream off the front of `bytes`; `is_last` says that the stream ends behind them. Call it again with what
    /// is left until it returns no event.
    ///
    /// # Errors
    ///
    /// Of the connection or of this stream. After one of the stream nothing more is to be received on it.
    pub fn receive(&mut self, stream: u64, bytes: &mut Bytes, is_last: bool) -> Result<Received, Error> {
        if let Some(request) = self.requests.get_mut(&stream) {
            let received = request.recv.receive(stream, &mut self.shared, bytes, is_last);
            return self.received(stream, received);
        }
        self.receive_on_side_stream(stream, bytes, is_last)
    }

    /// The next stream that does not wait any more, and what has come on it. What was left of its bytes is to be received after
    /// that. To be called after [`receive`](Self::receive) on a unidirectional stream, until it has nothing more.
    ///
    /// # Errors
    ///
    /// Of the connection or of that stream.
    pub fn poll_unblocked(&mut self) -> Result<Option<(u64, Event)>, Error> {
        while let Some((stream, decoded)) = self.shared.decoder.unblocked()? {
            let Some(request) = self.requests.get_mut(&stream) else { continue };
            let received = request.recv.unblocked(stream, &mut self.shared, decoded);
            if let Received::Event(event) = self.received(stream, received)? {
                return Ok(Some((stream, event)));
            }
        }
        Ok(None)
    }

    /// Adds to what was received on a request's stream what only the connection knows, and forgets streams that are over.
    fn received(&mut self, stream: u64, received: Result<Received, Error>) -> Result<Received, Error> {
        match received {
            Ok(Received::Event(Event::Request(mut head))) => {
                let early = self.early_priorities.remove(&stream);
                self.log_first_priority(stream, &head, early);
                if let Some(priority) = early {
                    head.priority = priority;
                }
                Ok(Received::Event(Event::Request(head)))
            }
            Ok(Received::Event(Event::SessionStream { kind, session })) => {
                // The session has both sides of it.
                self.requests.remove(&stream);
                self.side_streams.insert(stream, SideStream::Claimed);
                Ok(Received::Event(Event::SessionStream { kind, session }))
            }
            Ok(Received::Event(Event::Finished)) => {
                self.forget_if_over(stream);
                Ok(Received::Event(Event::Finished))
            }
            Err(error) if error.scope() == crate::error::Scope::Stream(stream) => {
                self.count_malformed(stream)?;
                self.shared.decoder.cancel(stream)?;
                self.forget(stream);
                Err(error)
            }
            received => received,
        }
    }

    /// Takes the request that a datagram of the transport belongs to off its front. Nothing comes of datagrams for requests
    /// that are over, or if datagrams were not offered.
    ///
    /// # Errors
    ///
    /// H3_DATAGRAM_ERROR where the datagram names no stream.
    pub fn receive_datagram(&mut self, datagram: Bytes) -> Result<Option<Datagram>, Error> {
        let (stream, payload) = datagram::split(datagram)?;
        self.shared.log.note(|| LogEvent::DatagramParsed { stream, len: payload.len() as u64 });
        if !self.config.h3_datagram {
            return Ok(None);
        }
        let is_open = self.requests.get(&stream).is_some_and(|request| !request.recv.is_over());
        let is_early = self.role == Role::Server && stream >= self.next_request;
        Ok((is_open || is_early).then_some(Datagram { stream, payload, is_early }))
    }

    /// A datagram of the transport with an HTTP datagram of a request.
    ///
    /// # Errors
    ///
    /// [`SendError::Closed`] if the request is over, [`SendError::Unsupported`] if the peer takes none.
    pub fn send_datagram(&mut self, stream: u64, payload: &[u8]) -> Result<Bytes, SendError> {
        if !self.config.h3_datagram || !self.peer.settings.as_ref().is_some_and(|peer| peer.h3_datagram) {
            return Err(SendError::Unsupported);
        }
        let request = self.requests.get(&stream).ok_or(SendError::Closed)?;
        if request.send.is_over() {
            return Err(SendError::Closed);
        }
        self.shared.log.note(|| LogEvent::DatagramCreated { stream, len: payload.len() as u64 });
        Ok(datagram::join(stream, payload))
    }

    fn forget_if_over(&mut self, stream: u64) {
        if self.requests.get(&stream).is_some_and(|request| request.recv.is_over() && request.send.is_over())
        {
            self.forget(stream);
        }
    }

    fn forget(&mut self, stream: u64) {
        self.early_priorities.remove(&stream);
        if let Some(request) = self.requests.remove(&stream) {
            self.shared.partial_bytes -= request.recv.partial_bytes();
        }
    }
}

fn qpack_settings(settings: &Settings) -> PeerSettings {
    PeerSettings {
        max_table_capacity: settings.qpack_max_table_capacity,
        blocked_streams: settings.qpack_blocked_streams,
    }
}

/// Whether a client opens this stream.
fn is_of_client(stream: u64) -> bool {
    stream & 1 == 0
}

/// Whether both ends send on this stream.
fn is_bidirectional(stream: u64) -> bool {
    stream & 2 == 0
}

/// Whether this can be the stream of a request.
fn is_of_request(stream: u64) -> bool {
    stream & 3 == 0 && stream <= crate::varint::MAX
}

fn breach(code: ErrorCode, reason: &'static str) -> Error {
    Error::connection(code, reason)
}
