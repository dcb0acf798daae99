//! The connections of a worker, and the core's endpoint that finds them.

use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;

use bytes::Bytes;
use fulmar_base::Instant;
use fulmar_proto::{
    AcceptProgress, AcceptWork, Accepting, ConnectionHandle, Datagram, EndpointEvent, Recognized, Route,
    ServerConfig, TransmitBatch, VarInt,
};

use super::{Inner, Totals};

/// The part of a worker that needs the lock: the core's endpoint and the table of connections.
pub(crate) struct Core {
    pub(crate) endpoint: fulmar_proto::Endpoint,
    /// By handle. A place is free when its connection has drained.
    connections: Vec<Option<Arc<Inner>>>,
    connection_count: usize,
    /// Attempts that no `accept` has taken yet. Limit: `EndpointConfig::max_incoming`, kept by the core's endpoint, which
    /// drops the attempts beyond it.
    waiting: VecDeque<fulmar_proto::Incoming>,
    /// How many attempts are being accepted: TLS works on them, without the lock.
    accepting: usize,
    phase: Phase,
    /// Whether somebody may take attempts.
    is_accepting: bool,
    pub(crate) dropped_datagrams: u64,
    /// The counters of connections that are gone.
    pub(crate) past: Totals,
    now: Instant,
}

/// Whether connections begin.
enum Phase {
    Open,
    /// The application has closed the endpoint, and so are all its connections, with this code and reason.
    Closed(VarInt, Bytes),
    /// There is no worker any more.
    Abandoned,
}

/// What becomes of a connection that TLS has made.
pub(crate) enum Accepted {
    /// More of its client has come: it is to be given to the connection first.
    More(Accepting, Vec<Datagram>),
    /// It is in the core's endpoint, under this handle.
    Registered(ConnectionHandle),
    /// The endpoint is gone.
    Abandoned,
}

impl Core {
    pub(super) fn new(endpoint: fulmar_proto::Endpoint) -> Self {
        Self {
            endpoint,
            connections: Vec::new(),
            connection_count: 0,
            waiting: VecDeque::new(),
            accepting: 0,
            phase: Phase::Open,
            is_accepting: true,
            dropped_datagrams: 0,
            past: Totals::default(),
            now: Instant::ZERO,
        }
    }

    /// The later of `now` and the time the core knows already, for several threads read the clock.
    pub(crate) fn advance(&mut self, now: Instant) -> Instant {
        self.now = self.now.max(now);
        self.now
    }

    pub(super) fn now(&self) -> Instant {
        self.now
    }

    /// Whether the application has closed the endpoint, or it is gone.
    pub(crate) fn is_closed(&self) -> bool {
        !matches!(self.phase, Phase::Open)
    }

    /// The code and the reason with which connections are closed that begin after the endpoint was closed.
    pub(crate) fn close_reason(&self) -> Option<(VarInt, Bytes)> {
        match &self.phase {
            Phase::Closed(code, reason) => Some((*code, reason.clone())),
            Phase::Open | Phase::Abandoned => None,
        }
    }

    /// The connection that a datagram names, if it names one.
    pub(crate) fn recognize(&mut self, datagram: Datagram) -> Recognized {
        self.endpoint.recognize(datagram)
    }

    /// Decides what is to be done with a datagram that came at `came`. An answer is written to `reply`.
    pub(crate) fn route(&mut self, came: Instant, datagram: Datagram, reply: &mut TransmitBatch) -> Route {
        self.endpoint.handle_late_datagram(self.now, came, datagram, reply)
    }

    /// The connection under `handle`.
    pub(crate) fn connection(&self, handle: ConnectionHandle) -> Option<Arc<Inner>> {
        self.connections.get(handle.0)?.clone()
    }

    /// Whether no connection is left, none is about to begin, and no peer may have to be told again that one is over.
    pub(crate) fn is_idle(&self) -> bool {
        let is_gone = matches!(self.phase, Phase::Abandoned);
        let tells = !is_gone && self.endpoint.closing_connections() > 0;
        self.connection_count == 0 && self.accepting == 0 && !tells
    }

    /// The number of connections in the table.
    pub(crate) fn connection_count(&self) -> usize {
        self.connection_count
    }

    /// The number of attempts that wait to be accepted.
    pub(crate) fn waiting_count(&self) -> usize {
        self.waiting.len()
    }

    /// Keeps an attempt until somebody takes it.
    ///
    /// # Errors
    /// The attempt, if nobody will.
    #[expect(clippy::result_large_err, reason = "it is the attempt itself, and moved once")]
    pub(super) fn offer(&mut self, incoming: fulmar_proto::Incoming) -> Result<(), fulmar_proto::Incoming> {
        if !self.is_accepting {
            return Err(incoming);
        }
        self.waiting.push_back(incoming);
        Ok(())
    }

