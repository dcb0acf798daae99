//! When something is taken for lost or asked for again, seen from outside (RFC 9002 §6).

mod pair;

use std::time::Duration;

use fulmar_proto::congestion::{CongestionControl, CubicConfig};
use fulmar_proto::{
    Dir, Event, Instant, ReadError, Side, StreamEvent, StreamId, TimerStyle, TransportConfig,
};
use pair::{Flying, Pair, Setup, read_available};

const MS: Duration = Duration::from_millis(1);

/// The longest time that the peer may keep an acknowledgement back.
const ACK_DELAY: Duration = Duration::from_millis(25);

/// A pair after a transfer that has shown the round-trip time, 10 ms, and the datagram size, and a stream of the client.
fn acquainted(timers: TimerStyle) -> (Pair, StreamId) {
    let config = TransportConfig { timers, ..TransportConfig::default() };
    let mut pair = Pair::new(config, TransportConfig::default());
    pair.run_for(500 * MS);
    pair.transfer(Side::Client, 500_000, Duration::from_secs(5));
    pair.run_for(500 * MS);
    let id = pair.client.conn().streams().open(Dir::Uni).unwrap();
    (pair, id)
}

fn write(pair: &mut Pair, id: StreamId, len: usize) {
    let data = vec![7; len];
    assert_eq!(pair.client.conn().streams().send(id).write(&data), Ok(len));
}

/// Writes so many bytes each millisecond; returns the sizes of the datagrams that left meanwhile.
fn write_each_ms(pair: &mut Pair, id: StreamId, len: usize, times: usize) -> Vec<usize> {
    let before = pair.client.sent.len();
    for _ in 0..times {
        write(pair, id, len);
        pair.run_for(MS);
    }
    pair.client.sent[before..].iter().map(Vec::len).collect()
}

/// The time at which a condition holds.
fn time_until(pair: &mut Pair, limit: Duration, done: impl FnMut(&mut Pair) -> bool) -> Instant {
    assert!(pair.run_while_waiting(limit, done), "it never came");
    pair.now
}

#[test]
fn a_packet_is_lost_a_little_more_than_a_round_trip_after_it_left_if_a_later_one_arrived() {
    // RFC 9002 §6.1.2. One later packet is no proof by itself, and a probe timeout would come much later.
    for timers in [TimerStyle::OncePerRtt, TimerStyle::Classic] {
        let (mut pair, id) = acquainted(timers);
        let before = pair.client.conn().stats();
        pair.client.mute = true;
        write(&mut pair, id, 100);
        pair.run_for(MS / 2);
        pair.client.mute = false;
        let left = pair.now;
        // Two more are acknowledged at once, and too few to take the first for lost by their number.
        for _ in 0..2 {
            write(&mut pair, id, 100);
            pair.run_for(MS / 2);
        }
        let mut read = Vec::new();
        let arrived = time_until(&mut pair, 100 * MS, |pair| {
            read_available(&mut pair.server, id, &mut read);
            read.len() == 300
        });
        // A round trip, an eighth of it, and the way there.
        assert!(arrived - left <= 20 * MS, "{:?}", arrived - left);
        pair.run_for(100 * MS);
        let after = pair.client.conn().stats();
        assert_eq!((after.packets_lost, after.pto_count), (before.packets_lost + 1, before.pto_count));
        assert_eq!(after.black_holes, 0, "a loss is not yet a path that has become narrower");
    }
}

#[test]
fn a_sender_that_goes_on_notices_by_its_oldest_packet_that_acknowledgements_have_ceased() {
    let (mut pair, id) = acquainted(TimerStyle::OncePerRtt);
    write_each_ms(&mut pair, id, 1_000, 50);
    pair.server.mute = true;
    let (broken, count) = (pair.now, pair.client.conn().stats().pto_count);
    let mut is_probed = false;
    while !is_probed && pair.now < broken + 200 * MS {
        write(&mut pair, id, 1_000);
        is_probed = pair.run_while_waiting(MS, |pair| pair.client.conn().stats().pto_count > count);
    }
    let probed = pair.now;
    // The first packet of which no acknowledgement comes left 5 ms before. The next one is missed after a round trip, the delay
    // that the peer may add, and a quarter of a round trip; the pauses of the sender add a little.
    assert!(probed - broken <= 10 * MS + ACK_DELAY + 3 * MS, "{:?}", probed - broken);
}

