//! Key updates from both sides, reordering around them, and the limits of the AEAD.

use std::time::Duration;

use super::update::CLOSE_RESERVE_PACKETS;
use super::*;
use crate::crypto::hkdf::Secret;

const PTO: Duration = Duration::from_millis(100);
const HEADER_LEN: usize = 5;
const TEXT: &[u8] = b"some frames";
const OTHER_PATH: PathId = PathId(4);

/// A packet on the way: what its header tells once the protection is off, and its bytes.
#[derive(Clone)]
struct Packet {
    path: PathId,
    number: u64,
    key_phase: bool,
    bytes: Vec<u8>,
}

/// One end: its keys, and the next packet number of each path.
struct End {
    keys: OneRttKeys,
    next_number: [u64; 8],
}

impl End {
    fn new(side: Side, suite: CipherSuite) -> Self {
        let secret = |byte| Secret::new(suite, &[byte; 48]);
        let secrets = SecretPair { client: secret(1), server: secret(2) };
        let keys = OneRttKeys::from_secrets(suite, secrets, Version::V1, side, AeadBackend::Ring);
        Self { keys, next_number: [0; 8] }
    }

    fn send_on(&mut self, path: PathId) -> Packet {
        let number = self.next_number[path.0 as usize];
        self.next_number[path.0 as usize] += 1;
        let key_phase = self.keys.key_phase();
        let mut bytes = [&[key_phase as u8; HEADER_LEN], TEXT, &[0; 16]].concat();
        self.keys.seal(path, number, &mut bytes, HEADER_LEN);
        Packet { path, number, key_phase, bytes }
    }

    fn send(&mut self) -> Packet {
        self.send_on(PathId::ZERO)
    }

    fn receive(&mut self, packet: &Packet) -> Result<u64, OpenError> {
        let mut bytes = packet.bytes.clone();
        let opened = self.keys.open(packet.path, packet.number, packet.key_phase, &mut bytes, HEADER_LEN)?;
        assert_eq!(&bytes[HEADER_LEN..HEADER_LEN + opened.len], TEXT);
        Ok(opened.generation)
    }

    /// Makes `maintain` initiate an update, as if half of the packets had been sent that the AEAD allows.
    fn update(&mut self, now: Instant) {
        let before = self.keys.generation;
        self.keys.sending.sealed = self.keys.suite().confidentiality_limit() / 2;
        self.keys.maintain(now, PTO).expect("far from the limit");
        assert_eq!(self.keys.generation, before + 1, "the update was allowed");
    }
}

fn pair() -> (End, End) {
    pair_with(CipherSuite::Aes128Gcm)
}

fn pair_with(suite: CipherSuite) -> (End, End) {
    let (mut client, mut server) = (End::new(Side::Client, suite), End::new(Side::Server, suite));
    client.keys.on_handshake_confirmed();
    server.keys.on_handshake_confirmed();
    (client, server)
}

fn code(error: OpenError) -> TransportErrorCode {
    match error {
        OpenError::Close(error) => error.code,
        OpenError::Discard => panic!("the packet was only discarded"),
    }
}

#[test]
fn update_by_either_side_is_followed() {
    for suite in [CipherSuite::Aes128Gcm, CipherSuite::Aes256Gcm] {
        let (mut one, mut other) = pair_with(suite);
        let mut now = Instant::from_millis(1);
        for round in 0..6 {
            for _ in 0..3 {
                assert_eq!(other.receive(&one.send()), Ok(round));
                assert_eq!(one.receive(&other.send()), Ok(round));
            }
            one.update(now);
            let packet = one.send();
            assert_eq!(packet.key_phase, round % 2 == 0);
            assert_eq!(other.receive(&packet), Ok(round + 1));
            assert_eq!(other.keys.key_phase(), packet.key_phase, "the response uses the new keys");
            other.keys.maintain(now, PTO).expect("nothing wrong");
            let response = other.send();
            let generation = one.receive(&response).expect("authentic");
            one.keys.on_ack(packet.path, packet.number, generation, now, PTO).expect("in new keys");
            other.keys.maintain(now, PTO).expect("nothing wrong");
            // The next update comes from the other side, when it has been acknowledged as well.
            let generation = other.receive(&one.send()).expect("authentic");
            other.keys.on_ack(response.path, response.number, generation, now, PTO).expect("in new keys");
            now += PTO * 4;
            std::mem::swap(&mut one, &mut other);
        }
    }
}

