//! Data in crumbs, with gaps, or without end: what it takes to keep it is bounded by what was promised to the peer.

use bytes::Bytes;
use fulmar_base::Instant;
use fulmar_wire::{
    Crypto, Dir, Frame, PacketKind, Side, Stream, StreamId, TransportErrorCode as Code, VarInt,
};

use super::super::Connection;
use super::DATA;
use super::by_hand::{ORIGINAL_DCID, cid, server, take};
use super::conformance::in_the_handshake;
use super::floods::receive;
use super::memory::memory_of;
use super::pair::Pair;
use super::violations::{encode, varint};
use crate::ids::SpaceId;
use crate::{TransportConfig, TransportError};

/// Frames in one packet.
const FRAMES: usize = 150;

/// Payloads with a byte of a stream at each of these offsets.
fn crumbs(id: StreamId, offsets: impl Iterator<Item = u64>) -> impl Iterator<Item = Bytes> {
    let mut frames = offsets.map(move |offset| {
        encode(&Frame::Stream(Stream { id, offset: varint(offset), fin: false, data: b"x" }))
    });
    std::iter::from_fn(move || {
        let payload: Vec<u8> = frames.by_ref().take(FRAMES).flatten().collect();
        (!payload.is_empty()).then(|| payload.into())
    })
}

#[test]
fn a_byte_at_every_second_offset_of_a_window() {
    let window = TransportConfig::default().stream_receive_window;
    let mut pair = Pair::connected();
    let now = pair.now;
    let id = StreamId::new(Side::Client, Dir::Uni, 0);
    let memory = memory_of(|| {
        for payload in crumbs(id, (1..window).step_by(2)) {
            receive(&mut pair.server, &payload, now).unwrap();
        }
    });
    assert!(memory.peak < window * 3 / 2, "{memory:?}");
    assert_eq!(pair.server.conn().streams().recv(id).read(1, true), Err(crate::ReadError::Blocked));
    // The other halves close the gaps, and everything can be read.
    let mut read = 0;
    for payload in crumbs(id, (0..window).step_by(2)) {
        receive(&mut pair.server, &payload, now).unwrap();
        while let Ok(Some(chunk)) = pair.server.conn().streams().recv(id).read(usize::MAX, true) {
            assert!(chunk.bytes.iter().all(|byte| *byte == b'x'));
            read += chunk.bytes.len() as u64;
        }
    }
    assert_eq!(read, window);
}

#[test]
fn bytes_far_apart_on_as_many_streams_as_there_may_be() {
    let config = TransportConfig::default();
    let mut pair = Pair::connected();
    let now = pair.now;
    let streams = config.max_concurrent_uni_streams;
    let each = config.receive_window / streams;
    let memory = memory_of(|| {
        // Pages and blocks are begun for a byte each.
        for step in [4_096, 1_024, 256, 64, 2] {
            for index in 0..streams {
                let id = StreamId::new(Side::Client, Dir::Uni, index);
                for payload in crumbs(id, (1..each).step_by(step)) {
                    receive(&mut pair.server, &payload, now).unwrap();
                }
            }
        }
    });
    assert!(memory.peak < 3 * config.receive_window, "{memory:?}");
}

#[test]
fn pieces_that_are_much_smaller_than_the_packets_that_carry_them() {
    let window = TransportConfig::default().stream_receive_window;
    let mut pair = Pair::connected();
    let now = pair.now;
    let id = StreamId::new(Side::Client, Dir::Uni, 0);
    for len in [1, 64, 255, 256, 600, 800] {
        let data = vec![b'x'; len];
        let memory = memory_of(|| {
            for offset in (1..window - len as u64).step_by(len + 1) {
                let frame = Stream { id, offset: varint(offset), fin: false, data: &data };
                let mut payload = encode(&Frame::Stream(frame));
                payload.resize(1_400, 0);
                receive(&mut pair.server, &payload.into(), now).unwrap();
                if len < 8 && offset > window / 16 {
                    break;
                }
            }
        });
        assert!(memory.peak < 5 * window, "pieces of {len} bytes: {memory:?}");
        pair = Pair::connected();
    }
}

/// Lets a connection take CRYPTO frames until it has enough, and gives the error and the memory that they took at most.
fn crypto_flood(
    connection: &mut Connection,
    (space, kind): (SpaceId, PacketKind),
    frames: impl Iterator<Item = (u64, Vec<u8>)>,
) -> (Option<TransportError>, u64) {
    let now = Instant::from_millis(2);
    let mut error = None;
    let memory = memory_of(|| {
        error = frames
            .map(|(offset, data)| {
                encode(&Frame::Crypto(Crypto { offset: varint(offset), data: &data })).into()
            })
            .find_map(|payload: Bytes| take(connection, now, (space, kind), &payload).err());
    });
    (error, memory.peak)
}

/// Does something with a connection that waits for CRYPTO frames at each level. A server waits for none after the handshake.
fn at_each_level(mut test: impl FnMut(&mut Connection, (SpaceId, PacketKind))) {
    let now = Instant::from_millis(1);
    test(&mut server(now, cid(ORIGINAL_DCID), |_| {}, &[]), (SpaceId::Initial, PacketKind::Initial));
    let (mut client, mut server) = in_the_handshake(now);
    test(&mut client, (SpaceId::Handshake, PacketKind::Handshake));
    test(&mut server, (SpaceId::Handshake, PacketKind::Handshake));
    let mut pair = Pair::connected();
    test(pair.client.conn(), (DATA, PacketKind::OneRtt));
}