#[test]
fn classic_timers_start_anew_with_each_packet() {
    let config = TransportConfig { timers: TimerStyle::Classic, ..TransportConfig::default() };
    let (mut pair, id) = acquainted(config.timers);
    write_each_ms(&mut pair, id, 1_000, 50);
    pair.server.mute = true;
    let count = pair.client.conn().stats().pto_count;
    let mut last = pair.now;
    for _ in 0..12 {
        last = pair.now;
        write(&mut pair, id, 20);
        pair.run_for(5 * MS);
    }
    assert_eq!(pair.client.conn().stats().pto_count, count, "RFC 9002 §6.2.1");
    let probed = time_until(&mut pair, 200 * MS, |pair| pair.client.conn().stats().pto_count > count);
    assert!(probed - last > 10 * MS, "{:?}", probed - last);
}

#[test]
fn in_a_silence_each_probe_waits_longer_than_the_one_before() {
    for timers in [TimerStyle::OncePerRtt, TimerStyle::Classic] {
        let (mut pair, id) = acquainted(timers);
        pair.server.mute = true;
        let count = pair.client.conn().stats().pto_count;
        write(&mut pair, id, 1_000);
        pair.run_for(400 * MS);
        let probes = pair.client.conn().stats().pto_count - count;
        assert!((3..=6).contains(&probes), "{probes} timeouts of 40 ms and more in 400 ms: {timers:?}");
    }
}

#[test]
fn an_acknowledgement_ends_the_backoff() {
    for timers in [TimerStyle::OncePerRtt, TimerStyle::Classic] {
        let (mut pair, id) = acquainted(timers);
        let mut first_waits = Vec::new();
        for _ in 0..3 {
            pair.server.mute = true;
            write(&mut pair, id, 1_000);
            let (left, count) = (pair.now, pair.client.conn().stats().pto_count);
            let probed = time_until(&mut pair, 300 * MS, |pair| pair.client.conn().stats().pto_count > count);
            first_waits.push(probed - left);
            pair.run_for(300 * MS);
            pair.server.mute = false;
            pair.run_for(Duration::from_secs(2));
            assert_eq!(pair.client.conn().stats().bytes_in_flight, 0);
        }
        let (shortest, longest) = (first_waits.iter().min().unwrap(), first_waits.iter().max().unwrap());
        assert!(*longest < *shortest * 3 / 2, "{first_waits:?} {timers:?}");
    }
}

#[test]
fn a_path_that_becomes_narrower_is_told() {
    let (mut pair, id) = acquainted(TimerStyle::OncePerRtt);
    assert!(pair.client.conn().stats().mtu > 1_300);
    pair.client.wire = Box::new(|flying| match flying.payload.len() > 1_300 {
        true => Vec::new(),
        false => vec![flying],
    });
    write(&mut pair, id, 60_000);
    pair.run_for(Duration::from_secs(3));
    let stats = pair.client.conn().stats();
    assert_eq!((stats.black_holes, stats.bytes_in_flight), (1, 0));
    assert!(stats.mtu <= 1_300, "{}", stats.mtu);
}

#[test]
fn datagrams_are_small_while_acknowledgements_are_late_and_large_otherwise() {
    let (mut pair, id) = acquainted(TimerStyle::OncePerRtt);
    let mtu = usize::from(pair.client.conn().stats().mtu);
    assert_eq!(mtu, 1_452);
    let sizes = write_each_ms(&mut pair, id, 3_000, 50);
    assert!(sizes.iter().filter(|size| **size == mtu).count() >= 90, "{sizes:?}");
    pair.server.mute = true;
    pair.run_for(10 * MS);
    // They are late now, and soon a probe asks for them.
    let count = pair.client.conn().stats().pto_count;
    write_each_ms(&mut pair, id, 100, 30);
    let sizes = write_each_ms(&mut pair, id, 1_300, 3);
    assert_eq!(pair.client.conn().stats().pto_count, count + 1);
    let large = sizes.iter().filter(|size| **size > 1_200).count();
    assert!(sizes.len() >= 6 && large == 0, "{sizes:?}");
    // An unreliable datagram cannot be cut.
    pair.client.conn().send_datagram(vec![9; 1_300].into(), false).unwrap();
    let before = pair.client.sent.len();
    pair.run_for(MS);
    assert!(pair.client.sent[before..].iter().any(|payload| payload.len() > 1_300));
}

