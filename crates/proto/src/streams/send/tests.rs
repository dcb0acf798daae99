use fulmar_wire::{Dialect, Dir, Side};

use super::*;
use crate::packet::SentFrame;

fn id() -> StreamId {
    StreamId::new(Side::Client, Dir::Uni, 0)
}

fn half(data: &[u8]) -> SendHalf {
    let mut send = SendHalf::new(1 << 20);
    send.write(Source::Slice(data), u64::MAX);
    send
}

/// Writes one frame into a packet of this size, and returns its token.
fn write(send: &mut SendHalf, size: usize, lost: bool) -> Option<SentFrame> {
    let mut payload = vec![0; size];
    let mut out = FrameWriter::new(&mut payload, Dialect::SinglePath);
    let written =
        if lost { send.write_lost(id(), &mut out) } else { send.write_new(id(), u64::MAX, &mut out) };
    written.map(|_| out.finish().frames[0].clone())
}

fn token(offset: u64, len: u32, fin: bool) -> Option<SentFrame> {
    Some(SentFrame::Stream { id: id(), offset, len, fin })
}

#[test]
fn the_end_travels_with_the_last_data() {
    let mut send = half(&[1; 100]);
    send.finish();
    assert!(send.has_new() && !send.has_lost());
    assert_eq!(write(&mut send, 52, false), token(0, 50, false));
    assert_eq!(write(&mut send, 100, false), token(50, 50, true));
    assert!(!send.has_new() && !send.has_lost());
    assert!(!send.on_acked(50..100, true).finished);
    let acked = send.on_acked(0..50, false);
    assert!(acked.finished && acked.released == 100);
}

#[test]
fn the_end_alone_is_sent_and_sent_again() {
    let mut send = half(&[1; 10]);
    write(&mut send, 100, false);
    send.finish();
    assert!(send.has_lost() && !send.has_new());
    assert_eq!(write(&mut send, 2, true), None, "no room for the offset");
    assert_eq!(write(&mut send, 100, true), token(10, 0, true));
    send.on_lost(10..10, true);
    send.on_lost(0..10, false);
    assert_eq!(write(&mut send, 100, true), token(0, 10, true), "both in one frame");
    assert!(send.on_acked(0..10, true).finished);
}

#[test]
fn a_reset_forgets_the_data_and_keeps_the_final_size() {
    let mut send = half(&[1; 100]);
    write(&mut send, 52, false);
    assert_eq!(send.reset(VarInt::from_u32(9)), 100);
    assert!(!send.has_new() && !send.has_lost() && send.has_control());
    let reset = send.reset_frame().pending().unwrap();
    assert_eq!((reset.code, reset.final_size), (VarInt::from_u32(9), 50));
    // The fate of data in flight is of no interest.
    send.on_lost(0..50, false);
    assert!(!send.has_lost() && send.on_acked(0..50, false).released == 0);
    assert_eq!(send.check_writable(), Err(WriteError::ClosedStream));
}

#[test]
fn frames_that_follow_one_another_are_acknowledged_as_one() {
    let mut send = half(&[1; 100]);
    send.finish();
    assert_eq!(write(&mut send, 52, false), token(0, 50, false));
    assert_eq!(write(&mut send, 100, false), token(50, 50, true));
    let acked = send.on_acked(0..100, true);
    assert!(acked.finished && acked.released == 100);
}