#[test]
fn keys_that_have_rested_are_the_same() {
    for suite in [CipherSuite::Aes128Gcm, CipherSuite::Aes256Gcm, CipherSuite::ChaCha20Poly1305] {
        let (mut client, mut server) = pair_with(suite);
        let header = client.keys.local_header().mask(&[7; 16]);
        let mut now = Instant::from_millis(1);
        for generation in 0..3 {
            let before = client.send();
            client.keys.rest();
            server.keys.rest();
            assert!(client.keys.expanded.is_none() && server.keys.expanded.is_none());
            assert_eq!(server.receive(&before), Ok(generation));
            assert_eq!(client.receive(&server.send()), Ok(generation));
            assert_eq!(client.keys.local_header().mask(&[7; 16]), header);
            assert_eq!(server.keys.remote_header().mask(&[7; 16]), header);
            // What rests can be updated, by this end and by the other.
            client.keys.rest();
            server.keys.rest();
            client.update(now);
            let packet = client.send();
            assert_eq!(server.receive(&packet), Ok(generation + 1));
            server.keys.maintain(now, PTO).expect("nothing wrong");
            let generation = client.receive(&server.send()).expect("authentic");
            client.keys.on_ack(packet.path, packet.number, generation, now, PTO).expect("in new keys");
            for _ in 0..2 {
                client.keys.maintain(now, PTO).expect("nothing wrong");
                server.keys.maintain(now, PTO).expect("nothing wrong");
                now += PTO * 4;
            }
        }
    }
}

#[test]
fn an_update_is_unconfirmed_until_a_packet_under_it_is_acknowledged() {
    let (mut client, mut server) = pair();
    assert!(!client.keys.is_update_unconfirmed());
    client.update(Instant::ZERO);
    let packet = client.send();
    assert!(client.keys.is_update_unconfirmed());
    assert_eq!(server.receive(&packet), Ok(1));
    server.keys.maintain(Instant::ZERO, PTO).expect("nothing wrong");
    let generation = client.receive(&server.send()).expect("authentic");
    client.keys.on_ack(packet.path, packet.number, generation, Instant::ZERO, PTO).expect("in new keys");
    assert!(!client.keys.is_update_unconfirmed());
}

#[test]
fn keys_do_not_rest_while_stragglers_may_come() {
    let (mut client, mut server) = pair();
    let late = client.send();
    client.update(Instant::ZERO);
    assert_eq!(server.receive(&client.send()), Ok(1));
    server.keys.rest();
    assert_eq!(server.receive(&late), Ok(0));
    assert_eq!(server.receive(&client.send()), Ok(1));
}

#[test]
fn stragglers_of_the_old_phase_open_until_they_expire() {
    let (mut client, mut server) = pair();
    let old: Vec<_> = (0..3).map(|_| client.send()).collect();
    client.update(Instant::ZERO);
    let new: Vec<_> = (0..3).map(|_| client.send()).collect();

    assert_eq!(server.receive(&new[1]), Ok(1));
    assert_eq!(server.receive(&old[2]), Ok(0));
    assert_eq!(server.receive(&new[0]), Ok(1));
    assert_eq!(server.receive(&old[0]), Ok(0));

    // RFC 9001 §6.5: three times the PTO after the first packet with new keys.
    let now = Instant::from_millis(10);
    assert_eq!(server.keys.next_timeout(), None);
    server.keys.maintain(now, PTO).expect("nothing wrong");
    assert_eq!(server.keys.next_timeout(), Some(now + PTO * 3));
    assert_eq!(server.receive(&old[1]), Ok(0));
    server.keys.maintain(now + PTO * 3, PTO).expect("nothing wrong");
    assert_eq!(server.keys.next_timeout(), None);
    assert_eq!(server.receive(&old[1]), Err(OpenError::Discard));
    assert_eq!(server.receive(&new[2]), Ok(1));
}

