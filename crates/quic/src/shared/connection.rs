//! A connection as its handles and the worker share it.

use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, Weak};
use std::task::Waker;
use std::time::Duration;

use bytes::Bytes;
use fulmar_base::Instant;
use fulmar_proto::{ConnectionError, ConnectionHandle, Event, FourTuple, StreamEvent, VarInt};
use tokio::sync::Notify;

use super::drop_codes::DropCodes;
use super::life::Life;
use super::paths::Paths;
use super::proto::Proto;
use super::waiting::{Awaited, Completion, StreamQueues, StreamSlots};
use super::{Patience, Readers, ReadyQueue, WorkerShared};
use crate::clock;
use crate::log::ApplicationLog;
use crate::sync::lock;

/// A connection that was silent for so long gives back what it does not need meanwhile: see [`fulmar_proto::Connection::rest`].
const REST_AFTER: Duration = Duration::from_secs(1);

/// One that is new does so when it was silent for as long as it has been there, but not before this: four times the 25 milliseconds
/// that an acknowledgement may take by default (RFC 9000 §18.2). Those that came within a second would all hold keys and buffers
/// otherwise, and a process keeps the memory of its busiest second. It happens at most a few times, as each doubles the age.
const REST_NEW_AFTER: Duration = Duration::from_millis(100);

/// The shared part of a connection. The worker's table and queues and every handle hold it.
pub(crate) struct Inner {
    worker: Weak<WorkerShared>,
    /// The queue of its worker.
    ready: Arc<ReadyQueue<Arc<Self>>>,
    handle: ConnectionHandle,
    /// Unlike the handle, never used again.
    id: u64,
    /// How many handles of the application exist: connections, streams, pending futures.
    handles: AtomicUsize,
    state: Mutex<State>,
    /// Made for the first who waits. Whoever looks for what it waits for under the lock, after it was made, misses nothing.
    changed: OnceLock<Box<Changed>>,
    pub(crate) life: Life,
}

/// The part that needs the lock.
pub(crate) struct State {
    pub(crate) proto: Proto,
    /// Who waits for which stream.
    pub(crate) streams: StreamSlots,
    /// Who waits to open or to accept streams.
    pub(crate) queues: StreamQueues,
    /// What handles tell the peer when they are dropped.
    pub(crate) drop_codes: DropCodes,
    /// The task that awaits [`Connecting`](crate::Connecting).
    pub(crate) connecting: Option<Waker>,
    pub(crate) is_connected: bool,
    /// Why the connection is over, once it is.
    pub(crate) error: Option<ConnectionError>,
    /// Whether the tasks that read come when they are woken.
    pub(crate) readers: Readers,
    /// The connection is in the ready queue or in the worker's own.
    pub(crate) queued: bool,
    /// What it has learned of its path was kept for later connections.
    pub(crate) is_path_kept: bool,
    /// The connection is over, and the worker counts it among those that it remembers.
    pub(crate) is_remembered: bool,
    /// The worker has forgotten the connection.
    pub(crate) is_drained: bool,
    /// Of connections with several paths.
    pub(super) paths: Option<Box<Paths>>,
    /// What the protocol above notes, if somebody takes it.
    pub(crate) application_log: Option<Box<ApplicationLog>>,
    /// The worker's entry in its timers.
    pub(crate) timer: Option<Instant>,
    /// When datagrams were last received for it; no time before its beginning.
    pub(crate) received_at: Instant,
    /// When the connection comes to rest if nothing is sent or received; `None` if it does.
    rest: Option<Instant>,
    began: Instant,
    now: Instant,
}

/// What tasks wait for that concerns the whole connection. All who wait for an event are woken by it and look again.
#[derive(Default)]
pub(crate) struct Changed {
    /// The handshake is complete, and later confirmed.
    pub(crate) connected: Notify,
    /// The connection is over, and later forgotten.
    pub(crate) closed: Notify,
    /// The sending of a stream has ended.
    pub(crate) stream_ended: Notify,
    pub(crate) datagram_received: Notify,
    pub(crate) datagrams_unblocked: Notify,
    /// Something happened to a path, or the peer sees this end elsewhere.
    pub(crate) paths: Notify,
    /// Datagrams were dropped before they were sent.
    pub(crate) datagrams_dropped: Notify,
}

impl Changed {
    fn all(&self) -> impl Iterator<Item = &Notify> {
        let datagrams = [&self.datagram_received, &self.datagrams_unblocked, &self.datagrams_dropped];
        [&self.connected, &self.closed, &self.stream_ended, &self.paths].into_iter().chain(datagrams)
    }
}

impl State {
    /// The later of `now` and the time the connection knows already, for several threads read the clock.
    pub(crate) fn advance(&mut self, now: Instant) -> Instant {
        self.now = self.now.max(now);
        self.now
    }

    /// Something was received or is sent.
    pub(crate) fn on_traffic(&mut self) {
        let age = self.now.saturating_since(self.began);
        self.rest = Some(self.now + age.clamp(REST_NEW_AFTER, REST_AFTER));
    }