/// What CRYPTO frames may take at most: the buffer, twice while it grows, and the record of its gaps.
const CRYPTO_MEMORY_MAX: u64 = 256 << 10;

#[test]
fn handshake_data_with_gaps_at_each_level() {
    at_each_level(|connection, level| {
        // Far behind what the handshake has sent, so that none of it closes a gap.
        let frames = (20_001..60_000).step_by(2).map(|offset| (offset, vec![1]));
        let (error, peak) = crypto_flood(connection, level, frames);
        assert_eq!(error.map(|error| error.code), Some(Code::CRYPTO_BUFFER_EXCEEDED), "{level:?}");
        assert!(peak < CRYPTO_MEMORY_MAX, "{level:?}: {peak}");
    });
}

#[test]
fn handshake_data_far_ahead_at_each_level() {
    for first in [70_000, 1 << 32, VarInt::MAX.get() - 1_000] {
        at_each_level(|connection, level| {
            let (error, peak) = crypto_flood(connection, level, [(first, vec![1; 900])].into_iter());
            assert_eq!(error.map(|error| error.code), Some(Code::CRYPTO_BUFFER_EXCEEDED), "{level:?}");
            assert!(peak < CRYPTO_MEMORY_MAX, "{level:?}: {peak}");
        });
    }
}

#[test]
fn the_same_handshake_data_again_and_again() {
    at_each_level(|connection, level| {
        let frames = (0..100_000).map(|n| (30_000 + n % 100, vec![7; 1_000]));
        let (error, peak) = crypto_flood(connection, level, frames);
        assert_eq!(error, None, "{level:?}");
        assert!(peak < CRYPTO_MEMORY_MAX, "{level:?}: {peak}");
    });
}

#[test]
fn a_message_of_the_handshake_that_never_ends() {
    // A header that announces 16 MiB; what follows is in order.
    for message in [1, 2, 4, 8, 11, 20] {
        let now = Instant::from_millis(1);
        let mut server = server(now, cid(ORIGINAL_DCID), |_| {}, &[]);
        let mut pair = Pair::connected();
        // After the handshake the server's bytes go on behind its session tickets.
        let read = pair.client.conn().handshake.tls.crypto.read_of_one_rtt();
        for (connection, level, start) in [
            (&mut server, (SpaceId::Initial, PacketKind::Initial), 0),
            (pair.server.conn(), (DATA, PacketKind::OneRtt), 0),
            (pair.client.conn(), (DATA, PacketKind::OneRtt), read),
        ] {
            let frames = (0..4_000).map(|n| {
                let head = if n == 0 { vec![message, 0xff, 0xff, 0xff] } else { vec![0; 4] };
                (start + n * 1_000, [head, vec![0; 996]].concat())
            });
            let (error, peak) = crypto_flood(connection, level, frames);
            assert!(error.is_some(), "4 MB were taken of a message {message} at {level:?}");
            assert!(peak < 2 * CRYPTO_MEMORY_MAX, "{level:?}: {peak}");
        }
    }
}

#[test]
fn session_tickets_without_end() {
    let mut pair = Pair::connected();
    let start = pair.client.conn().handshake.tls.crypto.read_of_one_rtt();
    // Type and length; lifetime, age_add, nonce, ticket, no extensions (RFC 8446 §4.6.1).
    let body = |n: u64| {
        let head = [&[0, 0, 14, 16][..], &[1; 4], &[8], &n.to_be_bytes(), &1_000_u16.to_be_bytes()].concat();
        [head, vec![5; 1_000], vec![0, 0]].concat()
    };
    let len = 4 + body(0).len() as u64;
    let frames = (0..50_000).map(|n| {
        let body = body(n);
        let length = u32::try_from(body.len()).unwrap().to_be_bytes();
        (start + n * len, [&[4][..], &length[1..], &body].concat())
    });
    let (error, peak) = crypto_flood(pair.client.conn(), (DATA, PacketKind::OneRtt), frames);
    assert_eq!(error, None, "a client takes any number of them");
    assert!(peak < CRYPTO_MEMORY_MAX, "{peak}");
    assert!(!pair.client.conn().is_closed());
}

#[test]
fn a_server_keeps_nothing_that_its_client_says_after_the_handshake() {
    // RFC 9001 §4.4, §6, §8.3: there is no message for it, and what is behind a gap can be part of none.
    let data = (DATA, PacketKind::OneRtt);
    for offset in [0, 1, 65_537] {
        let mut pair = Pair::connected();
        let mut error = None;
        let memory = memory_of(|| {
            let crypto = Crypto { offset: varint(offset), data: b"x" };
            let payload = encode(&Frame::Crypto(crypto)).into();
            error = take(pair.server.conn(), pair.now, data, &payload).err().map(|error| error.code);
        });
        let expected = if offset == 0 { Code::crypto(10) } else { Code::CRYPTO_BUFFER_EXCEEDED };
        assert_eq!(error, Some(expected), "{offset}");
        assert!(memory.kept < 1_000, "{offset}: {memory:?}");
    }
    // A frame without bytes says nothing.
    let mut pair = Pair::connected();
    let memory = memory_of(|| {
        let payload = encode(&Frame::Crypto(Crypto { offset: varint(60_000), data: b"" })).into();
        take(pair.server.conn(), pair.now, data, &payload).unwrap();
    });
    assert!(memory.kept < 1_000, "{memory:?}");
}
