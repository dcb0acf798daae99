//! Datagrams in: from the sockets to the endpoint and the connections.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use fulmar_base::Instant;
use fulmar_proto::{Datagram, DropReason, Ecn, FourTuple, Recognized, Route, SocketId};
use fulmar_udp::{Received, UdpSocket};

use super::Worker;
use crate::clock;
use crate::shared::{Forwarded, Inner};
use crate::sync::lock;

/// Bytes that are received in one turn, about: what stays in the processor's cache until the application reads it, and
/// what a peer sends between two acknowledgements.
const RECV_BYTES_PER_TURN: u64 = 256 * 1024;
/// Receive calls in one turn, whatever they return.
const RECV_CALLS_PER_TURN: usize = 16;
/// Datagrams that are routed under one lock of the endpoint.
const ROUTE_RUN_MAX: usize = 128;
/// How long a turn looks at datagrams that match no connection: what an attempt to connect costs, about. With one that
/// takes longer the turn is over.
const UNMATCHED_TIME_PER_TURN: Duration = Duration::from_micros(100);
/// How long a reader is waited for at most: the shortest time that the runtime's timers know. One that needs longer waits for more
/// than the processor.
const READER_WAIT: Duration = Duration::from_millis(1);
/// How long a socket that fails to receive is left alone.
const RECV_PAUSE: Duration = Duration::from_millis(10);

/// Which socket a datagram came through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    InUse(SocketId),
    /// One that was replaced.
    Retired,
}

impl Worker {
    pub(super) fn receive_some(&mut self) {
        if self.waits_for_reader() {
            return;
        }
        for socket in self.retired.open_at(clock::now()) {
            self.receive(&socket, Origin::Retired);
        }
        self.receive_from(&self.socket.clone(), SocketId::default());
        for index in 0..self.more_sockets.len() {
            let (id, socket) = self.more_sockets[index].clone();
            self.receive_from(&socket, id);
        }
    }

    /// Whether a reader is to have its turn before more is received: see [`Readers`](crate::shared::Readers).
    fn waits_for_reader(&mut self) -> bool {
        let Some((connection, until)) = &self.late_reader else { return false };
        let mut state = connection.lock();
        let waits = state.readers.are_awaited() && clock::now() < *until;
        if !waits {
            state.readers.end_wait(&mut self.patience);
            drop(state);
            self.late_reader = None;
        }
        waits
    }

    /// Receives what one turn takes of a socket.
    fn receive_from(&mut self, socket: &Arc<UdpSocket>, id: SocketId) {
        let mut bytes = 0;
        for _ in 0..RECV_CALLS_PER_TURN {
            let is_more = self.receive(socket, Origin::InUse(id));
            bytes += self.received.bytes();
            if !is_more || self.late_reader.is_some() || bytes >= RECV_BYTES_PER_TURN {
                return;
            }
        }
    }

    /// Receives one batch. Returns whether the socket is likely to hold more.
    fn receive(&mut self, socket: &Arc<UdpSocket>, origin: Origin) -> bool {
        if self.recv_paused_until.is_some_and(|until| clock::now() < until) {
            return false;
        }
        self.recv_paused_until = None;
        let received = match self.conversation.is_on() {
            true => socket.try_recv_lone(&mut self.received),
            false => socket.try_recv(&mut self.received),
        };
        match received {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return false,
            Err(error) => {
                tracing::debug!(%error, "receiving failed");
                if origin == Origin::Retired {
                    self.retired.close(socket);
                    return false;
                }
                self.recv_paused_until = Some(clock::now() + RECV_PAUSE);
                return false;
            }
        }
        let now = clock::now();
        self.conversation.on_received(self.received.is_lone());
        self.busy_poll.on_received(now, self.received.bytes() as usize);
        while self.route_run(now, origin) {}
        self.received.is_full()
    }

    /// Handles the next datagrams of the batch that go to one connection. Returns whether there are more.
    fn route_run(&mut self, now: Instant, origin: Origin) -> bool {
        let shared = self.shared.clone();
        let mut core = lock(&shared.core);
        core.advance(now);
        let mut run = self.carried.take().map(|(handle, came, datagram)| {
            self.datagrams.push((came, datagram));
            handle
        });
        let mut is_last = false;
        while self.datagrams.len() < ROUTE_RUN_MAX {
            let Some(received) = self.received.next_datagram() else {
                is_last = true;
                break;
            };
            let came = Instant::ZERO + now.saturating_since(Instant::ZERO).saturating_sub(received.waited);
            match core.recognize(into_datagram(received, origin)) {
                Recognized::Connection(to, datagram) if run.is_none_or(|run| run == to.connection) => {
                    run = Some(to.connection);
                    self.datagrams.push((came, datagram));
                }
                Recognized::Connection(to, datagram) => {
                    self.carried = Some((to.connection, came, datagram));
                    break;
                }
                Recognized::Closed => {}
                Recognized::Unknown(datagram) => {
                    let is_dropped = match shared.forward(datagram) {
                        Forwarded::Kept(datagram) => !self.unmatched.add(came, datagram),
                        Forwarded::Done => false,
                        Forwarded::Dropped => true,
                    };
                    core.dropped_datagrams += u64::from(is_dropped);
                }
            }
        }
        let connection = run.and_then(|handle| core.connection(handle));
        drop(core);
        match connection {
            Some(connection) => self.deliver(&connection, now, origin),
            None => self.datagrams.clear(),
        }
        !is_last
    }