    /// Something was received. Returns whether a reader is to have its turn before more is.
    pub(crate) fn on_received(&mut self, patience: &mut Patience) -> bool {
        self.readers.on_received(self.proto.unread(), patience)
    }

    /// When the core or this end's care for its memory wants to be called.
    pub(crate) fn next_call(&self) -> Option<Instant> {
        self.deadline().into_iter().chain(self.rest).min()
    }

    /// Whether it is time for the connection to rest, once.
    pub(crate) fn take_due_rest(&mut self) -> bool {
        self.rest.take_if(|at| *at <= self.now).is_some()
    }

    /// The connection rests again after this turn if it did before: it was only asked for the time.
    pub(crate) fn rest_again(&mut self) {
        self.rest.get_or_insert(self.now);
    }

    /// Fails if the connection is over.
    pub(crate) fn check(&self) -> Result<(), ConnectionError> {
        self.error.clone().map_or(Ok(()), Err)
    }
}

impl Inner {
    pub(crate) fn new(
        worker: &Arc<WorkerShared>,
        id: u64,
        handle: ConnectionHandle,
        proto: fulmar_proto::Connection,
        now: Instant,
    ) -> Self {
        let life = Life::begin(id, &proto);
        let state = State {
            proto: Proto::Awake(proto),
            streams: StreamSlots::default(),
            queues: StreamQueues::default(),
            drop_codes: DropCodes::default(),
            connecting: None,
            is_connected: false,
            error: None,
            readers: Readers::default(),
            queued: false,
            is_path_kept: false,
            is_remembered: false,
            is_drained: false,
            paths: None,
            application_log: None,
            timer: None,
            received_at: now,
            rest: None,
            began: now,
            now,
        };
        Self {
            worker: Arc::downgrade(worker),
            ready: worker.ready.clone(),
            id,
            handle,
            handles: AtomicUsize::new(0),
            state: Mutex::new(state),
            changed: OnceLock::new(),
            life,
        }
    }

    /// Keeps what the protocol above notes, if the connection keeps a log at all.
    pub(crate) fn start_application_log(&self) {
        let mut state = self.lock();
        state.application_log = state.proto.log().is_some().then(Box::default);
    }

    /// What tasks can wait for, before they look under the lock whether it is there.
    pub(crate) fn changed(&self) -> &Changed {
        self.changed.get_or_init(Box::default)
    }

    /// Wakes all who wait for an event, after what has changed was changed under the lock.
    pub(crate) fn notify(&self, event: impl FnOnce(&Changed) -> &Notify) {
        if let Some(changed) = self.changed.get() {
            event(changed).notify_waiters();
        }
    }

    /// Whether datagrams can be sent over these addresses: see [`WorkerShared::can_reach`].
    pub(crate) fn can_reach(&self, addrs: &FourTuple) -> bool {
        self.worker.upgrade().is_some_and(|worker| worker.can_reach(addrs))
    }

    /// The addresses as datagrams that come from there will have them: see [`WorkerShared::canonical`].
    pub(crate) fn canonical(&self, addrs: FourTuple) -> FourTuple {
        self.worker.upgrade().map_or(addrs, |worker| worker.canonical(addrs))
    }

