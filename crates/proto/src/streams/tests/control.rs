//! Opening, limits, resets, priorities: what happens around the data.

use super::*;
use crate::streams::demand::ReceiveCredit;

fn code(value: u32) -> VarInt {
    VarInt::from_u32(value)
}

fn default_pair() -> (End, End) {
    pair(&StreamsConfig::default(), &StreamsConfig::default())
}

#[test]
fn a_request_and_its_answer_leave_nothing_behind() {
    let (mut client, mut server) = default_pair();
    let id = client.streams.open(Dir::Bi).unwrap();
    assert_eq!(client.streams.send(id).write(b"request"), Ok(7));
    client.streams.send(id).finish().unwrap();
    settle(&mut client, &mut server);
    assert_eq!(client.events(), [StreamEvent::Finished(id)]);
    assert_eq!(server.events(), [StreamEvent::Opened { dir: Dir::Bi }, StreamEvent::Readable(id)]);
    assert_eq!(server.streams.accept(Dir::Bi), Some(id));
    assert_eq!(read_all(&mut server, id), (b"request".to_vec(), Ok(())));

    let mut answer = Bytes::from_static(b"answer");
    assert_eq!(server.streams.send(id).write_chunk(&mut answer), Ok(6));
    server.streams.send(id).finish().unwrap();
    settle(&mut client, &mut server);
    assert_eq!(read_all(&mut client, id), (b"answer".to_vec(), Ok(())));
    settle(&mut client, &mut server);
    client.assert_idle();
    server.assert_idle();
    assert_eq!(client.streams.send(id).write(b"more"), Err(WriteError::ClosedStream));
    assert_eq!(client.streams.recv(id).read(1, true), Err(ReadError::ClosedStream));
}

#[test]
fn what_waits_to_be_sent_is_told() {
    let (mut client, mut server) = default_pair();
    let ids = [Dir::Bi, Dir::Uni].map(|dir| client.streams.open(dir).unwrap());
    for id in ids {
        assert_eq!(client.streams.send(id).write(&[7; 20_000]), Ok(20_000));
    }
    assert_eq!(client.streams.waiting(), 40_000);
    client.streams.send(ids[0]).reset(code(1)).unwrap();
    assert_eq!(client.streams.waiting(), 20_000);
    let sent: Vec<_> = std::iter::from_fn(|| client.packet(1_200)).collect();
    assert_eq!(client.streams.waiting(), 0);
    sent.iter().for_each(|packet| client.lost(packet));
    assert_eq!(client.streams.waiting(), 20_000, "what was lost waits as well");
    sent.iter().take(5).for_each(|packet| client.acked(packet));
    assert!((14_000..16_000).contains(&client.streams.waiting()), "and has arrived after all");
    client.assert_counts();
    client.streams.send(ids[1]).reset(code(1)).unwrap();
    assert_eq!(client.streams.waiting(), 0, "nobody waits for it any more");
    flush(&mut client, &mut server);
    assert_eq!(client.streams.waiting(), 0);
}

#[test]
fn the_credit_in_use_is_twice_what_was_read_in_a_round_trip() {
    let (mut client, mut server) = default_pair();
    let ids = [Dir::Bi, Dir::Uni].map(|dir| client.streams.open(dir).unwrap());
    for (id, len) in ids.into_iter().zip([20_000, 5_000]) {
        assert_eq!(client.streams.send(id).write(&vec![7; len]), Ok(len));
        flush(&mut client, &mut server);
        assert_eq!(read_all(&mut server, id).0.len(), len);
    }
    assert_eq!(server.streams.credit_in_use(), ReceiveCredit::default(), "no round trip has passed");
    server.now += RTT;
    for id in ids {
        assert_eq!(client.streams.send(id).write(&[7]), Ok(1));
        flush(&mut client, &mut server);
    }
    let credit = server.streams.credit_in_use();
    assert_eq!((credit.stream, credit.connection), (40_000, 50_000));
}

