//! What the handles of an endpoint and its worker share.

use std::collections::VecDeque;
use std::mem;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use bytes::Bytes;
use fulmar_base::Instant;
use fulmar_proto::{
    ClientConfig, ConnectionHandle, Datagram, EndpointEvent, Route, Transmit, TransmitBatch, VarInt,
};
use fulmar_udp::{SendOutcome, UdpSocket};
use tokio::sync::Notify;

use super::{Inner, ReadyQueue, Totals};
use crate::log::Logging;
use crate::sync::lock;

/// The shared part of an endpoint.
///
/// Locks are taken in this order, and only one of each kind at a time: `core`, a connection, `ready`.
pub(crate) struct Shared {
    /// Replaced when the endpoint is bound anew.
    socket: RwLock<Arc<UdpSocket>>,
    /// The socket was replaced, and the worker does not know it yet.
    rebound: AtomicBool,
    pub(crate) core: Mutex<Core>,
    pub(crate) ready: Arc<ReadyQueue<Arc<Inner>>>,
    /// A connection attempt waits, or none ever will again.
    pub(crate) incoming: Notify,
    /// The last connection is gone.
    pub(crate) idle: Notify,
    pub(crate) logging: Option<Logging>,
    /// How many handles of the endpoint exist.
    handles: AtomicUsize,
    next_id: AtomicU64,
}

/// The part that needs the lock: the core's endpoint and the table of connections.
pub(crate) struct Core {
    pub(crate) endpoint: fulmar_proto::Endpoint,
    pub(crate) client_config: Option<ClientConfig>,
    /// By handle. A place is free when its connection has drained.
    connections: Vec<Option<Arc<Inner>>>,
    connection_count: usize,
    /// Attempts that no `accept` has taken yet. Limit: `EndpointConfig::max_incoming`, kept by the core's endpoint, which
    /// drops the attempts beyond it.
    waiting: VecDeque<fulmar_proto::Incoming>,
    /// The bytes of answers that belong to no connection.
    pub(crate) reply: TransmitBatch,
    pub(crate) closed: bool,
    pub(crate) dropped_datagrams: u64,
    /// The counters of connections that are gone.
    pub(crate) past: Totals,
    now: Instant,
}

impl Shared {
    pub(crate) fn new(
        socket: UdpSocket,
        endpoint: fulmar_proto::Endpoint,
        client_config: Option<ClientConfig>,
        logging: Option<Logging>,
    ) -> Self {
        let core = Core {
            endpoint,
            client_config,
            connections: Vec::new(),
            connection_count: 0,
            waiting: VecDeque::new(),
            reply: TransmitBatch::new(1),
            closed: false,
            dropped_datagrams: 0,
            past: Totals::default(),
            now: Instant::ZERO,
        };
        Self {
            socket: RwLock::new(Arc::new(socket)),
            rebound: AtomicBool::new(false),
            core: Mutex::new(core),
            ready: Arc::new(ReadyQueue::new()),
            incoming: Notify::new(),
            idle: Notify::new(),
            logging,
            handles: AtomicUsize::new(0),
            next_id: AtomicU64::new(0),
        }
    }

    /// The socket in use.
    pub(crate) fn socket(&self) -> Arc<UdpSocket> {
        self.socket.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Uses another socket from now on.
    pub(crate) fn replace_socket(&self, socket: UdpSocket) {
        *self.socket.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(socket);
        self.rebound.store(true, Ordering::Release);
        self.ready.wake();
    }

    /// Whether the socket was replaced since this was asked last.
    pub(crate) fn take_rebound(&self) -> bool {
        self.rebound.load(Ordering::Relaxed) && self.rebound.swap(false, Ordering::Acquire)
    }

    /// A number that no connection of this endpoint had before.
    pub(crate) fn next_id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    /// Offers a connection attempt to the application.
    pub(crate) fn offer(&self, core: &mut Core, incoming: fulmar_proto::Incoming) {
        if core.closed {
            core.endpoint.ignore(incoming);
            return;
        }
        core.waiting.push_back(incoming);
        self.incoming.notify_one();
    }

    /// Sends an answer that belongs to no connection. If the socket is full it is lost: the peer will ask again.
    pub(crate) fn reply(&self, core: &Core, transmit: &Transmit) {
        let _ = send_from(&self.socket(), transmit, &core.reply, 0);
    }

    /// Counts a new handle of the endpoint.
    pub(crate) fn add_handle(&self) {
        self.handles.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a handle less. Without handles nobody can accept, and without connections the worker ends.
    pub(crate) fn remove_handle(&self) {
        if self.handles.fetch_sub(1, Ordering::AcqRel) == 1 {
            lock(&self.core).stop_accepting();
            self.ready.wake();
        }
    }

    /// Whether nobody uses the endpoint any more.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.handles.load(Ordering::Acquire) == 0 && lock(&self.core).is_idle()
    }
}

impl Core {
    /// The later of `now` and the time the core knows already, for several threads read the clock.
    pub(crate) fn advance(&mut self, now: Instant) -> Instant {
        self.now = self.now.max(now);
        self.now
    }

