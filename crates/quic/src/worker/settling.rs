//! What follows from the change of a connection: events, its timer, its log, and what is kept when it is over.

use std::mem;
use std::sync::{Arc, MutexGuard};
use std::task::Waker;

use fulmar_base::Instant;
use fulmar_proto::{ConnectionHandle, Side};

use super::Worker;
use crate::clock;
use crate::log::LogBatch;
use crate::shared::{Inner, State};
use crate::sync::lock;

impl Worker {
    /// Takes the events of a connection after it has sent, and sets its timer.
    pub(super) fn settle(&mut self, connection: &Arc<Inner>, mut state: MutexGuard<'_, State>) {
        connection.collect_events(&mut state, &mut self.wakers);
        connection.leave_if_over(&mut state);
        while let Some(event) = state.proto.poll_endpoint_event() {
            state.is_drained |= event.is_drained();
            self.endpoint_events.push((connection.handle(), event));
        }
        self.keep_path(&mut state);
        let is_over = state.error.is_some() && !state.is_drained;
        let has_ended = is_over && !mem::replace(&mut state.is_remembered, true);
        let surplus =
            if has_ended { self.remembered.add(connection.handle(), connection.id()) } else { None };
        let batch = self.shared.common.logging.as_ref().and_then(|logging| {
            let State { proto, application_log, error, is_drained, .. } = &mut *state;
            let application = application_log.as_deref_mut();
            logging.collect(proto, application, connection.id(), *is_drained, error.as_ref())
        });
        let is_gone = state.is_drained;
        let was_dialled = state.proto.side() == Side::Client;
        if is_gone {
            connection.life.forgotten(&state.proto);
            connection.notify(|changed| &changed.closed);
            if let Some(armed) = state.timer.take() {
                self.timers.disarm(connection, armed);
            }
        } else {
            let rests = state.take_due_rest();
            let deadline = state.next_call();
            self.timers.arm(connection, &mut state.timer, deadline);
            if state.awaits_manager() && !mem::replace(&mut state.queued, true) {
                self.queue.push_back(connection.clone());
            }
            if rests {
                state.proto.rest();
            }
        }
        drop(state);
        if is_gone && was_dialled {
            lock(&self.shared.common.attempts).remove(connection.id());
        }
        self.hand_over(batch);
        self.wakers.drain(..).for_each(Waker::wake);
        if let Some((handle, id)) = surplus {
            self.forget(handle, id);
        }
    }

    /// Forgets a connection that is over, if it is still remembered.
    fn forget(&mut self, handle: ConnectionHandle, id: u64) {
        let connection = lock(&self.shared.core).connection(handle);
        // A handle is used again.
        let Some(connection) = connection.filter(|connection| connection.id() == id) else { return };
        let mut state = connection.lock();
        let now = state.advance(clock::now());
        state.proto.forget(now);
        self.after_change(&connection, state);
    }

    /// Keeps what a connection of a server has learned of its path, when it is over: the client may well come again.
    fn keep_path(&self, state: &mut State) {
        let is_over = state.error.is_some() && state.proto.side() == Side::Server;
        if !is_over || mem::replace(&mut state.is_path_kept, true) {
            return;
        }
        if let Some(path) = state.proto.congestion_parameters() {
            self.shared.common.known_paths.keep(clock::now(), path);
        }
    }

    /// Hands entries of a log to the sink, without any lock.
    pub(super) fn hand_over(&self, batch: Option<LogBatch>) {
        if let (Some(logging), Some(batch)) = (&self.shared.common.logging, batch) {
            logging.hand_over(batch);
        }
    }

    pub(super) fn forward_endpoint_events(&mut self) {
        if self.endpoint_events.is_empty() {
            return;
        }
        let mut core = lock(&self.shared.core);
        for (handle, event) in self.endpoint_events.drain(..) {
            core.handle_event(handle, event);
        }
        self.closing_until = core.endpoint.poll_timeout();
        self.shared.notify_if_idle(&core);
    }

    /// Lets the core's endpoint forget connections that were left to it. Somebody may wait for the last one.
    pub(super) fn forget_closed(&mut self, now: Instant) {
        if self.closing_until.is_none_or(|until| until > now) {
            return;
        }
        let mut core = lock(&self.shared.core);
        let now = core.advance(now);
        // What came before a connection was over, such as a ClientHello that was repeated, may still wait to be looked at. It is no attempt
        // to begin another one (RFC 9000 §10.2.2).
        let read_until = self.unmatched.oldest().map_or(now, |came| came.min(now));
        core.endpoint.handle_timeout(read_until);
        self.closing_until = core.endpoint.poll_timeout();
        self.shared.notify_if_idle(&core);
    }
}
