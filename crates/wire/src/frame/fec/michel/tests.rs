use crate::{BlockRepair, Dialect, FecWindow, Frame, PacketKind, SourceSymbol, VarInt, Writer, frames};

fn read(bytes: &[u8]) -> Frame<'_> {
    let read: Vec<_> = frames(bytes, Dialect::SinglePath).collect();
    let [Ok(frame)] = read[..] else { panic!("{bytes:02x?} was read: {read:?}") };
    frame
}

#[track_caller]
fn is_read_and_written(bytes: &[u8], frame: Frame<'_>) {
    assert_eq!(read(bytes), frame);
    let mut written = vec![0; frame.encoded_len(Dialect::SinglePath)];
    frame.encode(Dialect::SinglePath, &mut Writer::new(&mut written));
    assert_eq!(written, bytes);
}

/// Written by the fork of quic-go (0xFEC, commit 0749083b), whose `Append` of these frames was called.
#[test]
fn frames_of_the_fork_are_read_and_written_as_they_are() {
    // Symbol 1: a DATAGRAM frame of 12 bytes.
    let frames = b"\x31\x0aand second";
    is_read_and_written(
        b"\xc0\x00\x00\x32\xa8\x0f\xec\x55\x01\x0c\x31\x0aand second",
        Frame::SourceSymbol(SourceSymbol { id: VarInt::from_u32(1), frames }),
    );
    // Block 0, repair symbol 0: the sum of that and "\x31\x05first", and of the lengths 12 and 7 behind it.
    let symbol = b"\x00\x0f\x07\x07\x16\x53\x07econd\x00\x0b";
    is_read_and_written(
        b"\xb2\xa8\x0f\xec\x00\x00\x0e\x00\x0f\x07\x07\x16\x53\x07econd\x00\x0b",
        Frame::BlockRepair(BlockRepair { block: VarInt::ZERO, parity: VarInt::ZERO, symbol }),
    );
    is_read_and_written(
        b"\xc0\x00\x00\x32\xa8\x0f\xec\xc0\x01\x41\x2c",
        Frame::FecWindow(FecWindow { epoch: VarInt::from_u32(1), size: VarInt::from_u32(300) }),
    );
}

/// The fork neither sends nor reads it: the fields are those of draft-michel-quic-fec-01, figure 7.
#[test]
fn a_symbol_ack_is_an_ack_without_a_delay() {
    // The largest 9, one pair, 9 and the two before it, a gap of three, and two.
    let bytes = b"\xc0\x00\x00\x32\xa8\x0f\xec\xac\x09\x01\x02\x02\x01";
    let Frame::SymbolAck(ack) = read(bytes) else { panic!() };
    assert!(ack.ranges().eq([7..=9, 2..=3]));
    assert_eq!(ack.largest(), VarInt::from_u32(9));
    is_read_and_written(bytes, Frame::SymbolAck(ack));
}

#[test]
fn a_source_symbol_whose_length_is_not_known_at_first() {
    for len in [1, 63, 64, 1_300] {
        let mut buffer = [0; 1_400];
        let mut writer = Writer::new(&mut buffer);
        let id = VarInt::from_u32(70_000);
        SourceSymbol::begin(id, &mut writer);
        let begin = writer.len();
        assert_eq!(begin, SourceSymbol::begin_len(id));
        let protected: Vec<u8> = (0..len).map(|index| index as u8).collect();
        writer.put_bytes(&protected);
        let start = SourceSymbol::end(begin, &mut writer);
        assert_eq!(writer.written_from(start), protected);
        let len = writer.len();
        is_read_and_written(&buffer[..len], Frame::SourceSymbol(SourceSymbol { id, frames: &protected }));
    }
}

#[test]
fn they_are_for_one_rtt_packets_and_ask_for_an_acknowledgement() {
    let frame = Frame::FecWindow(FecWindow { epoch: VarInt::ZERO, size: VarInt::ZERO });
    let ack = read(b"\xc0\x00\x00\x32\xa8\x0f\xec\xac\x00\x00\x00");
    let source = Frame::SourceSymbol(SourceSymbol { id: VarInt::ZERO, frames: &[] });
    let repair = BlockRepair { block: VarInt::ZERO, parity: VarInt::ZERO, symbol: &[0, 0] };
    for frame in [frame, ack, source, Frame::BlockRepair(repair)] {
        assert!(frame.is_ack_eliciting() && !frame.is_probing());
        for kind in [PacketKind::Initial, PacketKind::Handshake, PacketKind::ZeroRtt] {
            assert!(!frame.is_permitted_in(kind));
        }
        assert!(frame.is_permitted_in(PacketKind::OneRtt));
    }
}
