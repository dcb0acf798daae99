//! How many transfers are under way, for a server that is to stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::sleep;

/// How long a client may take from the end of a transfer to its next request. A transfer ends when the client has acknowledged all
/// of it, and its next request comes about then.
const PAUSE_MAX: Duration = Duration::from_millis(100);

/// Counts transfers.
#[derive(Debug, Default, Clone)]
pub(crate) struct Transfers(Arc<Count>);

#[derive(Debug, Default)]
struct Count {
    under_way: AtomicUsize,
    /// The last one has ended.
    none: Notify,
}

/// One of them, until this is dropped.
#[derive(Debug)]
pub(super) struct UnderWay(Transfers);

impl Transfers {
    /// Counts another one.
    pub(super) fn begin(&self) -> UnderWay {
        self.0.under_way.fetch_add(1, Ordering::Relaxed);
        UnderWay(self.clone())
    }

    /// How many are under way.
    pub(super) fn count(&self) -> usize {
        self.0.under_way.load(Ordering::Acquire)
    }

    /// Waits until there are none.
    pub(super) async fn none(&self) {
        loop {
            // From here on it hears of the last one.
            let none = self.0.none.notified();
            if self.count() == 0 {
                return;
            }
            none.await;
        }
    }

    /// Waits until there are none, and none that follow.
    pub(super) async fn ended(&self) {
        while self.count() > 0 {
            self.none().await;
            sleep(PAUSE_MAX).await;
        }
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        if self.0.0.under_way.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.0.none.notify_waiters();
        }
    }
}