    /// Handles what other workers have received for this one.
    pub(super) fn receive_forwarded(&mut self) {
        for datagram in self.shared.take_forwarded() {
            let mut core = lock(&self.shared.core);
            let now = core.advance(clock::now());
            match core.recognize(datagram) {
                Recognized::Connection(to, datagram) => {
                    let connection = core.connection(to.connection);
                    drop(core);
                    if let Some(connection) = connection {
                        self.datagrams.push((now, datagram));
                        self.deliver(&connection, now, Origin::InUse(SocketId::default()));
                    }
                }
                Recognized::Closed => {}
                Recognized::Unknown(datagram) => {
                    core.dropped_datagrams += u64::from(!self.unmatched.add(now, datagram))
                }
            }
        }
    }

    /// Looks at datagrams that match no connection, for a bounded time and until one of them is an attempt to connect. The
    /// application's task does the rest of the work on that, and before the next one it is the turn of the connections. The
    /// datagrams that follow of the same attempt go with it, so that its ClientHello is complete when TLS gets it.
    pub(super) fn route_unmatched(&mut self) {
        if self.unmatched.is_empty() {
            return;
        }
        let end = clock::now() + UNMATCHED_TIME_PER_TURN;
        let mut attempt = None;
        let mut is_over = false;
        while !is_over && let Some((came, datagram)) = self.unmatched.next() {
            let now = clock::now();
            is_over = now >= end;
            let mut core = lock(&self.shared.core);
            let now = core.advance(now);
            let datagram = match self.shared.forward_reset(&core, datagram) {
                Forwarded::Kept(datagram) => datagram,
                forwarded => {
                    core.dropped_datagrams += u64::from(matches!(forwarded, Forwarded::Dropped));
                    continue;
                }
            };
            match core.route(came, datagram, &mut self.reply) {
                Route::Dropped(DropReason::Buffered | DropReason::ConnectionClosed) => continue,
                // Its attempt was accepted while it waited.
                Route::Connection(handle, datagram) => {
                    let connection = core.connection(handle);
                    drop(core);
                    if let Some(connection) = connection {
                        self.datagrams.push((now, datagram));
                        self.deliver(&connection, now, Origin::InUse(SocketId::default()));
                    }
                }
                Route::Incoming(incoming) => {
                    if let Some(before) = attempt.replace(incoming) {
                        self.shared.offer(&mut core, before);
                        is_over = true;
                    }
                    continue;
                }
                Route::Reply(transmit) => {
                    drop(core);
                    self.send_reply(&transmit, &self.reply.bytes()[..transmit.len]);
                }
                Route::Dropped(_) => core.dropped_datagrams += 1,
            }
            is_over |= attempt.is_some();
        }
        if let Some(attempt) = attempt {
            self.shared.offer(&mut lock(&self.shared.core), attempt);
        }
    }

    /// Gives the collected datagrams to their connection and wakes those who wait for their contents, once. Each comes at the
    /// time of its arrival, not of this call, or at that of what the connection has done since, if that is later: what the
    /// connection measures is to be the network, not how busy this machine is. All had come at `now`.
    fn deliver(&mut self, connection: &Arc<Inner>, now: Instant, origin: Origin) {
        self.busy_poll.on_delivered(connection.handle());
        let mut state = connection.lock();
        state.received_at = state.received_at.max(now);
        for (came, datagram) in self.datagrams.drain(..) {
            let now = state.advance(came);
            match origin {
                Origin::InUse(_) => state.proto.handle_datagram(now, datagram),
                Origin::Retired => state.proto.handle_late_datagram(now, datagram),
            }
        }
        state.on_traffic();
        // With another one there is a wait already.
        if self.late_reader.is_none() && state.on_received(&mut self.patience) {
            self.late_reader = Some((connection.clone(), now + READER_WAIT));
        }
        self.after_change(connection, state);
    }
}

fn into_datagram(received: Received, origin: Origin) -> Datagram {
    let socket = match origin {
        Origin::InUse(id) => id,
        Origin::Retired => SocketId::default(),
    };
    Datagram {
        addrs: FourTuple { socket, ..FourTuple::new(received.remote, received.local_ip) },
        ecn: Ecn::from_bits(received.ecn),
        payload: received.payload,
    }
}
