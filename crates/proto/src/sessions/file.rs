//! A store as bytes: what can outlive the process.
//!
//! The layout: the magic, then for each server its name (16-bit length), its port, its tokens and its path. A path is the time
//! of day and the parameters, or nothing. There are no TLS sessions: rustls does not export their secrets, so they live as
//! long as the process.

use std::time::Duration;

use fulmar_wire::{Reader, Truncated, Version};
use thiserror::Error;

use super::{KnownPath, ServerKey, SessionStore, TOKEN_LEN_MAX, TOKENS_MAX};
use crate::congestion::SavedPath;

const MAGIC: &[u8; 8] = b"fulmar\x00\x02";

/// Bytes that are no store.
#[derive(Debug, Clone, Copy, Error, PartialEq, Eq)]
pub enum SessionFileError {
    /// They do not begin as a store does, or are of another version of it.
    #[error("this is no file of sessions")]
    NotAStore,
    /// They end too early, or hold what no store writes.
    #[error("the file of sessions is damaged")]
    Damaged,
}

impl From<Truncated> for SessionFileError {
    fn from(_: Truncated) -> Self {
        Self::Damaged
    }
}

impl SessionStore {
    /// What outlives the process: address tokens and how paths were, but no TLS sessions. Whoever reads it can link
    /// the connections that are made with it, so it should be private.
    pub fn to_bytes(&self) -> Vec<u8> {
        let servers = self.lock();
        // The least recently used first, so that reading it restores the order.
        let mut order: Vec<_> = servers.by_key.iter().collect();
        order.sort_by_key(|(_, server)| server.last_use);
        let mut out = MAGIC.to_vec();
        for (key, server) in order {
            if server.tokens.is_empty() && server.path.is_none() {
                continue;
            }
            put(&mut out, key.name.as_bytes());
            out.extend(key.port.to_be_bytes());
            out.push(server.tokens.len() as u8);
            for (version, token) in &server.tokens {
                out.extend(version.0.to_be_bytes());
                put(&mut out, token);
            }
            put(&mut out, &server.path.as_ref().map(KnownPath::to_bytes).unwrap_or_default());
        }
        out
    }

    /// Adds what [`SessionStore::to_bytes`] wrote.
    ///
    /// # Errors
    /// If the bytes are no store; what was read before the damage is kept.
    pub fn add_bytes(&self, bytes: &[u8]) -> Result<(), SessionFileError> {
        let rest = bytes.strip_prefix(MAGIC).ok_or(SessionFileError::NotAStore)?;
        let mut reader = Reader::new(rest);
        while !reader.is_empty() {
            self.read_server(&mut reader)?;
        }
        Ok(())
    }

    fn read_server(&self, reader: &mut Reader<'_>) -> Result<(), SessionFileError> {
        let name = std::str::from_utf8(get(reader)?).map_err(|_| SessionFileError::Damaged)?.to_owned();
        let key = ServerKey { name, port: reader.u16()? };
        let tokens = (0..reader.u8()?).map(|_| Ok((Version(reader.u32()?), get(reader)?)));
        let tokens = tokens.collect::<Result<Vec<_>, SessionFileError>>()?;
        let path = get(reader)?;
        let fits = tokens.len() <= TOKENS_MAX && tokens.iter().all(|(_, token)| token.len() <= TOKEN_LEN_MAX);
        if !fits {
            return Err(SessionFileError::Damaged);
        }
        let path = (!path.is_empty()).then(|| KnownPath::from_bytes(path)).transpose()?;
        let mut servers = self.lock();
        let server = servers.entry(&key);
        tokens.iter().for_each(|(version, token)| server.add_token(*version, token));
        server.path = path.or(server.path.take());
        Ok(())
    }
}

impl KnownPath {
    fn to_bytes(&self) -> Vec<u8> {
        let seconds = self.kept_at.as_secs().to_be_bytes();
        [&seconds[..], &self.saved.encode()].concat()
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self, SessionFileError> {
        let (seconds, saved) = bytes.split_first_chunk::<8>().ok_or(SessionFileError::Damaged)?;
        let kept_at = Duration::from_secs(u64::from_be_bytes(*seconds));
        Ok(Self { kept_at, saved: SavedPath::decode(saved).ok_or(SessionFileError::Damaged)? })
    }
}

fn put(out: &mut Vec<u8>, bytes: &[u8]) {
    // Names, tokens and paths are far shorter than that.
    let len = u16::try_from(bytes.len()).unwrap_or(u16::MAX);
    out.extend(len.to_be_bytes());
    out.extend_from_slice(&bytes[..usize::from(len)]);
}

fn get<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8], SessionFileError> {
    let len = reader.u16()?;
    Ok(reader.bytes(usize::from(len))?)
}
