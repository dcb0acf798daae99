//! Streams that are reset but for their beginning (draft-ietf-quic-reliable-stream-reset).

use fulmar_wire::{ResetStream, ResetStreamAt, TransportErrorCode};

use super::*;

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 7 + i / 251) as u8).collect()
}

/// Bytes of stream data and the resets in a packet: code, final size, reliable size.
fn contents(packet: &Packet) -> (usize, Vec<(u64, u64, u64)>) {
    let (mut bytes, mut resets) = (0, Vec::new());
    for frame in frames(&packet.payload, Dialect::SinglePath) {
        match frame.unwrap() {
            Frame::Stream(frame) => bytes += frame.data.len(),
            Frame::ResetStream(f) => resets.push((f.error_code.get(), f.final_size.get(), 0)),
            Frame::ResetStreamAt(f) => {
                resets.push((f.error_code.get(), f.final_size.get(), f.reliable_size.get()));
            }
            other => panic!("{other:?}"),
        }
    }
    (bytes, resets)
}

/// All packets that there are to send.
fn packets(end: &mut End) -> Vec<Packet> {
    std::iter::from_fn(|| end.packet(1_200)).collect()
}

fn reset_at(index: u64, error_code: u32, final_size: u32, reliable_size: u32) -> Frame<'static> {
    Frame::ResetStreamAt(ResetStreamAt {
        id: StreamId::new(Side::Client, Dir::Uni, index),
        error_code: error_code.into(),
        final_size: final_size.into(),
        reliable_size: reliable_size.into(),
    })
}

fn error_of(end: &mut End, frame: &Frame<'_>) -> TransportErrorCode {
    end.receive_frame(frame, &Bytes::new()).unwrap_err().code
}

#[test]
fn the_beginning_is_sent_and_read_before_the_reset() {
    let (mut client, mut server) = default_pair();
    let id = client.streams.open(Dir::Uni).unwrap();
    let data = pattern(10_000);
    client.streams.send(id).write(&data).unwrap();
    let first = client.packet(1_200).unwrap();
    client.streams.send(id).reset_at(code(5), 4_000).unwrap();
    assert_eq!(client.streams.send(id).write(b"x"), Err(WriteError::ClosedStream));
    let rest = packets(&mut client);
    let sent: usize = [&first].into_iter().chain(&rest).map(|packet| contents(packet).0).sum();
    assert_eq!(sent, 4_000, "what was not promised is not sent");
    assert_eq!(contents(rest.last().unwrap()).1, [(5, 4_000, 4_000)], "the end comes last");
    rest.iter().for_each(|packet| server.receive(packet).unwrap());
    assert_eq!(read_all(&mut server, id), (vec![], Err(ReadError::Blocked)));
    client.lost(&first);
    rest.iter().for_each(|packet| client.acked(packet));
    assert_eq!(client.events(), []);
    flush(&mut client, &mut server);
    assert_eq!(read_all(&mut server, id), (data[..4_000].to_vec(), Err(ReadError::Reset(code(5)))));
    assert_eq!(client.events(), [StreamEvent::Finished(id)]);
    settle(&mut client, &mut server);
    client.assert_idle();
    server.streams.accept(Dir::Uni);
    server.assert_idle();
}

#[test]
fn what_was_not_promised_is_not_repeated() {
    let (mut client, mut server) = default_pair();
    let id = client.streams.open(Dir::Uni).unwrap();
    let data = pattern(5_000);
    client.streams.send(id).write(&data).unwrap();
    client.streams.send(id).finish().unwrap();
    let lost = packets(&mut client);
    client.streams.send(id).reset_at(code(5), 1_500).unwrap();
    lost.iter().for_each(|packet| client.lost(packet));
    let again = packets(&mut client);
    assert_eq!(again.iter().map(|packet| contents(packet).0).sum::<usize>(), 1_500);
    let resets: Vec<_> = again.iter().flat_map(|packet| contents(packet).1).collect();
    assert_eq!(resets, [(5, 5_000, 1_500)], "all that was sent counts in flow control");
    again.iter().for_each(|packet| server.receive(packet).unwrap());
    assert_eq!(read_all(&mut server, id), (data[..1_500].to_vec(), Err(ReadError::Reset(code(5)))));
    again.iter().for_each(|packet| client.acked(packet));
    assert_eq!(client.events(), [StreamEvent::Finished(id)]);
    settle(&mut client, &mut server);
    client.assert_idle();
    server.assert_idle();
}

