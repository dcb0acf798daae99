//! Opening, limits, resets, priorities: what happens around the data.

use super::*;

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
fn no_more_streams_at_once_are_allowed_than_a_configuration_may() {
    let (mut client, mut server) = default_pair();
    server.streams.set_max_concurrent(Dir::Uni, u64::MAX);
    settle(&mut client, &mut server);
    assert_eq!(client.granted.max_streams[1], CONCURRENT_MAX);
}