#[test]
fn long_sequences_of_streams_never_stall() {
    let config = StreamsConfig { max_concurrent_uni: 4, ..StreamsConfig::default() };
    let (mut client, mut server) = pair(&config, &config);
    for round in 0..100 {
        let id = client.streams.open(Dir::Uni).unwrap_or_else(|| panic!("stalled in round {round}"));
        client.streams.send(id).finish().unwrap();
        settle(&mut client, &mut server);
        assert_eq!(server.streams.accept(Dir::Uni), Some(id));
        assert_eq!(read_all(&mut server, id), (vec![], Ok(())));
        settle(&mut client, &mut server);
    }
    client.assert_idle();
    server.assert_idle();
}

#[test]
fn long_sequences_of_streams_never_stall_beside_streams_that_stay_open() {
    let config = StreamsConfig { max_concurrent_uni: 4, ..StreamsConfig::default() };
    let (mut client, mut server) = pair(&config, &config);
    for _ in 0..3 {
        let id = client.streams.open(Dir::Uni).unwrap();
        client.streams.send(id).write(b"more follows").unwrap();
        settle(&mut client, &mut server);
        assert_eq!(server.streams.accept(Dir::Uni), Some(id));
    }
    for round in 0..20 {
        let id = client.streams.open(Dir::Uni).unwrap_or_else(|| panic!("stalled in round {round}"));
        client.streams.send(id).finish().unwrap();
        settle(&mut client, &mut server);
        assert_eq!(server.streams.accept(Dir::Uni), Some(id));
        assert_eq!(read_all(&mut server, id), (vec![], Ok(())));
        settle(&mut client, &mut server);
    }
}

#[test]
fn an_opener_that_waits_is_told() {
    let config = StreamsConfig { max_concurrent_bidi: 1, ..StreamsConfig::default() };
    let (mut client, mut server) = pair(&config, &config);
    let id = client.streams.open(Dir::Bi).unwrap();
    assert_eq!(client.streams.open(Dir::Bi), None);
    client.streams.send(id).reset(code(1)).unwrap();
    settle(&mut client, &mut server);
    assert_eq!(server.streams.stats().blocked_frames_received, 1);
    assert_eq!(client.events(), []);
    assert_eq!(server.streams.accept(Dir::Bi), Some(id));
    assert_eq!(server.streams.recv(id).read(1, true), Err(ReadError::Reset(code(1))));
    server.streams.send(id).reset(code(2)).unwrap();
    settle(&mut client, &mut server);
    assert_eq!(client.events(), [StreamEvent::Available { dir: Dir::Bi }, StreamEvent::Readable(id)]);
    assert!(client.streams.open(Dir::Bi).is_some());
}

#[test]
fn stop_sending_is_answered_with_a_reset() {
    let (mut client, mut server) = default_pair();
    let id = client.streams.open(Dir::Uni).unwrap();
    client.streams.send(id).write(&[1; 5_000]).unwrap();
    flush(&mut client, &mut server);
    server.events();
    server.streams.recv(id).stop(code(77)).unwrap();
    assert_eq!(server.streams.recv(id).stop(code(78)), Err(ClosedStream));
    let stop = server.packet(1_200).unwrap();
    client.receive(&stop).unwrap();
    assert_eq!(client.events(), [StreamEvent::Stopped { id, code: code(77) }]);
    assert_eq!(client.streams.send(id).write(b"x"), Err(WriteError::Stopped(code(77))));
    assert_eq!(client.streams.send(id).stopped(), Ok(Some(code(77))));
    assert_eq!(client.streams.send(id).finish(), Err(FinishError::Stopped(code(77))));
    let reset = client.packet(1_200).unwrap();
    let first = frames(&reset.payload, Dialect::SinglePath).next();
    assert!(matches!(first, Some(Ok(Frame::ResetStream(reset)))
        if reset.error_code == code(77) && reset.final_size.get() == 5_000));
    server.receive(&reset).unwrap();
    client.acked(&reset);
    server.acked(&stop);
    settle(&mut client, &mut server);
    client.assert_idle();
    server.assert_idle();
}

