//! What ends when a client is closed: its connections, and the requests that wait for one.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use fulmar_h3_proto::ErrorCode;
use tokio::sync::watch;

use crate::shared::Shared;

/// The connections of a client, and whom to tell when it is closed. It can be used again then.
#[derive(Debug, Default)]
pub(super) struct Closing {
    /// Counts how often it was closed.
    times: watch::Sender<u64>,
    /// Those that exist, and some that have ended since the last one began.
    connections: Mutex<Vec<Weak<Shared>>>,
}

impl Closing {
    /// A connection has begun.
    pub(super) fn add(&self, connection: &Arc<Shared>) {
        let mut connections = self.connections.lock().unwrap_or_else(PoisonError::into_inner);
        connections.retain(|connection| connection.strong_count() > 0);
        connections.push(Arc::downgrade(connection));
    }

    /// A future that is ready when the client is closed from now on.
    pub(super) fn closed(&self) -> impl Future<Output = ()> + Send + 'static {
        let mut times = self.times.subscribe();
        async move {
            if times.changed().await.is_err() {
                std::future::pending().await
            }
        }
    }

    /// Closes all connections, and waits until the servers know.
    pub(super) async fn close(&self) {
        self.times.send_modify(|times| *times += 1);
        let connections =
            std::mem::take(&mut *self.connections.lock().unwrap_or_else(PoisonError::into_inner));
        let connections: Vec<_> = connections.iter().filter_map(Weak::upgrade).collect();
        for connection in &connections {
            connection.close(ErrorCode::NoError, "");
        }
        for connection in connections {
            connection.quic.drained().await;
        }
    }
}
