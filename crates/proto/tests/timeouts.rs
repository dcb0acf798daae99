//! Silence, and how connections end by themselves or early.

mod pair;

use std::time::Duration;

use bytes::Bytes;
use fulmar_proto::{ConnectionError, Dir, Event, Side, StreamEvent, TransportConfig, TransportErrorCode};
use pair::{Answer, Flying, Pair, Setup, read_available};

fn idle_after(timeout: Duration) -> TransportConfig {
    TransportConfig { max_idle_timeout: Some(timeout), ..TransportConfig::default() }
}

#[test]
fn a_mute_server_ends_in_a_handshake_timeout() {
    let mut pair = Pair::new(TransportConfig::default(), TransportConfig::default());
    pair.server.mute = true;
    pair.run_for(Duration::from_secs(29));
    assert_eq!(pair.lost(Side::Client), None);
    let sent = pair.client.sent.len();
    assert!((15..40).contains(&sent), "{sent} datagrams in 29 seconds");
    pair.run_for(Duration::from_secs(2));
    for side in [Side::Client, Side::Server] {
        assert_eq!(pair.lost(side), Some(ConnectionError::HandshakeTimedOut));
        let end = pair.end(side);
        assert!(end.conn().is_drained());
        assert_eq!(end.endpoint.open_connections(), 0);
    }
    let words = ConnectionError::HandshakeTimedOut.to_string();
    assert_eq!(words, "handshake timeout: no usable answer from the peer");
}

#[test]
fn both_ends_time_out_silently_when_nothing_happens() {
    let timeout = Duration::from_secs(5);
    let mut pair = Pair::new(idle_after(timeout), TransportConfig::default());
    pair.run_for(Duration::from_millis(100));
    let sent = (pair.client.sent.len(), pair.server.sent.len());
    pair.run_for(Duration::from_millis(4_800));
    assert_eq!((pair.lost(Side::Client), pair.lost(Side::Server)), (None, None));
    pair.run_for(Duration::from_millis(300));
    for side in [Side::Client, Side::Server] {
        assert_eq!(pair.lost(side), Some(ConnectionError::TimedOut), "the smaller of both timeouts counts");
        assert_eq!(pair.end(side).endpoint.open_connections(), 0);
    }
    let now = (pair.client.sent.len(), pair.server.sent.len());
    assert_eq!(now, sent, "a packet was sent into the silence, or at its end");
}

#[test]
fn an_end_that_asks_in_vain_times_out_as_well() {
    let mut pair = Pair::new(idle_after(Duration::from_secs(5)), TransportConfig::default());
    pair.run_for(Duration::from_millis(100));
    pair.server.mute = true;
    for _ in 0..60 {
        if pair.client.lost().is_none() {
            pair.client.conn().ping();
        }
        pair.run_for(Duration::from_millis(100));
    }
    assert_eq!(pair.lost(Side::Client), Some(ConnectionError::TimedOut));
}

#[test]
fn a_silent_peer_is_asked_sixteen_times_in_an_idle_timeout_however_long_it_is_silent() {
    let mut pair = Pair::new(idle_after(Duration::from_secs(8)), TransportConfig::default());
    pair.run_for(Duration::from_millis(100));
    pair.server.mute = true;
    let id = pair.client.conn().streams().open(Dir::Uni).unwrap();
    pair.client.conn().streams().send(id).write(b"is anybody there?").unwrap();
    // Timeouts that went on to double would be half a second apart once, and then longer.
    pair.run_for(Duration::from_secs(3));
    let before = pair.client.conn().stats().pto_count;
    pair.run_for(Duration::from_secs(4));
    let timeouts = pair.client.conn().stats().pto_count - before;
    assert!((7..=9).contains(&timeouts), "{timeouts} in 4 s");
}

#[test]
fn keep_alive_keeps_a_silent_connection() {
    let client = TransportConfig {
        keep_alive_interval: Some(Duration::from_secs(2)),
        ..idle_after(Duration::from_secs(5))
    };
    let mut pair = Pair::new(client, TransportConfig::default());
    pair.run_for(Duration::from_millis(100));
    let sent = pair.client.sent.len();
    pair.run_for(Duration::from_secs(60));
    assert_eq!((pair.lost(Side::Client), pair.lost(Side::Server)), (None, None));
    let pings = pair.client.sent.len() - sent;
    assert!((29..=62).contains(&pings), "{pings} packets in a minute");
    pair.transfer(Side::Server, 1_000, Duration::from_secs(1));
    pair.server.mute = true;
    pair.run_for(Duration::from_secs(8));
    assert_eq!(pair.lost(Side::Client), Some(ConnectionError::TimedOut), "it does not keep a dead one");
}