#[test]
fn a_stream_that_waits_while_another_takes_the_last_credit_is_reported_at_once() {
    let config =
        StreamsConfig { receive_window: 10_000, receive_window_max: 10_000, ..StreamsConfig::default() };
    let (mut client, mut server) = pair(&StreamsConfig::default(), &config);
    let [first, second] = [(); 2].map(|()| client.streams.open(Dir::Uni).unwrap());
    client.streams.send(first).write(&[1; 10_000]).unwrap();
    client.streams.send(second).write(&[2; 100]).unwrap();
    while let Some(packet) = client.packet(1_200) {
        server.receive(&packet).unwrap();
    }
    assert_eq!(server.streams.stats().bytes_received, 10_000);
    assert_eq!(server.streams.stats().blocked_frames_received, 1, "DATA_BLOCKED");
}

#[test]
fn lost_control_frames_are_repeated_with_the_latest_value() {
    let config =
        StreamsConfig { receive_window: 10_000, receive_window_max: 10_000, ..StreamsConfig::default() };
    let (mut client, mut server) = pair(&StreamsConfig::default(), &config);
    let id = client.streams.open(Dir::Uni).unwrap();
    client.streams.send(id).write(&[1; 20_000]).unwrap();
    flush(&mut client, &mut server);
    assert_eq!(server.streams.stats().blocked_frames_received, 1, "DATA_BLOCKED");
    let limits = |packet: &Packet| -> Vec<u64> {
        let limit =
            |frame| if let Ok(Frame::MaxData(frame)) = frame { Some(frame.maximum.get()) } else { None };
        frames(&packet.payload, Dialect::SinglePath).filter_map(limit).collect()
    };
    server.streams.recv(id).read(6_000, true).unwrap();
    while server.packet(1_200).is_none() {
        server.streams.recv(id).read(1_000, true).unwrap();
    }
    assert_eq!(read_all(&mut server, id).1, Err(ReadError::Blocked));
    // The first update is on its way, and lost; the next carries all that was read since.
    server.streams.on_lost(&crate::packet::SentFrame::MaxData);
    let update = server.packet(1_200).unwrap();
    assert_eq!(limits(&update), [20_000]);
    client.receive(&update).unwrap();
    flush(&mut client, &mut server);
    assert_eq!(read_all(&mut server, id).0.len(), 10_000);
}

#[test]
fn writers_wait_for_room_and_are_woken() {
    let config = StreamsConfig { send_window: 100_000, ..StreamsConfig::default() };
    let (mut client, mut server) = pair(&config, &StreamsConfig::default());
    let bulk = client.streams.open(Dir::Uni).unwrap();
    let late = client.streams.open(Dir::Uni).unwrap();
    assert_eq!(client.streams.send(bulk).write(&[1; 200_000]), Ok(100_000));
    assert_eq!(client.streams.send(bulk).write(b"x"), Err(WriteError::Blocked));
    // A full buffer leaves room for a start.
    assert_eq!(client.streams.send(late).write(&[1; 200_000]), Ok(budget::STREAM_FLOOR_BYTES as usize));
    assert_eq!(client.streams.send(late).write(b"x"), Err(WriteError::Blocked));
    let mut events = Vec::new();
    while let Some(packet) = client.packet(1_200) {
        server.receive(&packet).unwrap();
        client.acked(&packet);
        events.extend(client.events());
    }
    assert_eq!(events.len(), 2, "each is woken once: {events:?}");
    assert!(events.contains(&StreamEvent::Writable(bulk)) && events.contains(&StreamEvent::Writable(late)));
    assert_eq!(client.streams.send_buffered(), 0);
}

