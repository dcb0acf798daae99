//! Connections that share the memory of their endpoint for what is to be sent.

use fulmar_wire::MaxStreamData;

use super::*;
use crate::memory::CONNECTION_FLOOR_BYTES;

const MIB: u64 = 1 << 20;

/// Connections of an endpoint with `memory` bytes, whose peers grant all credit and acknowledge nothing by themselves.
struct Crowd {
    memory: EndpointMemory,
    config: StreamsConfig,
    members: Vec<(End, End)>,
}

impl Crowd {
    fn new(memory: u64, send_window: u64) -> Self {
        let config = StreamsConfig { send_window, ..StreamsConfig::default() };
        Self { memory: EndpointMemory::new(memory, 256 * MIB, 64 * MIB), config, members: Vec::new() }
    }

    /// Another connection, whose application writes as much as is taken, on so many streams. Gives what that is.
    fn join(&mut self, streams: usize) -> u64 {
        let greedy = StreamsConfig {
            receive_window: 1 << 30,
            receive_window_max: 1 << 30,
            stream_receive_window: 1 << 30,
            stream_receive_window_max: 1 << 30,
            ..StreamsConfig::default()
        };
        let mut server = End::with_memory(Side::Server, &self.config, &self.memory);
        let mut client = End::new(Side::Client, &greedy);
        server.apply_limits(&greedy.initial_limits());
        client.apply_limits(&self.config.initial_limits());
        for _ in 0..streams {
            let id = server.streams.open(Dir::Uni).unwrap();
            write_all(&mut server, id);
        }
        let held = server.streams.send_buffered();
        self.members.push((server, client));
        held
    }

    fn held(&self) -> u64 {
        self.members.iter().map(|(server, _)| server.streams.send_buffered()).sum()
    }
}

/// Writes until no more is taken.
fn write_all(end: &mut End, id: StreamId) {
    let block = Bytes::from(vec![7; 16 * 1024]);
    while end.streams.send(id).write_chunk(&mut block.clone()).is_ok() {}
}

#[test]
fn a_connection_that_is_alone_has_its_window() {
    for (memory, window) in [(32 * MIB, 16 * MIB), (32 * MIB, MIB), (MIB, 16 * MIB), (0, 100_000)] {
        let mut crowd = Crowd::new(memory, window);
        assert_eq!(crowd.join(1), window, "{memory} bytes in all");
    }
}

#[test]
fn peers_that_acknowledge_nothing_share_what_there_is() {
    let floor = CONNECTION_FLOOR_BYTES;
    let mut crowd = Crowd::new(32 * MIB, 16 * MIB);
    let mut before = u64::MAX;
    for n in 1..=500 {
        let held = crowd.join(1);
        assert!(held >= floor, "connection {n} may hold {held} bytes");
        assert!(held <= before, "who comes later gets no more");
        before = held;
        assert!(crowd.held() <= 32 * MIB + n * floor, "{n} connections hold {} bytes", crowd.held());
    }
    assert!(crowd.held() > 30 * MIB, "what there is is used");
}

#[test]
fn many_streams_are_no_way_around_the_limit() {
    let mut crowd = Crowd::new(2 * MIB, MIB);
    for _ in 0..50 {
        crowd.join(100);
    }
    assert!(crowd.held() <= 2 * MIB + 50 * CONNECTION_FLOOR_BYTES, "{} bytes", crowd.held());
}

#[test]
fn memory_comes_back_when_connections_end_and_when_data_is_acknowledged() {
    let mut crowd = Crowd::new(32 * MIB, 16 * MIB);
    let first = crowd.join(1);
    assert!(crowd.join(1) < first);
    crowd.members.pop();
    assert_eq!(crowd.memory.send.reserved().next_multiple_of(MIB), 16 * MIB);
    let (server, client) = &mut crowd.members[0];
    flush(server, client);
    assert_eq!(server.streams.send_buffered(), 0);
    assert!(crowd.memory.send.reserved() <= CONNECTION_FLOOR_BYTES, "{}", crowd.memory.send.reserved());
    crowd.members.clear();
    assert_eq!(crowd.memory.send.reserved(), 0);
}

