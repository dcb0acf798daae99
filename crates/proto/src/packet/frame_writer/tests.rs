use fulmar_wire::{Dir, Frame, PathChallenge, Side, frames};

use super::*;

fn id() -> StreamId {
    StreamId::new(Side::Client, Dir::Bi, 0)
}

#[test]
fn room_that_is_kept_at_the_tail_is_left_by_all_other_frames() {
    let tail = Frame::PathChallenge(PathChallenge { data: [7; 8] });
    let mut payload = [0; 100];
    let mut out = FrameWriter::new(&mut payload, Dialect::SinglePath);
    out.keep_tail(9);
    assert_eq!(out.space(), 91);
    let written = out.write_stream(id(), 0, 1_000, false, |room| room.fill(1)).unwrap();
    assert!(out.space() == 0 && !out.write_untracked(&Frame::Ping), "the rest is kept");
    assert!(out.write_tail(&tail));
    assert_eq!(out.finish().len, 100);
    let read: Vec<_> = frames(&payload, Dialect::SinglePath).map(Result::unwrap).collect();
    // The stream frame has a length, since it does not reach the end of the packet.
    assert!(matches!(&read[0], Frame::Stream(stream) if stream.data.len() == written));
    assert!(matches!(&read[1], Frame::PathChallenge(challenge) if challenge.data == [7; 8]));
}

#[test]
fn a_stream_of_which_no_byte_fits_leaves_no_frame_behind() {
    for fin in [false, true] {
        // A type, and an ID of one byte each: there is room for the header alone.
        let mut payload = [0; 2];
        let mut out = FrameWriter::new(&mut payload, Dialect::SinglePath);
        assert_eq!(out.write_stream(id(), 0, 10, fin, |room| room.fill(1)), None);
        assert_eq!(out.finish().len, 0, "{fin}");
    }
}

#[test]
fn the_record_names_the_symbol_that_protects_the_packet() {
    let mut payload = [0; 100];
    let mut out = FrameWriter::new(&mut payload, Dialect::SinglePath);
    out.write(&Frame::Ping, SentFrame::Ping);
    out.begin_symbol(SymbolHeader::Sid(FecSid { id: 3 }), SymbolId(3), 20);
    assert_eq!(out.space(), 20);
    out.write(&Frame::HandshakeDone, SentFrame::HandshakeDone);
    assert_eq!(out.end_symbol(), Some((&[0x1e][..], &[SentFrame::HandshakeDone][..], 1)));
    let written = out.finish();
    assert_eq!((written.symbol, written.len), (Some(SymbolId(3)), 6));
    assert_eq!(payload[..6], [0x01, 0x7f, 0xec, 0x00, 0x03, 0x1e]);
}

#[test]
fn a_symbol_of_dialect_m_is_within_a_frame_and_so_are_the_lengths_of_its_streams() {
    let mut payload = [0; 100];
    let mut out = FrameWriter::new(&mut payload, Dialect::SinglePath);
    let header = SymbolHeader::Framed(VarInt::from_u32(300));
    out.begin_symbol(header, SymbolId(300), 80);
    let written = out.write_stream(id(), 0, 1_000, false, |room| room.fill(1)).unwrap();
    let (symbol, _, _) = out.end_symbol().unwrap();
    let symbol = symbol.to_vec();
    let len = out.finish().len;
    let read: Vec<_> = frames(&payload[..len], Dialect::SinglePath).map(Result::unwrap).collect();
    let [Frame::SourceSymbol(read)] = read[..] else { panic!("{read:?}") };
    assert_eq!((read.id, read.frames), (VarInt::from_u32(300), &symbol[..]));
    // The type, a stream id and a length of two bytes at most go before the data.
    assert_eq!(symbol[..2], [0x0a, 0x00]);
    assert_eq!(symbol.len() - written, if written < 64 { 3 } else { 4 });
}

#[test]
fn padding_behind_a_symbol_that_is_cut_is_no_data_of_its_stream() {
    let mut payload = [0; 100];
    let mut out = FrameWriter::new(&mut payload, Dialect::SinglePath);
    out.begin_symbol(SymbolHeader::Sid(FecSid { id: 3 }), SymbolId(3), 80);
    let written = out.write_stream(id(), 0, 1_000, false, |room| room.fill(1)).unwrap();
    assert!(out.space() == 0 && out.finish().len < 100);
    // The rest is padding.
    let read: Vec<_> = frames(&payload, Dialect::SinglePath).map(Result::unwrap).collect();
    assert!(matches!(&read[1], Frame::Stream(stream) if stream.data.len() == written), "{read:?}");
}

#[test]
fn padding_in_a_packet_that_was_cut_for_a_symbol_without_frames_is_no_data_of_a_stream() {
    let sid = |id| SymbolHeader::Sid(FecSid { id });
    // Nothing but the stream follows, or another symbol that would not cut the packet further.
    for is_followed in [false, true] {
        let mut payload = [0; 100];
        let mut out = FrameWriter::new(&mut payload, Dialect::SinglePath);
        out.begin_symbol(sid(3), SymbolId(3), 80);
        assert_eq!(out.end_symbol(), None);
        if is_followed {
            out.begin_symbol(sid(3), SymbolId(3), 100);
        }
        let written = out.write_stream(id(), 0, 1_000, false, |room| room.fill(1)).unwrap();
        assert!(out.space() == 0 && out.finish().len < 100);
        let read: Vec<_> = frames(&payload, Dialect::SinglePath).map(Result::unwrap).collect();
        let lengths = read.iter().filter_map(|frame| match frame {
            Frame::Stream(stream) => Some(stream.data.len()),
            _ => None,
        });
        assert_eq!(lengths.collect::<Vec<_>>(), [written], "{read:?}");
    }
}

#[test]
fn a_symbol_without_frames_leaves_no_trace() {
    let mut payload = [0; 100];
    let mut out = FrameWriter::new(&mut payload, Dialect::SinglePath);
    out.begin_symbol(SymbolHeader::Sid(FecSid { id: 3 }), SymbolId(3), 20);
    assert_eq!(out.end_symbol(), None);
    assert!(out.is_empty() && !out.is_ack_eliciting());
    out.write(&Frame::Ping, SentFrame::Ping);
    let written = out.finish();
    assert_eq!((written.symbol, written.len), (None, 1));
    // Where there is no room for a frame behind it, none begins.
    let mut out = FrameWriter::new(&mut payload[..FecSid::LEN], Dialect::SinglePath);
    out.begin_symbol(SymbolHeader::Sid(FecSid { id: 3 }), SymbolId(3), 20);
    assert!(out.is_empty() && out.end_symbol().is_none());
}
