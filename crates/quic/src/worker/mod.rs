//! The worker of an endpoint: one task that owns the traffic of one UDP socket, and of the next one after a
//! rebinding. What is then still on its way to the one before is received for a while.
//!
//! A turn of the worker is: take the connections that the application touched, receive what is there, call the
//! connections whose timers expired, send for all of them, look at some of the datagrams that belong to none, sleep.
//! There is no task per connection and no lock per packet: a connection is locked once for a run of its datagrams and
//! once for each batch that it sends.
//!
//! What it must not know: streams. It moves datagrams between the socket and the connections, and wakes who waits for them.

mod busy_poll;
mod conversation;
mod receiving;
mod refusals;
mod remembered;
mod retired;
mod sending;
mod settling;
mod timers;
mod unmatched;

use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::mem;
use std::pin::{Pin, pin};
use std::sync::{Arc, MutexGuard};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use fulmar_base::Instant;
use fulmar_proto::{ConnectionError, ConnectionHandle, Datagram, EndpointEvent, SocketId, TransmitBatch};
use fulmar_udp::{RecvBatch, UdpSocket};

use crate::clock;
use crate::shared::{Inner, Patience, Sockets, State, WorkerShared};
use crate::sync::lock;

use busy_poll::BusyPoll;
use conversation::Conversation;
use refusals::Refusals;
use remembered::Remembered;
use retired::RetiredSockets;
use sending::Pending;
use timers::{Alarm, Timers};
use unmatched::UnmatchedDatagrams;

/// How long a full socket is left alone that cannot tell when it has room again: see [`UdpSocket::has_failed`].
const SEND_PAUSE: Duration = Duration::from_millis(1);

/// The state of the task. See the module's documentation.
pub(crate) struct Worker {
    shared: Arc<WorkerShared>,
    socket: Arc<UdpSocket>,
    /// Those beside it, for paths of their own.
    more_sockets: Sockets,
    /// Those that were in use before.
    retired: RetiredSockets,
    refusals: Refusals,
    received: RecvBatch,
    /// Datagrams of the current run, each with the time at which it came; empty between runs.
    datagrams: Vec<(Instant, Datagram)>,
    /// The datagram that ended the last run because it goes to another connection.
    carried: Option<(ConnectionHandle, Instant, Datagram)>,
    /// Datagrams that belong to no connection.
    unmatched: UnmatchedDatagrams,
    /// The datagrams that are being sent or that wait in `pending`.
    batch: TransmitBatch,
    /// The bytes of answers that belong to no connection.
    reply: TransmitBatch,
    /// A batch that the socket had no room for. While there is one, nothing else is sent: the sending side waits,
    /// and through it the congestion controllers and the applications.
    pending: Option<Pending>,
    /// Connections that may have something to send. At most once each: the connection's `queued` flag is set.
    queue: VecDeque<Arc<Inner>>,
    touched: Vec<Arc<Inner>>,
    timers: Timers,
    /// Connections that are over.
    remembered: Remembered,
    /// When the core's endpoint has no connection left that this end has closed, as far as is known.
    closing_until: Option<Instant>,
    alarm: Alarm,
    recv_paused_until: Option<Instant>,
    /// The connection that has a reader to wait for before more is received, and until when.
    late_reader: Option<(Arc<Inner>, Instant)>,
    /// With readers like that.
    patience: Patience,
    conversation: Conversation,
    busy_poll: BusyPoll,
    endpoint_events: Vec<(ConnectionHandle, EndpointEvent)>,
    wakers: Vec<Waker>,
}

impl Worker {
    pub(crate) fn new(shared: Arc<WorkerShared>) -> Self {
        let socket = shared.socket();
        Self {
            batch: TransmitBatch::new(socket.max_gso_segments()),
            conversation: Conversation::default(),
            busy_poll: BusyPoll::new(shared.common.busy_poll),
            reply: TransmitBatch::new(1),
            shared,
            socket,
            more_sockets: Sockets::new(),
            retired: RetiredSockets::default(),
            refusals: Refusals::default(),
            received: RecvBatch::new(),
            datagrams: Vec::new(),
            carried: None,
            unmatched: UnmatchedDatagrams::default(),
            pending: None,
            queue: VecDeque::new(),
            touched: Vec::new(),
            timers: Timers::default(),
            remembered: Remembered::default(),
            closing_until: None,
            alarm: Alarm::new(),
            recv_paused_until: None,
            late_reader: None,
            patience: Patience::default(),
            endpoint_events: Vec::new(),
            wakers: Vec::new(),
        }
    }

    fn turn(&mut self) {
        // First of all: what handles change before they wake this task is looked at after this.
        self.take_touched();
        if self.shared.take_rebound() {
            self.replace_socket();
            // What waited for the old socket is lost with it.
            self.pending = None;
            self.recv_paused_until = None;
        }
        if let Some(sockets) = self.shared.more_sockets.take_change() {
            self.more_sockets = sockets;
            self.refusals.reset();
        }
        self.receive_some();
        self.receive_forwarded();
        self.take_refusals();
        let now = clock::now();
        self.expire_timers(now);
        self.forget_closed(now);
        let _ = self.flush();
        let more = self.more_sockets.iter().map(|(_, socket)| socket.max_gso_segments());
        self.batch.set_max_segments(more.fold(self.socket.max_gso_segments(), usize::min));
        self.serve();
        self.route_unmatched();
        self.send_replies();
        self.forward_endpoint_events();
    }

    fn replace_socket(&mut self) {
        let connections = lock(&self.shared.core).connections();
        let timeouts = connections.iter().map(|connection| connection.lock().proto.probe_timeout());
        let timeout = timeouts.max().unwrap_or_default();
        let before = mem::replace(&mut self.socket, self.shared.socket());
        self.retired.add(before, clock::now(), timeout);
        self.refusals.reset();
    }

