//! What a peer with several paths can make an end keep: paths that come and go, addresses that change, challenges and
//! acknowledgements in great numbers (RFC 10069).

use std::time::Duration;

use bytes::Bytes;
use fulmar_base::Instant;
use fulmar_wire::{
    ConnectionId, Frame, MaxPathId, NewConnectionId, PacketKind, PathChallenge, PathCidsBlocked, PathId,
    PathStatus, PathsBlocked, ResetToken, RetireConnectionId, Side, TransportErrorCode as Code, VarInt,
};

use super::by_hand::take;
use super::memory::memory_of;
use super::pair::{End, Pair};
use super::path_violations::{
    SECOND, UNUSED, abandon, ack, connected, encode, open_path, receive, with_two_paths,
};
use crate::TransportError;
use crate::ids::SpaceId;

/// Forgets what a pair has recorded of itself.
fn forget(pair: &mut Pair) {
    for end in [&mut pair.client, &mut pair.server] {
        end.sent.clear();
        end.events.clear();
        end.dropped.clear();
    }
    pair.strays.clear();
    pair.stray_addrs.clear();
}

/// Opens a path and lets the one end or the other abandon it, so often.
fn come_and_go(pair: &mut Pair, count: u32) {
    for n in 0..count {
        let id = open_path(pair);
        let now = pair.now;
        let end = pair.end(if n % 2 == 0 { Side::Client } else { Side::Server });
        end.conn().abandon_path(now, id, Code::NO_ERROR).unwrap();
        pair.run_for(Duration::from_millis(30));
        forget(pair);
    }
}

#[test]
fn two_thousand_paths_come_and_go() {
    let mut pair = connected();
    come_and_go(&mut pair, 200);
    for count in [500, 2_000] {
        let memory = memory_of(|| come_and_go(&mut pair, count));
        assert!(memory.kept < 64 << 10, "{count}: {memory:?}");
    }
    assert_eq!(pair.server.conn().paths().count(), 1);
    pair.transfer(Side::Client, 100_000, Duration::from_secs(5));
    pair.close_and_forget();
}

/// The client moves or probes while a NAT gives other ports to what it sends on its paths, so often.
fn move_about(pair: &mut Pair, count: u32) {
    for n in 0..count {
        let ip = pair.client.more_addrs[(n % 3) as usize].ip();
        let now = pair.now;
        let client = pair.client.conn();
        // It may have no connection ID left for that, until the server has given others.
        let _ = if n % 2 == 0 { client.migrate(now, Some(ip)) } else { client.probe_path(now, Some(ip)) };
        client.ping();
        pair.run_for(Duration::from_millis(15));
        forget(pair);
    }
}

#[test]
fn thousands_of_moves_and_probes_over_three_paths() {
    let mut pair = connected();
    open_path(&mut pair);
    open_path(&mut pair);
    let more = ["10.0.1.1:1000", "10.0.2.1:1000", "10.0.3.1:1000"];
    pair.client.more_addrs = more.iter().map(|addr| addr.parse().unwrap()).collect();
    let mut sent = 0;
    pair.client.wire = Box::new(move |mut flying| {
        sent += 1;
        // Such a port is no address of the client: what is sent there is lost.
        if sent % 5 == 0 {
            flying.from.set_port(2_000 + (sent % 997) as u16);
        }
        vec![flying]
    });
    move_about(&mut pair, 200);
    for count in [1_000, 4_000] {
        let memory = memory_of(|| move_about(&mut pair, count));
        assert!(memory.peak < 512 << 10, "{count}: {memory:?}");
    }
    for side in [Side::Client, Side::Server] {
        for path in pair.end(side).conn().paths.iter() {
            assert!(path.off_path().len() <= 3);
        }
    }
    pair.client.wire = Box::new(|flying| vec![flying]);
    pair.transfer(Side::Client, 100_000, Duration::from_secs(20));
}

/// Hands the payload of the next authentic packet of a path to one end.
fn receive_on(end: &mut End, path: PathId, payload: &Bytes, now: Instant) -> Result<(), TransportError> {
    take(end.conn(), now, (SpaceId::Data(path), PacketKind::OneRtt), payload)
}

