//! Versions that one end does not speak (RFC 9000 §6, RFC 8999 §6).

mod pair;

use std::time::Duration;

use fulmar_proto::{ConnectionError, DropReason, Side, Version};
use fulmar_wire::{ProtectedKind, negotiated_versions, read_packet, write_version_negotiation};
use pair::{CLIENT, Pair, SERVER, Setup};

const STRANGER: &str = "10.0.0.9:9";

/// A datagram of an unknown version to a connection ID of `dst_len` bytes.
fn unknown_version(len: usize, dst_len: u8) -> Vec<u8> {
    let mut payload = vec![0xc0, 0xfa, 0xce, 0xb0, 0x0c, dst_len];
    payload.extend((0..dst_len).map(|n| n.wrapping_mul(3)));
    payload.extend([4, 1, 2, 3, 4]);
    payload.resize(len, 7);
    payload
}

fn ask_server(payload: Vec<u8>) -> Pair {
    let mut pair = Setup::default().dial();
    pair.inject(Side::Server, STRANGER.parse().unwrap(), payload);
    pair
}

#[test]
fn the_answer_names_the_versions_and_mirrors_the_connection_ids() {
    for dst_len in [0, 8, 20, 255] {
        let pair = ask_server(unknown_version(1_200, dst_len));
        let [answer] = &pair.strays[..] else { panic!("{:?}", pair.strays) };
        assert!(answer.len() < 1_200, "an answer that is larger than the question");
        // The IDs may be longer than those of a known version, so the answer is read by hand.
        assert!(answer[0] & 0x80 != 0 && answer[1..5] == [0; 4]);
        assert_eq!(answer[5..10], [4, 1, 2, 3, 4], "the client's own ID");
        assert_eq!(answer[10], dst_len);
        let versions = &answer[11 + usize::from(dst_len)..];
        let versions: Vec<Version> = negotiated_versions(versions).collect();
        assert!(versions.contains(&Version::V1) && versions.iter().any(|v| v.is_reserved()), "{versions:?}");
    }
}

#[test]
fn a_version_that_is_known_but_not_offered_is_answered_as_well() {
    let setup = Setup { client_versions: vec![Version::V2], ..Setup::default() };
    let mut pair = setup.connect();
    assert!(pair.server.replies > 0);
    assert_eq!(pair.lost(Side::Client), Some(ConnectionError::VersionMismatch));
    assert_eq!(
        ConnectionError::VersionMismatch.to_string(),
        "the peer speaks no QUIC version that this end speaks"
    );
    pair.run_for(Duration::from_secs(10));
    assert_eq!(pair.client.endpoint.open_connections(), 0);
    assert_eq!(pair.server.endpoint.open_connections(), 0);
}

#[test]
fn small_datagrams_are_not_answered() {
    let pair = ask_server(unknown_version(1_199, 8));
    assert_eq!(pair.server.replies, 0);
    assert_eq!(pair.server.dropped, [DropReason::TooShort]);
}

#[test]
fn version_negotiation_is_never_answered() {
    let mut payload = Vec::new();
    let versions = vec![Version(0xface_b00c); 300];
    write_version_negotiation(&mut payload, 0, &[1; 8], &[2; 8], &versions);
    assert!(payload.len() >= 1_200);
    let pair = ask_server(payload);
    assert_eq!(pair.server.replies, 0);
}

#[test]
fn a_client_answers_no_unknown_version() {
    let mut pair = Setup::default().dial();
    pair.inject(Side::Client, STRANGER.parse().unwrap(), unknown_version(1_200, 8));
    assert_eq!(pair.client.replies, 0);
}

/// A Version Negotiation packet for the client's first datagram.
fn negotiation_for(pair: &Pair, versions: &[Version]) -> Vec<u8> {
    let packet = read_packet(&pair.client.sent[0], 8).unwrap();
    assert!(matches!(packet.kind, ProtectedKind::Initial { .. }));
    let mut payload = Vec::new();
    write_version_negotiation(&mut payload, 0, packet.src.as_bytes(), packet.dst.as_bytes(), versions);
    payload
}

fn inject_from_server(pair: &mut Pair, payload: Vec<u8>) {
    pair.inject(Side::Client, SERVER.parse().unwrap(), payload);
}

/// A client whose first datagrams have left and not arrived.
fn waiting_client() -> Pair {
    let mut pair = Setup::default().dial();
    pair.run_for(Duration::from_millis(1));
    assert_eq!(pair.client.sent.len(), 2);
    pair
}

#[test]
fn a_client_gives_up_when_its_version_is_not_offered() {
    let mut pair = waiting_client();
    let payload = negotiation_for(&pair, &[Version(0xface_b00c), Version::V2]);
    inject_from_server(&mut pair, payload);
    assert_eq!(pair.lost(Side::Client), Some(ConnectionError::VersionMismatch));
}

#[test]
fn a_client_ignores_negotiation_that_is_none() {
    let mut pair = waiting_client();
    let offering_ours = negotiation_for(&pair, &[Version(0xface_b00c), Version::V1]);
    let empty = negotiation_for(&pair, &[]);
    let mut cut = negotiation_for(&pair, &[Version::V2, Version::V2]);
    cut.pop();
    let packet = read_packet(&pair.client.sent[0], 8).unwrap();
    let mut not_our_question = Vec::new();
    write_version_negotiation(&mut not_our_question, 0, packet.src.as_bytes(), &[9; 8], &[Version::V2]);
    for payload in [offering_ours, empty, cut, not_our_question] {
        inject_from_server(&mut pair, payload);
    }
    let elsewhere = negotiation_for(&pair, &[Version::V2]);
    pair.inject(Side::Client, STRANGER.parse().unwrap(), elsewhere);
    pair.run_for(Duration::from_millis(100));
    assert!(pair.client.is_connected(), "{:?}", pair.lost(Side::Client));
}

#[test]
fn negotiation_after_an_answer_of_the_server_is_ignored() {
    // The server's flight is so large that the client has to answer a first part of it.
    let server_tls = pair::server_tls_with(pair::large_chain(10_000));
    let mut pair = Setup { server_tls, ..Setup::default() }.dial();
    pair.run_for(Duration::from_millis(1));
    let payload = negotiation_for(&pair, &[Version::V2]);
    pair.run_while_waiting(Duration::from_secs(1), |pair| pair.client.conn().stats().packets_received > 0);
    assert!(!pair.client.is_connected());
    inject_from_server(&mut pair, payload.clone());
    pair.run_for(Duration::from_millis(100));
    inject_from_server(&mut pair, payload.clone());
    pair.inject(Side::Server, CLIENT.parse().unwrap(), payload);
    pair.transfer(Side::Client, 10_000, Duration::from_secs(1));
}