#[test]
fn what_may_be_written_follows_what_the_paths_have_room_for() {
    let config = StreamsConfig { send_window: 900_000, ..StreamsConfig::default() };
    let (mut client, _server) = pair(&config, &StreamsConfig::default());
    let id = client.streams.open(Dir::Uni).unwrap();
    let mut held = 0;
    // Beginning with 64 KiB, three times what may be in flight, and no more than the largest window.
    for (flight, window) in
        [(12_000, 64 << 10), (100_000, 300_000), (200_000, 600_000), (10_000_000, 900_000)]
    {
        client.streams.set_flight(flight);
        assert_eq!(
            client.events().contains(&StreamEvent::Writable(id)),
            held > 0,
            "a writer that waits is woken"
        );
        while let Ok(written) = client.streams.send(id).write(&[1; 10_000]) {
            held += written as u64;
        }
        assert_eq!(held, window, "with a flight of {flight} bytes");
    }
    client.streams.set_flight(2_400);
    assert_eq!(client.streams.send(id).write(b"x"), Err(WriteError::Blocked), "what is held stays");
    assert_eq!(client.streams.send_buffered(), 900_000);
}

#[test]
fn what_waits_on_streams_of_lower_priority_leaves_room_for_urgent_ones() {
    let config = StreamsConfig { send_window: 100_000, ..StreamsConfig::default() };
    let (mut client, _server) = pair(&config, &StreamsConfig::default());
    let [low, bulk, urgent, other] = [-1, 0, 2, 2].map(|level: i32| {
        let id = client.streams.open(Dir::Uni).unwrap();
        client.streams.send(id).set_priority(level).unwrap();
        id
    });
    assert_eq!(client.streams.send(bulk).write(&[1; 200_000]), Ok(100_000));
    assert_eq!(client.streams.send(urgent).write(&[1; 70_000]), Ok(70_000), "as if bulk held nothing");
    assert_eq!(client.streams.send(other).write(&[1; 70_000]), Ok(30_000), "beside one of the same level");
    assert_eq!(client.streams.send(bulk).write(&[1]), Err(WriteError::Blocked));
    let floor = budget::STREAM_FLOOR_BYTES as usize;
    assert_eq!(client.streams.send(low).write(&[1; 70_000]), Ok(floor), "no more than any stream has");
}

#[test]
fn writers_are_woken_by_the_room_beside_streams_that_send_no_later() {
    let config = StreamsConfig { send_window: 200_000, ..StreamsConfig::default() };
    let (mut client, mut server) = pair(&config, &StreamsConfig::default());
    let ids = [-1, 0, 0, 2, 2].map(|level: i32| {
        let id = client.streams.open(Dir::Uni).unwrap();
        client.streams.send(id).set_priority(level).unwrap();
        id
    });
    let [low, bulk, other_bulk, urgent, other_urgent] = ids;
    assert_eq!(client.streams.send(bulk).write(&[1; 400_000]), Ok(200_000));
    assert_eq!(client.streams.send(urgent).write(&[1; 180_000]), Ok(180_000));
    assert_eq!(client.streams.send(other_urgent).write(&[1; 180_000]), Ok(20_000));
    let floor = budget::STREAM_FLOOR_BYTES as usize;
    for id in [low, other_bulk] {
        assert_eq!(client.streams.send(id).write(&[1; 180_000]), Ok(floor));
    }
    for id in ids {
        assert_eq!(client.streams.send(id).write(&[1]), Err(WriteError::Blocked));
    }
    // The urgent ones send first, so that they are the first that have room again.
    let mut woken = Vec::new();
    while woken.len() < ids.len() {
        let packet = client.packet(1_200).expect("more is to be sent");
        server.receive(&packet).unwrap();
        client.acked(&packet);
        let writable = client.events().into_iter().filter_map(|event| match event {
            StreamEvent::Writable(id) => Some(id),
            _ => None,
        });
        woken.extend(writable);
    }
    let rank = |wanted: StreamId| woken.iter().position(|id| *id == wanted).unwrap();
    assert!(rank(urgent).max(rank(other_urgent)) < rank(bulk).min(rank(other_bulk)), "{woken:?}");
}

