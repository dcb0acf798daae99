//! HMAC with SHA-2 (RFC 2104), keyed once for several messages.
//!
//! A handshake takes some fifty of them, of messages about as long as a block of the hash. aws-lc, which chooses the hash when it runs,
//! spends more time on copying and wiping its contexts than on hashing. The hash is that of RustCrypto, which wipes its state and
//! what it buffers when they are dropped; what is needed here beside them is wiped, too.

use std::fmt;

use sha2::digest::{Digest, Output};
use sha2::{Sha256, Sha384};
use zeroize::{ZeroizeOnDrop, Zeroizing};

/// A hash of SHA-2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hash {
    Sha256,
    Sha384,
}

impl Hash {
    /// The length of its output, in bytes.
    pub(super) const fn len(self) -> usize {
        match self {
            Self::Sha256 => 32,
            Self::Sha384 => 48,
        }
    }
}

/// The longest output of a hash, in bytes.
pub(super) const OUTPUT_LEN_MAX: usize = 48;

/// A key, with which both hashes have begun already.
#[derive(Clone)]
pub(super) enum Key {
    Sha256(Keyed<Sha256>),
    /// Rare, and twice as large.
    Sha384(Box<Keyed<Sha384>>),
}

/// The hash of the message and that of its hash, behind the key.
#[derive(Clone)]
pub(super) struct Keyed<D> {
    inner: D,
    outer: D,
}

/// All that is kept is the state of hashes.
impl<D: ZeroizeOnDrop> ZeroizeOnDrop for Keyed<D> {}
impl ZeroizeOnDrop for Key {}

impl Key {
    /// A key of any length.
    pub(super) fn new(hash: Hash, key: &[u8]) -> Self {
        match hash {
            Hash::Sha256 => Self::Sha256(Keyed::new::<64>(key)),
            Hash::Sha384 => Self::Sha384(Box::new(Keyed::new::<128>(key))),
        }
    }

    /// The tag of a message that comes in parts, of which `output` gets the beginning.
    ///
    /// # Panics
    /// If the output is longer than the hash.
    pub(super) fn mac<'a>(&self, message: impl IntoIterator<Item = &'a [u8]>, output: &mut [u8]) {
        match self {
            Self::Sha256(keyed) => keyed.mac(message, output),
            Self::Sha384(keyed) => keyed.mac(message, output),
        }
    }
}

impl<D: Digest + Clone + ZeroizeOnDrop> Keyed<D> {
    /// `BLOCK` is the length of a block of the hash.
    fn new<const BLOCK: usize>(key: &[u8]) -> Self {
        const INNER: u8 = 0x36;
        const OUTER: u8 = 0x5c;
        let mut block = Zeroizing::new([0; BLOCK]);
        if key.len() > BLOCK {
            D::new_with_prefix(key).finalize_into(into::<D>(&mut block[..<D as Digest>::output_size()]));
        } else {
            block[..key.len()].copy_from_slice(key);
        }
        block.iter_mut().for_each(|byte| *byte ^= INNER);
        let inner = D::new_with_prefix(&block[..]);
        block.iter_mut().for_each(|byte| *byte ^= INNER ^ OUTER);
        Self { inner, outer: D::new_with_prefix(&block[..]) }
    }

    fn mac<'a>(&self, message: impl IntoIterator<Item = &'a [u8]>, output: &mut [u8]) {
        let mut tag = Zeroizing::new([0; OUTPUT_LEN_MAX]);
        let tag = &mut tag[..<D as Digest>::output_size()];
        let mut inner = self.inner.clone();
        message.into_iter().for_each(|part| inner.update(part));
        inner.finalize_into(into::<D>(tag));
        let mut outer = self.outer.clone();
        outer.update(&*tag);
        outer.finalize_into(into::<D>(tag));
        output.copy_from_slice(&tag[..output.len()]);
    }
}

/// Room for a tag.
fn into<D: Digest>(tag: &mut [u8]) -> &mut Output<D> {
    tag.try_into().expect("it is as long as the output")
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

#[cfg(test)]
mod tests;
