//! Which version two ends agree upon (RFC 9368, RFC 9369).

mod pair;

use std::time::Duration;

use fulmar_proto::{ConnectionError, SessionStore, Side, Version};
use fulmar_wire::{ProtectedKind, TransportErrorCode, read_packet};
use pair::{Pair, Setup, large_chain, server_tls_with};

const V1: Version = Version::V1;
const V2: Version = Version::V2;

fn setup(client: &[Version], initial: Version, server: &[Version]) -> Setup {
    Setup {
        client_versions: client.to_vec(),
        initial_version: Some(initial),
        server_versions: server.to_vec(),
        ..Setup::default()
    }
}

/// The versions in the long headers of all packets of an end, in the order of their first use.
fn versions_sent(pair: &mut Pair, side: Side) -> Vec<Version> {
    let mut versions = Vec::new();
    for datagram in &pair.end(side).sent {
        let mut rest = &datagram[..];
        while let Ok(packet) = read_packet(rest, 8) {
            versions.extend(packet.version.filter(|version| !versions.contains(version)));
            rest = &rest[packet.len..];
        }
    }
    versions
}

fn round_trips(pair: &mut Pair) -> u128 {
    pair.client.conn().stats().handshake_duration.expect("the handshake is complete").as_millis() / 10
}

#[track_caller]
fn speak(pair: &mut Pair, version: Version) {
    assert!(pair.client.is_connected(), "{:?}, {:?}", pair.lost(Side::Client), pair.lost(Side::Server));
    for side in [Side::Client, Side::Server] {
        assert_eq!(pair.end(side).conn().version(), version);
    }
    pair.transfer(Side::Client, 50_000, Duration::from_secs(2));
    pair.transfer(Side::Server, 50_000, Duration::from_secs(2));
    pair.close_and_forget();
}

#[test]
fn the_server_goes_over_to_the_version_that_the_client_likes_best() {
    let cases: [(&[Version], Version, &[Version], Version); 7] = [
        (&[V2, V1], V1, &[V1, V2], V2),
        (&[V1, V2], V2, &[V1, V2], V1),
        (&[V2, V1], V2, &[V1, V2], V2),
        (&[V1, V2], V1, &[V2, V1], V1),
        (&[V2, V1], V1, &[V1], V1),
        (&[V1], V1, &[V2, V1], V1),
        (&[V2], V2, &[V2], V2),
    ];
    for (client, initial, server, version) in cases {
        let mut pair = setup(client, initial, server).connect();
        assert_eq!(round_trips(&mut pair), 1, "{client:?} {server:?}");
        assert_eq!(versions_sent(&mut pair, Side::Client)[0], initial);
        assert!(!versions_sent(&mut pair, Side::Server).contains(&initial) || initial == version);
        speak(&mut pair, version);
    }
}

#[test]
fn a_client_hears_why_it_is_refused_in_the_version_that_the_server_goes_over_to() {
    for (versions, version) in [(&[V2, V1][..], V2), (&[V1], V1)] {
        let mut client_tls = pair::client_tls();
        client_tls.alpn_protocols = vec![b"other".to_vec()];
        let mut pair = Setup { client_tls, ..setup(versions, V1, &[V1, V2]) }.dial();
        pair.run_for(Duration::from_millis(100));
        let Some(ConnectionError::ConnectionClosed { code, .. }) = pair.lost(Side::Client) else {
            panic!("the client was not told")
        };
        assert_eq!(code, TransportErrorCode::crypto(120), "no_application_protocol");
        assert_eq!(versions_sent(&mut pair, Side::Server), [version]);
    }
}

#[test]
fn the_version_changes_whatever_is_lost() {
    for losses in 0..1_u32 << 5 {
        for side in [Side::Client, Side::Server] {
            let server_tls = server_tls_with(large_chain(6_000));
            let mut pair = Setup { server_tls, ..setup(&[V2, V1], V1, &[V1, V2]) }.dial();
            let mut count = 0;
            pair.end(side).wire = Box::new(move |flying| {
                count += 1;
                if count <= 5 && losses >> (count - 1) & 1 == 1 { Vec::new() } else { vec![flying] }
            });
            let limit = Duration::from_secs(20);
            pair.run_while_waiting(limit, |pair| pair.client.is_connected() && pair.server.is_connected());
            speak(&mut pair, V2);
        }
    }
}

#[test]
fn a_client_tries_again_with_a_version_that_the_server_knows() {
    let mut pair = setup(&[V2, V1], V2, &[V1]).connect();
    assert_eq!(versions_sent(&mut pair, Side::Client), [V2, V1]);
    assert_eq!(round_trips(&mut pair), 2);
    speak(&mut pair, V1);
    let mut pair = setup(&[V1, V2], V1, &[V2]).connect();
    speak(&mut pair, V2);
}