#[test]
fn with_classic_timers_datagrams_stay_large_after_one_timeout() {
    let (mut pair, id) = acquainted(TimerStyle::Classic);
    pair.server.mute = true;
    write(&mut pair, id, 1_000);
    let count = pair.client.conn().stats().pto_count;
    time_until(&mut pair, 200 * MS, |pair| pair.client.conn().stats().pto_count > count);
    let sizes = write_each_ms(&mut pair, id, 1_400, 3);
    assert!(sizes.iter().filter(|size| **size > 1_400).count() >= 3, "{sizes:?}");
}

#[test]
fn a_little_data_is_no_reason_to_look_for_larger_datagrams() {
    let mut pair = Pair::connected();
    let id = pair.client.conn().streams().open(Dir::Uni).unwrap();
    for _ in 0..5 {
        // A full datagram and a small one, but not two full ones.
        write(&mut pair, id, 1_500);
        pair.run_for(100 * MS);
    }
    assert!(pair.client.sent.iter().all(|payload| payload.len() <= 1_200));
    write(&mut pair, id, 10_000);
    pair.run_for(100 * MS);
    assert!(pair.client.sent.iter().any(|payload| payload.len() > 1_200));
}

#[test]
fn small_packets_alone_are_no_reason_to_look_for_larger_ones() {
    let mut pair = Pair::connected();
    let id = pair.client.conn().streams().open(Dir::Uni).unwrap();
    let sizes = write_each_ms(&mut pair, id, 500, 100);
    assert!(sizes.iter().all(|size| *size < 600), "{sizes:?}");
}

#[test]
fn a_window_that_a_packet_taken_for_lost_wrongly_has_cost_is_given_back() {
    let congestion = CongestionControl::Cubic(CubicConfig::default());
    let client = TransportConfig { congestion, ..TransportConfig::default() };
    let mut pair = Setup { client, ..Setup::default() }.connect();
    pair.transfer(Side::Client, 1_000_000, Duration::from_secs(10));
    pair.run_for(100 * MS);
    let before = pair.client.conn().stats();
    // One packet in the middle of 200 is overtaken by many.
    let mut count = 0;
    pair.client.wire = Box::new(move |flying: Flying| {
        count += 1;
        let late = if count == 20 { 8 * MS } else { Duration::ZERO };
        vec![Flying { at: flying.at + late, ..flying }]
    });
    pair.transfer(Side::Client, 60_000, Duration::from_secs(1));
    pair.run_for(100 * MS);
    let after = pair.client.conn().stats();
    assert_eq!(
        (after.packets_lost, after.packets_spurious),
        (before.packets_lost + 1, before.packets_spurious + 1)
    );
    assert!(after.cwnd >= before.cwnd, "{} after {}", after.cwnd, before.cwnd);
    assert_eq!((before.controller_state, after.controller_state), ("slow start", "slow start"));
}

/// Bytes that are sent again where a packet is taken for lost wrongly; what is sent again for it is lost or not.
fn sent_again_for_a_late_packet(is_copy_lost: bool) -> u64 {
    let (mut pair, id) = acquainted(TimerStyle::OncePerRtt);
    let (begin, mut count) = (pair.now, 0);
    pair.client.wire = Box::new(move |flying: Flying| {
        count += 1;
        match flying.at.saturating_since(begin) {
            since if is_copy_lost && since >= 9 * MS && since < 14 * MS => vec![],
            _ if count == 2 => vec![Flying { at: flying.at + 7 * MS, ..flying }],
            _ => vec![flying],
        }
    });
    let before = pair.client.conn().stats();
    write(&mut pair, id, 10_000);
    pair.run_for(Duration::from_secs(2));
    let after = pair.client.conn().stats();
    assert_eq!(after.packets_spurious - before.packets_spurious, 1);
    after.streams.bytes_retransmitted - before.streams.bytes_retransmitted
}

#[test]
fn what_has_arrived_late_is_not_sent_again_for_a_copy_that_is_lost() {
    assert_eq!(sent_again_for_a_late_packet(true), sent_again_for_a_late_packet(false));
}

