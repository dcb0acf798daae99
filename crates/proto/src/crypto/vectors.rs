//! The sample packets of the specifications, byte by byte.

use fulmar_wire::{ConnectionId, PathId, Side};

use super::aead::{AeadBackend, CipherSuite, TAG_LEN};
use super::header_key::{HeaderKey, SAMPLE_LEN};
use super::hkdf::Secret;
use super::keys::{DirectionKeys, Keys};
use super::packet_key::PacketKey;
use super::retry::{retry_tag, verify_retry};
use super::version::VersionConstants;

mod samples;
use samples::{CLIENT_PAYLOAD_LEN, DCID, Level, Packet, RFC_9001, RFC_9369, Samples};

const BOTH: [Samples; 2] = [RFC_9001, RFC_9369];
const BACKENDS: [AeadBackend; 2] = [AeadBackend::Ring, AeadBackend::AwsLc];

/// The bytes that `hex` writes down.
pub(super) fn bytes(hex: &str) -> Vec<u8> {
    assert!(hex.len().is_multiple_of(2), "half a byte");
    (0..hex.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hexadecimal"))
        .collect()
}

fn dcid() -> ConnectionId {
    ConnectionId::new(&DCID).expect("eight bytes")
}

fn expand(secret: &Secret, label: &str, len: usize) -> Vec<u8> {
    let mut output = vec![0; len];
    secret.expander().expand_label(label, &mut output);
    output
}

fn assert_expands_to(secret: &Secret, version: &VersionConstants, expected: &Level) {
    let key = bytes(expected.key);
    assert_eq!(expand(secret, version.key_label, key.len()), key);
    assert_eq!(expand(secret, version.iv_label, 12), bytes(expected.iv));
    assert_eq!(expand(secret, version.hp_label, key.len()), bytes(expected.hp));
}

#[test]
fn initial_secrets_and_keys() {
    for samples in BOTH {
        let version = VersionConstants::of(samples.version);
        let initial = Secret::initial(version, &dcid());
        for (label, level) in [("client in", &samples.client), ("server in", &samples.server)] {
            assert_eq!(expand(&initial, label, 32), bytes(level.secret));
            assert_expands_to(&initial.next(label), version, level);
            // The extracted secret itself cannot be read back; what is made of its sample must be the same.
            let sample = Secret::new(CipherSuite::Aes128Gcm, &bytes(samples.initial_secret));
            assert_eq!(expand(&sample, label, 32), bytes(level.secret));
        }
    }
}

#[test]
fn client_initial() {
    for samples in BOTH {
        let mut payload = bytes(samples.client_initial.payload);
        payload.resize(CLIENT_PAYLOAD_LEN, 0);
        for backend in BACKENDS {
            let client = Keys::initial(samples.version, &dcid(), Side::Client, backend);
            let server = Keys::initial(samples.version, &dcid(), Side::Server, backend);
            check_packet(&client.local, &server.remote, &samples.client_initial, &payload);
        }
    }
}

#[test]
fn server_initial() {
    for samples in BOTH {
        let payload = bytes(samples.server_initial.payload);
        for backend in BACKENDS {
            let client = Keys::initial(samples.version, &dcid(), Side::Client, backend);
            let server = Keys::initial(samples.version, &dcid(), Side::Server, backend);
            check_packet(&server.local, &client.remote, &samples.server_initial, &payload);
        }
    }
}

#[test]
fn retry() {
    for samples in BOTH {
        let packet = bytes(samples.retry);
        let (body, tag) = packet.split_at(packet.len() - TAG_LEN);
        assert_eq!(retry_tag(samples.version, &dcid(), body), tag);
        assert!(verify_retry(samples.version, &dcid(), &packet));

        let mut damaged = packet.clone();
        for at in 0..packet.len() {
            damaged[at] ^= 1;
            assert!(!verify_retry(samples.version, &dcid(), &damaged), "byte {at}");
            damaged[at] ^= 1;
        }
        let other = ConnectionId::new(&[1, 2, 3]).expect("three bytes");
        assert!(!verify_retry(samples.version, &other, &packet));
        assert!(!verify_retry(samples.version, &dcid(), &packet[..15]));
    }
}

#[test]
fn chacha20_short_header() {
    for samples in BOTH {
        let version = VersionConstants::of(samples.version);
        let secret = Secret::new(CipherSuite::ChaCha20Poly1305, &bytes(samples.chacha.secret));
        assert_expands_to(&secret, version, &samples.chacha);
        let expander = secret.expander();
        assert_eq!(expand(&secret, version.update_label, 32), bytes(samples.chacha_update));
        for backend in BACKENDS {
            let keys = || DirectionKeys {
                packet: PacketKey::new(CipherSuite::ChaCha20Poly1305, &expander, version, backend),
                header: HeaderKey::new(CipherSuite::ChaCha20Poly1305, &expander, version),
            };
            check_packet(&keys(), &keys(), &samples.chacha_packet, &bytes(samples.chacha_packet.payload));
        }
    }
}

/// Protects the sample packet with one key, compares, and opens it with the other.
fn check_packet(local: &DirectionKeys, remote: &DirectionKeys, sample: &Packet, payload: &[u8]) {
    let header = bytes(sample.header);
    let mut packet = [&header[..], payload, &[0; TAG_LEN]].concat();
    local.packet.seal(PathId::ZERO, sample.number, &mut packet, header.len());
    mask_header(local, &mut packet, sample);
    assert_eq!(packet, bytes(sample.protected));

    mask_header(remote, &mut packet, sample);
    assert_eq!(packet[..header.len()], header);
    let len = remote.packet.open(PathId::ZERO, sample.number, &mut packet, header.len()).expect("authentic");
    assert_eq!(&packet[header.len()..header.len() + len], payload);
}

/// RFC 9001 §5.4.1 and §5.4.2, for a packet whose unprotected header is known.
fn mask_header(keys: &DirectionKeys, packet: &mut [u8], expected: &Packet) {
    let header = bytes(expected.header);
    let number_len = usize::from(header[0] & 3) + 1;
    let number_at = header.len() - number_len;
    let sample = packet[number_at + 4..][..SAMPLE_LEN].try_into().expect("as long as a sample");
    assert_eq!(sample, bytes(expected.sample)[..]);
    let mask = keys.header.mask(&sample);
    assert_eq!(mask, bytes(expected.mask)[..]);

    packet[0] ^= mask[0] & if header[0] & 0x80 != 0 { 0x0f } else { 0x1f };
    for (byte, mask) in packet[number_at..header.len()].iter_mut().zip(&mask[1..]) {
        *byte ^= mask;
    }
}