#[test]
fn who_comes_when_nothing_is_left_makes_progress_and_grows_when_there_is_room() {
    let mut crowd = Crowd::new(2 * MIB, MIB);
    for _ in 0..100 {
        crowd.join(1);
    }
    let small = crowd.join(0);
    assert_eq!(small, 0);
    let (mut server, mut client) = crowd.members.pop().unwrap();
    let id = server.streams.open(Dir::Uni).unwrap();
    let (mut written, mut most) = (0, 0);
    for round in 0..200 {
        if round == 100 {
            crowd.members.clear();
        }
        write_all(&mut server, id);
        let held = server.streams.send_buffered();
        most = held.max(most);
        written += held;
        assert!(held > 0, "round {round} stands still");
        flush(&mut server, &mut client);
        let is_woken = |event: &StreamEvent| *event == StreamEvent::Writable(id);
        assert!(server.events().iter().any(is_woken), "the writer is woken in round {round}");
        assert_eq!(read_all(&mut client, id).0.len() as u64, held);
        if round == 99 {
            assert!(most < 2 * CONNECTION_FLOOR_BYTES, "{most} bytes while there is little");
        }
    }
    assert_eq!(most, MIB, "the whole window once there is room");
    assert!(written > 100 * MIB);
}

#[test]
fn a_stream_that_the_peers_credit_held_back_is_woken_by_the_room_of_others() {
    let mut crowd = Crowd::new(2 * MIB, MIB);
    for _ in 0..100 {
        crowd.join(1);
    }
    crowd.join(0);
    let (mut server, mut client) = crowd.members.pop().unwrap();
    let limits = InitialLimits { max_stream_data_uni: 1_000, ..server.granted.initial };
    server.streams.restart(&limits);
    let (late, bulk) = (server.streams.open(Dir::Uni).unwrap(), server.streams.open(Dir::Uni).unwrap());
    assert_eq!(server.streams.send(late).write(&[1; 2_000]), Ok(1_000));
    assert_eq!(server.streams.send(late).write(&[1; 2_000]), Err(WriteError::Blocked));
    flush(&mut server, &mut client);
    raise(&mut server, bulk);
    write_all(&mut server, bulk);
    server.events();
    raise(&mut server, late);
    assert_eq!(server.events(), [], "there is no room for it");
    flush(&mut server, &mut client);
    assert!(server.events().contains(&StreamEvent::Writable(late)));
}

#[test]
fn what_is_written_ahead_of_what_is_sent_is_bounded_where_the_application_says_so() {
    let mut crowd = Crowd::new(32 * MIB, 16 * MIB);
    crowd.join(0);
    let (mut server, mut client) = crowd.members.pop().unwrap();
    let (ahead, other) = (server.streams.open(Dir::Uni).unwrap(), server.streams.open(Dir::Uni).unwrap());
    server.streams.send(ahead).set_unsent_max(100_000).unwrap();
    write_all(&mut server, ahead);
    assert_eq!(server.streams.send_buffered(), 100_000);
    // What was sent and is not acknowledged does not count, and the application is woken once, when half was sent.
    let mut packets = Vec::new();
    let woken = |server: &mut End| server.events().contains(&StreamEvent::Writable(ahead));
    while !woken(&mut server) {
        packets.push(server.packet(1_200).expect("more to send"));
    }
    let unsent = server.streams.waiting();
    assert!((48_000..=50_000).contains(&unsent), "{unsent} bytes are left");
    packets.push(server.packet(1_200).expect("more to send"));
    assert!(!woken(&mut server), "nobody waits");
    write_all(&mut server, ahead);
    assert_eq!(server.streams.waiting(), 100_000);
    // Acknowledgements make no room here, and other streams have theirs.
    for packet in &packets {
        client.receive(packet).unwrap();
        server.acked(packet);
    }
    assert!(!woken(&mut server));
    assert_eq!(server.streams.send(other).write(&[0; 200_000]), Ok(200_000));
    // Who may write more is told.
    server.streams.send(ahead).set_unsent_max(u64::MAX).unwrap();
    assert!(woken(&mut server));
    write_all(&mut server, ahead);
    assert_eq!(server.streams.send_buffered(), 16 * MIB);
    flush(&mut server, &mut client);
    server.assert_counts();
}

/// The peer lets a stream send as much as it likes.
fn raise(end: &mut End, id: StreamId) {
    let maximum = VarInt::from_u32(1 << 29);
    end.granted.max_stream_data.insert(id, maximum.get());
    end.streams.on_max_stream_data(&MaxStreamData { id, maximum }).unwrap();
}
