//! What probes say (RFC 9002 §6.2.4).

mod pair;

use std::time::Duration;

use fulmar_proto::{Dir, Event, Side, TimerStyle, TransportConfig};
use fulmar_wire::{ProtectedKind, read_packet};
use pair::{Pair, Setup, client_tls_of_one_packet, read_available};

#[test]
fn each_probe_of_a_server_tells_that_the_handshake_is_done() {
    let mut pair = Pair::new(TransportConfig::default(), TransportConfig::default());
    pair.run_for(Duration::from_millis(7));
    // The server has answered, and sends data before the client is done. All of it is lost, and so is what tells
    // the end of the handshake.
    pair.server.mute = true;
    let id = pair.server.conn().streams().open(Dir::Uni).unwrap();
    pair.server.conn().streams().send(id).write(&[0; 3_000]).unwrap();
    pair.run_for(Duration::from_millis(15));
    assert!(!pair.server.conn().is_handshaking());
    // Nothing that the client says shows the server what was lost.
    pair.client.mute = true;
    pair.server.mute = false;
    pair.run_for(Duration::from_secs(2));
    assert!(pair.server.conn().stats().pto_count > 0);
    assert!(pair.client.events.iter().any(|event| matches!(event, Event::HandshakeConfirmed)));
}

#[test]
fn the_probes_of_a_server_whose_flight_is_lost_have_all_of_it() {
    let client_tls = client_tls_of_one_packet();
    let mut pair = Setup { client_tls, ..Setup::default() }.dial();
    pair.server.mute = true;
    pair.run_for(Duration::from_millis(1));
    // It hears nothing more that could ask for it.
    pair.client.mute = true;
    pair.run_for(Duration::from_millis(10));
    let before = pair.server.sent.len();
    assert!(pair.run_while_waiting(Duration::from_secs(1), |pair| pair.server.conn().stats().pto_count == 1));
    let kinds = |datagram: &[u8]| {
        let first = read_packet(datagram, 8).unwrap();
        [first.kind, read_packet(&datagram[first.len..], 8).unwrap().kind]
    };
    // Before the timeout, packets of padding have reminded the client.
    let mut probes = pair.server.sent[before..].iter().filter(|datagram| datagram.len() > 100);
    let is_whole = |probe: &[u8]| {
        matches!(kinds(probe), [ProtectedKind::Initial { .. }, ProtectedKind::Handshake { .. }])
    };
    assert!(probes.any(|probe| is_whole(probe)));
}

#[test]
fn the_probes_of_a_client_whose_handshake_is_not_confirmed_carry_its_data_as_well() {
    let mut pair = Pair::new(TransportConfig::default(), TransportConfig::default());
    assert!(pair.run_while_waiting(Duration::from_millis(50), |pair| !pair.client.conn().is_handshaking()));
    // The server gets the end of the handshake, and needs its keys no more. The request is lost, and what the server says too.
    pair.server.mute = true;
    pair.run_for(Duration::from_millis(1));
    pair.client.mute = true;
    let id = pair.client.conn().streams().open(Dir::Uni).unwrap();
    pair.client.conn().streams().send(id).write(b"request").unwrap();
    pair.run_for(Duration::from_millis(1));
    pair.client.mute = false;
    pair.run_for(Duration::from_secs(1));
    assert!(!pair.server.conn().is_handshaking());
    assert!(!pair.client.events.iter().any(|event| matches!(event, Event::HandshakeConfirmed)));
    let mut read = Vec::new();
    read_available(&mut pair.server, id, &mut read);
    assert_eq!(read, b"request");
}

#[test]
fn a_probe_timeout_asks_with_two_packets() {
    // RFC 9002 §6.2.4: one of them may be lost as well.
    for timers in [TimerStyle::OncePerRtt, TimerStyle::Classic] {
        let config = TransportConfig { timers, ..TransportConfig::default() };
        let mut pair = Pair::new(config, TransportConfig::default());
        pair.run_for(Duration::from_millis(500));
        pair.transfer(Side::Client, 10_000, Duration::from_secs(1));
        pair.run_for(Duration::from_millis(500));
        pair.server.mute = true;
        let id = pair.client.conn().streams().open(Dir::Uni).unwrap();
        pair.client.conn().streams().send(id).write(b"request").unwrap();
        pair.run_for(Duration::from_millis(1));
        let (mut before, mut probes) = (0, 0);
        pair.run_while_waiting(Duration::from_secs(1), |pair| {
            let now = pair.client.sent.len();
            probes = now - std::mem::replace(&mut before, now);
            pair.client.conn().stats().pto_count == 1
        });
        assert_eq!(probes, 2, "{timers:?}");
    }
}

#[test]
fn a_client_that_knows_no_round_trip_asks_the_second_time_with_two_packets() {
    // The first timeout may only be too short. Where a third one follows, the server may be far away.
    for (timers, expected) in [(TimerStyle::OncePerRtt, [1, 2, 1, 1]), (TimerStyle::Classic, [1, 2, 2, 2])] {
        let client = TransportConfig { timers, ..TransportConfig::default() };
        let mut pair = Setup { client, client_tls: client_tls_of_one_packet(), ..Setup::default() }.dial();
        pair.server.mute = true;
        pair.run_for(Duration::from_millis(1));
        let mut before = pair.client.sent.len();
        let probes = [1, 2, 3, 4].map(|timeouts| {
            let timed_out = |pair: &mut Pair| pair.client.conn().stats().pto_count == timeouts;
            assert!(pair.run_while_waiting(Duration::from_secs(5), timed_out));
            let now = pair.client.sent.len();
            now - std::mem::replace(&mut before, now)
        });
        assert_eq!(probes, expected, "{timers:?}");
    }
}

#[test]
fn a_client_that_its_server_asks_again_repeats_the_end_of_the_handshake_and_what_followed_it() {
    // The server's guess of the round trip is shorter than the client's timeout.
    let server = TransportConfig { initial_rtt: Duration::from_millis(5), ..TransportConfig::default() };
    let mut pair = Pair::new(TransportConfig::default(), server);
    pair.run_for(Duration::from_millis(7));
    pair.client.mute = true;
    pair.run_while_waiting(Duration::from_millis(10), |pair| !pair.client.conn().is_handshaking());
    let id = pair.client.conn().streams().open(Dir::Uni).unwrap();
    pair.client.conn().streams().send(id).write(b"request").unwrap();
    pair.run_for(Duration::from_millis(1));
    pair.client.mute = false;
    let mut read = Vec::new();
    let arrived = pair.run_while_waiting(Duration::from_secs(1), |pair| {
        if !pair.server.conn().is_handshaking() {
            read_available(&mut pair.server, id, &mut read);
        }
        read == b"request"
    });
    assert!(arrived && !pair.server.conn().is_handshaking());
    assert_eq!(pair.client.conn().stats().pto_count, 0, "no timeout was waited for");
}
