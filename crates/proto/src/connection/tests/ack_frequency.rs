//! What is agreed about acknowledgements, seen from whole connections (draft-ietf-quic-ack-frequency).

use std::time::Duration;

use fulmar_wire::{AckFrequency, Frame, FrameType, Side, TransportErrorCode as Code, VarInt};

use super::DATA;
use super::pair::{DELAY, Pair, Setup};
use super::violations::{encode, receive, refused_by_server};
use crate::TransportConfig;
use crate::ids::SpaceId;

fn request(sequence: u32, threshold: u32, micros: u32) -> Vec<u8> {
    encode(&Frame::AckFrequency(AckFrequency {
        sequence: sequence.into(),
        ack_eliciting_threshold: threshold.into(),
        max_ack_delay_micros: micros.into(),
        reordering_threshold: VarInt::from(3u32),
    }))
}

fn without() -> TransportConfig {
    TransportConfig { ack_frequency: false, ..TransportConfig::default() }
}

#[test]
fn an_illegal_delay_closes_the_connection() {
    refused_by_server(request(0, 1, 999), Code::PROTOCOL_VIOLATION, Some(FrameType::ACK_FREQUENCY));
    refused_by_server(request(0, 1, 16_384_000), Code::PROTOCOL_VIOLATION, Some(FrameType::ACK_FREQUENCY));
}

#[test]
fn an_end_that_has_announced_nothing_knows_no_such_frames() {
    for (payload, frame) in
        [(request(0, 1, 5_000), FrameType::ACK_FREQUENCY), (vec![0x1f], FrameType::IMMEDIATE_ACK)]
    {
        let mut pair = Setup { server: without(), ..Setup::default() }.connect();
        let error = receive(&mut pair.server, DATA, payload, pair.now).unwrap_err();
        assert_eq!((error.code, error.frame), (Code::FRAME_ENCODING_ERROR, Some(frame)));
    }
}

#[test]
fn packets_of_the_handshake_carry_no_such_frames() {
    for payload in [request(0, 1, 5_000), vec![0x1f]] {
        let mut pair = Pair::new(TransportConfig::default(), TransportConfig::default());
        pair.run_for(DELAY * 2);
        let error = receive(&mut pair.server, SpaceId::Handshake, payload, pair.now).unwrap_err();
        assert_eq!(error.code, Code::PROTOCOL_VIOLATION);
    }
}

#[test]
fn the_newest_request_decides_how_acknowledgements_are_sent() {
    let mut pair = Pair::connected();
    let now = pair.now;
    let policy = |pair: &mut Pair| {
        let stats = pair.server.conn().stats();
        (stats.ack_gap, stats.ack_delay)
    };
    assert_eq!(policy(&mut pair), (2, Duration::from_millis(25)));
    receive(&mut pair.server, DATA, request(2, 9, 4_000), now).unwrap();
    assert_eq!(policy(&mut pair), (10, Duration::from_millis(4)));
    receive(&mut pair.server, DATA, request(1, 3, 2_000), now).unwrap();
    assert_eq!(policy(&mut pair), (10, Duration::from_millis(4)));
}

/// How long it takes until a PING of the client is acknowledged.
fn time_of_a_ping(server: TransportConfig) -> Duration {
    let mut pair = Setup { server, ..Setup::default() }.connect();
    pair.run_for(Duration::from_secs(1));
    let start = pair.now;
    pair.client.conn().ping();
    pair.run_for(Duration::ZERO);
    assert!(pair.client.conn().paths.primary_mut().space.has_ack_eliciting_in_flight());
    let acked = pair.run_while_waiting(Duration::from_secs(1), |pair| {
        !pair.client.conn().paths.primary_mut().space.has_ack_eliciting_in_flight()
    });
    assert!(acked);
    pair.now - start
}

#[test]
fn a_probe_asks_for_an_acknowledgement_without_delay_where_it_can() {
    assert_eq!(time_of_a_ping(TransportConfig::default()), DELAY * 2);
    assert_eq!(time_of_a_ping(without()), DELAY * 2 + TransportConfig::default().max_ack_delay);
}

#[test]
fn the_probe_timeout_counts_with_the_delay_that_was_asked_for() {
    let mut pair = Pair::connected();
    let announced = pair.client.conn().probe_timeout();
    pair.transfer(Side::Client, 3_000_000, Duration::from_secs(60));
    pair.run_for(Duration::from_secs(1));
    let asked = pair.server.conn().stats().ack_delay;
    assert!(asked < Duration::from_millis(10), "{asked:?}");
    let connection = pair.client.conn();
    assert_eq!(connection.probe_timeout(), connection.paths.primary_mut().tuple.rtt.pto_base() + asked);
    assert!(connection.probe_timeout() < announced);
}
