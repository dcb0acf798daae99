//! The queue from the handles to the worker.

use std::mem;
use std::sync::{Arc, Mutex};
use std::task::{Context, Waker};

use super::Inner;
use crate::sync::lock;

/// Connections that the application has touched since the worker's last turn, and the worker's waker.
///
/// Limit: a connection is in it at most once (its `queued` flag says so), so it is as long as there are connections.
/// The worker is woken at most once between two of its turns, however often the application writes.
#[derive(Default)]
pub(crate) struct ReadyQueue(Mutex<Ready>);

#[derive(Default)]
struct Ready {
    connections: Vec<Arc<Inner>>,
    waker: Option<Waker>,
    /// The worker runs, or was told to: it will look at the queue again before it sleeps.
    awake: bool,
}

impl ReadyQueue {
    /// Adds a connection, whose `queued` flag the caller has just set.
    pub(crate) fn push(&self, connection: Arc<Inner>) {
        let mut ready = lock(&self.0);
        ready.connections.push(connection);
        ready.wake();
    }

    /// Makes the worker take a turn.
    pub(crate) fn wake(&self) {
        lock(&self.0).wake();
    }

    /// Begins a turn: exchanges the queue for `empty`.
    pub(crate) fn take(&self, empty: &mut Vec<Arc<Inner>>) {
        let mut ready = lock(&self.0);
        ready.awake = true;
        mem::swap(&mut ready.connections, empty);
    }

    /// Ends a turn. Returns whether the next one is due at once; otherwise the waker of `cx` is called when it is.
    pub(crate) fn park(&self, cx: &Context<'_>) -> bool {
        let mut ready = lock(&self.0);
        if !ready.connections.is_empty() {
            return true;
        }
        ready.awake = false;
        match &mut ready.waker {
            Some(waker) => waker.clone_from(cx.waker()),
            None => ready.waker = Some(cx.waker().clone()),
        }
        false
    }
}

impl Ready {
    fn wake(&mut self) {
        if !self.awake
            && let Some(waker) = &self.waker
        {
            self.awake = true;
            waker.wake_by_ref();
        }
    }
}
