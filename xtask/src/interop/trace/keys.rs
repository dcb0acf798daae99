//! Packet protection as an observer with a key log sees it (RFC 9001, RFC 9369). It is written from the specification and shares
//! nothing with the core, so that it can judge it.

use fulmar_wire::{Version, packet_number, protect_header, sample, unprotect_header};
use ring::aead::{self, Aad, LessSafeKey, Nonce, UnboundKey, quic};
use ring::hkdf::{self, HKDF_SHA256, HKDF_SHA384, KeyType, Prk, Salt};

const TAG_LEN: usize = 16;
const SALT_V1: [u8; 20] = [
    0x38, 0x76, 0x2c, 0xf7, 0xf5, 0x59, 0x34, 0xb3, 0x4d, 0x17, 0x9a, 0xe6, 0xa4, 0xc8, 0x0c, 0xad, 0xcc,
    0xbb, 0x7f, 0x0a,
];
const SALT_V2: [u8; 20] = [
    0x0d, 0xed, 0xe3, 0xde, 0xf7, 0x00, 0xa6, 0xdb, 0x81, 0x93, 0x81, 0xbe, 0x6e, 0x26, 0x9d, 0xcb, 0xf9,
    0xbd, 0x2e, 0xd9,
];

/// The cipher suites of QUIC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Suite {
    Aes128,
    Aes256,
    ChaCha20,
}

impl Suite {
    /// Those to which a secret of this length can belong.
    fn of_secret(len: usize) -> &'static [Self] {
        match len {
            32 => &[Self::Aes128, Self::ChaCha20],
            48 => &[Self::Aes256],
            _ => &[],
        }
    }

    fn hash(self) -> hkdf::Algorithm {
        if self == Self::Aes256 { HKDF_SHA384 } else { HKDF_SHA256 }
    }

    fn aead(self) -> &'static aead::Algorithm {
        match self {
            Self::Aes128 => &aead::AES_128_GCM,
            Self::Aes256 => &aead::AES_256_GCM,
            Self::ChaCha20 => &aead::CHACHA20_POLY1305,
        }
    }

    fn header(self) -> &'static quic::Algorithm {
        match self {
            Self::Aes128 => &quic::AES_128,
            Self::Aes256 => &quic::AES_256,
            Self::ChaCha20 => &quic::CHACHA20,
        }
    }
}

/// The keys of one direction at one level.
pub(crate) struct PacketKeys {
    suite: Suite,
    version: Version,
    secret: Prk,
    packet: LessSafeKey,
    iv: [u8; 12],
    header: Option<quic::HeaderProtectionKey>,
}

/// What was inside of a packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Opened {
    pub(crate) number: u64,
    pub(super) key_phase: bool,
    pub(crate) payload: Vec<u8>,
}

/// A packet behind its header protection.
pub(super) struct Unmasked {
    bytes: Vec<u8>,
    header_len: usize,
    number: u64,
    pub(super) key_phase: bool,
}

impl PacketKeys {
    /// The keys of Initial packets, of the client and of the server, for the client's first destination.
    pub(crate) fn initial(version: Version, dcid: &[u8]) -> [Self; 2] {
        let salt = if version == Version::V2 { &SALT_V2 } else { &SALT_V1 };
        let initial = Salt::new(HKDF_SHA256, salt).extract(dcid);
        ["client in", "server in"].map(|label| {
            let secret = expand(&initial, label, HKDF_SHA256, |okm| Prk::from(okm));
            Self::new(Suite::Aes128, version, secret, true)
        })
    }

    /// Keys from a secret of a key log, for each suite to which it can belong.
    pub(crate) fn from_secret(version: Version, secret: &[u8]) -> Vec<Self> {
        let suites = Suite::of_secret(secret.len()).iter();
        suites
            .map(|suite| Self::new(*suite, version, Prk::new_less_safe(suite.hash(), secret), true))
            .collect()
    }

    /// The keys of the next phase (RFC 9001 §6.1), which have no header protection of their own.
    pub(super) fn next(&self) -> Self {
        let label = if self.version == Version::V2 { "quicv2 ku" } else { "quic ku" };
        let secret = expand(&self.secret, label, self.suite.hash(), |okm| Prk::from(okm));
        Self::new(self.suite, self.version, secret, false)
    }