#[test]
fn what_is_said_of_streams_is_said_again_when_it_is_lost() {
    let mut pair = Pair::connected();
    let open = |pair: &mut Pair| {
        let id = pair.server.conn().streams().open(Dir::Uni).unwrap();
        pair.server.conn().streams().send(id).write(b"some").unwrap();
        id
    };
    let (stopped, reset) = (open(&mut pair), open(&mut pair));
    pair.run_for(100 * MS);
    pair.client.mute = true;
    pair.client.conn().streams().recv(stopped).stop(7_u32.into()).unwrap();
    pair.server.mute = true;
    pair.server.conn().streams().send(reset).reset(8_u32.into()).unwrap();
    pair.run_for(MS);
    (pair.client.mute, pair.server.mute) = (false, false);
    pair.run_for(Duration::from_secs(1));
    let is_told =
        |event: &Event| matches!(event, Event::Stream(StreamEvent::Stopped { id, .. }) if *id == stopped);
    assert!(pair.server.events.iter().any(is_told));
    let read = pair.client.conn().streams().recv(reset).read(9, true);
    assert_eq!(read, Err(ReadError::Reset(8_u32.into())));
}

#[test]
fn a_server_repeats_its_flight_when_a_client_asks() {
    // It would wait six seconds by itself.
    let server = TransportConfig { initial_rtt: Duration::from_secs(2), ..TransportConfig::default() };
    let mut pair = Pair::new(TransportConfig::default(), server);
    pair.server.mute = true;
    pair.run_for(100 * MS);
    pair.server.mute = false;
    pair.run_for(1_200 * MS);
    assert!(pair.client.is_connected(), "the client's first probe comes after a second");
}

#[test]
fn every_datagram_and_every_byte_that_leaves_is_counted() {
    let mut pair = Pair::connected();
    pair.transfer(Side::Client, 100_000, Duration::from_secs(2));
    let now = pair.now;
    pair.client.conn().migrate(now, None).unwrap();
    pair.transfer(Side::Server, 100_000, Duration::from_secs(2));
    let now = pair.now;
    pair.client.conn().close(now, 0u32.into(), bytes::Bytes::new());
    assert!(!pair.client.conn().is_drained(), "what still comes is answered");
    pair.run_for(Duration::from_secs(5));
    for end in [&mut pair.client, &mut pair.server] {
        let stats = end.conn().stats();
        assert!(end.conn().is_drained());
        assert_eq!(stats.datagrams_sent, end.sent.len() as u64);
        assert_eq!(stats.bytes_sent, end.sent.iter().map(|payload| payload.len() as u64).sum::<u64>());
    }
}

#[test]
fn a_connection_that_is_over_has_one_timer_left() {
    let keep_alive_interval = Some(Duration::from_secs(1));
    let client = TransportConfig { keep_alive_interval, ..TransportConfig::default() };
    let mut pair = Pair::new(client, TransportConfig::default());
    pair.run_for(100 * MS);
    let (now, pto) = (pair.now, pair.client.conn().probe_timeout());
    pair.client.conn().close(now, 0u32.into(), bytes::Bytes::new());
    let end = pair.client.conn().poll_timeout().map(|(at, _)| at);
    assert_eq!(end, Some(now + pto * 3), "RFC 9000 §10.2");
}

#[test]
fn an_open_stream_alone_is_no_reason_to_ask() {
    let (mut pair, id) = acquainted(TimerStyle::OncePerRtt);
    write(&mut pair, id, 100);
    pair.run_for(Duration::from_secs(2));
    let before = pair.client.sent.len();
    pair.run_for(Duration::from_secs(20));
    assert!(pair.client.sent.len() - before <= 2, "{} datagrams", pair.client.sent.len() - before);
}

#[test]
fn a_packet_that_hundreds_overtake_is_read_as_what_it_is() {
    for sender in [Side::Client, Side::Server] {
        let mut pair = Pair::connected();
        pair.transfer(sender, 500_000, Duration::from_secs(5));
        let id = pair.end(sender).conn().streams().open(Dir::Uni).unwrap();
        let late = 400 * MS;
        let mut sent = 0;
        pair.end(sender).wire = Box::new(move |mut flying| {
            sent += 1;
            if sent == 10 {
                flying.at += late;
            }
            vec![flying]
        });
        let before = pair.end(!sender).conn().stats();
        for _ in 0..500 {
            pair.end(sender).conn().streams().send(id).write(&[7; 100]).unwrap();
            pair.run_for(MS);
        }
        let after = pair.end(!sender).conn().stats();
        assert!(after.packets_received - before.packets_received > 450, "not enough to overtake it");
        assert_eq!(after.packets_unauthenticated, 0, "{sender:?}");
    }
}
