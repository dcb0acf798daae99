//! The tokens by which peers can end connections, of all endpoints that share (RFC 9000 §10.3.1).
//!
//! The connection ID of a stateless reset is made up, so it may come to an endpoint that does not have the connection.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fulmar_base::{HashKey, KeyedMap};
use fulmar_wire::ResetToken;

use super::ConnectionHandle;

/// The table that endpoints share. It is read only where a datagram names no connection.
///
/// Bounded by the connection IDs that each connection keeps of its peer.
#[derive(Debug, Default)]
pub(super) struct SharedResetTokens(Mutex<Table>);

#[derive(Debug, Default)]
struct Table {
    /// How many endpoints there were.
    endpoints: u32,
    /// With the hash key of the first endpoint.
    owners: Option<KeyedMap<ResetToken, Owner>>,
}

/// The connection that a token ends, in 8 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Owner {
    endpoint: u32,
    connection: u32,
}

impl SharedResetTokens {
    fn lock(&self) -> MutexGuard<'_, Table> {
        // Nothing panics under this lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of the endpoint that has the connection which this token ends.
    pub(super) fn endpoint_of(&self, token: &ResetToken) -> Option<usize> {
        self.lock().owner(token).map(|owner| owner.endpoint as usize)
    }
}

impl Table {
    fn owner(&self, token: &ResetToken) -> Option<Owner> {
        self.owners.as_ref()?.get(token).copied()
    }
}

/// What one of the endpoints sees of the table.
#[derive(Debug)]
pub(super) struct ResetTokens {
    shared: Arc<SharedResetTokens>,
    endpoint: u32,
}

impl ResetTokens {
    /// The view of the next endpoint.
    pub(super) fn new(shared: Arc<SharedResetTokens>, key: HashKey) -> Self {
        let mut table = shared.lock();
        let endpoint = table.endpoints;
        table.endpoints += 1;
        table.owners.get_or_insert_with(|| KeyedMap::new(key));
        drop(table);
        Self { shared, endpoint }
    }

    /// The number of this endpoint among those that share, from 0 on.
    pub(super) fn endpoint(&self) -> usize {
        self.endpoint as usize
    }

    fn owner(&self, connection: ConnectionHandle) -> Owner {
        Owner { endpoint: self.endpoint, connection: connection.0 as u32 }
    }

    pub(super) fn add(&self, connection: ConnectionHandle, token: ResetToken) {
        if let Some(owners) = &mut self.shared.lock().owners {
            owners.insert(token, self.owner(connection));
        }
    }

    /// Forgets a token, unless another connection has got it since.
    pub(super) fn remove(&self, connection: ConnectionHandle, token: &ResetToken) {
        let mut table = self.shared.lock();
        if table.owner(token) == Some(self.owner(connection))
            && let Some(owners) = &mut table.owners
        {
            owners.remove(token);
        }
    }

    /// The connection of this endpoint that a stateless reset with this token would end.
    pub(super) fn find(&self, token: &ResetToken) -> Option<ConnectionHandle> {
        let owner = self.shared.lock().owner(token).filter(|owner| owner.endpoint == self.endpoint)?;
        Some(ConnectionHandle(owner.connection as usize))
    }
}

#[cfg(test)]
mod tests {
    use fulmar_base::Rng;

    use super::*;

    #[test]
    fn a_token_belongs_to_the_connection_that_got_it_last() {
        let shared = Arc::<SharedResetTokens>::default();
        let [first, second] =
            [1, 2].map(|seed| ResetTokens::new(shared.clone(), HashKey::new(&mut Rng::from_u64(seed))));
        let (token, connection) = (ResetToken([7; 16]), ConnectionHandle(5));
        first.add(connection, token);
        assert_eq!((first.find(&token), second.find(&token)), (Some(connection), None));
        second.add(connection, token);
        first.remove(connection, &token);
        second.remove(ConnectionHandle(6), &token);
        assert_eq!((first.find(&token), second.find(&token)), (None, Some(connection)));
        assert_eq!(shared.endpoint_of(&token), Some(1));
        second.remove(connection, &token);
        assert_eq!(shared.endpoint_of(&token), None);
    }
}