    /// The connection that a datagram names, or the datagram.
    pub(crate) fn recognize(&self, datagram: Datagram) -> Result<(ConnectionHandle, Datagram), Datagram> {
        self.endpoint.recognize(datagram)
    }

    /// Decides what is to be done with a datagram.
    pub(crate) fn route(&mut self, now: Instant, datagram: Datagram) -> Route {
        self.endpoint.handle_datagram(now, datagram, &mut self.reply)
    }

    /// The connection under `handle`.
    pub(crate) fn connection(&self, handle: ConnectionHandle) -> Option<Arc<Inner>> {
        self.connections.get(handle.0)?.clone()
    }

    /// Whether no connection is left.
    pub(crate) fn is_idle(&self) -> bool {
        self.connection_count == 0
    }

    /// The number of connections that have not drained.
    pub(crate) fn connection_count(&self) -> usize {
        self.connection_count
    }

    /// The number of attempts that wait to be accepted.
    pub(crate) fn waiting_count(&self) -> usize {
        self.waiting.len()
    }

    /// Takes the oldest attempt that waits.
    pub(crate) fn take_waiting(&mut self) -> Option<fulmar_proto::Incoming> {
        self.waiting.pop_front()
    }

    /// Puts a new connection into the table.
    pub(crate) fn insert(
        &mut self,
        shared: &Shared,
        handle: ConnectionHandle,
        connection: fulmar_proto::Connection,
    ) -> Arc<Inner> {
        let inner =
            Arc::new(Inner::new(shared.ready.clone(), shared.next_id(), handle, connection, self.now));
        if self.connections.len() <= handle.0 {
            self.connections.resize_with(handle.0 + 1, || None);
        }
        self.connections[handle.0] = Some(inner.clone());
        self.connection_count += 1;
        inner
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

    /// Lets no more connections in. Attempts that wait are forgotten.
    pub(crate) fn stop_accepting(&mut self) {
        self.endpoint.set_server_config(None);
        for incoming in mem::take(&mut self.waiting) {
            self.endpoint.ignore(incoming);
        }
    }

    /// Closes the endpoint for good and empties the table.
    pub(crate) fn abandon(&mut self) -> Vec<Arc<Inner>> {
        self.closed = true;
        self.stop_accepting();
        self.connection_count = 0;
        mem::take(&mut self.connections).into_iter().flatten().collect()
    }

    /// Closes all connections of the table. See [`Inner::close`].
    pub(crate) fn close(&mut self, code: VarInt, reason: &Bytes) {
        self.closed = true;
        self.stop_accepting();
        for connection in self.connections() {
            connection.close(code, reason.clone());
        }
    }
}

/// Sends the train `transmit`, whose bytes are in `batch`, from byte `offset` on.
pub(crate) fn send_from(
    socket: &UdpSocket,
    transmit: &Transmit,
    batch: &TransmitBatch,
    offset: usize,
) -> SendOutcome {
    socket.try_send(&fulmar_udp::Transmit {
        destination: transmit.addrs.remote,
        source: transmit.addrs.local_ip,
        ecn: transmit.ecn.bits(),
        contents: &batch.bytes()[offset..transmit.len],
        segment_size: transmit.segment_size,
    })
}
