//! What a worker shares with the handles of its endpoint and its connections.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use bytes::Bytes;
use fulmar_proto::{ConnectionHandle, Transmit, TransmitBatch, VarInt};
use fulmar_udp::UdpSocket;

use super::attempts::Attempts;
use super::replies::Replies;
use super::{Common, Core, Inner, ReadyQueue};
use crate::sync::lock;

/// The shared part of a worker.
///
/// Locks are taken in this order, and only one of each kind at a time: `core`, a connection, `replies`, `ready`.
pub(crate) struct WorkerShared {
    pub(crate) common: Arc<Common>,
    /// Replaced when the endpoint is bound anew.
    socket: RwLock<Arc<UdpSocket>>,
    /// The socket was replaced, and the worker does not know it yet.
    rebound: AtomicBool,
    pub(crate) core: Mutex<Core>,
    /// Those that were dialled. To be locked before any connection.
    pub(crate) attempts: Mutex<Attempts>,
    pub(crate) replies: Mutex<Replies>,
    pub(crate) ready: Arc<ReadyQueue<Arc<Inner>>>,
}

impl WorkerShared {
    pub(super) fn new(common: Arc<Common>, socket: UdpSocket, core: fulmar_proto::Endpoint) -> Self {
        Self {
            common,
            socket: RwLock::new(Arc::new(socket)),
            rebound: AtomicBool::new(false),
            core: Mutex::new(Core::new(core)),
            attempts: Mutex::default(),
            replies: Mutex::default(),
            ready: Arc::new(ReadyQueue::new()),
        }
    }

    /// The socket in use.
    pub(crate) fn socket(&self) -> Arc<UdpSocket> {
        self.socket.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Has attempts to connect told where nobody listens.
    pub(crate) fn report_refusals(&self) {
        // Without reports an attempt takes until its timeout.
        if let Err(error) = self.socket().report_refusals() {
            tracing::debug!(%error, "the socket does not report where nobody listens");
        }
    }

    /// Uses another socket from now on.
    pub(crate) fn replace_socket(&self, socket: UdpSocket) {
        let reports = self.socket().reports_refusals();
        *self.socket.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(socket);
        if reports {
            self.report_refusals();
        }
        self.rebound.store(true, Ordering::Release);
        self.ready.wake();
    }

    /// Whether the socket was replaced since this was asked last.
    pub(crate) fn take_rebound(&self) -> bool {
        self.rebound.load(Ordering::Relaxed) && self.rebound.swap(false, Ordering::Acquire)
    }

    /// Puts a new connection into the table.
    pub(crate) fn insert(
        &self,
        core: &mut Core,
        handle: ConnectionHandle,
        connection: fulmar_proto::Connection,
    ) -> Arc<Inner> {
        let id = self.common.next_id();
        let inner = Arc::new(Inner::new(self.ready.clone(), id, handle, connection, core.now()));
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

    fn refuse(&self, core: &mut Core, incoming: fulmar_proto::Incoming) {
        let mut reply = TransmitBatch::new(1);
        let transmit = core.endpoint.refuse(incoming, &mut reply);
        self.reply(transmit, &reply);
    }

    /// Wakes who waits for the end of all connections, if this worker has none.
    pub(crate) fn notify_if_idle(&self, core: &Core) {
        if core.is_idle() {
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
        self.common.is_abandoned() && lock(&self.core).is_idle()
    }
}