#[test]
fn less_may_be_promised_later_and_the_code_stays() {
    let (mut client, mut server) = default_pair();
    let id = client.streams.open(Dir::Uni).unwrap();
    client.streams.send(id).write(&pattern(3_000)).unwrap();
    let data = packets(&mut client);
    let mut send = client.streams.send(id);
    send.reset_at(code(5), u64::MAX).unwrap();
    let first = packets(&mut client);
    assert_eq!(contents(&first[0]).1, [(5, 3_000, 3_000)]);
    client.streams.send(id).reset_at(code(6), 2_000).unwrap();
    let second = packets(&mut client);
    assert_eq!(contents(&second[0]).1, [(5, 3_000, 2_000)]);
    client.streams.send(id).reset_at(code(6), 2_500).unwrap();
    assert!(packets(&mut client).is_empty(), "more is never promised");
    data.iter().for_each(|packet| client.acked(packet));
    client.acked(&first[0]);
    assert_eq!(client.events(), [], "an older frame ends nothing");
    client.lost(&second[0]);
    let again = packets(&mut client);
    assert_eq!(contents(&again[0]).1, [(5, 3_000, 2_000)]);
    client.streams.send(id).reset(code(7)).unwrap();
    let last = packets(&mut client);
    assert_eq!(contents(&last[0]).1, [(5, 3_000, 0)]);
    // The frames arrive in the wrong order.
    for packet in [&last[0], &again[0], &first[0]] {
        server.receive(packet).unwrap();
    }
    assert_eq!(read_all(&mut server, id), (vec![], Err(ReadError::Reset(code(5)))));
    client.acked(&again[0]);
    assert_eq!(client.streams.count(), 1);
    client.acked(&last[0]);
    assert_eq!((client.events(), client.streams.count()), (vec![], 0));
}

#[test]
fn the_end_is_not_told_before_flow_control_allows_its_size() {
    let narrow =
        StreamsConfig { receive_window: 1_500, receive_window_max: 1_500, ..StreamsConfig::default() };
    let (mut client, mut server) = pair(&StreamsConfig::default(), &narrow);
    let id = client.streams.open(Dir::Uni).unwrap();
    let data = pattern(5_000);
    client.streams.send(id).write(&data).unwrap();
    client.streams.send(id).reset_at(code(5), 4_000).unwrap();
    let mut read = Vec::new();
    // Each end checks that the other obeys its limits.
    let end = loop {
        settle(&mut client, &mut server);
        let (bytes, end) = read_all(&mut server, id);
        read.extend(bytes);
        if end != Err(ReadError::Blocked) {
            break end;
        }
    };
    assert_eq!((end, read), (Err(ReadError::Reset(code(5))), data[..4_000].to_vec()));
    settle(&mut client, &mut server);
    client.assert_idle();
    server.assert_idle();
}

#[test]
fn a_peer_that_knows_no_such_resets_gets_none() {
    let without = StreamsConfig { reset_stream_at: false, ..StreamsConfig::default() };
    let (mut client, mut server) = pair(&StreamsConfig::default(), &without);
    let id = client.streams.open(Dir::Uni).unwrap();
    client.streams.send(id).write(&pattern(100)).unwrap();
    assert_eq!(client.streams.send(id).reset_at(code(5), 10), Err(ResetAtError::UnsupportedByPeer));
    client.streams.send(id).finish().unwrap();
    settle(&mut client, &mut server);
    assert_eq!(read_all(&mut server, id), (pattern(100), Ok(())), "the stream is as it was");
    assert_eq!(client.streams.send(id).reset_at(code(5), 10), Err(ResetAtError::UnsupportedByPeer));
    assert_eq!(server.streams.send(id).reset_at(code(5), 10), Err(ResetAtError::ClosedStream));
}