#[test]
fn initiator_keeps_old_keys_until_the_peer_has_followed() {
    let (mut client, mut server) = pair();
    client.update(Instant::ZERO);
    for seconds in 1..20 {
        client.keys.maintain(Instant::from_millis(seconds * 1000), PTO).expect("nothing wrong");
        assert_eq!(client.keys.next_timeout(), None);
        assert_eq!(client.receive(&server.send()), Ok(0), "the server has not heard of the update");
    }
    let late = server.send();
    server.receive(&client.send()).expect("authentic");
    assert_eq!(client.receive(&server.send()), Ok(1));
    assert_eq!(client.receive(&late), Ok(0));
    client.keys.maintain(Instant::from_millis(20_000), PTO).expect("nothing wrong");
    assert_eq!(client.keys.next_timeout(), Some(Instant::from_millis(20_000) + PTO * 3));
}

#[test]
fn first_packets_may_already_be_updated() {
    let (mut client, mut server) = pair();
    let late = client.send();
    client.update(Instant::ZERO);
    // The server has sent nothing at all; the first update needs no acknowledgement (RFC 9001 §6.1).
    assert_eq!(server.receive(&client.send()), Ok(1));
    assert_eq!(server.receive(&late), Ok(0));
}

#[test]
fn paths_update_together_and_reorder_apart() {
    let (mut client, mut server) = pair();
    let old = client.send_on(OTHER_PATH);
    for _ in 0..50 {
        server.receive(&client.send()).expect("authentic");
    }
    client.update(Instant::ZERO);
    assert_eq!(server.receive(&client.send()), Ok(1));
    assert_eq!(server.receive(&old), Ok(0), "nothing of the new phase was seen on that path");
    assert_eq!(server.receive(&client.send_on(OTHER_PATH)), Ok(1));
    assert!(server.send_on(OTHER_PATH).key_phase);
}

#[test]
fn forged_key_phase_changes_nothing() {
    let (mut client, mut server) = pair();
    server.receive(&client.send()).expect("authentic");
    let genuine = client.send();
    let mut forged = genuine.clone();
    forged.key_phase = !forged.key_phase;
    for _ in 0..3 {
        assert_eq!(server.receive(&forged), Err(OpenError::Discard));
        assert_eq!(server.keys.generation, 0);
    }
    assert_eq!(server.receive(&genuine), Ok(0));
    assert_eq!(server.keys.receiving.failed, 3);
}

#[test]
fn current_keys_with_the_wrong_phase_are_refused() {
    // The header is authentic, but the bit in it lies. The key that it asks for is no longer at hand, and the
    // one that is tried in its place would fit.
    let (mut client, mut server) = pair();
    client.update(Instant::ZERO);
    server.receive(&client.send()).expect("authentic");
    let mut liar = client.send();
    server.receive(&client.send()).expect("authentic");
    liar.key_phase = false;
    server.keys.previous = None;
    assert_eq!(server.receive(&liar), Err(OpenError::Discard));
}

#[test]
fn old_keys_after_newer_ones_are_an_error() {
    let (mut client, mut server) = pair();
    let mut laggard = End::new(Side::Client, CipherSuite::Aes128Gcm);
    client.update(Instant::ZERO);
    server.receive(&client.send()).expect("authentic");
    client.next_number[0] = 10;
    server.receive(&client.send()).expect("authentic");
    // Packet 5 is behind packet 0 of the new phase, but under the old keys.
    laggard.next_number[0] = 5;
    let error = server.receive(&laggard.send()).expect_err("a violation");
    assert_eq!(code(error), TransportErrorCode::KEY_UPDATE_ERROR);
}

