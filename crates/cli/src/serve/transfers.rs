//! How many transfers are under way, for a server that is to stop.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::sleep;

/// How long a client may take from the end of a transfer to its next request. A transfer ends when the client has acknowledged all
/// of it, and its next request comes about then.
const PAUSE_MAX: Duration = Duration::from_millis(100);

/// Counts transfers.
#[derive(Debug, Default, Clone)]
pub(crate) struct Transfers(watch::Sender<usize>);

/// One of them, until this is dropped.
#[derive(Debug)]
pub(super) struct UnderWay(Transfers);

impl Transfers {
    /// Counts another one.
    pub(super) fn begin(&self) -> UnderWay {
        self.0.send_modify(|count| *count += 1);
        UnderWay(self.clone())
    }

    /// How many are under way.
    pub(super) fn count(&self) -> usize {
        *self.0.borrow()
    }

    /// Waits until there are none.
    pub(super) async fn none(&self) {
        // The sender is here, so there is no error.
        let _ = self.0.subscribe().wait_for(|count| *count == 0).await;
    }

    /// Waits until there are none, and none that follow.
    pub(super) async fn ended(&self) {
        let mut count = self.0.subscribe();
        while self.count() > 0 {
            // The sender is here, so there is no error.
            let _ = count.wait_for(|count| *count == 0).await;
            sleep(PAUSE_MAX).await;
        }
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.0.send_modify(|count| *count -= 1);
    }
}