#[test]
fn a_flood_of_challenges_on_each_of_four_paths_is_answered_by_a_few_full_datagrams() {
    let mut pair = with_two_paths();
    open_path(&mut pair);
    open_path(&mut pair);
    pair.run_for(Duration::from_secs(1));
    let now = pair.now;
    let payload: Vec<u8> =
        (0..100).flat_map(|n| encode(&Frame::PathChallenge(PathChallenge { data: [n; 8] }))).collect();
    let payload = Bytes::from(payload);
    let before = pair.server.sent.len();
    let memory = memory_of(|| {
        for n in 0..4_000 {
            receive_on(&mut pair.server, PathId(n % 4), &payload, now).unwrap();
        }
        pair.run_for(Duration::from_millis(1));
    });
    assert!(memory.kept < 64 << 10, "{memory:?}");
    // RFC 9000 §8.2.2: each shows that its path carries such datagrams.
    let lens: Vec<usize> = pair.server.sent[before..].iter().map(Vec::len).collect();
    assert_eq!(lens, [1_200; 4]);
}

#[test]
fn acknowledgements_of_a_path_that_is_gone_take_no_memory() {
    let mut pair = with_two_paths();
    receive(&mut pair, Side::Server, abandon(SECOND)).unwrap();
    pair.run_for(Duration::from_millis(100));
    let now = pair.now;
    let memory = memory_of(|| {
        for n in 0..10_000_u64 {
            let payload = Bytes::from(ack(SECOND, n << 10));
            receive_on(&mut pair.server, PathId::ZERO, &payload, now).unwrap();
        }
    });
    assert!(memory.kept < 64 << 10, "{memory:?}");
}

#[test]
fn a_peer_that_abandons_each_path_before_it_is_used() {
    let mut pair = connected();
    let max = Frame::MaxPathId(MaxPathId { max: PathId(u32::MAX) });
    receive(&mut pair, Side::Server, encode(&max)).unwrap();
    // It acknowledges nothing.
    pair.server.mute = true;
    let flood = |pair: &mut Pair, from: u32, count: u32| {
        for id in from..from + count {
            receive(pair, Side::Server, abandon(PathId(id))).unwrap();
            pair.run_for(Duration::from_micros(100));
            forget(pair);
        }
    };
    // Until the window is full of packets that nobody acknowledges, and their records are apart from the numbers of later ones.
    flood(&mut pair, 2, 16_000);
    for (from, count) in [(16_002, 8_000), (24_002, 16_000)] {
        let memory = memory_of(|| flood(&mut pair, from, count));
        assert!(memory.kept < 64 << 10, "{count}: {memory:?}");
    }
    assert_eq!(pair.lost(Side::Server), None);
}

/// A name, and the frame that is sent at a time.
type Chatter = (&'static str, fn(u64) -> Frame<'static>);

#[test]
fn limits_and_complaints_of_paths_without_end() {
    let frames: [Chatter; 6] = [
        ("max path id", |n| Frame::MaxPathId(MaxPathId { max: PathId(n as u32 + 3) })),
        ("paths blocked", |n| Frame::PathsBlocked(PathsBlocked { max: PathId(n as u32 % 4) })),
        ("path cids blocked", |n| {
            Frame::PathCidsBlocked(PathCidsBlocked {
                path: PathId(n as u32 % 4),
                next_sequence: VarInt::ZERO,
            })
        }),
        ("path status", |n| {
            Frame::PathStatus(PathStatus {
                path: PathId(n as u32 % 4),
                sequence: VarInt::from_u32(n as u32),
                available: n / 4 % 2 == 0,
            })
        }),
        ("retire", |n| {
            Frame::RetireConnectionId(RetireConnectionId {
                path: UNUSED,
                sequence: VarInt::from_u32(n as u32),
            })
        }),
        ("new id", |n| {
            Frame::NewConnectionId(NewConnectionId {
                path: UNUSED,
                sequence: VarInt::from_u32(5),
                retire_prior_to: VarInt::from_u32((n % 5) as u32),
                cid: ConnectionId::new(&[0xee; 8]).unwrap(),
                reset_token: ResetToken([5; 16]),
            })
        }),
    ];
    for (name, frame) in frames {
        let mut pair = with_two_paths();
        pair.server.mute = true;
        let memory = memory_of(|| {
            for packet in 0..1_000 {
                let payload: Vec<u8> = (0..100).flat_map(|n| encode(&frame(packet * 100 + n))).collect();
                receive(&mut pair, Side::Server, payload).unwrap_or_else(|error| panic!("{name}: {error}"));
                pair.run_for(Duration::from_micros(100));
                forget(&mut pair);
            }
        });
        assert!(memory.kept < 512 << 10, "{name}: {memory:?}");
        assert_eq!(pair.lost(Side::Server), None, "{name}");
    }
}
