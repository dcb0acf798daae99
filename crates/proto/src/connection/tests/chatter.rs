//! Frames without content in great numbers: they change a number or nothing, and that is all that they take.

use std::time::Duration;

use bytes::Bytes;
use fulmar_wire::{
    DataBlocked, Dir, Frame, MaxData, MaxStreamData, MaxStreams, ResetStream, Side, StopSending, Stream,
    StreamDataBlocked, StreamId, StreamsBlocked, TransportErrorCode as Code, VarInt,
};

use super::floods::receive;
use super::memory::{Memory, memory_of};
use super::pair::Pair;
use super::violations::{encode, varint};

/// Packets of a flood, with so many frames each.
const PACKETS: u64 = 2_000;
const FRAMES: u64 = 100;

fn client_stream(index: u64) -> StreamId {
    StreamId::new(Side::Client, Dir::Bi, index)
}

/// Sends a server packets of frames that are made from their number, at 10,000 packets per second, and acknowledges nothing.
/// Returns the memory that it took, and how many datagrams it answered with.
fn flood(pair: &mut Pair, frame: impl Fn(u64) -> Vec<u8>) -> (Memory, u64) {
    pair.server.mute = true;
    let before = pair.server.conn().paths.primary_mut().space.next_number();
    let memory = memory_of(|| {
        for packet in 0..PACKETS {
            let payload: Vec<u8> = (0..FRAMES).flat_map(|n| frame(packet * FRAMES + n)).collect();
            let now = pair.now;
            receive(&mut pair.server, &payload.into(), now).unwrap();
            pair.run_for(Duration::from_micros(100));
            pair.server.sent.clear();
            pair.client.sent.clear();
            pair.server.events.clear();
        }
    });
    (memory, pair.server.conn().paths.primary_mut().space.next_number() - before)
}

/// A name, and the frame that is sent at a time.
type Chatter = (&'static str, fn(u64) -> Frame<'static>);

#[test]
fn credit_and_complaints_without_end() {
    let frames: [Chatter; 9] = [
        ("ping", |_| Frame::Ping),
        ("max data", |n| Frame::MaxData(MaxData { maximum: varint((1 << 40) + n) })),
        ("max stream data", |n| {
            Frame::MaxStreamData(MaxStreamData { id: client_stream(0), maximum: varint((1 << 40) + n) })
        }),
        ("max streams", |n| Frame::MaxStreams(MaxStreams { dir: Dir::Uni, maximum: varint((1 << 30) + n) })),
        ("data blocked", |n| Frame::DataBlocked(DataBlocked { limit: varint(n) })),
        ("stream data blocked", |n| {
            Frame::StreamDataBlocked(StreamDataBlocked { id: client_stream(n % 128), limit: varint(n) })
        }),
        ("streams blocked", |n| Frame::StreamsBlocked(StreamsBlocked { dir: Dir::Bi, limit: varint(n) })),
        ("stop sending", |n| {
            Frame::StopSending(StopSending { id: client_stream(n % 128), error_code: varint(n) })
        }),
        ("reset stream", |n| {
            Frame::ResetStream(ResetStream {
                id: client_stream(n % 128),
                error_code: varint(n),
                final_size: varint(1),
            })
        }),
    ];
    for (name, frame) in frames {
        let mut pair = Pair::connected();
        let first = Stream { id: client_stream(0), offset: VarInt::ZERO, fin: false, data: b"x" };
        let now = pair.now;
        receive(&mut pair.server, &encode(&Frame::Stream(first)).into(), now).unwrap();
        let (memory, answers) = flood(&mut pair, |n| encode(&frame(n)));
        // 128 streams may be open, and acknowledgements are remembered until they are acknowledged or given up.
        assert!(memory.peak < 512 << 10, "{name}: {memory:?}");
        assert!(answers <= PACKETS, "{name}: {answers} datagrams");
        assert_eq!(pair.lost(Side::Server), None, "{name}");
    }
}