#[test]
fn without_any_timeout_a_connection_stays() {
    let forever = TransportConfig { max_idle_timeout: None, ..TransportConfig::default() };
    let mut pair = Pair::new(forever.clone(), forever);
    pair.run_for(Duration::from_millis(100));
    pair.run_for(Duration::from_secs(100_000));
    pair.transfer(Side::Client, 1_000, Duration::from_secs(1));
}

#[test]
fn a_server_that_refuses_is_understood() {
    let mut pair = Setup { answer: Answer::Refuse, ..Setup::default() }.connect();
    let lost = pair.lost(Side::Client).unwrap();
    let ConnectionError::ConnectionClosed { code, .. } = &lost else { panic!("{lost:?}") };
    assert_eq!(*code, TransportErrorCode::CONNECTION_REFUSED);
    assert_eq!(lost.to_string(), "closed by the peer: CONNECTION_REFUSED");
    pair.run_for(Duration::from_secs(10));
    assert_eq!(pair.client.endpoint.open_connections(), 0);
    assert_eq!(pair.server.endpoint.open_connections(), 0);
}

#[test]
fn a_client_that_closes_before_any_answer_is_heard() {
    let mut pair = Setup::default().dial();
    let now = pair.now;
    pair.run_for(Duration::from_millis(1));
    pair.client.conn().close(now, 7u32.into(), Bytes::from_static(b"a secret of the application"));
    pair.run_for(Duration::from_millis(50));
    let lost = pair.lost(Side::Server).unwrap();
    let ConnectionError::ConnectionClosed { code, reason, .. } = &lost else { panic!("{lost:?}") };
    // RFC 9000 §10.2.3.
    assert_eq!(*code, TransportErrorCode::APPLICATION_ERROR);
    assert!(reason.is_empty());
    pair.run_for(Duration::from_secs(10));
    for end in [&mut pair.client, &mut pair.server] {
        assert_eq!(end.endpoint.open_connections(), 0);
    }
}

#[test]
fn a_close_in_the_middle_of_the_handshake_reaches_the_other_end() {
    for closer in [Side::Client, Side::Server] {
        for at in 1..30 {
            let mut pair = Setup::default().dial();
            pair.run_for(Duration::from_millis(at));
            let now = pair.now;
            if pair.end(closer).connection.is_none() {
                continue;
            }
            pair.end(closer).conn().close(now, 7u32.into(), Bytes::from_static(b"bye"));
            pair.run_for(Duration::from_millis(500));
            match pair.lost(!closer).unwrap_or_else(|| panic!("{closer:?} closed at {at} ms, unheard")) {
                ConnectionError::ApplicationClosed { code, reason } => {
                    assert_eq!((code, &reason[..]), (7u32.into(), &b"bye"[..]));
                }
                ConnectionError::ConnectionClosed { code, .. } => {
                    assert_eq!(code, TransportErrorCode::APPLICATION_ERROR);
                }
                other => panic!("{other:?}"),
            }
            pair.run_for(Duration::from_secs(30));
            for end in [&mut pair.client, &mut pair.server] {
                assert_eq!(end.endpoint.open_connections(), 0);
            }
        }
    }
}

#[test]
fn a_lost_close_is_repeated_when_the_peer_goes_on() {
    let mut pair = Pair::connected();
    let now = pair.now;
    pair.client.mute = true;
    pair.client.conn().close(now, 7u32.into(), Bytes::new());
    pair.run_for(Duration::from_millis(1));
    pair.client.mute = false;
    pair.server.conn().ping();
    pair.run_for(Duration::from_millis(50));
    assert!(matches!(pair.lost(Side::Server), Some(ConnectionError::ApplicationClosed { .. })));
}