#[test]
fn a_receiver_that_stops_gets_no_more_of_the_promise() {
    let (mut client, mut server) = default_pair();
    let id = client.streams.open(Dir::Uni).unwrap();
    client.streams.send(id).write(&pattern(50_000)).unwrap();
    server.receive(&client.packet(1_200).unwrap()).unwrap();
    client.streams.send(id).reset_at(code(5), 40_000).unwrap();
    server.streams.recv(id).stop(code(9)).unwrap();
    flush(&mut server, &mut client);
    assert_eq!(client.events(), [StreamEvent::Stopped { id, code: code(9) }]);
    let answer = packets(&mut client);
    assert_eq!(answer.len(), 1);
    let (bytes, resets) = contents(&answer[0]);
    assert_eq!((bytes, resets.len(), resets[0].0, resets[0].2), (0, 1, 5, 0));
    server.receive(&answer[0]).unwrap();
    client.acked(&answer[0]);
    settle(&mut client, &mut server);
    client.assert_idle();
    server.assert_idle();
}

#[test]
fn early_data_that_was_not_taken_ends_in_the_same_way() {
    let (mut client, mut server) = default_pair();
    let id = client.streams.open(Dir::Uni).unwrap();
    client.streams.send(id).write(&pattern(3_000)).unwrap();
    client.streams.send(id).reset_at(code(5), 2_000).unwrap();
    assert!(!packets(&mut client).is_empty());
    client.streams.restart(&StreamsConfig::default().initial_limits());
    settle(&mut client, &mut server);
    assert_eq!(read_all(&mut server, id), (pattern(2_000), Err(ReadError::Reset(code(5)))));

    // A server that has unlearned the frame gets the whole reset.
    let id = client.streams.open(Dir::Uni).unwrap();
    client.streams.send(id).write(&pattern(3_000)).unwrap();
    client.streams.send(id).reset_at(code(5), 2_000).unwrap();
    assert!(!packets(&mut client).is_empty());
    let without = StreamsConfig { reset_stream_at: false, ..StreamsConfig::default() };
    client.streams.restart(&without.initial_limits());
    settle(&mut client, &mut server);
    assert_eq!(read_all(&mut server, id), (vec![], Err(ReadError::Reset(code(5)))));
    client.assert_idle();
}

#[test]
fn the_smallest_promise_counts_and_nothing_else_may_change() {
    let (_, mut server) = default_pair();
    let take = |end: &mut End, frame: &Frame<'_>| end.receive_frame(frame, &Bytes::new());
    take(&mut server, &reset_at(0, 5, 100, 60)).unwrap();
    take(&mut server, &reset_at(0, 5, 100, 40)).unwrap();
    take(&mut server, &reset_at(0, 5, 100, 70)).unwrap();
    assert_eq!(error_of(&mut server, &reset_at(0, 6, 100, 40)), TransportErrorCode::STREAM_STATE_ERROR);
    assert_eq!(error_of(&mut server, &reset_at(0, 5, 101, 40)), TransportErrorCode::FINAL_SIZE_ERROR);
    assert_eq!(error_of(&mut server, &reset_at(0, 5, 99, 40)), TransportErrorCode::FINAL_SIZE_ERROR);
    let id = StreamId::new(Side::Client, Dir::Uni, 0);
    let plain = |error_code: u32, final_size: u32| {
        Frame::ResetStream(ResetStream { id, error_code: error_code.into(), final_size: final_size.into() })
    };
    assert_eq!(error_of(&mut server, &plain(6, 100)), TransportErrorCode::STREAM_STATE_ERROR);
    assert_eq!(error_of(&mut server, &plain(5, 99)), TransportErrorCode::FINAL_SIZE_ERROR);
    let payload = Bytes::from(pattern(100));
    let stream = Frame::Stream(fulmar_wire::Stream { id, offset: VarInt::ZERO, fin: true, data: &payload });
    server.receive_frame(&stream, &payload).unwrap();
    assert_eq!(read_all(&mut server, id), (pattern(40), Err(ReadError::Reset(code(5)))));

    // A reset as a whole, and then the older frame.
    let id = StreamId::new(Side::Client, Dir::Uni, 1);
    let plain = ResetStream { id, error_code: code(5), final_size: code(100) };
    take(&mut server, &Frame::ResetStream(plain)).unwrap();
    assert_eq!(error_of(&mut server, &reset_at(1, 6, 100, 40)), TransportErrorCode::STREAM_STATE_ERROR);
    take(&mut server, &reset_at(1, 5, 100, 40)).unwrap();
    assert_eq!(read_all(&mut server, id), (vec![], Err(ReadError::Reset(code(5)))));
}