    fn new(suite: Suite, version: Version, secret: Prk, with_header: bool) -> Self {
        let prefix = if version == Version::V2 { "quicv2" } else { "quic" };
        let bytes = |what: &str, len| {
            expand(&secret, &format!("{prefix} {what}"), Length(len), |okm| {
                let mut bytes = vec![0; len];
                okm.fill(&mut bytes).expect("the length is the same");
                bytes
            })
        };
        let key = bytes("key", suite.aead().key_len());
        let packet = UnboundKey::new(suite.aead(), &key).expect("the key has the suite's length");
        let iv = bytes("iv", 12).try_into().expect("the length is the same");
        let header = with_header.then(|| {
            let key = bytes("hp", suite.aead().key_len());
            quic::HeaderProtectionKey::new(suite.header(), &key).expect("the key has the suite's length")
        });
        Self { suite, version, secret, packet: LessSafeKey::new(packet), iv, header }
    }

    /// Takes the header protection off.
    pub(super) fn unmask(&self, packet: &[u8], pn_offset: usize, largest: Option<u64>) -> Option<Unmasked> {
        let mask = self.header.as_ref()?.new_mask(sample(packet, pn_offset)?).ok()?;
        let mut bytes = packet.to_vec();
        let bits = unprotect_header(&mut bytes, pn_offset, mask).ok()?;
        let number = packet_number::decode(largest, bits.truncated_pn, bits.pn_len);
        Some(Unmasked { bytes, header_len: pn_offset + bits.pn_len, number, key_phase: bits.key_phase() })
    }

    /// Opens what [`Self::unmask`] gave; `None` if it is not authentic.
    pub(super) fn open(&self, unmasked: &Unmasked) -> Option<Opened> {
        let Unmasked { bytes, header_len, number, key_phase } = unmasked;
        let (header, body) = bytes.split_at_checked(*header_len)?;
        if body.len() < TAG_LEN {
            return None;
        }
        let mut payload = body.to_vec();
        let nonce = Nonce::assume_unique_for_key(self.nonce(*number));
        let len = self.packet.open_in_place(nonce, Aad::from(header), &mut payload).ok()?.len();
        payload.truncate(len);
        Some(Opened { number: *number, key_phase: *key_phase, payload })
    }
}

impl PacketKeys {
    /// Opens a packet that is the first that is seen of its sender.
    pub(crate) fn open_packet(&self, packet: &[u8], pn_offset: usize) -> Option<Opened> {
        self.open(&self.unmask(packet, pn_offset, None)?)
    }

    /// Makes a packet of a header, which ends with the packet number, and of its inside.
    pub(crate) fn seal(
        &self,
        header: Vec<u8>,
        pn_offset: usize,
        number: u64,
        payload: &[u8],
    ) -> Option<Vec<u8>> {
        let mut payload = payload.to_vec();
        let nonce = Nonce::assume_unique_for_key(self.nonce(number));
        self.packet.seal_in_place_append_tag(nonce, Aad::from(&header), &mut payload).ok()?;
        let mut packet = header;
        packet.extend(payload);
        let mask = self.header.as_ref()?.new_mask(sample(&packet, pn_offset)?).ok()?;
        protect_header(&mut packet, pn_offset, mask);
        Some(packet)
    }

    fn nonce(&self, number: u64) -> [u8; 12] {
        let mut nonce = self.iv;
        for (byte, number) in nonce[4..].iter_mut().zip(number.to_be_bytes()) {
            *byte ^= number;
        }
        nonce
    }
}

struct Length(usize);

impl KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

/// HKDF-Expand-Label with an empty context (RFC 8446 §7.1).
fn expand<L: KeyType, T>(
    secret: &Prk,
    label: &str,
    length: L,
    take: impl FnOnce(hkdf::Okm<'_, L>) -> T,
) -> T {
    let len = (length.len() as u16).to_be_bytes();
    let label = [b"tls13 ", label.as_bytes()].concat();
    let info: [&[u8]; 4] = [&len, &[label.len() as u8], &label, &[0]];
    take(secret.expand(&info, length).expect("keys are shorter than 255 hashes"))
}
