//! The TLS sessions of a server, each for the circumstances in which it began.
//!
//! A session must not be resumed with another version of QUIC (RFC 9369 §5), nor may early data be taken under limits
//! that are lower than those the client remembers (RFC 9000 §7.4.1). So the circumstances are a part of what a session is
//! found by: in others it is not found, and the handshake is a full one.

use std::sync::Arc;

use rustls::server::{ProducesTickets, StoresServerSessions};

/// What a session depends on, as bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Circumstances {
    /// Those in which the client begins.
    pub(crate) now: Vec<u8>,
    /// Those in which the sessions of this connection may be resumed.
    pub(crate) later: Vec<u8>,
}

/// A store that keeps sessions apart by their circumstances.
#[derive(Debug)]
pub(super) struct Sessions {
    pub(super) inner: Arc<dyn StoresServerSessions>,
    pub(super) circumstances: Circumstances,
}

impl StoresServerSessions for Sessions {
    fn put(&self, key: Vec<u8>, value: Vec<u8>) -> bool {
        self.inner.put([&key[..], &self.circumstances.later].concat(), value)
    }

    fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.inner.get(&[key, &self.circumstances.now].concat())
    }

    fn take(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.inner.take(&[key, &self.circumstances.now].concat())
    }

    fn can_cache(&self) -> bool {
        self.inner.can_cache()
    }
}

/// Tickets that hold their circumstances.
#[derive(Debug)]
pub(super) struct Tickets {
    pub(super) inner: Arc<dyn ProducesTickets>,
    pub(super) circumstances: Circumstances,
}

impl ProducesTickets for Tickets {
    fn enabled(&self) -> bool {
        self.inner.enabled()
    }

    fn lifetime(&self) -> u32 {
        self.inner.lifetime()
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        self.inner.encrypt(&[&self.circumstances.later, plain].concat())
    }

    fn decrypt(&self, cipher: &[u8]) -> Option<Vec<u8>> {
        let plain = self.inner.decrypt(cipher)?;
        plain.strip_prefix(&self.circumstances.now[..]).map(<[u8]>::to_vec)
    }
}
