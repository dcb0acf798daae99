//! The end of a stream: sent with the last data, and told with the last chunk.

use super::*;

/// The STREAM frames of a packet: their offsets, lengths and ends.
fn stream_frames(packet: &Packet) -> Vec<(u64, usize, bool)> {
    frames(&packet.payload, Dialect::SinglePath)
        .filter_map(|frame| match frame.unwrap() {
            Frame::Stream(frame) => Some((frame.offset.get(), frame.data.len(), frame.fin)),
            _ => None,
        })
        .collect()
}

#[test]
fn the_last_data_and_the_end_leave_in_one_frame() {
    let (mut client, mut server) = default_pair();
    let id = client.streams.open(Dir::Uni).unwrap();
    let mut last = Bytes::from_static(b"all of it");
    assert_eq!(client.streams.send(id).finish_with(&mut last), Ok(9));
    assert_eq!(client.streams.send(id).write(b"more"), Err(WriteError::ClosedStream));
    assert_eq!(client.streams.send(id).finish_with(&mut last), Err(WriteError::ClosedStream));
    let packet = client.packet(1_200).unwrap();
    assert_eq!(stream_frames(&packet), [(0, 9, true)]);
    server.receive(&packet).unwrap();
    client.acked(&packet);
    assert_eq!(client.events(), [StreamEvent::Finished(id)]);
    assert_eq!(read_all(&mut server, id), (b"all of it".to_vec(), Ok(())));
}

#[test]
fn a_stream_is_finished_when_all_of_the_last_data_has_found_room() {
    let config = StreamsConfig { stream_receive_window: 10, ..StreamsConfig::default() };
    let (mut client, mut server) = pair(&StreamsConfig::default(), &config);
    let id = client.streams.open(Dir::Uni).unwrap();
    let mut last = Bytes::from_static(b"fourteen bytes");
    assert_eq!(client.streams.send(id).finish_with(&mut last), Ok(10));
    assert_eq!(&last[..], b"ytes", "the rest is left, and the stream open");
    assert_eq!(client.streams.send(id).finish_with(&mut last), Err(WriteError::Blocked));
    flush(&mut client, &mut server);
    assert_eq!(server.streams.recv(id).read(100, true).unwrap().unwrap().bytes.len(), 10);
    settle(&mut client, &mut server);
    assert_eq!(client.streams.send(id).finish_with(&mut last), Ok(4));
    assert_eq!(stream_frames(&client.packet(1_200).unwrap()), [(10, 4, true)]);

    let id = client.streams.open(Dir::Uni).unwrap();
    assert_eq!(client.streams.send(id).finish_with(&mut Bytes::new()), Ok(0), "nothing needs no room");
    assert_eq!(stream_frames(&client.packet(1_200).unwrap()), [(0, 0, true)]);
}

#[test]
fn the_last_chunk_tells_the_end() {
    let (mut client, mut server) = default_pair();
    let id = client.streams.open(Dir::Uni).unwrap();
    client.streams.send(id).finish_with(&mut Bytes::from_static(b"12345")).unwrap();
    settle(&mut client, &mut server);
    let first = server.streams.recv(id).read(3, true).unwrap().unwrap();
    assert_eq!((&first.bytes[..], first.fin), (&b"123"[..], false));
    let last = server.streams.recv(id).read(3, true).unwrap().unwrap();
    assert_eq!((&last.bytes[..], last.fin), (&b"45"[..], true));
    assert_eq!(server.streams.recv(id).read(3, true), Ok(None));
    settle(&mut client, &mut server);
    client.assert_idle();
    server.assert_idle();
}

#[test]
fn an_end_that_comes_after_the_last_data_is_told_alone() {
    let (mut client, mut server) = default_pair();
    let id = client.streams.open(Dir::Uni).unwrap();
    client.streams.send(id).write(b"12345").unwrap();
    settle(&mut client, &mut server);
    assert!(!server.streams.recv(id).read(9, true).unwrap().unwrap().fin, "nobody knows yet");
    assert_eq!(server.streams.recv(id).read(9, true), Err(ReadError::Blocked));
    client.streams.send(id).finish().unwrap();
    settle(&mut client, &mut server);
    assert_eq!(server.streams.recv(id).read(9, true), Ok(None));
}

#[test]
fn the_chunk_that_is_read_last_tells_the_end_wherever_it_lies() {
    let (mut client, mut server) = default_pair();
    let id = client.streams.open(Dir::Uni).unwrap();
    client.streams.send(id).finish_with(&mut Bytes::from(vec![7; 100])).unwrap();
    let first = client.packet(60).unwrap();
    let second = client.packet(60).unwrap();
    server.receive(&second).unwrap();
    let ahead = server.streams.recv(id).read(200, false).unwrap().unwrap();
    assert!(ahead.offset > 0 && !ahead.fin, "bytes before it are missing");
    server.receive(&first).unwrap();
    let gap = server.streams.recv(id).read(200, false).unwrap().unwrap();
    assert!(gap.offset == 0 && gap.fin);
    assert_eq!(server.streams.recv(id).read(200, false), Ok(None));
}

