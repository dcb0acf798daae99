//! The part of a store for one connection: its server, its version.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use fulmar_base::Instant;
use fulmar_wire::Version;
use rustls::NamedGroup;
use rustls::client::{ClientSessionStore, Tls12ClientSessionValue, Tls13ClientSessionValue};
use rustls::pki_types::ServerName;

use super::{KnownPath, ServerKey, SessionStore, take_newest};
use crate::congestion::SavedPath;

/// The part of a store that concerns one connection: that of its server and its version.
#[derive(Debug)]
pub(crate) struct SessionView {
    store: Arc<SessionStore>,
    key: ServerKey,
    /// The time of [`Instant::ZERO`] since the beginning of 1970.
    epoch: Duration,
    /// The version in use. It changes when another one is negotiated.
    version: AtomicU32,
}

impl SessionView {
    pub(crate) fn new(
        store: Arc<SessionStore>,
        key: ServerKey,
        epoch: Duration,
        version: Version,
    ) -> Arc<Self> {
        Arc::new(Self { store, key, epoch, version: AtomicU32::new(version.0) })
    }

    fn version(&self) -> Version {
        Version(self.version.load(Ordering::Relaxed))
    }

    /// From now on sessions and tokens belong to this version (RFC 9369 §5).
    pub(crate) fn set_version(&self, version: Version) {
        self.version.store(version.0, Ordering::Relaxed);
    }

    /// The newest token that proves this end's address. It is removed, since a token is used once.
    pub(crate) fn take_token(&self) -> Option<Vec<u8>> {
        let version = self.version();
        take_newest(&mut self.store.lock().by_key.get_mut(&self.key)?.tokens, version)
    }

    /// Keeps a token for a later connection.
    pub(crate) fn add_token(&self, token: &[u8]) {
        self.store.lock().entry(&self.key).add_token(self.version(), token);
    }

    /// What was remembered of the path to the server, if it is still good. It is removed, since it is for one connection
    /// (RFC 9959 §3.2).
    pub(crate) fn take_path(&self, now: Instant) -> Option<SavedPath> {
        let known = self.store.lock().by_key.get_mut(&self.key)?.path.take()?;
        known.saved.aged(self.time_of_day(now).saturating_sub(known.kept_at))
    }

    /// Remembers how the path was. What it carries is not forgotten for a connection that has found its round-trip time alone.
    pub(crate) fn keep_path(&self, now: Instant, saved: SavedPath) {
        let kept_at = self.time_of_day(now);
        let mut store = self.store.lock();
        let path = &mut store.entry(&self.key).path;
        if saved.window > 0 || path.as_ref().is_none_or(|known| known.window_at(kept_at) == 0) {
            *path = Some(KnownPath { kept_at, saved });
        }
    }

    fn time_of_day(&self, now: Instant) -> Duration {
        self.epoch + now.saturating_since(Instant::ZERO)
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
