use super::pool::SPARES_MAX;
use super::*;

/// A batch as if the kernel had delivered one message of `len` bytes coalesced at `stride`.
fn batch_with(len: usize, stride: usize) -> RecvBatch {
    let mut batch = RecvBatch::new();
    batch.prepare(false);
    for (index, byte) in batch.slots[0][..len].iter_mut().enumerate() {
        *byte = (index / stride) as u8;
    }
    batch.meta[0].len = len;
    batch.meta[0].stride = stride;
    batch.filled = 1;
    batch
}

#[test]
fn a_coalesced_message_is_split_at_its_stride() {
    let mut batch = batch_with(2_500, 1_200);
    assert_eq!(batch.datagrams(), 3);
    let sizes: Vec<_> = std::iter::from_fn(|| batch.next_datagram())
        .enumerate()
        .map(|(index, datagram)| {
            assert!(datagram.payload.iter().all(|byte| usize::from(*byte) == index));
            datagram.payload.len()
        })
        .collect();
    assert_eq!(sizes, [1_200, 1_200, 100]);
}

#[test]
fn empty_datagrams_are_skipped_and_a_zero_stride_ends() {
    let mut batch = batch_with(10, 10);
    batch.meta[0].len = 0;
    assert!(batch.next_datagram().is_none());
    let mut batch = batch_with(10, 1);
    batch.meta[0].stride = 0;
    assert_eq!(batch.next_datagram().expect("one datagram").payload.len(), 10);
    assert!(batch.next_datagram().is_none());
}

#[test]
fn small_datagrams_share_a_buffer() {
    let mut batch = batch_with(1_200, 1_200);
    let first = batch.next_datagram().expect("a datagram").payload;
    batch.prepare(false);
    assert_eq!(batch.slots[0].len(), BUFFER_BYTES - 1_200, "the rest of the buffer is used next");
    assert_eq!(first.len(), 1_200);
}

#[test]
fn a_released_buffer_is_reused_without_allocation() {
    let mut batch = batch_with(MESSAGE_MAX, 1_024);
    let start = batch.slots[0].as_ptr();
    while batch.next_datagram().is_some() {}
    // A little more, so that less than a message is left.
    batch.slots[0].truncate(MESSAGE_MAX - 1);
    batch.prepare(false);
    assert_eq!(batch.slots[0].as_ptr(), start);
    assert_eq!(batch.slots[0].len(), BUFFER_BYTES);
}

#[test]
fn a_pinned_buffer_is_replaced_and_comes_back_later() {
    let mut batch = batch_with(MESSAGE_MAX, 1_024);
    let start = batch.slots[0].as_ptr();
    let pinned = batch.next_datagram().expect("a datagram").payload;
    while batch.next_datagram().is_some() {}
    batch.slots[0].truncate(MESSAGE_MAX - 1);
    batch.prepare(false);
    assert_ne!(batch.slots[0].as_ptr(), start);
    assert!(pinned.iter().all(|byte| *byte == 0), "the slice keeps its bytes");
    drop(pinned);
    let _ = batch.slots[0].split_to(BUFFER_BYTES - 1).freeze();
    let held = batch.slots[0].split_to(1);
    batch.prepare(false);
    assert_eq!(batch.slots[0].as_ptr(), start, "the oldest spare is free again");
    drop(held);
}

/// The largest message that a kernel coalesces, or a little less.
const LARGEST: usize = 63 * 1_024;

/// Receives a message of the largest size. Returns its first datagram, and whether that is a slice of the buffer.
fn receive_large(batch: &mut RecvBatch) -> (BytesMut, bool) {
    batch.prepare(false);
    batch.meta[0].len = LARGEST;
    batch.meta[0].stride = 1_024;
    batch.filled = 1;
    let start = batch.slots[0].as_ptr();
    let first = batch.next_datagram().expect("a datagram").payload;
    while batch.next_datagram().is_some() {}
    assert_eq!(first.len(), 1_024);
    let is_slice = first.as_ptr() == start;
    (first, is_slice)
}

#[test]
fn a_reader_that_keeps_a_little_of_each_buffer_gets_copies() {
    let mut batch = RecvBatch::new();
    let mut kept = Vec::new();
    // Two such messages share a buffer.
    for _ in 0..2 * SPARES_MAX {
        let (payload, is_slice) = receive_large(&mut batch);
        assert!(is_slice, "there is room for more");
        kept.push(payload);
    }
    for _ in 0..1_000 {
        let (payload, is_slice) = receive_large(&mut batch);
        assert!(!is_slice);
        assert!(batch.pool.spares() <= SPARES_MAX);
        kept.push(payload);
    }
    kept.clear();
    let copies = (0..SPARES_MAX).take_while(|_| !receive_large(&mut batch).1).count();
    assert!((1..SPARES_MAX).contains(&copies), "slices again: {copies}");
}

/// Receives a message of `len` bytes in each slot.
fn receive_in_all_slots(batch: &mut RecvBatch, len: usize) -> Vec<BytesMut> {
    batch.prepare(false);
    batch.filled = batch.slots.len();
    batch.bytes = (batch.filled * len) as u64;
    for meta in &mut batch.meta[..batch.filled] {
        (meta.len, meta.stride) = (len, len);
    }
    std::iter::from_fn(|| batch.next_datagram()).map(|received| received.payload).collect()
}

#[test]
fn buffers_of_slots_that_are_given_up_count_while_slices_keep_them() {
    let mut batch = RecvBatch::new();
    while batch.slots.len() < BATCH_SIZE {
        receive_in_all_slots(&mut batch, 1_200);
    }
    let kept = receive_in_all_slots(&mut batch, LARGEST);
    batch.prepare(false);
    assert_eq!(batch.slots.len(), SLOTS_MIN);
    assert_eq!(batch.pool.spares(), BATCH_SIZE, "those of the slots that are left are full");
    drop(kept);
    while batch.slots.len() < BATCH_SIZE {
        receive_in_all_slots(&mut batch, 1_200);
    }
    receive_in_all_slots(&mut batch, LARGEST);
    batch.prepare(false);
    assert!(batch.pool.spares() <= BATCH_SIZE, "nobody keeps the others");
}

#[test]
fn a_clock_that_was_set_makes_nobody_wait() {
    let at = Duration::from_millis;
    assert_eq!(waited(at(5_000), at(5_003)), at(3));
    assert_eq!(waited(at(5_000), at(4_000)), at(0), "it went back");
    assert_eq!(waited(at(5_000), at(5_000) + WAITED_MAX), WAITED_MAX);
    assert_eq!(waited(at(5_000), at(100_000)), at(0), "it went ahead");
}