#[test]
fn stopping_after_the_last_chunk_tells_the_peer_nothing() {
    let (mut client, mut server) = default_pair();
    let id = client.streams.open(Dir::Uni).unwrap();
    client.streams.send(id).finish_with(&mut Bytes::from_static(b"12345")).unwrap();
    settle(&mut client, &mut server);
    assert!(server.streams.recv(id).read(9, true).unwrap().unwrap().fin);
    server.streams.recv(id).stop(VarInt::from_u32(1)).unwrap();
    assert!(!server.streams.wants_to_send());
    server.assert_idle();
}

#[test]
fn no_chunk_tells_an_end_where_a_partial_reset_follows() {
    let (mut client, mut server) = default_pair();
    let id = client.streams.open(Dir::Uni).unwrap();
    client.streams.send(id).write(b"12345").unwrap();
    client.streams.send(id).reset_at(VarInt::from_u32(1), 5).unwrap();
    settle(&mut client, &mut server);
    assert!(!server.streams.recv(id).read(9, true).unwrap().unwrap().fin);
    assert_eq!(server.streams.recv(id).read(9, true), Err(ReadError::Reset(VarInt::from_u32(1))));
}

#[test]
fn the_code_of_a_stop_is_known_as_long_as_the_stream() {
    let (mut client, mut server) = default_pair();
    let id = client.streams.open(Dir::Bi).unwrap();
    client.streams.send(id).write(b"request").unwrap();
    client.streams.recv(id).stop(VarInt::from_u32(7)).unwrap();
    // The server has answered with a reset, and that has arrived, before it accepts the stream.
    settle(&mut client, &mut server);
    assert_eq!(server.streams.accept(Dir::Bi), Some(id));
    assert_eq!(server.streams.send(id).write(b"x"), Err(WriteError::ClosedStream));
    assert_eq!(server.streams.send(id).stopped(), Ok(Some(VarInt::from_u32(7))));
    client.streams.send(id).finish().unwrap();
    settle(&mut client, &mut server);
    assert_eq!(read_all(&mut server, id), (b"request".to_vec(), Ok(())));
    assert_eq!(server.streams.send(id).stopped(), Err(ClosedStream));
    let id = client.streams.open(Dir::Uni).unwrap();
    assert_eq!(client.streams.send(id).stopped(), Ok(None));
    client.streams.send(id).finish().unwrap();
    settle(&mut client, &mut server);
    assert_eq!(client.streams.send(id).stopped(), Err(ClosedStream));
}

#[test]
fn who_waits_for_a_reset_hears_of_it_before_reading_and_of_nothing_else() {
    let (mut client, mut server) = default_pair();
    let id = client.streams.open(Dir::Uni).unwrap();
    client.streams.send(id).write(b"12345").unwrap();
    settle(&mut client, &mut server);
    server.events();
    assert_eq!(server.streams.recv(id).received_reset(), Err(ReadError::Blocked));
    client.streams.send(id).write(b"67890").unwrap();
    settle(&mut client, &mut server);
    assert_eq!(server.events(), [], "data is no news for who has not read");
    client.streams.send(id).reset_at(VarInt::from_u32(4), 10).unwrap();
    settle(&mut client, &mut server);
    assert_eq!(server.events(), [StreamEvent::Readable(id)]);
    assert_eq!(server.streams.recv(id).received_reset(), Ok(Some(VarInt::from_u32(4))));
    assert_eq!(
        read_all(&mut server, id),
        (b"1234567890".to_vec(), Err(ReadError::Reset(VarInt::from_u32(4))))
    );
    assert_eq!(server.streams.recv(id).received_reset(), Err(ReadError::ClosedStream));

    let id = client.streams.open(Dir::Uni).unwrap();
    client.streams.send(id).write(b"12345").unwrap();
    settle(&mut client, &mut server);
    server.events();
    assert_eq!(server.streams.recv(id).received_reset(), Err(ReadError::Blocked));
    client.streams.send(id).finish().unwrap();
    settle(&mut client, &mut server);
    assert_eq!(server.events(), [StreamEvent::Readable(id)]);
    assert_eq!(server.streams.recv(id).received_reset(), Ok(None), "everything is here");
    assert_eq!(read_all(&mut server, id), (b"12345".to_vec(), Ok(())));
}

#[test]
fn asking_for_room_is_waiting_for_it() {
    let config = StreamsConfig { stream_receive_window: 10, ..StreamsConfig::default() };
    let (mut client, mut server) = pair(&StreamsConfig::default(), &config);
    let id = client.streams.open(Dir::Uni).unwrap();
    assert_eq!(client.streams.send(id).room(), Ok(10));
    client.streams.send(id).write(&[1; 10]).unwrap();
    assert_eq!(client.streams.send(id).room(), Err(WriteError::Blocked));
    flush(&mut client, &mut server);
    read_all(&mut server, id).1.unwrap_err();
    settle(&mut client, &mut server);
    assert_eq!(client.events(), [StreamEvent::Writable(id)]);
    assert_eq!(client.streams.send(id).room(), Ok(10));
    client.streams.send(id).finish().unwrap();
    assert_eq!(client.streams.send(id).room(), Err(WriteError::ClosedStream));
}
