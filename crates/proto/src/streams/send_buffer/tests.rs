use proptest::prelude::*;

use super::*;

fn byte(offset: u64) -> u8 {
    (offset % 251) as u8
}

fn bytes(range: Range<u64>) -> Vec<u8> {
    range.map(byte).collect()
}

fn send_new(buffer: &mut SendBuffer, len: usize) -> Range<u64> {
    let len = len.min(buffer.unsent() as usize);
    let range = buffer.next()..buffer.next() + len as u64;
    let mut out = vec![0; len];
    buffer.copy_new(&mut out);
    buffer.on_new_sent(len);
    assert_eq!(out, bytes(range.clone()));
    range
}

fn send_old(buffer: &mut SendBuffer, len: usize) -> Option<Range<u64>> {
    let lost = buffer.first_lost()?;
    let range = lost.start..lost.end.min(lost.start + len as u64);
    let mut out = vec![0; (range.end - range.start) as usize];
    buffer.copy_old(range.start, &mut out);
    buffer.on_old_sent(range.clone());
    assert_eq!(out, bytes(range.clone()));
    Some(range)
}

#[test]
fn what_was_acknowledged_meanwhile_is_not_sent_again() {
    let mut buffer = SendBuffer::default();
    buffer.write(&bytes(0..3_000));
    let sent: Vec<_> = (0..3).map(|_| send_new(&mut buffer, 1_000)).collect();
    buffer.on_lost(sent[0].clone());
    assert_eq!(buffer.on_acked(sent[1].clone()), 0);
    // A probe repeated all of it; only the first two parts are unknown to the peer, and the first one
    // arrives late.
    buffer.on_lost(0..3_000);
    assert_eq!(buffer.on_acked(0..1_000), 2_000);
    assert_eq!(send_old(&mut buffer, 5_000), Some(2_000..3_000));
    assert_eq!(send_old(&mut buffer, 5_000), None);
    assert_eq!(buffer.on_acked(2_000..3_000), 1_000);
    assert!(buffer.is_all_acked() && buffer.chunks.is_empty());
}

#[test]
fn what_is_left_of_large_chunks_is_kept_in_small_ones() {
    let mut buffer = SendBuffer::default();
    let len = 2 * CHUNK_MAX as u64 + 1;
    buffer.write(&bytes(0..len));
    send_new(&mut buffer, len as usize);
    assert_eq!(buffer.allocated, 2 * CHUNK_MAX + 2 * CHUNK_MAX / CHUNK_PART);
    // All but the last byte of one chunk and the only byte of another.
    buffer.on_acked(0..2 * CHUNK_MAX as u64 - 1);
    assert_eq!((buffer.held(), buffer.chunks.len()), (2, 2));
    assert!(buffer.allocated <= 2 * CHUNK_MIN, "{} bytes for 2", buffer.allocated);
    assert_eq!(buffer.allocated, buffer.chunks.iter().map(Chunk::allocated).sum::<usize>());
    // It goes on as before.
    buffer.on_lost(len - 2..len);
    assert_eq!(send_old(&mut buffer, 9), Some(len - 2..len));
    buffer.write(&bytes(len..len + 5_000));
    assert_eq!(send_new(&mut buffer, 9_000), len..len + 5_000);
    buffer.on_acked(len - 2..len + 5_000);
    assert!(buffer.is_all_acked() && buffer.chunks.is_empty());
    assert_eq!(buffer.allocated, 0);
}

#[test]
fn small_writes_share_a_chunk_and_shared_chunks_are_not_copied() {
    let mut buffer = SendBuffer::default();
    for offset in 0..100 {
        buffer.write(&[byte(offset)]);
    }
    assert_eq!(buffer.chunks.len(), 1);
    let shared = Bytes::from(bytes(100..300));
    buffer.write_chunk(shared.clone());
    assert_eq!(buffer.chunks.get(1).unwrap().bytes().as_ptr(), shared.as_ptr());
    buffer.write(&bytes(300..310));
    assert_eq!(buffer.chunks.len(), 3);
    send_new(&mut buffer, 310);
}

#[test]
fn what_is_lost_between_what_is_acknowledged_is_lost_and_nothing_else() {
    const PACKETS: u64 = 1_000;
    let mut buffer = SendBuffer::default();
    buffer.write(&bytes(0..PACKETS * 100));
    send_new(&mut buffer, PACKETS as usize * 100);
    for packet in (1..PACKETS).step_by(2) {
        buffer.on_acked(packet * 100..packet * 100 + 100);
    }
    // A range begins and ends within what is acknowledged, or at its ends.
    for (lost, expected) in [
        (50_150..50_450, vec![50_200..50_300, 50_400..50_450]),
        (70_200..70_450, vec![70_200..70_300, 70_400..70_450]),
        (80_100..80_200, vec![]),
        (99_500..99_900, vec![99_600..99_700, 99_800..99_900]),
    ] {
        buffer.on_lost(lost.clone());
        let found: Vec<_> = buffer.lost.iter().collect();
        assert_eq!(found, expected, "{lost:?}");
        buffer.lost.clear();
    }
}

#[derive(Debug, Clone)]
enum Op {
    Write(u16),
    WriteChunk(u16),
    SendNew(u16),
    SendOld(u16),
    Ack(prop::sample::Index),
    Lose(prop::sample::Index),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        (1u16..5_000).prop_map(Op::Write),
        (1u16..5_000).prop_map(Op::WriteChunk),
        (1u16..3_000).prop_map(Op::SendNew),
        (1u16..3_000).prop_map(Op::SendOld),
        any::<prop::sample::Index>().prop_map(Op::Ack),
        any::<prop::sample::Index>().prop_map(Op::Lose),
    ]
}

proptest! {
    /// Whatever the order of events, every byte stays available until it is acknowledged, and every
    /// byte that is neither acknowledged nor in flight is lost.
    #[test]
    fn bytes_live_until_they_are_acknowledged(ops in prop::collection::vec(op(), 1..200)) {
        let mut buffer = SendBuffer::default();
        let mut in_flight: Vec<Range<u64>> = Vec::new();
        for op in ops {
            let end = buffer.end();
            match op {
                Op::Write(len) => buffer.write(&bytes(end..end + u64::from(len))),
                Op::WriteChunk(len) => buffer.write_chunk(bytes(end..end + u64::from(len)).into()),
                Op::SendNew(len) => in_flight.push(send_new(&mut buffer, len.into())),
                Op::SendOld(len) => in_flight.extend(send_old(&mut buffer, len.into())),
                Op::Ack(index) if !in_flight.is_empty() => {
                    let range = in_flight.swap_remove(index.index(in_flight.len()));
                    buffer.on_acked(range);
                }
                Op::Lose(index) if !in_flight.is_empty() => {
                    let range = in_flight.swap_remove(index.index(in_flight.len()));
                    buffer.on_lost(range);
                }
                Op::Ack(_) | Op::Lose(_) => {}
            }
            prop_assert_eq!(buffer.allocated, buffer.chunks.iter().map(Chunk::allocated).sum::<usize>());
        }
        in_flight.push(send_new(&mut buffer, usize::MAX));
        while let Some(range) = send_old(&mut buffer, 1_000) {
            in_flight.push(range);
        }
        for range in in_flight {
            buffer.on_acked(range);
        }
        prop_assert!(buffer.is_all_acked() && buffer.chunks.is_empty());
    }
}