#[test]
fn a_flood_at_a_closed_connection_is_answered_ever_more_rarely() {
    let mut pair = Pair::connected();
    let now = pair.now;
    let packet = pair.server.sent.last().unwrap().clone();
    pair.client.conn().close(now, 7u32.into(), Bytes::new());
    pair.server.mute = true;
    let before = pair.client.sent.len();
    for _ in 0..10_000 {
        pair.inject(Side::Client, pair::SERVER.parse().unwrap(), packet.clone());
    }
    let answers = pair.client.sent.len() - before;
    assert!((2..20).contains(&answers), "{answers} answers");
}

/// The client sends a stream; the server reads it to its end and closes at once. So many of its datagrams are lost then.
fn upload_to_a_server_that_hangs_up(lost: u32) -> Pair {
    let mut pair = Pair::connected();
    let id = pair.client.conn().streams().open(Dir::Uni).unwrap();
    pair.client.conn().streams().send(id).write(b"an upload").unwrap();
    pair.client.conn().streams().send(id).finish().unwrap();
    let (mut read, mut lost) = (Vec::new(), lost);
    let done = pair.run_while_waiting(Duration::from_secs(1), |pair| {
        let is_over = read_available(&mut pair.server, id, &mut read);
        if is_over {
            let now = pair.now;
            pair.server.conn().close(now, 7u32.into(), Bytes::new());
            pair.server.wire = Box::new(move |flying| {
                let is_lost = lost > 0;
                lost = lost.saturating_sub(1);
                if is_lost { Vec::new() } else { vec![flying] }
            });
        }
        is_over
    });
    assert!(done && read == b"an upload");
    pair.run_for(Duration::from_secs(2));
    pair
}

#[test]
fn what_was_received_is_acknowledged_beside_the_close() {
    // Also where the first close is lost: what the client sends again is answered by another one.
    for lost in [0, 1] {
        let mut pair = upload_to_a_server_that_hangs_up(lost);
        let events = std::mem::take(&mut pair.client.events);
        let place = |wanted: fn(&Event) -> bool| events.iter().position(wanted);
        let finished = place(|event| matches!(event, Event::Stream(StreamEvent::Finished(_))));
        let lost = place(|event| matches!(event, Event::ConnectionLost { .. })).expect("the close arrives");
        assert!(finished.is_some_and(|finished| finished < lost), "{events:?}");
        assert_eq!(lost, events.len() - 1, "it is the last event");
    }
}

#[test]
fn a_refusal_that_the_network_reports_ends_an_attempt_of_which_nothing_was_answered() {
    let server = pair::SERVER.parse().unwrap();
    let mut pair = Setup::default().dial();
    pair.server.mute = true;
    pair.run_for(Duration::from_millis(50));
    let now = pair.now;
    pair.client.conn().on_refused(now, "10.0.0.2:444".parse().unwrap());
    pair.server.conn().on_refused(now, pair::CLIENT.parse().unwrap());
    pair.run_for(Duration::from_millis(1));
    assert_eq!((pair.lost(Side::Client), pair.lost(Side::Server)), (None, None));
    let now = pair.now;
    pair.client.conn().on_refused(now, server);
    pair.run_for(Duration::from_millis(1));
    assert_eq!(pair.lost(Side::Client), Some(ConnectionError::Refused));
    assert_eq!(pair.client.endpoint.open_connections(), 0);
}

#[test]
fn an_attempt_ends_at_once_where_the_system_finds_no_way() {
    use std::io::ErrorKind;
    let sent = |pair: &mut Pair| pair.client.conn().stats().datagrams_sent as usize;
    for (reason, part, lost) in [
        (ErrorKind::NetworkUnreachable, 1, true),
        // A part of it has left, or the reason may pass.
        (ErrorKind::NetworkUnreachable, 2, false),
        (ErrorKind::PermissionDenied, 1, false),
    ] {
        let mut pair = Setup::default().dial();
        pair.server.mute = true;
        pair.run_for(Duration::from_millis(10));
        let (now, datagrams) = (pair.now, sent(&mut pair) / part);
        pair.client.conn().on_unsent(now, datagrams, reason);
        pair.run_for(Duration::from_millis(1));
        assert_eq!(pair.lost(Side::Client), lost.then_some(ConnectionError::Unsent(reason)), "{part}");
    }
}

