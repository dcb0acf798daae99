//! What a store has for one connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use fulmar_wire::Version;
use rustls::NamedGroup;
use rustls::client::{ClientSessionStore, Tls12ClientSessionValue, Tls13ClientSessionValue};
use rustls::pki_types::ServerName;

use super::{PATH_LEN_MAX, ServerKey, SessionStore, take_newest};

/// The part of a store that concerns one connection: that of its server and its version.
#[derive(Debug)]
pub(crate) struct SessionView {
    store: Arc<SessionStore>,
    key: ServerKey,
    /// The version in use. It changes when another one is negotiated.
    version: AtomicU32,
}

impl SessionView {
    pub(crate) fn new(store: Arc<SessionStore>, key: ServerKey, version: Version) -> Arc<Self> {
        Arc::new(Self { store, key, version: AtomicU32::new(version.0) })
    }

    fn version(&self) -> Version {
        Version(self.version.load(Ordering::Relaxed))
    }

    /// From now on sessions and tokens belong to this version (RFC 9369 §5).
    pub(crate) fn set_version(&self, version: Version) {
        self.version.store(version.0, Ordering::Relaxed);
    }

    /// Takes a token that proves this end's address.
    pub(crate) fn take_token(&self) -> Option<Vec<u8>> {
        let version = self.version();
        take_newest(&mut self.store.lock().by_key.get_mut(&self.key)?.tokens, version)
    }

    /// Keeps a token for a later connection.
    pub(crate) fn add_token(&self, token: &[u8]) {
        self.store.lock().entry(&self.key).add_token(self.version(), token);
    }

    /// What was remembered of the path to the server, in the words of the congestion controller.
    pub(crate) fn path(&self) -> Option<Vec<u8>> {
        self.store.lock().by_key.get(&self.key)?.path.clone()
    }

    /// Remembers how the path was. More than 256 bytes are not kept.
    pub(crate) fn set_path(&self, path: Vec<u8>) {
        if path.len() <= PATH_LEN_MAX {
            self.store.lock().entry(&self.key).path = Some(path);
        }
    }
}

/// TLS asks by the name of the server, which is always that of the connection.
impl ClientSessionStore for SessionView {
    fn set_kx_hint(&self, _: ServerName<'static>, group: NamedGroup) {
        self.store.lock().entry(&self.key).group = Some(group);
    }

    fn kx_hint(&self, _: &ServerName<'_>) -> Option<NamedGroup> {
        self.store.lock().by_key.get(&self.key)?.group
    }

    fn set_tls12_session(&self, _: ServerName<'static>, _: Tls12ClientSessionValue) {}

    fn tls12_session(&self, _: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        None
    }

    fn remove_tls12_session(&self, _: &ServerName<'static>) {}

    fn insert_tls13_ticket(&self, _: ServerName<'static>, ticket: Tls13ClientSessionValue) {
        self.store.lock().entry(&self.key).add_ticket(self.version(), ticket);
    }

    fn take_tls13_ticket(&self, _: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        let version = self.version();
        take_newest(&mut self.store.lock().by_key.get_mut(&self.key)?.tickets, version)
    }
}
