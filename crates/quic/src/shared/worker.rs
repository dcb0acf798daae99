//! What a worker shares with the handles of its endpoint and its connections.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use bytes::Bytes;
use fulmar_proto::{ConnectionHandle, Datagram, FourTuple, SocketId, Transmit, TransmitBatch, VarInt};
use fulmar_udp::{SocketStats, UdpSocket};
use tokio::runtime::Handle;

use super::replies::Replies;
use super::sockets::MoreSockets;
use super::{Common, Core, Inner, ReadyQueue, Steering};
use crate::sync::lock;

/// The shared part of a worker.
///
/// Locks are taken in this order, and only one of each kind at a time: `core`, the attempts to connect, a connection, `replies`,
/// what waits for another worker, `ready`.
pub(crate) struct WorkerShared {
    pub(crate) common: Arc<Common>,
    /// Where the worker lives.
    pub(crate) runtime: Handle,
    /// Replaced when the endpoint is bound anew.
    socket: RwLock<Arc<UdpSocket>>,
    /// Those beside it.
    pub(crate) more_sockets: MoreSockets,
    /// The socket was replaced, and the worker does not know it yet.
    rebound: AtomicBool,
    pub(crate) core: Mutex<Core>,
    pub(crate) replies: Mutex<Replies>,
    pub(crate) ready: Arc<ReadyQueue<Arc<Inner>>>,
    /// Its place among the workers of the endpoint, if there are others.
    pub(super) place: Option<Place>,
}

/// Which of several workers it is.
pub(super) struct Place {
    pub(super) steering: Arc<Steering>,
    pub(super) index: usize,
}

/// What became of a datagram that might be another worker's.
pub(crate) enum Forwarded {
    /// It is this worker's, or nobody's.
    Kept(Datagram),
    Done,
    /// The other worker has no room for it.
    Dropped,
}

impl WorkerShared {
    pub(super) fn new(
        common: Arc<Common>,
        runtime: Handle,
        socket: UdpSocket,
        core: fulmar_proto::Endpoint,
        ready: Arc<ReadyQueue<Arc<Inner>>>,
        place: Option<Place>,
    ) -> Self {
        Self {
            common,
            runtime,
            socket: RwLock::new(Arc::new(socket)),
            more_sockets: MoreSockets::default(),
            rebound: AtomicBool::new(false),
            core: Mutex::new(Core::new(core)),
            replies: Mutex::default(),
            ready,
            place,
        }
    }

    /// Hands a datagram that names none of this worker's connections to the worker that it names.
    pub(crate) fn forward(&self, datagram: Datagram) -> Forwarded {
        let Some(Place { steering, index }) = &self.place else { return Forwarded::Kept(datagram) };
        let named = steering.worker_of(&datagram.payload);
        hand_on(steering, named.filter(|named| named != index), datagram)
    }

    /// Hands a datagram that may be a stateless reset to the worker whose connection it ends: the connection ID of a reset is made
    /// up, and names any of them.
    pub(crate) fn forward_reset(&self, core: &Core, datagram: Datagram) -> Forwarded {
        let Some(Place { steering, index }) = &self.place else { return Forwarded::Kept(datagram) };
        // The core's endpoints were made in the order of the workers.
        let owner = core.endpoint.shared().endpoint_of_reset(&datagram.payload);
        hand_on(steering, owner.filter(|owner| owner != index), datagram)
    }

    /// Takes what other workers have received for this one.
    pub(crate) fn take_forwarded(&self) -> VecDeque<Datagram> {
        self.place.as_ref().map(|place| place.steering.take(place.index)).unwrap_or_default()
    }

    /// How many datagrams other workers have received for this one.
    pub(crate) fn forwarded(&self) -> u64 {
        self.place.as_ref().map_or(0, |place| place.steering.forwarded_to(place.index))
    }

