//! Locks that survive a panic of their holder.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks `mutex`. A panic elsewhere must not spread to every task that uses the endpoint: the worker ends all
/// connections when it dies, and their handles then report that.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A lock as the ready queue needs it: its test uses one that tries all orders in which threads can take it.
pub(crate) trait Lock<T> {
    /// An open lock around `value`.
    fn new(value: T) -> Self;

    /// Calls `f` under the lock.
    fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> R;
}

impl<T> Lock<T> for Mutex<T> {
    fn new(value: T) -> Self {
        Self::new(value)
    }

    fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        f(&mut lock(self))
    }
}
