//! What a client remembers of the servers it talked to: TLS sessions, address tokens, and how the path was.
//!
//! | file | what it owns |
//! |---|---|
//! | `mod` | [`SessionStore`]: who is remembered, and for how long |
//! | `view` | the part of a store that concerns one connection, also as TLS sees it |
//! | `file` | the part of a store that outlives the process, as bytes |
//!
//! Everything is kept apart by the version of QUIC: RFC 9369 §5 forbids to use a session or a token with another
//! one. Knows no packets and no connections.

mod clock;
mod file;
mod view;

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fulmar_wire::Version;
use rustls::NamedGroup;
use rustls::client::Tls13ClientSessionValue;

use crate::congestion::SavedPath;

pub(crate) use clock::TicketClock;
pub use file::SessionFileError;
pub(crate) use view::SessionView;

/// Sessions of one server that are kept; the oldest goes first. A session serves one connection.
const TICKETS_MAX: usize = 4;
/// Address tokens of one server that are kept; the oldest goes first. A token serves one connection.
const TOKENS_MAX: usize = 4;
/// Longer tokens are not kept: with them an Initial packet would have little room for anything else.
const TOKEN_LEN_MAX: usize = 512;

/// A server as its client knows it: the name of its certificate, and the port.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ServerKey {
    pub(crate) name: String,
    pub(crate) port: u16,
}

/// What clients remember of servers, shared by all connections whose configuration names it.
///
/// With it, a later connection to the same server resumes the TLS session (no certificates are exchanged), may send
/// early data, proves its address with its first packet, knows the round-trip time, and sends as fast as the path allowed (RFC 9959). Each session and
/// each token is used once, so that connections cannot be linked by them (RFC 8446 §C.4). The servers that were used least
/// recently are forgotten first.
pub struct SessionStore {
    servers: Mutex<Servers>,
}

struct Servers {
    by_key: BTreeMap<ServerKey, Remembered>,
    max: usize,
    /// Counts uses, to tell which is the least recent one.
    uses: u64,
}

/// What is remembered of one server.
#[derive(Default)]
struct Remembered {
    last_use: u64,
    tickets: VecDeque<(Version, Tls13ClientSessionValue)>,
    tokens: VecDeque<(Version, Vec<u8>)>,
    /// The group of the last key exchange.
    group: Option<NamedGroup>,
    path: Option<KnownPath>,
}

/// How the path to a server was.
struct KnownPath {
    /// Since the beginning of 1970.
    kept_at: Duration,
    saved: SavedPath,
}

impl KnownPath {
    /// The window that is still good at this time of the day, or 0.
    fn window_at(&self, time: Duration) -> u64 {
        let age = time.saturating_sub(self.kept_at);
        if age < self.saved.lifetime { self.saved.window } else { 0 }
    }
}

impl SessionStore {
    /// An empty store that remembers at most `servers_max` servers.
    pub fn new(servers_max: usize) -> Arc<Self> {
        let servers = Servers { by_key: BTreeMap::new(), max: servers_max.max(1), uses: 0 };
        Arc::new(Self { servers: Mutex::new(servers) })
    }

    /// How many servers are remembered.
    pub fn len(&self) -> usize {
        self.lock().by_key.len()
    }

    /// Whether no server is remembered.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether there is a TLS session for a connection to `name` at `port`.
    pub fn has_session(&self, name: &str, port: u16) -> bool {
        let key = ServerKey { name: name.to_owned(), port };
        self.lock().by_key.get(&key).is_some_and(|server| !server.tickets.is_empty())
    }

    /// The first of `versions` for which there is a TLS session.
    pub(crate) fn version_of_session(&self, key: &ServerKey, versions: &[Version]) -> Option<Version> {
        let servers = self.lock();
        let server = servers.by_key.get(key)?;
        let known = |version: &&Version| server.tickets.iter().any(|(of, _)| of == *version);
        versions.iter().find(known).copied()
    }

    fn lock(&self) -> MutexGuard<'_, Servers> {
        self.servers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Servers {
    /// What is known of a server, to be changed. This counts as a use.
    fn entry(&mut self, key: &ServerKey) -> &mut Remembered {
        self.uses += 1;
        if !self.by_key.contains_key(key) && self.by_key.len() >= self.max {
            let oldest = self.by_key.iter().min_by_key(|(_, server)| server.last_use);
            if let Some(oldest) = oldest.map(|(key, _)| key.clone()) {
                self.by_key.remove(&oldest);
            }
        }
        let server = self.by_key.entry(key.clone()).or_default();
        server.last_use = self.uses;
        server
    }
}

impl Remembered {
    fn add_ticket(&mut self, version: Version, ticket: Tls13ClientSessionValue) {
        self.tickets.push_back((version, ticket));
        if self.tickets.len() > TICKETS_MAX {
            self.tickets.pop_front();
        }
    }

    fn add_token(&mut self, version: Version, token: &[u8]) {
        if token.is_empty() || token.len() > TOKEN_LEN_MAX || self.tokens.iter().any(|(_, t)| t == token) {
            return;
        }
        self.tokens.push_back((version, token.to_vec()));
        if self.tokens.len() > TOKENS_MAX {
            self.tokens.pop_front();
        }
    }
}

/// Takes the newest of what is for `version`.
fn take_newest<T>(queue: &mut VecDeque<(Version, T)>, version: Version) -> Option<T> {
    let at = queue.iter().rposition(|(of, _)| *of == version)?;
    queue.remove(at).map(|(_, item)| item)
}

impl fmt::Debug for SessionStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionStore").field("servers", &self.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
