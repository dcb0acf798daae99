//! A reference to a connection that does not keep it open.

use std::fmt;

use super::Connection;
use crate::shared::{ConnectionRef, WeakConnectionRef};

/// A reference to a [`Connection`] that does not keep it open: when the last handle is dropped, the connection is closed,
/// whatever weak references there are. Made by [`Connection::downgrade`].
///
/// ```no_run
/// # async fn example(connection: fulmar::Connection) {
/// let weak = connection.downgrade();
/// tokio::spawn(async move {
///     // Ends with the connection instead of keeping it.
///     while let Some(connection) = weak.upgrade() {
///         println!("{:?}", connection.rtt());
///         drop(connection);
///         tokio::time::sleep(std::time::Duration::from_secs(1)).await;
///     }
/// });
/// # }
/// ```
#[derive(Clone)]
pub struct WeakConnection(WeakConnectionRef);

impl WeakConnection {
    pub(super) fn new(connection: &ConnectionRef) -> Self {
        Self(connection.downgrade())
    }

    /// A handle of the connection, or `None` once all of them were dropped. The connection may be over:
    /// [`Connection::close_reason`] tells.
    pub fn upgrade(&self) -> Option<Connection> {
        self.0.upgrade().map(Connection::new)
    }
}

impl fmt::Debug for WeakConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WeakConnection").finish_non_exhaustive()
    }
}