#[test]
fn a_peer_that_does_not_read_blocks_only_its_stream() {
    let config = StreamsConfig {
        stream_receive_window: 1_000,
        stream_receive_window_max: 1_000,
        ..StreamsConfig::default()
    };
    let (mut client, mut server) = pair(&StreamsConfig::default(), &config);
    let slow = client.streams.open(Dir::Uni).unwrap();
    assert_eq!(client.streams.send(slow).write(&[1; 5_000]), Ok(1_000));
    assert_eq!(client.streams.send(slow).write(&[1; 5_000]), Err(WriteError::Blocked));
    flush(&mut client, &mut server);
    assert_eq!(client.events(), [], "acknowledged, but the peer's limit stands");
    assert_eq!(server.streams.stats().blocked_frames_received, 1, "STREAM_DATA_BLOCKED");
    let other = client.streams.open(Dir::Uni).unwrap();
    assert_eq!(client.streams.send(other).write(&[1; 500]), Ok(500));
    assert_eq!(read_all(&mut server, slow).0.len(), 1_000);
    settle(&mut client, &mut server);
    assert_eq!(client.events(), [StreamEvent::Writable(slow)]);
}

#[test]
fn a_stream_that_is_not_read_leaves_credit_to_the_others() {
    let (mut client, mut server) = default_pair();
    let [unread, other] = [(); 2].map(|()| client.streams.open(Dir::Uni).unwrap());
    let mut held = 0;
    while let Ok(written) = client.streams.send(unread).write(&[1; 10_000]) {
        held += written;
        settle(&mut client, &mut server);
    }
    assert!(held > 6_000_000, "its window is open: {held}");
    client.streams.send(other).write(&[2; 1_000]).unwrap();
    settle(&mut client, &mut server);
    assert_eq!(read_all(&mut server, other).0, [2; 1_000]);
}

#[test]
fn the_limit_of_the_connection_is_told_beside_that_of_a_stream() {
    let (mut client, mut server) = default_pair();
    let id = client.streams.open(Dir::Uni).unwrap();
    let (mut told, mut sent) = (0, 0);
    while sent < 100_000_000 {
        sent += client.streams.send(id).write(&[1; 100_000]).expect("credit comes in time");
        flush(&mut client, &mut server);
        assert_eq!(read_all(&mut server, id).0.len(), 100_000);
        server.now += RTT / 10;
        while let Some(packet) = server.packet(1200) {
            let frames: Vec<_> = frames(&packet.payload, Dialect::SinglePath).map(Result::unwrap).collect();
            let of_stream = frames.iter().any(|frame| matches!(frame, Frame::MaxStreamData(_)));
            assert_eq!(
                frames.iter().any(|frame| matches!(frame, Frame::MaxData(_))),
                of_stream,
                "{frames:?}"
            );
            told += usize::from(of_stream);
            client.receive(&packet).unwrap();
            server.acked(&packet);
        }
    }
    assert!((5..50).contains(&told), "{told}");
}

/// The streams of the STREAM frames in a packet.
fn streams_in(packet: &Packet) -> Vec<StreamId> {
    let id = |frame| if let Ok(Frame::Stream(frame)) = frame { Some(frame.id) } else { None };
    frames(&packet.payload, Dialect::SinglePath).filter_map(id).collect()
}

#[test]
fn priorities_order_new_and_lost_data() {
    let (mut client, mut server) = default_pair();
    let low = client.streams.open(Dir::Uni).unwrap();
    let high = client.streams.open(Dir::Uni).unwrap();
    client.streams.send(low).write(&[1; 1_000]).unwrap();
    client.streams.send(high).write(&[1; 1_000]).unwrap();
    // The change reaches a stream that is queued already.
    client.streams.send(high).set_priority(1).unwrap();
    assert_eq!(client.streams.send(high).priority(), Ok(Priority::from(1)));
    let first = client.packet(900).unwrap();
    assert_eq!(streams_in(&first), [high]);
    let second = client.packet(1_200).unwrap();
    assert_eq!(streams_in(&second), [high, low], "what one cannot fill is filled by the next");
    client.lost(&second);
    client.lost(&first);
    client.streams.send(high).write(&[2; 10]).unwrap();
    let again = client.packet(5_000).unwrap();
    assert_eq!(streams_in(&again), [high, low, high], "lost data before new data");
    server.receive(&again).unwrap();
    assert_eq!(read_all(&mut server, high).0.len(), 1_010);
}