    /// Takes the oldest attempt that waits.
    pub(crate) fn take_waiting(&mut self) -> Option<fulmar_proto::Incoming> {
        self.waiting.pop_front()
    }

    /// Begins to accept, by this configuration or that of the endpoint. Whoever calls it calls [`finish_accept`](Self::finish_accept) or
    /// [`cancel_accept`](Self::cancel_accept) later.
    #[expect(clippy::result_large_err, reason = "it is the attempt itself, and moved once")]
    pub(crate) fn begin_accept(
        &mut self,
        incoming: fulmar_proto::Incoming,
        config: Option<Arc<ServerConfig>>,
    ) -> Result<(Accepting, AcceptWork), (fulmar_proto::AcceptError, fulmar_proto::Incoming)> {
        let begun = self.endpoint.begin_accept(self.now, incoming, config)?;
        self.accepting += 1;
        Ok(begun)
    }

    /// Registers a connection, if all that has come of its client was given to it.
    pub(crate) fn finish_accept(
        &mut self,
        accepting: Accepting,
    ) -> Result<Accepted, fulmar_proto::AcceptError> {
        if matches!(self.phase, Phase::Abandoned) {
            let incoming = self.cancel_accept(accepting);
            self.endpoint.ignore(incoming);
            return Ok(Accepted::Abandoned);
        }
        match self.endpoint.finish_accept(accepting) {
            Ok(AcceptProgress::More(accepting, datagrams)) => Ok(Accepted::More(accepting, datagrams)),
            Ok(AcceptProgress::Done(handle)) => {
                self.accepting -= 1;
                Ok(Accepted::Registered(handle))
            }
            Err(error) => {
                self.accepting -= 1;
                Err(error)
            }
        }
    }

    /// Gives an attempt back that is not to be accepted after all.
    pub(crate) fn cancel_accept(&mut self, accepting: Accepting) -> fulmar_proto::Incoming {
        self.accepting -= 1;
        self.endpoint.cancel_accept(accepting)
    }

    /// Puts a new connection into the table.
    pub(super) fn insert(&mut self, handle: ConnectionHandle, inner: Arc<Inner>) {
        if self.connections.len() <= handle.0 {
            self.connections.resize_with(handle.0 + 1, || None);
        }
        self.connections[handle.0] = Some(inner);
        self.connection_count += 1;
    }

    /// Takes what a connection has to tell the core's endpoint.
    pub(crate) fn handle_event(&mut self, handle: ConnectionHandle, event: EndpointEvent) {
        if event.is_drained()
            && let Some(connection) = self.connections.get_mut(handle.0).and_then(Option::take)
        {
            self.connection_count -= 1;
            self.past.add(&connection.lock().proto.stats());
        }
        self.endpoint.handle_event(handle, event);
    }

    /// All connections.
    pub(crate) fn connections(&self) -> Vec<Arc<Inner>> {
        self.connections.iter().flatten().cloned().collect()
    }

    /// Changes how connections are accepted, unless the endpoint is closed.
    pub(crate) fn set_server_config(&mut self, config: Option<Arc<ServerConfig>>) {
        if !self.is_closed() {
            self.endpoint.set_server_config(config);
        }
    }

    /// Lets no more connections in. Returns the attempts that wait, which are to be refused, as those that are still to come.
    pub(super) fn stop_accepting(&mut self) -> VecDeque<fulmar_proto::Incoming> {
        self.is_accepting = false;
        mem::take(&mut self.waiting)
    }

    /// Closes the endpoint for good and empties the table.
    pub(crate) fn abandon(&mut self) -> Vec<Arc<Inner>> {
        self.phase = Phase::Abandoned;
        self.endpoint.set_server_config(None);
        for incoming in self.stop_accepting() {
            self.endpoint.ignore(incoming);
        }
        self.connection_count = 0;
        mem::take(&mut self.connections).into_iter().flatten().collect()
    }

    /// Closes all connections of the table, and those that are being accepted. See [`Inner::close`]. Returns the attempts
    /// that wait, which are to be refused.
    pub(super) fn close(&mut self, code: VarInt, reason: &Bytes) -> VecDeque<fulmar_proto::Incoming> {
        if let Phase::Open = self.phase {
            self.phase = Phase::Closed(code, reason.clone());
        }
        for connection in self.connections() {
            connection.close(code, reason.clone());
        }
        self.stop_accepting()
    }
}