#[test]
fn second_update_without_confirmation_is_an_error() {
    let (mut client, mut server) = pair();
    client.update(Instant::ZERO);
    server.receive(&client.send()).expect("authentic");
    server.keys.maintain(Instant::ZERO, PTO).expect("nothing wrong");
    // The server has sent nothing since, so nothing can have been acknowledged.
    client.keys.sending.update_allowed_at = Some(Instant::ZERO);
    client.update(Instant::ZERO);
    let error = server.receive(&client.send()).expect_err("a violation");
    assert_eq!(code(error), TransportErrorCode::KEY_UPDATE_ERROR);
}

#[test]
fn acknowledging_an_update_under_old_keys_is_an_error() {
    let (mut client, mut server) = pair();
    let before = client.send();
    client.update(Instant::ZERO);
    let after = client.send();
    let generation = client.receive(&server.send()).expect("authentic");
    assert_eq!(generation, 0);
    let ack =
        |keys: &mut OneRttKeys, number| keys.on_ack(PathId::ZERO, number, generation, Instant::ZERO, PTO);
    assert_eq!(ack(&mut client.keys, before.number), Ok(()));
    let error = ack(&mut client.keys, after.number).expect_err("a violation");
    assert_eq!(error.code, TransportErrorCode::KEY_UPDATE_ERROR);
}

#[test]
fn update_waits_for_its_conditions() {
    let due = |keys: &mut OneRttKeys, now| {
        keys.sending.sealed = keys.suite().confidentiality_limit() / 2;
        let before = keys.generation;
        keys.maintain(now, PTO).expect("far from the limit");
        keys.generation > before
    };
    // RFC 9001 §6.1: not before the handshake is confirmed.
    let mut client = End::new(Side::Client, CipherSuite::Aes128Gcm);
    let mut server = End::new(Side::Server, CipherSuite::Aes128Gcm);
    assert!(!due(&mut client.keys, Instant::ZERO));
    client.keys.on_handshake_confirmed();
    assert!(due(&mut client.keys, Instant::ZERO));
    // Not again before a packet of the new phase is acknowledged.
    assert!(!due(&mut client.keys, Instant::from_millis(1_000_000)));
    let packet = client.send();
    server.receive(&packet).expect("authentic");
    let generation = client.receive(&server.send()).expect("authentic");
    let acked_at = Instant::from_millis(1_000_000);
    client.keys.on_ack(packet.path, packet.number, generation, acked_at, PTO).expect("in new keys");
    // And not before three times the PTO have passed (§6.5).
    assert!(!due(&mut client.keys, acked_at + (PTO * 3 - Duration::from_nanos(1))));
    client.keys.on_ack(packet.path, packet.number, generation, acked_at + PTO, PTO).expect("in new keys");
    assert!(due(&mut client.keys, acked_at + PTO * 3), "a later acknowledgement does not postpone it");
}

#[test]
fn confidentiality_limit_closes_when_no_update_is_possible() {
    let mut client = End::new(Side::Client, CipherSuite::Aes256Gcm);
    let limit = CipherSuite::Aes256Gcm.confidentiality_limit();
    client.keys.sending.sealed = limit - CLOSE_RESERVE_PACKETS - 1;
    client.keys.maintain(Instant::ZERO, PTO).expect("one packet is left");
    client.send();
    let error = client.keys.maintain(Instant::ZERO, PTO).expect_err("none is left");
    assert_eq!(error.code, TransportErrorCode::AEAD_LIMIT_REACHED);
}

#[test]
fn integrity_limit_closes() {
    let (mut client, mut server) = pair_with(CipherSuite::ChaCha20Poly1305);
    let mut damaged = client.send();
    damaged.bytes[HEADER_LEN] ^= 1;
    server.keys.receiving.failed = (1 << 36) - 1;
    assert_eq!(server.receive(&damaged), Err(OpenError::Discard));
    let error = server.receive(&damaged).expect_err("one too many");
    assert_eq!(code(error), TransportErrorCode::AEAD_LIMIT_REACHED);
}