#[test]
fn a_probe_repeats_what_is_not_acknowledged() {
    let (mut client, mut server) = default_pair();
    let id = client.streams.open(Dir::Uni).unwrap();
    client.streams.send(id).write(&[1; 100]).unwrap();
    client.streams.send(id).finish().unwrap();
    let original = client.packet(1_200).unwrap();
    original.tokens.iter().for_each(|token| client.streams.on_probe(token));
    assert!(client.streams.has_lost());
    let probe = client.packet(1_200).unwrap();
    assert_eq!(probe.payload, original.payload);
    server.receive(&probe).unwrap();
    client.acked(&probe);
    // The original's fate no longer matters.
    client.lost(&original);
    assert_eq!(client.events(), [StreamEvent::Finished(id)]);
    assert_eq!(read_all(&mut server, id).0.len(), 100);
    client.assert_idle();
}

#[test]
fn what_is_lost_after_a_probe_is_sent_again_and_not_copied() {
    let (mut client, _) = default_pair();
    let id = client.streams.open(Dir::Uni).unwrap();
    client.streams.send(id).write(&[1; 100]).unwrap();
    let original = client.packet(1_200).unwrap();
    original.tokens.iter().for_each(|token| client.streams.on_probe(token));
    assert!(client.streams.is_repeating());
    let probe = client.packet(1_200).unwrap();
    assert!(!client.streams.is_repeating());
    client.lost(&probe);
    assert!(client.streams.has_lost() && !client.streams.is_repeating());
}

#[test]
fn a_late_acknowledgement_withdraws_a_retransmission() {
    let (mut client, mut server) = default_pair();
    let id = client.streams.open(Dir::Uni).unwrap();
    client.streams.send(id).write(&[1; 100]).unwrap();
    client.streams.send(id).finish().unwrap();
    let packet = client.packet(1_200).unwrap();
    server.receive(&packet).unwrap();
    client.lost(&packet);
    assert!(client.streams.wants_to_send());
    client.acked(&packet);
    assert!(!client.streams.wants_to_send());
    assert_eq!(client.streams.stats().bytes_retransmitted, 0);
    client.assert_idle();
}

#[test]
fn limits_that_come_late_open_what_waited() {
    let mut client = End::new(Side::Client, &StreamsConfig::default());
    assert_eq!(client.streams.open(Dir::Bi), None);
    let early = InitialLimits { max_data: 100, max_streams_bidi: 1, ..InitialLimits::default() };
    client.apply_limits(&early);
    assert_eq!(client.events(), [StreamEvent::Available { dir: Dir::Bi }]);
    let id = client.streams.open(Dir::Bi).unwrap();
    assert_eq!(client.streams.send(id).write(b"hello"), Err(WriteError::Blocked));
    client.apply_limits(&InitialLimits { max_stream_data_bidi_remote: 3, ..early });
    assert_eq!(client.events(), [StreamEvent::Writable(id)]);
    assert_eq!(client.streams.send(id).write(b"hello"), Ok(3));
}

#[test]
fn windows_follow_the_bandwidth_delay_product() {
    let (mut client, mut server) = default_pair();
    let id = client.streams.open(Dir::Uni).unwrap();
    let initial = server.streams.window.window();
    let mut received = 0;
    for _ in 0..20 {
        // A round trip in which the client sends all it may, and the server reads it.
        while client.streams.send(id).write(&[1; 65_536]).is_ok() {}
        while let Some(packet) = client.packet(1_200) {
            server.now += RTT / 10_000;
            server.receive(&packet).unwrap();
            client.acked(&packet);
            received += read_all(&mut server, id).0.len();
        }
        server.now += RTT;
        flush(&mut server, &mut client);
    }
    assert!(received > 50 << 20, "{received}");
    assert!(server.streams.window.window() >= 8 * initial, "{}", server.streams.window.window());
}

#[test]
fn no_more_streams_at_once_are_allowed_than_a_configuration_may() {
    let (mut client, mut server) = default_pair();
    server.streams.set_max_concurrent(Dir::Uni, u64::MAX);
    settle(&mut client, &mut server);
    assert_eq!(client.granted.max_streams[1], CONCURRENT_MAX);
}
