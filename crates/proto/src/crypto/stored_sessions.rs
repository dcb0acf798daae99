//! The TLS sessions that a server keeps in memory.
//!
//! The cache of rustls looks through all sessions whenever one is taken, so a resumed handshake costs the more the more are
//! kept. Here each is found and forgotten in logarithmic time, and its secrets are wiped.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustls::server::StoresServerSessions;
use smallvec::SmallVec;
use zeroize::Zeroizing;

/// A limited number of sessions; the oldest goes first.
pub(crate) struct StoredSessions {
    sessions_max: usize,
    /// A lock because a store is shared. It is held for a look-up.
    stored: Mutex<Stored>,
}

/// The name of a session: random, and chosen by the server alone. As long as those of rustls it stands in the table itself, so that a
/// search looks at no other memory.
type Name = SmallVec<[u8; 32]>;

#[derive(Default)]
struct Stored {
    /// The session and its number.
    by_name: BTreeMap<Name, (u64, Zeroizing<Vec<u8>>)>,
    /// The names by their numbers, the oldest first.
    by_age: BTreeMap<u64, Name>,
    /// The number of the next session.
    next: u64,
}

impl StoredSessions {
    pub(crate) fn new(sessions_max: usize) -> Arc<Self> {
        Arc::new(Self { sessions_max, stored: Mutex::default() })
    }

    fn lock(&self) -> MutexGuard<'_, Stored> {
        self.stored.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Stored {
    fn take(&mut self, name: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
        let (number, session) = self.by_name.remove(name)?;
        self.by_age.remove(&number);
        Some(session)
    }
}

impl StoresServerSessions for StoredSessions {
    fn put(&self, name: Vec<u8>, session: Vec<u8>) -> bool {
        let session = Zeroizing::new(session);
        if self.sessions_max == 0 {
            return false;
        }
        let mut stored = self.lock();
        stored.take(&name);
        while stored.by_name.len() >= self.sessions_max
            && let Some((_, oldest)) = stored.by_age.pop_first()
        {
            stored.by_name.remove(&oldest);
        }
        let number = stored.next;
        stored.next += 1;
        let name = Name::from_slice(&name);
        stored.by_age.insert(number, name.clone());
        stored.by_name.insert(name, (number, session));
        true
    }

    fn get(&self, name: &[u8]) -> Option<Vec<u8>> {
        self.lock().by_name.get(name).map(|(_, session)| session.to_vec())
    }

    fn take(&self, name: &[u8]) -> Option<Vec<u8>> {
        self.lock().take(name).map(|mut session| std::mem::take(&mut *session))
    }

    fn can_cache(&self) -> bool {
        self.sessions_max > 0
    }
}

impl fmt::Debug for StoredSessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredSessions").field("sessions_max", &self.sessions_max).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store(sessions_max: usize, names: impl IntoIterator<Item = u8>) -> Arc<StoredSessions> {
        let store = StoredSessions::new(sessions_max);
        for name in names {
            assert!(store.put(vec![name], vec![name; 3]));
        }
        store
    }

    #[test]
    fn a_session_is_taken_once() {
        let store = store(4, 1..=2);
        assert_eq!(store.get(&[1]), Some(vec![1; 3]));
        assert_eq!(store.take(&[1]), Some(vec![1; 3]));
        assert_eq!((store.take(&[1]), store.get(&[1])), (None, None));
        assert_eq!(store.take(&[2]), Some(vec![2; 3]));
    }

    #[test]
    fn the_oldest_session_makes_room_for_a_new_one() {
        let store = store(3, 1..=5);
        let found = |name: u8| store.get(&[name]).is_some();
        assert_eq!([1, 2, 3, 4, 5].map(found), [false, false, true, true, true]);
        assert_eq!(store.take(&[4]), Some(vec![4; 3]));
        assert!(store.put(vec![6], vec![6]));
        assert!(found(3), "a session that was taken has left room");
        assert!(store.put(vec![7], vec![7]));
        assert_eq!([3, 5, 6, 7].map(found), [false, true, true, true]);
    }

    #[test]
    fn a_session_that_is_put_again_is_new() {
        let store = store(2, [1, 2]);
        assert!(store.put(vec![1], vec![9]));
        assert!(store.put(vec![3], vec![3]));
        assert_eq!([1, 2, 3].map(|name: u8| store.get(&[name])), [Some(vec![9]), None, Some(vec![3])]);
    }

    #[test]
    fn names_of_sessions_that_were_taken_are_not_kept() {
        let store = store(2, [1]);
        for round in 0..1_000_u64 {
            let name = round.to_be_bytes().to_vec();
            assert!(store.put(name.clone(), vec![2]));
            assert!(store.take(&name).is_some());
        }
        let stored = store.lock();
        assert_eq!((stored.by_name.len(), stored.by_age.len()), (1, 1));
    }

    #[test]
    fn a_store_without_room_keeps_nothing() {
        let store = StoredSessions::new(0);
        assert!(!store.put(vec![1], vec![2]) && !store.can_cache());
        assert_eq!(store.take(&[1]), None);
    }
}
