//! Sealed tokens: what a server gives away and recognises when it comes back (RFC 9000 §8.1.4).

use std::fmt;

use thiserror::Error;
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use super::aead::{AeadBackend, AeadKey, CipherSuite, NONCE_LEN, TAG_LEN};
use super::hmac::{Hash, Key};

/// How many keys a set may hold. Every token is tried with the one key that it names.
const KEYS_MAX: usize = 8;
/// Bytes that name a key, derived from it, so that servers that share a key agree on its name.
const NAME_LEN: usize = 4;
/// Random bytes that make the key of each token another one. They also name the token.
pub(crate) const SALT_LEN: usize = 16;

/// The keys that seal a server's tokens: the current one, and older ones that are still accepted. They are wiped when
/// they are dropped.
///
/// Servers with the same keys accept each other's tokens. To change the key, put a new one in front on all of them
/// (those that have not got it yet take its tokens for those of another server, and ask for another proof), and remove the old
/// one when the tokens that it sealed have expired.
#[derive(Clone)]
pub struct TokenKeys {
    /// The first one seals. Never empty.
    keys: Vec<TokenKey>,
}

#[derive(Clone)]
pub(super) struct TokenKey {
    name: [u8; NAME_LEN],
    key: Key,
}

/// Its name is no secret, and the rest wipes itself.
impl ZeroizeOnDrop for TokenKey {}

/// Why a text holds no set of keys.
#[derive(Debug, Clone, Error, PartialEq, Eq)]
pub enum TokenKeysError {
    /// A line is neither a key, nor empty, nor a comment.
    #[error("line {0} is no key: a key has 64 hexadecimal digits")]
    NotAKey(usize),
    /// There is no key.
    #[error("there is no key")]
    Empty,
    /// There are more keys than a set may hold.
    #[error("there are more than {KEYS_MAX} keys")]
    TooMany,
}

/// What a token turned out to be.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum OpenedToken {
    /// It was sealed with one of the keys for the same context: its salt and contents.
    Authentic { salt: [u8; SALT_LEN], contents: Vec<u8> },
    /// It names one of the keys, but was not sealed so with it.
    Forged,
    /// It names none of the keys: it may be another server's.
    Foreign,
}

impl TokenKeys {
    /// A set of one key, 32 secret random bytes.
    pub fn new(mut key: [u8; 32]) -> Self {
        let keys = vec![TokenKey::new(Zeroizing::new(key))];
        key.zeroize();
        Self { keys }
    }

    /// Accepts the tokens of an older key as well. Beyond eight keys the oldest is dropped.
    #[must_use]
    pub fn with_previous(mut self, mut key: [u8; 32]) -> Self {
        self.keys.push(TokenKey::new(Zeroizing::new(key)));
        key.zeroize();
        self.keys.truncate(KEYS_MAX);
        self
    }

    /// Reads a set from text: a key on each line, as 64 hexadecimal digits, the current one first. Empty lines and
    /// those that begin with `#` are skipped.
    ///
    /// # Errors
    /// If a line is no key, or there is none, or more than eight.
    pub fn parse(text: &str) -> Result<Self, TokenKeysError> {
        let mut keys = Vec::new();
        for (number, line) in text.lines().map(str::trim).enumerate() {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            keys.push(TokenKey::new(parse_hex(line).ok_or(TokenKeysError::NotAKey(number + 1))?));
        }
        match keys.len() {
            0 => Err(TokenKeysError::Empty),
            1..=KEYS_MAX => Ok(Self { keys }),
            _ => Err(TokenKeysError::TooMany),
        }
    }

    /// Seals `contents` for `context`, which must be the same when it is opened. `salt` is random.
    pub(crate) fn seal(&self, salt: [u8; SALT_LEN], context: &[u8], contents: &[u8]) -> Vec<u8> {
        let Some(key) = self.keys.first() else { return Vec::new() };
        let mut token = Vec::with_capacity(NAME_LEN + SALT_LEN + contents.len() + TAG_LEN);
        token.extend_from_slice(&key.name);
        token.extend_from_slice(&salt);
        token.extend_from_slice(contents);
        let (aead, nonce) = key.aead(&salt);
        let tag = aead.seal(nonce, context, &mut token[NAME_LEN + SALT_LEN..]);
        token.extend_from_slice(&tag);
        token
    }

    /// Opens what [`TokenKeys::seal`] made.
    pub(crate) fn open(&self, context: &[u8], token: &[u8]) -> OpenedToken {
        let Some((name, rest)) = token.split_first_chunk::<NAME_LEN>() else { return OpenedToken::Foreign };
        let Some(key) = self.keys.iter().find(|key| key.name == *name) else { return OpenedToken::Foreign };
        let Some((salt, sealed)) = rest.split_first_chunk::<SALT_LEN>() else { return OpenedToken::Forged };
        let (aead, nonce) = key.aead(salt);
        let mut contents = sealed.to_vec();
        match aead.open(nonce, context, &mut contents) {
            Some(len) => {
                contents.truncate(len);
                OpenedToken::Authentic { salt: *salt, contents }
            }
            None => OpenedToken::Forged,
        }
    }
}

impl TokenKey {
    fn new(secret: Zeroizing<[u8; 32]>) -> Self {
        let key = Key::new(Hash::Sha256, secret.as_ref());
        let mut name = [0; NAME_LEN];
        key.mac([&b"token key name"[..]], &mut name);
        Self { name, key }
    }

    /// A key for one token, with which one nonce is enough, however many tokens are sealed and by however many servers.
    fn aead(&self, salt: &[u8; SALT_LEN]) -> (AeadKey, [u8; NONCE_LEN]) {
        let mut key = Zeroizing::new([0; 32]);
        // Longer than the message of the name: the two are never the same.
        self.key.mac([&b"token key"[..], salt], key.as_mut());
        (AeadKey::new(CipherSuite::Aes256Gcm, key.as_ref(), AeadBackend::Ring), [0; NONCE_LEN])
    }
}

/// The 32 bytes that 64 hexadecimal digits stand for.
fn parse_hex(digits: &str) -> Option<Zeroizing<[u8; 32]>> {
    let digits = digits.as_bytes();
    let mut bytes = Zeroizing::new([0; 32]);
    if digits.len() != 2 * bytes.len() {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        let value = |digit: u8| char::from(digit).to_digit(16);
        *byte = (value(pair[0])? << 4 | value(pair[1])?) as u8;
    }
    Some(bytes)
}

impl fmt::Debug for TokenKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TokenKeys({} keys)", self.keys.len())
    }
}

#[cfg(test)]
mod tests;
