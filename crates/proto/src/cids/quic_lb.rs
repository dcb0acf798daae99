//! Connection IDs that load balancers can read (draft-ietf-quic-load-balancers-21).
//!
//! Behind a first octet, which names the configuration, an ID has the number of the server and a nonce, either
//! in the clear or encrypted with a key that servers and load balancers share.

mod cipher;

use fulmar_base::Rng;
use fulmar_wire::ConnectionId;
use thiserror::Error;

use self::cipher::{BLOCK_MAX, BlockCipher};
use super::CidGenerator;

/// Draft §5.3: bytes of a nonce at least, and of a server ID and a nonce together at most.
const NONCE_MIN: usize = 4;

/// The configurations that the first octet can name; the last value stands for IDs that cannot be routed.
const CONFIG_IDS: u8 = 7;

/// What a server and its load balancers agree on.
#[derive(Clone, PartialEq, Eq)]
pub struct QuicLbConfig {
    /// Which configuration it is, 0 to 6: so that the next one can be introduced while this one is in use.
    pub config_id: u8,
    /// Bytes of a server ID, at least 1.
    pub server_id_len: usize,
    /// Bytes of a nonce, at least 4; with the server ID at most 19. With 4 or 5 it is for servers with few connections at a
    /// time, as such [`RandomCids`](crate::RandomCids::new) are.
    pub nonce_len: usize,
    /// The shared key. Without one everybody sees which server a connection is with.
    pub key: Option<[u8; 16]>,
    /// Whether the first octet tells the length of the ID, for hardware that cannot know it; otherwise it is
    /// random.
    pub encodes_len: bool,
}

/// A configuration of QUIC-LB that cannot be used.
#[derive(Debug, Clone, Copy, Error, PartialEq, Eq)]
pub enum QuicLbError {
    /// The number of the configuration is not in 0 to 6.
    #[error("the configuration ID is above 6")]
    ConfigId,
    /// The server ID has no bytes, the nonce less than 4, or both together more than 19.
    #[error("a server ID has 1 byte or more, a nonce 4 or more, and both together at most 19")]
    Lengths,
    /// The server's own ID is not as long as the configuration says.
    #[error("the server ID is not as long as configured")]
    ServerId,
    /// The cryptographic library does not take the key.
    #[error("the key cannot be used")]
    Key,
}

/// Makes connection IDs for a server, and reads them for a load balancer.
///
/// ```
/// use fulmar_proto::{CidGenerator, QuicLb, QuicLbConfig, Rng};
///
/// let config = QuicLbConfig { config_id: 2, server_id_len: 3, nonce_len: 6, key: Some([7; 16]), encodes_len: true };
/// let server = QuicLb::server(config.clone(), &[0x31, 0x44, 0x1a])?;
/// let cid = server.generate(&mut Rng::from_u64(1));
///
/// let balancer = QuicLb::balancer(config)?;
/// assert_eq!(balancer.server_id(cid.as_bytes()).as_deref(), Some(&[0x31, 0x44, 0x1a][..]));
/// # Ok::<(), fulmar_proto::QuicLbError>(())
/// ```
#[derive(Debug)]
pub struct QuicLb {
    config: QuicLbConfig,
    cipher: Option<BlockCipher>,
    server_id: Vec<u8>,
}

/// Without the key.
impl std::fmt::Debug for QuicLbConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("QuicLbConfig")
            .field("config_id", &self.config_id)
            .field("server_id_len", &self.server_id_len)
            .field("nonce_len", &self.nonce_len)
            .field("encrypted", &self.key.is_some())
            .field("encodes_len", &self.encodes_len)
            .finish()
    }
}

impl QuicLb {
    /// A generator for the server with this ID.
    ///
    /// # Errors
    /// See [`QuicLbError`].
    pub fn server(config: QuicLbConfig, server_id: &[u8]) -> Result<Self, QuicLbError> {
        if server_id.len() != config.server_id_len {
            return Err(QuicLbError::ServerId);
        }
        Ok(Self { server_id: server_id.to_vec(), ..Self::balancer(config)? })
    }

    /// A reader for a load balancer. As a generator it makes IDs of the server whose ID is all zeros.
    ///
    /// # Errors
    /// See [`QuicLbError`].
    pub fn balancer(config: QuicLbConfig) -> Result<Self, QuicLbError> {
        if config.config_id >= CONFIG_IDS {
            return Err(QuicLbError::ConfigId);
        }
        let (server_id, nonce) = (config.server_id_len, config.nonce_len);
        if server_id == 0 || nonce < NONCE_MIN || server_id.saturating_add(nonce) > BLOCK_MAX {
            return Err(QuicLbError::Lengths);
        }
        let cipher = match &config.key {
            Some(key) => Some(BlockCipher::new(key).ok_or(QuicLbError::Key)?),
            None => None,
        };
        Ok(Self { server_id: vec![0; server_id], config, cipher })
    }

    fn block_len(&self) -> usize {
        self.config.server_id_len + self.config.nonce_len
    }

    /// The connection ID with this nonce, and these bits where the first octet is random.
    fn encode(&self, nonce: &[u8], random: u8) -> ConnectionId {
        let len = self.block_len();
        let mut bytes = [0; BLOCK_MAX + 1];
        let low = if self.config.encodes_len { len as u8 } else { random & 0x1f };
        bytes[0] = self.config.config_id << 5 | low;
        let block = &mut bytes[1..=len];
        block[..self.server_id.len()].copy_from_slice(&self.server_id);
        block[self.server_id.len()..].copy_from_slice(nonce);
        if let Some(cipher) = &self.cipher {
            cipher.encrypt(block);
        }
        ConnectionId::new(&bytes[..=len]).unwrap_or(ConnectionId::EMPTY)
    }

    /// Which configuration a connection ID was made with; `None` for one that cannot be routed.
    pub fn config_id(cid: &[u8]) -> Option<u8> {
        cid.first().map(|first| first >> 5).filter(|id| *id < CONFIG_IDS)
    }

    /// The server that a connection ID belongs to; `None` if it is of another configuration or too short. Bytes
    /// behind it are the server's own. An ID that a client has made up names any server, or none that exists.
    pub fn server_id(&self, cid: &[u8]) -> Option<Vec<u8>> {
        if Self::config_id(cid) != Some(self.config.config_id) {
            return None;
        }
        let mut block = [0; BLOCK_MAX];
        let block = &mut block[..self.block_len()];
        block.copy_from_slice(cid.get(1..=block.len())?);
        if let Some(cipher) = &self.cipher {
            cipher.decrypt(block);
        }
        Some(block[..self.config.server_id_len].to_vec())
    }
}

impl CidGenerator for QuicLb {
    fn generate(&self, rng: &mut Rng) -> ConnectionId {
        let mut nonce = [0; BLOCK_MAX];
        let nonce = &mut nonce[..self.config.nonce_len];
        rng.fill(nonce);
        self.encode(nonce, rng.u64() as u8)
    }

    fn cid_len(&self) -> usize {
        self.block_len() + 1
    }
}

#[cfg(test)]
mod tests;
