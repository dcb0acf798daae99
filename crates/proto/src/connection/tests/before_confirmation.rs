//! What is not yet done, or not yet believed, while the handshake lasts.

use std::time::Duration;

use fulmar_base::Instant;
use fulmar_wire::{Dir, Frame, PacketKind};

use super::DATA;
use super::by_hand::{CLIENT_CID, ORIGINAL_DCID, SERVER_CID, cid, client, deliver, lost, sent, server, take};
use super::packets::packet;
use super::pair::{Pair, Setup};
use super::violations::encode;
use crate::connection::TimerReason;
use crate::ids::SpaceId;
use crate::{ConnectionError, Event};

#[test]
fn application_data_is_not_probed_before_the_handshake_is_confirmed() {
    // RFC 9002 §6.2.1: the client may have no keys for it yet.
    let mut pair = Setup::default().dial();
    pair.run_for(Duration::from_millis(6));
    let server = pair.server.conn();
    assert!(server.is_handshaking());
    let id = server.streams().open(Dir::Uni).unwrap();
    server.streams().send(id).write(&[1; 1_000]).unwrap();
    pair.client.mute = true;
    pair.run_for(Duration::from_millis(1));
    let now = pair.now;
    let server = pair.server.conn();
    assert!(server.paths.primary().space.has_ack_eliciting_in_flight(), "early data of the server");
    // The packets of the handshake have arrived, and so only the data is in flight.
    server.recovery(now).forget_sent(SpaceId::Initial);
    server.recovery(now).forget_sent(SpaceId::Handshake);
    // So the client needs no reminder of them, either.
    server.handshake.underway.as_mut().unwrap().reminders.stop();
    assert_eq!(server.pto_deadline(), None);
    let (at, reason) = server.poll_timeout().unwrap();
    assert_eq!(reason, TimerReason::Handshake, "at {at:?}");
}

#[test]
fn what_a_server_says_before_it_knows_the_client_does_not_end_the_backoff() {
    // RFC 9002 §6.2.1: the client keeps its patience until the server has validated its address.
    let now = Instant::from_millis(1);
    let mut client = client(now, |_| {}, &[]);
    let mut server = server(now, cid(ORIGINAL_DCID), |_| {}, &[]);
    sent(&mut client, now);
    let mut at = now;
    for _ in 0..3 {
        at = client.pto_deadline().unwrap().0;
        client.handle_timeout(at);
        for datagram in sent(&mut client, at) {
            deliver(&mut server, at, &datagram);
        }
    }
    assert_eq!(client.paths.primary().pto.backoff.count(), 3);
    // The server's first datagram acknowledges the client's Initial packets.
    let flight = sent(&mut server, at);
    deliver(&mut client, at, &flight[0]);
    let initial = client.handshake.spaces.get(SpaceId::Initial).unwrap();
    assert!(initial.largest_acked().is_some());
    assert!(!client.handshake.peer_validated_address());
    assert_eq!(client.paths.primary().pto.backoff.count(), 3);
}

#[test]
fn a_datagram_that_ends_like_a_reset_is_none_if_one_of_its_packets_is_authentic() {
    // RFC 9000 §10.3.1.
    for authentic in [true, false] {
        let now = Instant::from_millis(1);
        let mut client = client(now, |_| {}, &[]);
        let mut server = server(now, cid(ORIGINAL_DCID), |_| {}, &[]);
        sent(&mut client, now).iter().for_each(|datagram| deliver(&mut server, now, datagram));
        sent(&mut server, now).iter().for_each(|datagram| deliver(&mut client, now, datagram));
        sent(&mut client, now).iter().for_each(|datagram| deliver(&mut server, now, datagram));
        sent(&mut server, now).iter().for_each(|datagram| deliver(&mut client, now, datagram));
        assert!(client.handshake.is_complete() && !client.handshake.is_confirmed());
        let token = client.peer_transport_parameters().unwrap().stateless_reset_token.unwrap();
        let keys = server.handshake.keys.handshake().unwrap();
        let number = if authentic { 1_000 } else { 0 };
        let ids = (cid(CLIENT_CID), cid(SERVER_CID));
        let handshake = packet(keys, (PacketKind::Handshake, &[]), ids, number, &[Frame::Ping], 100);
        let datagram = [&handshake[..], &[0x41; 30], &token.0].concat();
        deliver(&mut client, now, &datagram);
        let reset = lost(&mut client) == Some(ConnectionError::Reset);
        assert_eq!(reset, !authentic);
    }
}

#[test]
fn a_client_that_is_told_twice_that_the_handshake_is_done_confirms_it_once() {
    let mut pair = Pair::connected();
    let now = pair.now;
    let done = encode(&Frame::HandshakeDone).into();
    take(pair.client.conn(), now, (DATA, PacketKind::OneRtt), &done).unwrap();
    pair.run_for(Duration::from_millis(100));
    let confirmed = pair.client.events.iter().filter(|event| matches!(event, Event::HandshakeConfirmed));
    assert_eq!(confirmed.count(), 1);
}