#[test]
fn who_acknowledges_nothing_costs_no_more_with_time() {
    let mut pair = Pair::connected();
    // So many acknowledgements are remembered at most that have not been acknowledged themselves.
    for _ in 0..3 {
        flood(&mut pair, |_| encode(&Frame::Ping));
    }
    let (memory, _) = flood(&mut pair, |_| encode(&Frame::Ping));
    assert!(memory.kept < 64 << 10, "{memory:?}");
}

#[test]
fn a_hundred_thousand_streams_that_are_opened_and_reset() {
    const ROUNDS: u64 = 1_000;
    const STREAMS: u64 = 100;
    let mut pair = Pair::connected();
    let round = |pair: &mut Pair| {
        for _ in 0..STREAMS {
            let streams = pair.client.conn().streams();
            let id = streams.open(Dir::Bi).expect("the server makes room for others");
            streams.send(id).write(b"a request").unwrap();
            streams.send(id).reset(7_u32.into()).unwrap();
            streams.recv(id).stop(8_u32.into()).unwrap();
        }
        pair.run_for(Duration::from_millis(15));
        let streams = pair.server.conn().streams();
        while let Some(id) = streams.accept(Dir::Bi) {
            assert!(matches!(streams.recv(id).read(1, true), Err(crate::ReadError::Reset(_))));
        }
        pair.run_for(Duration::from_millis(45));
        for end in [&mut pair.client, &mut pair.server] {
            end.sent.clear();
            end.events.clear();
        }
    };
    for _ in 0..20 {
        round(&mut pair);
    }
    let memory = memory_of(|| (0..ROUNDS).for_each(|_| round(&mut pair)));
    assert!(memory.kept < 64 << 10 && memory.peak < 1 << 20, "{memory:?}");
    pair.transfer(Side::Client, 10_000, Duration::from_secs(1));
}

#[test]
fn streams_that_are_reset_faster_than_the_application_takes_them() {
    let mut pair = Pair::connected();
    let now = pair.now;
    let mut refused = None;
    let mut count = 0;
    let memory = memory_of(|| {
        for index in 0..100_000 {
            let id = client_stream(index);
            let open = Frame::Stream(Stream { id, offset: VarInt::ZERO, fin: false, data: b"a request" });
            let reset =
                Frame::ResetStream(ResetStream { id, error_code: VarInt::ZERO, final_size: varint(9) });
            let stop = Frame::StopSending(StopSending { id, error_code: VarInt::ZERO });
            let payload: Bytes = [open, reset, stop].iter().flat_map(encode).collect();
            if let Err(error) = receive(&mut pair.server, &payload, now) {
                refused = Some(error.code);
                return;
            }
            count += 1;
        }
    });
    // What the application has not seen is open, and counts.
    assert_eq!((refused, count), (Some(Code::STREAM_LIMIT_ERROR), 128));
    assert!(memory.peak < 256 << 10, "{memory:?}");
}

#[test]
fn keys_that_are_updated_as_fast_as_can_be() {
    let mut pair = Pair::connected();
    let now = pair.now;
    // The client asks for new keys again and again; each update waits for the end of the last.
    let memory = memory_of(|| {
        for _ in 0..2_000 {
            pair.client.conn().handshake.keys.one_rtt_mut().unwrap().demand_update();
            pair.client.conn().ping();
            pair.run_for(Duration::from_millis(11));
            for end in [&mut pair.client, &mut pair.server] {
                end.sent.clear();
                end.events.clear();
            }
        }
    });
    let generation = pair.server.conn().handshake.keys.one_rtt().unwrap().generation();
    let elapsed = pair.now - now;
    assert!(generation > 10, "{generation}");
    // RFC 9001 §6.5: each takes three probe timeouts, which are more than a round trip of 10 ms each.
    assert!(u128::from(generation) < elapsed.as_millis() / 30, "{generation} in {elapsed:?}");
    assert!(memory.kept < 64 << 10, "{memory:?}");
    pair.transfer(Side::Client, 10_000, Duration::from_secs(1));
}