    /// Queues the connections that the application has touched. Their `queued` flag is set already.
    fn take_touched(&mut self) {
        let mut touched = mem::take(&mut self.touched);
        self.shared.ready.take(&mut touched);
        self.queue.extend(touched.drain(..));
        self.touched = touched;
    }

    fn expire_timers(&mut self, now: Instant) {
        while let Some(connection) = self.timers.pop_expired(now) {
            let mut state = connection.lock();
            state.timer = None;
            let now = state.advance(now);
            if state.proto.poll_timeout().is_some_and(|(deadline, _)| deadline <= now) {
                state.proto.handle_timeout(now);
            }
            state.rest_again();
            self.after_change(&connection, state);
        }
    }

    /// Takes the events of a connection, and queues it for sending.
    fn after_change(&mut self, connection: &Arc<Inner>, mut state: MutexGuard<'_, State>) {
        connection.collect_events(&mut state, &mut self.wakers);
        if !state.queued {
            state.queued = true;
            self.queue.push_back(connection.clone());
        }
        drop(state);
        self.wakers.drain(..).for_each(Waker::wake);
    }

    /// Decides when the next turn is. Returns whether it is at once.
    fn is_next_turn_due(&mut self, cx: &mut Context<'_>) -> io::Result<bool> {
        let mut due = !self.queue.is_empty() && self.pending.is_none();
        due |= !self.unmatched.is_empty();
        let reader = self.late_reader.as_ref().map(|(_, until)| *until);
        let paused = self.recv_paused_until.max(reader);
        // What waits was given to a socket that is still there.
        let blocked = self.pending.as_ref().and_then(|pending| {
            socket_of(&self.socket, &self.more_sockets, pending.transmit.addrs.socket).cloned()
        });
        let blind = blocked.as_ref().is_some_and(|socket| socket.has_failed());
        let retry = blind.then(|| clock::now() + SEND_PAUSE);
        let deadline = [self.timers.next(), paused, self.retired.deadline(), retry, self.closing_until]
            .into_iter()
            .flatten()
            .min();
        due |= self.alarm.is_due(deadline, cx);
        due |= paused.is_none() && self.retired.is_ready(cx);
        due |= self.refusals.is_ready(&self.socket, &self.more_sockets, cx);
        if paused.is_none()
            && let Poll::Ready(ready) = self.socket.poll_recv_ready(cx)
        {
            ready?;
            due = true;
        }
        due |= self.pending.is_some() && blocked.is_none();
        // Each is asked, so that each wakes this task.
        for (_, socket) in self.more_sockets.iter().filter(|_| paused.is_none()) {
            due |= socket.poll_recv_ready(cx).is_ready();
        }
        if let Some(socket) = blocked.filter(|_| !blind)
            && let Poll::Ready(ready) = socket.poll_send_ready(cx)
        {
            ready?;
            due = true;
        }
        if due {
            self.busy_poll.on_work();
            return Ok(true);
        }
        // There is nothing to look for while nothing is received. Asked last is what decides whether handles have to wake this task.
        let looks = paused.is_none() && self.busy_poll.keeps_looking(clock::now());
        Ok(looks || self.shared.ready.park(cx))
    }
}

impl Future for Worker {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.turn();
        if self.shared.is_abandoned() {
            return Poll::Ready(());
        }
        match self.is_next_turn_due(cx) {
            Ok(true) => {
                defer_wake(cx);
                Poll::Pending
            }
            Ok(false) => Poll::Pending,
            Err(error) => {
                tracing::debug!(%error, "the runtime shuts down");
                Poll::Ready(())
            }
        }
    }
}

impl Drop for Worker {
    /// Ends what is left, so that nobody waits for a worker that is gone with its runtime.
    fn drop(&mut self) {
        let connections = lock(&self.shared.core).abandon();
        for connection in connections {
            lock(&self.shared.common.attempts).remove(connection.id());
            let mut state = connection.lock();
            let is_new = !mem::replace(&mut state.is_drained, true);
            connection.terminate(&mut state, ConnectionError::LocallyClosed, &mut self.wakers);
            let logging = self.shared.common.logging.as_ref().filter(|_| is_new);
            let State { proto, application_log, error, .. } = &mut *state;
            let application = application_log.as_deref_mut();
            let batch = logging.and_then(|logging| {
                logging.collect(proto, application, connection.id(), true, error.as_ref())
            });
            drop(state);
            self.hand_over(batch);
        }
        // Nobody looks any more at what was queued, or is by a handle on another thread that has not seen the end yet.
        self.shared.ready.close();
        lock(&self.shared.replies).close();
        self.wakers.drain(..).for_each(Waker::wake);
        self.shared.common.incoming.notify_waiters();
        self.shared.common.idle.notify_waiters();
    }
}

/// Wakes this task once the runtime has polled everything else that is ready, the future of `block_on` included: whoever waits
/// for data reads it before more is received. A task that wakes itself at once stands before that future in 60 of 61 polls, and
/// what is not read meanwhile grows until it falls out of the processor's cache.
fn defer_wake(cx: &mut Context<'_>) {
    // The first poll of `yield_now` hands the waker to the scheduler; what is left of it does nothing.
    let yielding = pin!(tokio::task::yield_now());
    let _ = yielding.poll(cx);
}

/// The socket of this name.
fn socket_of<'a>(first: &'a Arc<UdpSocket>, more: &'a Sockets, id: SocketId) -> Option<&'a Arc<UdpSocket>> {
    if id == SocketId::default() {
        return Some(first);
    }
    more.iter().find(|(known, _)| *known == id).map(|(_, socket)| socket)
}
