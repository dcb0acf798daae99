//! The TLS sessions of a server, each for the circumstances in which it began.
//!
//! A session must not be resumed with another version of QUIC (RFC 9369 §5), nor may early data be taken under limits
//! that are lower than those the client remembers (RFC 9000 §7.4.1). So what the circumstances were is kept with a session: in
//! others it is not found, and the handshake is a full one.
//!
//! A session holds secrets: copies that are made here are wiped. The one that rustls or the store gets is theirs.

use std::sync::Arc;

use fulmar_wire::{Reader, Truncated};
use rustls::server::{ProducesTickets, StoresServerSessions};
use zeroize::Zeroizing;

/// What a session depends on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Circumstances {
    /// What must be the same, in which the client begins.
    pub(crate) now: Vec<u8>,
    /// The same, in which the sessions of this connection may be resumed.
    pub(crate) later: Vec<u8>,
    /// The limits that the client remembers. A later connection may have higher ones.
    pub(crate) limits: Vec<u64>,
    /// Whether early data may be taken. Without it the limits of the new connection count from its beginning, and nothing
    /// depends on those that the client remembers.
    pub(crate) early_data: bool,
}

impl Circumstances {
    /// A session, with what it depends on.
    fn wrap(&self, session: &[u8]) -> Vec<u8> {
        let mut bytes = (self.later.len() as u32).to_be_bytes().to_vec();
        bytes.extend(&self.later);
        bytes.extend((self.limits.len() as u32).to_be_bytes());
        bytes.extend(self.limits.iter().flat_map(|limit| limit.to_be_bytes()));
        bytes.extend(session);
        bytes
    }

    /// The session in what [`wrap`](Self::wrap) made, if it may be resumed in these circumstances.
    fn unwrap(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        let mut reader = Reader::new(bytes);
        let (of, limits) = read_circumstances(&mut reader).ok()?;
        let same = of == self.now && limits.len() == self.limits.len();
        let reduced = limits.iter().zip(&self.limits).any(|(before, now)| now < before);
        (same && !(self.early_data && reduced)).then(|| reader.rest().to_vec())
    }
}

fn read_circumstances<'a>(reader: &mut Reader<'a>) -> Result<(&'a [u8], Vec<u64>), Truncated> {
    let len = reader.u32()?;
    let of = reader.bytes(len as usize)?;
    let count = reader.u32()?;
    let limits = reader.bytes((count as usize).saturating_mul(8))?;
    let limits =
        limits.chunks_exact(8).map(|limit| limit.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte)));
    Ok((of, limits.collect()))
}

/// A store that keeps sessions with their circumstances.
#[derive(Debug)]
pub(super) struct Sessions {
    pub(super) inner: Arc<dyn StoresServerSessions>,
    pub(super) circumstances: Circumstances,
}

impl StoresServerSessions for Sessions {
    fn put(&self, key: Vec<u8>, value: Vec<u8>) -> bool {
        self.inner.put(key, self.circumstances.wrap(&value))
    }

    fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.circumstances.unwrap(&Zeroizing::new(self.inner.get(key)?))
    }

    fn take(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.circumstances.unwrap(&Zeroizing::new(self.inner.take(key)?))
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
        self.inner.encrypt(&Zeroizing::new(self.circumstances.wrap(plain)))
    }

    fn decrypt(&self, cipher: &[u8]) -> Option<Vec<u8>> {
        self.circumstances.unwrap(&Zeroizing::new(self.inner.decrypt(cipher)?))
    }
}

#[cfg(test)]
mod tests;
