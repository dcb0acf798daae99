//! The handshake, and the first bytes after it.

mod pair;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use fulmar_proto::{Dir, Event, ReadError};
use fulmar_wire::{ProtectedKind, read_packet};
use pair::{Pair, Setup};

#[test]
fn a_handshake_over_two_initial_datagrams_completes() {
    let mut pair = Pair::connected();
    // The hybrid key share does not fit one datagram.
    assert_eq!(pair.client.conn().stats().key_exchange.as_deref(), Some("X25519MLKEM768"));
    for end in [&mut pair.client, &mut pair.server] {
        assert!(end.events.iter().any(|e| matches!(e, Event::Connected)), "{:?}", end.events);
        assert!(end.events.iter().any(|e| matches!(e, Event::HandshakeConfirmed)), "{:?}", end.events);
        assert_eq!(end.conn().alpn(), Some(pair::ALPN));
        assert!(!end.conn().is_handshaking());
    }
    assert_eq!(pair.client.conn().stats().packets_lost, 0);
    assert_eq!(pair.client.conn().stats().pto_count, 0);
    let rtt = pair.client.conn().stats().rtt_min.unwrap();
    assert_eq!(rtt, Duration::from_millis(10));
}

#[test]
fn a_stream_carries_bytes_in_both_directions() {
    let mut pair = Pair::connected();
    let id = pair.client.conn().streams().open(Dir::Bi).unwrap();
    let data: Vec<u8> = (0..2_000_000u32).map(|i| (i * 7 + i / 251) as u8).collect();
    let (mut written, mut read) = (0, Vec::new());
    let mut accepted = None;
    let mut finished = false;
    for _ in 0..2_000 {
        while written < data.len() {
            match pair.client.conn().streams().send(id).write(&data[written..]) {
                Ok(n) => written += n,
                Err(_) => break,
            }
        }
        if written == data.len() && !finished {
            pair.client.conn().streams().send(id).finish().unwrap();
            finished = true;
        }
        pair.run_for(Duration::from_millis(2));
        let server = pair.server.conn();
        accepted = accepted.or_else(|| server.streams().accept(Dir::Bi));
        let Some(id) = accepted else { continue };
        loop {
            match server.streams().recv(id).read(usize::MAX, true) {
                Ok(Some(chunk)) => read.extend_from_slice(&chunk.bytes),
                Ok(None) | Err(ReadError::ClosedStream) => break,
                Err(ReadError::Blocked) => break,
                Err(error) => panic!("{error}"),
            }
        }
        if read.len() == data.len() {
            break;
        }
    }
    assert!(read == data, "{} of {} bytes", read.len(), data.len());
    let stats = pair.client.conn().stats();
    assert_eq!((stats.packets_lost, stats.pto_count), (0, 0));
    assert_eq!(stats.mtu, 1_452);
}

#[test]
fn a_close_reaches_the_peer_with_its_code_and_words() {
    let mut pair = Pair::connected();
    let now = pair.now;
    pair.client.conn().close(now, 7u32.into(), Bytes::from_static(b"done"));
    pair.run_for(Duration::from_secs(2));
    let lost = pair.server.events.iter().find_map(|e| match e {
        Event::ConnectionLost { reason } => Some(reason.to_string()),
        _ => None,
    });
    assert_eq!(lost.as_deref(), Some("closed by the peer's application with code 7 (done)"));
    for end in [&mut pair.client, &mut pair.server] {
        assert!(end.conn().is_drained());
        assert_eq!(end.endpoint.open_connections(), 0);
    }
}

#[test]
fn the_first_handshake_packet_of_a_client_ends_its_initial_packets() {
    let mut pair = Setup::default().dial();
    let datagrams = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&datagrams);
    pair.client.wire = Box::new(move |flying| {
        seen.lock().unwrap().push(flying.payload.clone());
        vec![flying]
    });
    pair.run_for(Duration::from_millis(100));
    let datagrams = datagrams.lock().unwrap();
    let has_initial = |datagram: &[u8]| kinds(datagram).any(|k| matches!(k, ProtectedKind::Initial { .. }));
    let has_handshake = |d: &Vec<u8>| kinds(d).any(|k| matches!(k, ProtectedKind::Handshake { .. }));
    let first = datagrams.iter().position(has_handshake).expect("a Handshake packet was sent");
    let (before, after) = datagrams.split_at(first);
    assert!(!before.is_empty() && before.iter().all(|datagram| has_initial(datagram)));
    assert!(!after.iter().any(|datagram| has_initial(datagram)));
    // Nothing asks for a full datagram any more (RFC 9000 §14.1).
    assert!(after[0].len() < 1_200, "{} bytes", after[0].len());
    let stats = pair.server.conn().stats();
    assert_eq!((stats.packets_lost, stats.pto_count), (0, 0));
}

/// The kinds of the packets of a datagram.
fn kinds(mut rest: &[u8]) -> impl Iterator<Item = ProtectedKind> {
    std::iter::from_fn(move || {
        let packet = read_packet(rest, 8).ok()?;
        rest = &rest[packet.len..];
        Some(packet.kind)
    })
}

#[test]
fn several_chunks_are_taken_and_counted_together_and_known_to_be_delivered() {
    let mut pair = Pair::connected();
    let client = pair.client.conn();
    let id = client.streams().open(Dir::Uni).unwrap();
    let mut chunks = [Bytes::from_static(b"some"), Bytes::new(), Bytes::from_static(b" words")];
    assert_eq!(client.streams().send(id).write_chunks(&mut chunks), Ok(10));
    assert!(chunks.iter().all(Bytes::is_empty));
    client.streams().send(id).finish().unwrap();
    assert!(!client.streams().is_delivered());
    pair.run_for(Duration::from_secs(1));
    assert!(pair.client.conn().streams().is_delivered());
}
