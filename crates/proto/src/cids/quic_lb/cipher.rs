//! The encryption of server ID and nonce: one pass of AES for 16 bytes, a Feistel network of four passes for other
//! lengths (draft-ietf-quic-load-balancers-21 §5.4).

use aws_lc_rs::cipher::{
    AES_128, DecryptingKey, DecryptionContext, EncryptingKey, EncryptionContext, UnboundCipherKey,
};

/// The bytes of a server ID and a nonce at most.
pub(super) const BLOCK_MAX: usize = 19;
/// The bytes that AES encrypts at once.
const AES_BLOCK: usize = 16;
/// The longest half of a block.
const HALF_MAX: usize = BLOCK_MAX.div_ceil(2);

/// A key that encrypts blocks of 5 to 19 bytes.
#[derive(Debug)]
pub(super) struct BlockCipher {
    encrypt: EncryptingKey,
    decrypt: DecryptingKey,
}

/// The two halves of a block. Where its length is odd, the middle byte is split: its high bits are the last ones of
/// `left`, its low bits the first ones of `right`, and the other half of each byte is zero.
struct Halves {
    left: [u8; HALF_MAX],
    right: [u8; HALF_MAX],
    block_len: usize,
}

impl BlockCipher {
    /// `None` if the library does not take the key.
    pub(super) fn new(key: &[u8; 16]) -> Option<Self> {
        let unbound = || UnboundCipherKey::new(&AES_128, key).ok();
        Some(Self {
            encrypt: EncryptingKey::ecb(unbound()?).ok()?,
            decrypt: DecryptingKey::ecb(unbound()?).ok()?,
        })
    }

    /// Encrypts a server ID and a nonce in place.
    pub(super) fn encrypt(&self, block: &mut [u8]) {
        if block.len() == AES_BLOCK {
            self.aes(block);
            return;
        }
        let mut halves = Halves::split(block);
        for pass in 1..=4 {
            self.pass(&mut halves, pass);
        }
        halves.join(block);
    }

    /// Takes [`BlockCipher::encrypt`] back.
    pub(super) fn decrypt(&self, block: &mut [u8]) {
        if block.len() == AES_BLOCK {
            let result = self.decrypt.decrypt(block, DecryptionContext::None);
            debug_assert!(result.is_ok(), "a whole block can be decrypted");
            return;
        }
        let mut halves = Halves::split(block);
        for pass in (1..=4).rev() {
            self.pass(&mut halves, pass);
        }
        halves.join(block);
    }

    /// One round of the network: odd passes change the right half, even ones the left. Applied twice, it changes
    /// nothing.
    fn pass(&self, halves: &mut Halves, pass: u8) {
        let half = halves.half_len();
        let mut mask = [0; AES_BLOCK];
        let from = if pass % 2 == 1 { &halves.left } else { &halves.right };
        mask[..half].copy_from_slice(&from[..half]);
        mask[AES_BLOCK - 2] = halves.block_len as u8;
        mask[AES_BLOCK - 1] = pass;
        self.aes(&mut mask);
        let to = if pass % 2 == 1 { &mut halves.right } else { &mut halves.left };
        for (byte, mask) in to[..half].iter_mut().zip(mask) {
            *byte ^= mask;
        }
        halves.clear_overlap();
    }

    fn aes(&self, block: &mut [u8]) {
        let result = self.encrypt.less_safe_encrypt(block, EncryptionContext::None);
        debug_assert!(result.is_ok(), "a whole block can be encrypted");
    }
}

impl Halves {
    fn split(block: &[u8]) -> Self {
        let mut halves = Self { left: [0; HALF_MAX], right: [0; HALF_MAX], block_len: block.len() };
        let half = halves.half_len();
        halves.left[..half].copy_from_slice(&block[..half]);
        halves.right[..half].copy_from_slice(&block[block.len() - half..]);
        halves.clear_overlap();
        halves
    }

    fn half_len(&self) -> usize {
        self.block_len.div_ceil(2)
    }

    fn clear_overlap(&mut self) {
        if self.block_len % 2 == 1 {
            self.left[self.half_len() - 1] &= 0xf0;
            self.right[0] &= 0x0f;
        }
    }

    fn join(&self, block: &mut [u8]) {
        let half = self.half_len();
        block[..half].copy_from_slice(&self.left[..half]);
        let (odd, start) = (self.block_len % 2, block.len() - half);
        block[start + odd..].copy_from_slice(&self.right[odd..half]);
        if odd == 1 {
            block[start] |= self.right[0];
        }
    }
}