    /// The socket in use.
    pub(crate) fn socket(&self) -> Arc<UdpSocket> {
        self.socket.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The figures of all of its sockets since it began, of those that are gone, too.
    pub(crate) fn socket_stats(&self) -> SocketStats {
        let mut stats = self.socket().stats();
        stats += self.more_sockets.stats();
        stats
    }

    /// The socket of this name.
    pub(crate) fn socket_of(&self, id: SocketId) -> Option<Arc<UdpSocket>> {
        if id == SocketId::default() {
            return Some(self.socket());
        }
        self.more_sockets.all().into_iter().find(|(known, _)| *known == id).map(|(_, socket)| socket)
    }

    /// Whether datagrams can be sent over these addresses, as far as that is known before: nothing is said of the network.
    pub(crate) fn can_reach(&self, addrs: &FourTuple) -> bool {
        let remote = addrs.remote;
        let is_address = remote.port() != 0 && !remote.ip().is_unspecified();
        let same_family = addrs.local_ip.is_none_or(|ip| ip.is_ipv4() == remote.is_ipv4());
        let socket = self.socket_of(addrs.socket);
        is_address && same_family && socket.is_some_and(|socket| socket.can_reach(remote))
    }

    /// The addresses as datagrams that come from there will have them.
    pub(crate) fn canonical(&self, addrs: FourTuple) -> FourTuple {
        match self.socket_of(addrs.socket) {
            Some(socket) => FourTuple { remote: socket.canonical(addrs.remote), ..addrs },
            None => addrs,
        }
    }

    /// Has attempts to connect through this socket told where nobody listens.
    pub(crate) fn report_refusals(&self, id: SocketId) {
        let Some(socket) = self.socket_of(id).filter(|socket| !socket.reports_refusals()) else { return };
        ask_for_reports(&socket);
        // The worker has to wait for reports from now on.
        self.ready.wake();
    }

    /// Uses another socket from now on.
    pub(crate) fn replace_socket(&self, socket: UdpSocket) {
        let before = self.socket();
        let socket = socket.in_place_of(&before);
        if before.reports_refusals() {
            ask_for_reports(&socket);
        }
        *self.socket.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(socket);
        self.rebound.store(true, Ordering::Release);
        self.ready.wake();
    }

    /// Whether the socket was replaced since this was asked last.
    pub(crate) fn take_rebound(&self) -> bool {
        self.rebound.load(Ordering::Relaxed) && self.rebound.swap(false, Ordering::Acquire)
    }

    /// Puts a new connection into the table.
    pub(crate) fn insert(
        self: &Arc<Self>,
        core: &mut Core,
        handle: ConnectionHandle,
        connection: fulmar_proto::Connection,
    ) -> Arc<Inner> {
        let id = self.common.next_id();
        let inner = Arc::new(Inner::new(self, id, handle, connection, core.now()));
        if self.common.logging.is_some() {
            inner.start_application_log();
        }
        core.insert(handle, inner.clone());
        inner
    }

    /// Offers a connection attempt to the application. If it accepts none any more, the client is told so.
    pub(crate) fn offer(&self, core: &mut Core, incoming: fulmar_proto::Incoming) {
        match core.offer(incoming) {
            Ok(()) => self.common.incoming.notify_one(),
            Err(incoming) => self.refuse(core, incoming),
        }
    }

    /// Closes the endpoint. See [`Core::close`].
    pub(crate) fn close(&self, code: VarInt, reason: &Bytes) {
        let mut core = lock(&self.core);
        let waiting = core.close(code, reason);
        waiting.into_iter().for_each(|incoming| self.refuse(&mut core, incoming));
    }

    /// Lets no more connections in.
    pub(crate) fn stop_accepting(&self) {
        let mut core = lock(&self.core);
        let waiting = core.stop_accepting();
        waiting.into_iter().for_each(|incoming| self.refuse(&mut core, incoming));
    }

    /// Refuses an attempt: the worker answers, soon.
    pub(crate) fn refuse(&self, core: &mut Core, incoming: fulmar_proto::Incoming) {
        let mut reply = TransmitBatch::new(1);
        let transmit = core.endpoint.refuse(incoming, &mut reply);
        self.reply(transmit, &reply);
    }

    /// Whether this worker has no connections, and has told all peers what there is to tell.
    pub(crate) fn is_idle(&self) -> bool {
        self.is_idle_with(&lock(&self.core))
    }

    fn is_idle_with(&self, core: &Core) -> bool {
        core.is_idle() && lock(&self.replies).are_sent()
    }

    /// Wakes who waits for the end of all connections, if this worker has none.
    pub(crate) fn notify_if_idle(&self, core: &Core) {
        if self.is_idle_with(core) {
            self.common.idle.notify_waiters();
        }
    }

    /// Answers an attempt: the worker sends it, soon.
    pub(crate) fn reply(&self, transmit: Transmit, batch: &TransmitBatch) {
        lock(&self.replies).push(transmit, batch.bytes());
        self.ready.wake();
    }

    /// Whether nobody uses the endpoint any more, and no connection needs this worker.
    pub(crate) fn is_abandoned(&self) -> bool {
        // Attempts that wait are about to be refused.
        self.common.is_abandoned() && self.is_idle() && lock(&self.core).waiting_count() == 0
    }
}

/// Has the kernel keep what the network reports. Without it an attempt to connect takes until its timeout.
fn ask_for_reports(socket: &UdpSocket) {
    if let Err(error) = socket.report_refusals() {
        tracing::debug!(%error, "the socket does not report where nobody listens");
    }
}

/// Gives a datagram to another worker, if it is another's.
fn hand_on(steering: &Steering, other: Option<usize>, datagram: Datagram) -> Forwarded {
    let Some(other) = other else { return Forwarded::Kept(datagram) };
    match steering.forward(other, datagram) {
        true => Forwarded::Done,
        false => Forwarded::Dropped,
    }
}