#[test]
fn its_final_size_is_bound_by_flow_control() {
    let narrow = StreamsConfig { stream_receive_window: 1_000, ..StreamsConfig::default() };
    let (_, mut server) = pair(&StreamsConfig::default(), &narrow);
    assert_eq!(error_of(&mut server, &reset_at(0, 5, 1_001, 1)), TransportErrorCode::FLOW_CONTROL_ERROR);
    server.receive_frame(&reset_at(0, 5, 1_000, 1), &Bytes::new()).unwrap();
    let total = StreamsConfig { receive_window: 1_000, ..StreamsConfig::default() };
    let (_, mut server) = pair(&StreamsConfig::default(), &total);
    assert_eq!(error_of(&mut server, &reset_at(0, 5, 1_001, 1)), TransportErrorCode::FLOW_CONTROL_ERROR);
}

/// Whatever of the stream is here when the reset comes, and in whatever order the rest follows.
#[test]
fn exactly_the_promise_is_read_in_any_order() {
    let data = pattern(1_000);
    let mut rng = Rng::from_u64(5);
    for round in 0..300 {
        let (_, mut server) = default_pair();
        let id = StreamId::new(Side::Client, Dir::Uni, 0);
        let reliable = 1 + rng.below(999) as usize;
        let mut pieces: Vec<_> = (0..1_000).step_by(50).map(|at| at..at + 50).collect();
        let before = rng.below(pieces.len() as u64 + 1) as usize;
        for i in 0..pieces.len() {
            let other = rng.below(pieces.len() as u64) as usize;
            pieces.swap(i, other);
        }
        let (mut seen, mut end) = (vec![false; 1_000], None);
        let mut step = |server: &mut End, frame: &Frame<'_>, payload: &Bytes, rng: &mut Rng| {
            server.receive_frame(frame, payload).unwrap();
            while end.is_none() && rng.chance(0.7) {
                match server.streams.recv(id).read(1 + rng.below(80) as usize, rng.chance(0.5)) {
                    Ok(Some(chunk)) => {
                        for (i, byte) in chunk.bytes.iter().enumerate() {
                            let at = chunk.offset as usize + i;
                            assert!(!std::mem::replace(&mut seen[at], true) && data[at] == *byte);
                        }
                    }
                    Err(ReadError::Blocked) => break,
                    other => end = Some(other),
                }
            }
        };
        for (number, piece) in pieces.into_iter().enumerate() {
            if number == before {
                step(&mut server, &reset_at(0, 5, 1_000, reliable as u32), &Bytes::new(), &mut rng);
            }
            let payload = Bytes::copy_from_slice(&data[piece.clone()]);
            let offset = VarInt::from_u32(piece.start as u32);
            let frame = Frame::Stream(fulmar_wire::Stream { id, offset, fin: false, data: &payload });
            step(&mut server, &frame, &payload, &mut rng);
        }
        step(&mut server, &reset_at(0, 5, 1_000, reliable as u32), &Bytes::new(), &mut rng);
        while end.is_none() {
            match server.streams.recv(id).read(usize::MAX, true) {
                Ok(Some(chunk)) => seen[chunk.offset as usize..][..chunk.bytes.len()].fill(true),
                other => end = Some(other),
            }
        }
        assert_eq!(end, Some(Err(ReadError::Reset(code(5)))), "round {round}");
        assert!(seen[..reliable].iter().all(|seen| *seen), "round {round}");
        assert_eq!(server.streams.window.unconsumed(), 0, "all credit is given back");
        server.streams.accept(Dir::Uni);
        server.assert_idle();
    }
}