    pub(crate) fn handle(&self) -> ConnectionHandle {
        self.handle
    }

    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// Takes the lock. A connection that rests is awake then, until it comes to rest again.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        let mut state = lock(&self.state);
        state.proto.wake();
        state
    }

    /// Leaves what may still come to the core's endpoint, if the connection is over: its memory is for others then. One that this end
    /// has closed is left when no handle is there any more, which may wait until the peer surely knows.
    pub(crate) fn leave_if_over(&self, state: &mut State) {
        if state.error.is_none() {
            return;
        }
        state.proto.leave_to_drain(state.now);
        if self.handles.load(Ordering::Acquire) == 0 {
            state.proto.leave_to_close(state.now);
        }
    }

    /// Releases the lock and makes the worker look after what was changed under it.
    pub(crate) fn release(self: &Arc<Self>, mut state: MutexGuard<'_, State>) {
        if state.queued || state.is_drained {
            return;
        }
        state.queued = true;
        drop(state);
        self.ready.push(self.clone());
    }

    /// Closes the connection, if it is not over yet.
    pub(crate) fn close(self: &Arc<Self>, code: VarInt, reason: Bytes) {
        self.close_locked(self.lock(), code, reason);
    }

    /// The same with the lock, which is released.
    fn close_locked(self: &Arc<Self>, mut state: MutexGuard<'_, State>, code: VarInt, reason: Bytes) {
        if state.error.is_some() {
            // The last handle may be gone.
            return self.release(state);
        }
        let now = state.advance(clock::now());
        state.proto.close(now, code, reason);
        let mut wakers = Vec::new();
        self.terminate(&mut state, ConnectionError::LocallyClosed, &mut wakers);
        self.release(state);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// The endpoint has another socket, which `has` these addresses.
    pub(crate) fn on_rebound(self: &Arc<Self>, has: &dyn Fn(IpAddr) -> bool) {
        let mut state = self.lock();
        if state.error.is_some() {
            return;
        }
        let now = state.advance(clock::now());
        if state.proto.follow_socket(now, has).is_err() {
            // Then it looks like a NAT's doing, and the peer should see it soon.
            state.proto.ping();
        }
        self.release(state);
    }

    /// Notes why the connection is over, if that is new, and wakes everybody who waits for it.
    pub(crate) fn terminate(&self, state: &mut State, reason: ConnectionError, wakers: &mut Vec<Waker>) {
        if state.error.is_none() {
            self.life.over(&reason);
        }
        state.error.get_or_insert(reason);
        wakers.extend(state.connecting.take());
        state.streams.wake_all(wakers);
        state.queues.wake_all(wakers);
        if let Some(changed) = self.changed.get() {
            changed.all().for_each(Notify::notify_waiters);
        }
    }

    /// Takes the events of the core and adds the tasks that wait for them to `wakers`, to be woken without the lock.
    pub(crate) fn collect_events(&self, state: &mut State, wakers: &mut Vec<Waker>) {
        while let Some(event) = state.proto.poll_event() {
            match event {
                Event::Connected => {
                    state.is_connected = true;
                    self.life.connected(&state.proto);
                    self.notify(|changed| &changed.connected);
                    wakers.extend(state.connecting.take());
                }
                Event::ConnectionLost { reason } => self.terminate(state, reason, wakers),
                Event::Stream(event) => self.on_stream_event(state, event, wakers),
                Event::DatagramReceived => self.notify(|changed| &changed.datagram_received),
                Event::DatagramsUnblocked => self.notify(|changed| &changed.datagrams_unblocked),
                Event::DatagramsDropped => self.notify(|changed| &changed.datagrams_dropped),
                Event::Path(event) => {
                    self.life.path(&event);
                    let now = state.now;
                    state.on_path_event(now, event);
                    self.notify(|changed| &changed.paths);
                }
                Event::HandshakeConfirmed => {
                    self.life.confirmed();
                    self.notify(|changed| &changed.connected);
                }
            }
        }
    }

    fn on_stream_event(&self, state: &mut State, event: StreamEvent, wakers: &mut Vec<Waker>) {
        match event {
            StreamEvent::Opened { dir } => state.queues.wake(Awaited::Accept(dir), wakers),
            StreamEvent::Available { dir } => state.queues.wake(Awaited::Open(dir), wakers),
            StreamEvent::Readable(id) => {
                if state.streams.on_readable(id, wakers) {
                    state.readers.on_woken();
                }
            }
            StreamEvent::Writable(id) => state.streams.on_writable(id, wakers),
            StreamEvent::Finished(id) => {
                state.streams.on_completed(id, Completion::Received, wakers);
                self.notify(|changed| &changed.stream_ended);
            }
            StreamEvent::Stopped { id, code } => {
                state.streams.on_completed(id, Completion::Stopped(code), wakers);
                self.notify(|changed| &changed.stream_ended);
            }
        }
    }
}

/// A reference that keeps nothing: see [`ConnectionRef::downgrade`].
#[derive(Clone)]
pub(crate) struct WeakConnectionRef(Weak<Inner>);

impl WeakConnectionRef {
    /// A counted handle again, unless the last one was dropped, which has closed the connection.
    pub(crate) fn upgrade(&self) -> Option<ConnectionRef> {
        let inner = self.0.upgrade()?;
        let add_one = |handles| (handles > 0).then_some(handles + 1);
        inner.handles.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add_one).ok()?;
        Some(ConnectionRef(inner))
    }
}

/// A counted handle of the application. When the last one is dropped, the connection is closed with
/// [`DropCodes::connection_close`].
pub(crate) struct ConnectionRef(Arc<Inner>);

impl ConnectionRef {
    pub(crate) fn new(inner: Arc<Inner>) -> Self {
        inner.handles.fetch_add(1, Ordering::Relaxed);
        Self(inner)
    }

    /// The shared part, as the worker knows it.
    pub(crate) fn inner(&self) -> &Arc<Inner> {
        &self.0
    }

    /// A reference that does not count as a handle.
    pub(crate) fn downgrade(&self) -> WeakConnectionRef {
        WeakConnectionRef(Arc::downgrade(&self.0))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock()
    }

    /// See [`Inner::release`].
    pub(crate) fn release(&self, state: MutexGuard<'_, State>) {
        self.0.release(state);
    }

    /// Makes the worker look after the connection.
    pub(crate) fn mark_ready(&self) {
        self.0.release(self.0.lock());
    }
}

impl Clone for ConnectionRef {
    fn clone(&self) -> Self {
        Self::new(self.0.clone())
    }
}

impl Drop for ConnectionRef {
    fn drop(&mut self) {
        if self.0.handles.fetch_sub(1, Ordering::AcqRel) == 1 {
            let state = self.0.lock();
            let code = state.drop_codes.connection_close;
            self.0.close_locked(state, code, Bytes::new());
        }
    }
}
