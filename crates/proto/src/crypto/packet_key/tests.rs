//! Nonces, round trips, and agreement of the implementations.

use super::*;
use crate::crypto::hkdf::Secret;
use crate::crypto::vectors::bytes;
use fulmar_wire::Version;

const SUITES: [CipherSuite; 3] =
    [CipherSuite::Aes128Gcm, CipherSuite::Aes256Gcm, CipherSuite::ChaCha20Poly1305];
const BACKENDS: [AeadBackend; 2] = [AeadBackend::Ring, AeadBackend::AwsLc];
const HEADER_LEN: usize = 13;

fn key(suite: CipherSuite, backend: AeadBackend) -> PacketKey {
    PacketKey::new(
        suite,
        &Secret::new(suite, &[7; 48]).expander(),
        VersionConstants::of(Version::V1),
        backend,
    )
}

fn packet(payload_len: usize) -> Vec<u8> {
    let text = (0..HEADER_LEN + payload_len).map(|at| at as u8);
    text.chain([0; TAG_LEN]).collect()
}

#[test]
fn nonce_of_the_multipath_example() {
    let mut key = key(CipherSuite::Aes128Gcm, AeadBackend::Ring);
    key.iv = split_iv(&bytes("6b26114b9cba2b63a9e8dd4f").try_into().expect("twelve bytes"));
    assert_eq!(key.nonce(PathId(3), 54321).to_vec(), bytes("6b2611489cba2b63a9e8097e"));
    // On path 0 it is RFC 9001's: the packet number alone.
    assert_eq!(key.nonce(PathId::ZERO, 54321).to_vec(), bytes("6b26114b9cba2b63a9e8097e"));
}

#[test]
fn implementations_agree_and_open_each_other() {
    for suite in SUITES {
        for payload_len in [0, 1, 15, 16, 17, 1423, 65_000] {
            let (ring, aws_lc) = (key(suite, AeadBackend::Ring), key(suite, AeadBackend::AwsLc));
            let original = packet(payload_len);
            let (mut first, mut second) = (original.clone(), original.clone());
            ring.seal(PathId(9), 1 << 40, &mut first, HEADER_LEN);
            aws_lc.seal(PathId(9), 1 << 40, &mut second, HEADER_LEN);
            assert_eq!(first, second, "{suite} {payload_len}");
            assert_ne!(first, original);
            assert_eq!(first[..HEADER_LEN], original[..HEADER_LEN]);

            assert_eq!(ring.open(PathId(9), 1 << 40, &mut second, HEADER_LEN), Ok(payload_len));
            assert_eq!(aws_lc.open(PathId(9), 1 << 40, &mut first, HEADER_LEN), Ok(payload_len));
            let end = HEADER_LEN + payload_len;
            assert_eq!(first[..end], original[..end]);
            assert_eq!(second[..end], original[..end]);
        }
    }
}

#[test]
fn nothing_but_the_same_packet_opens() {
    for suite in SUITES {
        for backend in BACKENDS {
            let key = key(suite, backend);
            let mut sealed = packet(40);
            key.seal(PathId(1), 5, &mut sealed, HEADER_LEN);
            let open = |path, number, packet: &[u8], header_len| {
                key.open(path, number, &mut packet.to_vec(), header_len)
            };
            assert_eq!(open(PathId(1), 5, &sealed, HEADER_LEN), Ok(40));
            assert_eq!(open(PathId(0), 5, &sealed, HEADER_LEN), Err(DecryptError), "another path");
            assert_eq!(open(PathId(1), 6, &sealed, HEADER_LEN), Err(DecryptError), "another number");
            assert_eq!(open(PathId(1), 5, &sealed, HEADER_LEN + 1), Err(DecryptError), "another header");
            for at in 0..sealed.len() {
                let mut damaged = sealed.clone();
                damaged[at] ^= 0x10;
                assert_eq!(open(PathId(1), 5, &damaged, HEADER_LEN), Err(DecryptError), "byte {at}");
            }
        }
    }
}

#[test]
fn short_packets_are_refused() {
    let key = key(CipherSuite::Aes128Gcm, AeadBackend::Ring);
    for len in 0..HEADER_LEN + TAG_LEN {
        let opened = key.open(PathId::ZERO, 0, &mut vec![0; len], HEADER_LEN);
        assert_eq!(opened, Err(DecryptError), "{len} bytes");
    }
}
