//! Addresses that have sent little get little, also beside the tuple in use (RFC 9000 §8.1, §8.2.1).

use std::time::Duration;

use bytes::BytesMut;
use fulmar_base::Instant;
use fulmar_wire::{Frame, PathChallenge};

use super::super::Connection;
use super::by_hand::{ORIGINAL_DCID, cid, client, exchange, server};
use super::packets::short_packet;
use crate::datagram::{Datagram, Ecn, FourTuple, TransmitBatch};

/// What a connection sends to an address until nothing is left to be done for `patience`.
fn bytes_to(connection: &mut Connection, addrs: FourTuple, now: Instant, patience: Duration) -> usize {
    let mut batch = TransmitBatch::new(1);
    let mut sent = 0;
    let mut at = now;
    loop {
        while let Some(transmit) = connection.poll_transmit(at, &mut batch) {
            sent += if transmit.addrs == addrs { transmit.len } else { 0 };
        }
        match connection.poll_timeout() {
            Some((next, _)) if next <= now + patience => at = next.max(at),
            _ => return sent,
        }
        connection.handle_timeout(at);
    }
}

#[test]
fn challenges_to_an_address_beside_the_path_are_paid_from_its_credit() {
    let now = Instant::from_millis(1);
    let mut client = client(now, |_| {}, &[]);
    let mut server = server(now, cid(ORIGINAL_DCID), |_| {}, &[]);
    let now = exchange(&mut client, &mut server, now);
    let victim = FourTuple::new("203.0.113.9:53".parse().unwrap(), None);
    // The smallest packet that asks for an answer: three times its size is less than the challenges of a validation.
    let challenge = Frame::PathChallenge(PathChallenge { data: [7; 8] });
    let packet = short_packet(&mut client, 60, &[challenge], true);
    let received = packet.len();
    let payload = BytesMut::from(&packet[..]);
    server.handle_datagram(now, Datagram { addrs: victim, ecn: Ecn::NotEct, payload });
    let sent = bytes_to(&mut server, victim, now, Duration::from_secs(5));
    assert!(sent > 0, "the challenge is answered");
    assert!(sent <= 3 * received, "{sent} bytes for {received}");
}
