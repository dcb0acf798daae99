//! The queue from the handles to the worker.

use std::marker::PhantomData;
use std::mem;
use std::sync::Mutex;
use std::task::{Context, Waker};

use crate::sync::Lock;

/// What the application has touched since the worker's last turn, and the worker's waker.
///
/// Limit: a connection is in it at most once (its `queued` flag says so), so it is as long as there are connections.
/// The worker is woken at most once between two of its turns, however often the application writes.
pub(crate) struct ReadyQueue<T, L: Lock<Ready<T>> = Mutex<Ready<T>>> {
    ready: L,
    entries: PhantomData<T>,
}

/// The part that needs the lock.
pub(crate) struct Ready<T> {
    entries: Vec<T>,
    waker: Option<Waker>,
    /// The worker runs, or was told to: it will look at the queue again before it sleeps.
    awake: bool,
    /// Somebody wants a turn that begins after this was set, with or without entries.
    turn_due: bool,
    /// There will be no turn any more.
    is_closed: bool,
}

impl<T, L: Lock<Ready<T>>> ReadyQueue<T, L> {
    pub(crate) fn new() -> Self {
        let ready =
            Ready { entries: Vec::new(), waker: None, awake: false, turn_due: false, is_closed: false };
        Self { ready: L::new(ready), entries: PhantomData }
    }

    /// Adds a connection, whose `queued` flag the caller has just set, unless the queue is closed.
    pub(crate) fn push(&self, entry: T) {
        let refused = self.ready.with(|ready| {
            if ready.is_closed {
                return Some(entry);
            }
            ready.entries.push(entry);
            ready.wake();
            None
        });
        // Without the lock: whatever its end does may come here.
        drop(refused);
    }

    /// Makes the worker take a turn that begins after this call.
    pub(crate) fn wake(&self) {
        self.ready.with(|ready| {
            ready.turn_due = true;
            ready.wake();
        });
    }

    /// Begins a turn: exchanges the queue for `empty`. What callers of [`wake`](Self::wake) have changed is to be looked
    /// at after this.
    pub(crate) fn take(&self, empty: &mut Vec<T>) {
        self.ready.with(|ready| {
            ready.awake = true;
            ready.turn_due = false;
            mem::swap(&mut ready.entries, empty);
        });
    }

    /// Ends a turn. Returns whether the next one is due at once; otherwise the waker of `cx` is called when it is.
    pub(crate) fn park(&self, cx: &Context<'_>) -> bool {
        self.ready.with(|ready| {
            if ready.turn_due || !ready.entries.is_empty() {
                return true;
            }
            ready.awake = false;
            match &mut ready.waker {
                Some(waker) => waker.clone_from(cx.waker()),
                None => ready.waker = Some(cx.waker().clone()),
            }
            false
        })
    }

    /// The worker is gone. Lets go of what it would have looked at, and of its waker: connections hold the queue that holds them, and
    /// the waker holds the runtime.
    pub(crate) fn close(&self) {
        let left = self.ready.with(|ready| {
            ready.is_closed = true;
            (mem::take(&mut ready.entries), ready.waker.take())
        });
        // Without the lock, for the same reason.
        drop(left);
    }
}

impl<T> Ready<T> {
    fn wake(&mut self) {
        if !self.awake
            && let Some(waker) = &self.waker
        {
            self.awake = true;
            waker.wake_by_ref();
        }
    }
}

#[cfg(test)]
mod tests;