#[test]
fn a_client_that_tries_again_is_as_patient_as_at_first() {
    let mut pair = setup(&[V2, V1], V2, &[V1]).dial();
    let (begun, mut second) = (pair.now, None);
    // Two timeouts of the first attempt pass, and what leaves first in the second one is lost.
    pair.client.wire = Box::new(move |flying| {
        let arrives = match read_packet(&flying.payload, 8).unwrap().version {
            Some(V2) => flying.at > begun + Duration::from_millis(600),
            _ => *second.get_or_insert(flying.at) < flying.at,
        };
        if arrives { vec![flying] } else { Vec::new() }
    });
    assert!(pair.run_while_waiting(Duration::from_secs(5), |pair| pair.client.is_connected()));
    let took = pair.client.conn().stats().handshake_duration.unwrap();
    // The third timeout after a second, the round trip of its answer, a plain timeout, and a round trip.
    assert_eq!(took.as_millis(), 1_000 + 10 + 250 + 10);
}

#[test]
fn the_rest_of_a_flight_may_overtake_what_tells_its_version() {
    let connect = |versions: &[Version], delay: u64| {
        let server_tls = server_tls_with(large_chain(3_000));
        let mut pair = Setup { server_tls, ..setup(versions, V1, &[V1, V2]) }.dial();
        pair.server.wire = Box::new(move |mut flying| {
            let packet = read_packet(&flying.payload, 8).unwrap();
            if matches!(packet.kind, ProtectedKind::Initial { .. }) {
                flying.at += Duration::from_millis(delay);
            }
            vec![flying]
        });
        pair.run_for(Duration::from_millis(100));
        let took = pair.client.conn().stats().handshake_duration.expect("it is complete");
        speak(&mut pair, versions[0]);
        (took.as_millis(), pair.server.conn().stats().bytes_lost)
    };
    assert_eq!(connect(&[V2, V1], 0), (10, 0));
    assert_eq!(connect(&[V2, V1], 1), connect(&[V1], 1), "one version or another");
    assert_eq!(connect(&[V2, V1], 1), (11, 0));
}

/// A client that likes version 2 and is told by somebody that its server speaks version 1 alone.
fn led_astray(mut pair: Pair) -> Pair {
    pair.run_for(Duration::from_millis(1));
    let packet = read_packet(&pair.client.sent[0], 8).unwrap();
    assert!(matches!(packet.kind, ProtectedKind::Initial { .. }));
    let (src, dst) = (packet.src.as_bytes(), packet.dst.as_bytes());
    let mut forged = Vec::new();
    fulmar_wire::write_version_negotiation(&mut forged, 0, src, dst, &[V1]);
    pair.client.wire = Box::new(|flying| vec![flying]);
    pair.inject(Side::Client, pair::SERVER.parse().unwrap(), forged);
    pair.run_for(Duration::from_millis(100));
    pair
}

#[test]
fn a_forged_version_negotiation_packet_does_not_lower_the_version() {
    let mut pair = led_astray(setup(&[V2, V1], V2, &[V1, V2]).dial());
    // The server took the first attempt for its connection; the second one is refused by this helper, or found out.
    assert!(!pair.client.is_connected() || pair.client.conn().version() == V2);
    assert!(pair.lost(Side::Client).is_some_and(|error| error != ConnectionError::VersionMismatch));
}

#[test]
fn a_forged_version_negotiation_packet_is_found_out_where_the_first_attempt_was_lost() {
    let mut pair = setup(&[V2, V1], V2, &[V1, V2]).dial();
    pair.client.wire = Box::new(|_| Vec::new());
    let mut pair = led_astray(pair);
    assert_eq!(versions_sent(&mut pair, Side::Client)[..2], [V2, V1]);
    let lost = pair.lost(Side::Client);
    let code = TransportErrorCode::VERSION_NEGOTIATION_ERROR;
    assert!(matches!(&lost, Some(ConnectionError::Transport(error)) if error.code == code), "{lost:?}");
}

#[test]
fn a_session_is_resumed_with_the_version_it_began_with() {
    let sessions = SessionStore::new(10);
    let (server_tls, client_tls) = (pair::server_tls(), pair::client_tls());
    let resuming = || Setup {
        server_tls: server_tls.clone(),
        client_tls: client_tls.clone(),
        sessions: Some(sessions.clone()),
        ..setup(&[V2, V1], V1, &[V1, V2])
    };
    let mut first = resuming().connect();
    assert!(!first.client.conn().stats().resumed);
    speak(&mut first, V2);
    let mut second = resuming().connect();
    assert_eq!(versions_sent(&mut second, Side::Client), [V2], "the session is one of version 2");
    assert!(second.client.conn().stats().resumed);
    speak(&mut second, V2);
}