#[test]
fn an_attempt_ends_at_once_where_the_interface_carries_no_datagram_of_the_least_size() {
    for (part, size, lost) in [
        (1, 1_200, true),
        // A part of it has left, or smaller ones may.
        (2, 1_200, false),
        (1, 1_400, false),
    ] {
        let mut pair = Setup::default().dial();
        pair.server.mute = true;
        pair.run_for(Duration::from_millis(10));
        let (now, datagrams) = (pair.now, pair.client.conn().stats().datagrams_sent as usize / part);
        pair.client.conn().on_too_large(now, datagrams, size);
        pair.run_for(Duration::from_millis(1));
        let error = lost.then_some(ConnectionError::DatagramsTooLarge);
        assert_eq!(pair.lost(Side::Client), error, "{part} {size}");
    }
}

#[test]
fn an_attempt_of_which_nothing_was_sent_until_its_timeout_says_why() {
    let reason = std::io::ErrorKind::PermissionDenied;
    let mut pair = Setup::default().dial();
    pair.server.mute = true;
    let (mut refused, mut lost) = (0, None);
    while lost.is_none() {
        pair.run_for(Duration::from_millis(5));
        let (now, sent) = (pair.now, pair.client.conn().stats().datagrams_sent as usize);
        if sent > refused {
            pair.client.conn().on_unsent(now, sent - refused, reason);
            refused = sent;
        }
        lost = pair.lost(Side::Client);
    }
    assert_eq!(lost, Some(ConnectionError::Unsent(reason)));
}

#[test]
fn a_refusal_ends_nothing_once_the_server_was_heard() {
    let server = pair::SERVER.parse().unwrap();
    for millis in [12, 30, 200] {
        let mut pair = Setup::default().dial();
        pair.run_for(Duration::from_millis(millis));
        let now = pair.now;
        pair.client.conn().on_refused(now, server);
        pair.run_for(Duration::from_millis(100));
        assert_eq!(pair.lost(Side::Client), None, "after {millis} ms");
        pair.transfer(Side::Client, 1_000, Duration::from_secs(1));
    }
}

#[test]
fn an_idle_timeout_lasts_three_probe_timeouts_however_short_it_was_agreed() {
    // RFC 9000 §10.1: otherwise one lost packet would end the connection.
    let far = Duration::from_millis(500);
    let mut pair = Pair::new(idle_after(Duration::from_millis(100)), TransportConfig::default());
    for side in [Side::Client, Side::Server] {
        pair.end(side).wire = Box::new(move |mut flying: Flying| {
            flying.at += far;
            vec![flying]
        });
    }
    pair.run_for(Duration::from_secs(4));
    pair.transfer(Side::Client, 1_000, Duration::from_secs(3));
    let start = pair.now;
    let least = pair.client.conn().probe_timeout() * 3;
    assert!(least > Duration::from_secs(3));
    assert!(pair.run_while_waiting(Duration::from_secs(60), |pair| pair.client.lost().is_some()));
    assert_eq!(pair.lost(Side::Client), Some(ConnectionError::TimedOut));
    let silence = pair.now.saturating_since(start);
    assert!(
        silence >= least - far && silence < least + 2 * far,
        "{silence:?}, and three timeouts are {least:?}"
    );
}

#[test]
fn a_connection_that_is_over_is_forgotten_on_demand_and_an_open_one_is_not() {
    let mut pair = Pair::connected();
    let now = pair.now;
    pair.client.conn().forget(now);
    pair.transfer(Side::Client, 10_000, Duration::from_secs(1));
    let now = pair.now;
    pair.client.conn().close(now, 7u32.into(), Bytes::new());
    pair.run_for(Duration::from_millis(1));
    assert_eq!((pair.client.conn().is_drained(), pair.client.endpoint.open_connections()), (false, 1));
    let now = pair.now;
    pair.client.conn().forget(now);
    pair.run_for(Duration::from_millis(1));
    assert_eq!((pair.client.conn().is_drained(), pair.client.endpoint.open_connections()), (true, 0));
    // The peer was told before.
    pair.run_for(Duration::from_millis(20));
    let reason = pair.server.lost();
    assert!(matches!(reason, Some(ConnectionError::ApplicationClosed { .. })), "{reason:?}");
}
