//! Credit, of the connection and of its streams, and room for what is written.

use super::*;
use crate::streams::demand::ReceiveCredit;

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
