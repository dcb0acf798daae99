use super::*;

const ENCODING: TransportErrorCode = TransportErrorCode::FRAME_ENCODING_ERROR;
const VIOLATION: TransportErrorCode = TransportErrorCode::PROTOCOL_VIOLATION;
const MAX: [u8; 8] = [0xff; 8];
const SOURCE_SYMBOL: [u8; 8] = *b"\xc0\x00\x00\x32\xa8\x0f\xec\x55";
const SYMBOL_ACK: [u8; 8] = *b"\xc0\x00\x00\x32\xa8\x0f\xec\xac";

/// Reads what must be one error, and nothing after it.
fn error(bytes: &[u8], dialect: Dialect) -> FrameError {
    // A PING follows, which must not be read.
    let bytes = [bytes, &[0x01]].concat();
    let read: Vec<_> = frames(&bytes, dialect).collect();
    let [Err(error)] = read[..] else { panic!("{bytes:02x?} was read: {read:?}") };
    error
}

#[test]
fn illegal_frames_of_either_dialect() {
    let token = [0; 16];
    let two_to_the_60_and_one = [0xd0, 0, 0, 0, 0, 0, 0, 1];
    let table: [(&[&[u8]], u64, TransportErrorCode, &str); 39] = [
        (&[&[0x02], b"\x05\x00\x00\x06"], 0x02, ENCODING, "an ACK range falls below zero"),
        (&[&[0x02], b"\x05\x00\x01\x04\x00\x00"], 0x02, ENCODING, "an ACK range falls below zero"),
        (&[&[0x03], b"\x05\x00\x01\x00\x01\x03"], 0x03, ENCODING, "an ACK range falls below zero"),
        (&[&[0x03], b"\x05\x00\x00\x00\x01"], 0x03, ENCODING, "the frame is truncated"),
        (&[&[0x06], &MAX, b"\x01x"], 0x06, ENCODING, "the data ends beyond 2^62-1"),
        (&[&[0x06], b"\x00\x10x"], 0x06, ENCODING, "the frame is truncated"),
        (&[&[0x07], b"\x00"], 0x07, ENCODING, "the token is empty"),
        (&[&[0x07], &MAX], 0x07, ENCODING, "the frame is truncated"),
        (&[&[0x0c, 0x00], &MAX, b"x"], 0x0c, ENCODING, "the data ends beyond 2^62-1"),
        (&[&[0x0f, 0x00], &MAX, b"\x01x"], 0x0f, ENCODING, "the data ends beyond 2^62-1"),
        (&[&[0x0a, 0x00], b"\x10x"], 0x0a, ENCODING, "the frame is truncated"),
        (&[&[0x12], &two_to_the_60_and_one], 0x12, ENCODING, "more than 2^60 streams"),
        (&[&[0x13], &MAX], 0x13, ENCODING, "more than 2^60 streams"),
        (&[&[0x16], &two_to_the_60_and_one], 0x16, ENCODING, "more than 2^60 streams"),
        (&[&[0x17], &MAX], 0x17, ENCODING, "more than 2^60 streams"),
        (&[&[0x18], b"\x01\x00\x00", &token], 0x18, ENCODING, "the connection ID is empty"),
        (&[&[0x18], b"\x01\x00\x15", &[0; 21], &token], 0x18, ENCODING, "the connection ID is too long"),
        (&[&[0x18], b"\x01\x00\xff", &[0; 255], &token], 0x18, ENCODING, "the connection ID is too long"),
        (&[&[0x18], b"\x01\x02\x01x", &token], 0x18, ENCODING, "a connection ID that retires itself"),
        (&[&[0x1c], b"\x00\x00\x10x"], 0x1c, ENCODING, "the frame is truncated"),
        (&[b"\x7f\xec"], 0x3fec, ENCODING, "the frame is truncated"),
        (&[b"\x7f\xed\x40\x01\x00\x00\x00\x00\x01x"], 0x3fed, ENCODING, "the repair symbol is too short"),
        (&[b"\x7f\xed\x41\x00\x00\x00\x00\x00\x02xy"], 0x3fed, ENCODING, "there is no such erasure code"),
        (&[b"\x7f\xee\x00\x41\x00"], 0x3fee, ENCODING, "more symbols were recovered than there can be"),
        (&[b"\x7f\xee", &MAX, b"\x01"], 0x3fee, ENCODING, "more symbols were recovered than there can be"),
        (&[&SOURCE_SYMBOL, b"\x00\x10x"], 0x32a80fec55, ENCODING, "the frame is truncated"),
        (&[b"\xb2\xa8\x0f\xec\x00\x00\x01x"], 0x32a80fec, ENCODING, "the repair symbol is too short"),
        (&[&SYMBOL_ACK, b"\x05\x00\x06"], 0x32a80fecac, ENCODING, "an ACK range falls below zero"),
        (&[&SYMBOL_ACK, b"\x05\x02\x00\x00"], 0x32a80fecac, ENCODING, "the frame is truncated"),
        (&[&[0x31], b"\x10x"], 0x31, ENCODING, "the frame is truncated"),
        (&[&[0x24], b"\x04\x00\x05\x06"], 0x24, ENCODING, "the reliable size is larger than the final size"),
        (&[&[0x24], b"\x04\x00\x05\x80\x00"], 0x24, ENCODING, "the frame is truncated"),
        (&[b"\x80\x9f\x81\xa6", b"\x01\xc0\x00\x02\x01"], 0x9f81a6, ENCODING, "the frame is truncated"),
        (&[b"\x80\x9f\x81\xa7", b"\x01", &[0; 16]], 0x9f81a7, ENCODING, "the frame is truncated"),
        (&[b"\x42\xf5", b"\x80\x00"], 0x2f5, ENCODING, "the frame is truncated"),
        (&[&[0x20]], 0x20, ENCODING, "the frame type is unknown"),
        (&[b"\x40\xaf", b"\x01\x02\x40\x10\x80"], 0xaf, ENCODING, "the frame is truncated"),
        (&[&[0xff; 8]], VarInt::MAX.get(), ENCODING, "the frame type is unknown"),
        (&[&[0x40, 0x01]], 0x01, VIOLATION, "the frame type is not in its shortest form"),
    ];
    for (parts, frame_type, code, reason) in table {
        let expected = FrameError { frame_type: FrameType(frame_type), code, reason };
        for dialect in [Dialect::SinglePath, Dialect::Multipath] {
            assert_eq!(error(&parts.concat(), dialect), expected);
        }
    }
}

#[test]
fn the_limits_themselves_are_legal() {
    let two_to_the_60 = [0xd0, 0, 0, 0, 0, 0, 0, 0];
    let legal: [&[&[u8]]; 7] = [
        &[&[0x02], b"\x05\x00\x00\x05"],
        &[&[0x02], b"\x05\x00\x01\x00\x01\x02"],
        &[&[0x06], &MAX, b"\x00"],
        &[&[0x0f, 0x00], &MAX, b"\x00"],
        &[&[0x12], &two_to_the_60],
        &[&[0x17], &two_to_the_60],
        &[&[0x18], b"\x01\x01\x14", &[0; 20], &[0; 16]],
    ];
    for parts in legal {
        let bytes = parts.concat();
        let read: Vec<_> = frames(&bytes, Dialect::SinglePath).collect();
        assert!(matches!(read[..], [Ok(_)]), "{bytes:02x?} was read: {read:?}");
    }
}

#[test]
fn path_frames_are_unknown_where_there_is_one_path() {
    let frames: [(&[&[u8]], u64); 4] = [
        (&[b"\x3e", b"\x00\x05\x00\x00\x00"], 0x3e),
        (&[b"\x3f", b"\x00\x05\x00\x00\x00\x01\x01\x01"], 0x3f),
        (&[b"\x7e\x78", b"\x00\x01\x00\x01x", &[0; 16]], 0x3e78),
        (&[b"\x7e\x79", b"\x00\x05"], 0x3e79),
    ];
    for (parts, frame_type) in frames {
        let bytes = parts.concat();
        let unknown = FrameError {
            frame_type: FrameType(frame_type),
            code: ENCODING,
            reason: "the frame type is unknown",
        };
        assert_eq!(error(&bytes, Dialect::SinglePath), unknown);
        assert!(super::frames(&bytes, Dialect::Multipath).all(|frame| frame.is_ok()));
    }
}

#[test]
fn illegal_path_frames() {
    let too_large = [0xc0, 0, 0, 1, 0, 0, 0, 0];
    for (frame_type, number) in
        [(&b"\x3e"[..], 0x3e), (b"\x3f", 0x3f), (b"\x7e\x78", 0x3e78), (b"\x7e\x79", 0x3e79)]
    {
        let expected = FrameError {
            frame_type: FrameType(number),
            code: VIOLATION,
            reason: "the path ID is 2^32 or more",
        };
        assert_eq!(error(&[frame_type, &too_large, &[0; 40]].concat(), Dialect::Multipath), expected);
    }
    // The types in four bytes, which two or one would have held.
    for bytes in [&[0x80, 0, 0x3e, 0x78][..], &[0x80, 0, 0x3e, 0x79], &[0x40, 0x3e]] {
        assert_eq!(error(bytes, Dialect::Multipath).code, VIOLATION);
    }
    // What is checked of the plain frame is checked of the one with a path.
    assert_eq!(error(b"\x3e\x00\x05\x00\x00\x06", Dialect::Multipath).code, ENCODING);
    assert_eq!(error(b"\x7e\x78\x00\x01\x02\x01x0123456789abcdef", Dialect::Multipath).code, ENCODING);
    assert_eq!(error(b"\x7e\x7d\x00", Dialect::Multipath).reason, "the frame type is unknown");
}

#[test]
fn a_type_that_ends_early_is_not_known() {
    for bytes in [&[0x40][..], &[0x80, 0, 0], &[0xff; 7]] {
        let read: Vec<_> = frames(bytes, Dialect::SinglePath).collect();
        let reason = "the frame type is truncated";
        assert_eq!(read, [Err(FrameError { frame_type: FrameType::PADDING, code: ENCODING, reason })]);
    }
}

#[test]
fn padding_of_any_length_is_one_frame() {
    for len in 1..100 {
        let mut bytes = vec![0; len];
        assert_eq!(frames(&bytes, Dialect::SinglePath).collect::<Vec<_>>(), [Ok(Frame::Padding)]);
        bytes.extend([1, 0]);
        let expected = [Ok(Frame::Padding), Ok(Frame::Ping), Ok(Frame::Padding)];
        assert_eq!(frames(&bytes, Dialect::SinglePath).collect::<Vec<_>>(), expected);
    }
}

#[test]
fn no_bytes_are_no_frames() {
    assert_eq!(frames(&[], Dialect::SinglePath).count(), 0);
}

#[test]
fn a_datagram_without_a_length_reaches_to_the_end() {
    let expected = |data| [Ok(Frame::Datagram(Datagram { data }))];
    assert_eq!(frames(b"\x30\x01\x00", Dialect::SinglePath).collect::<Vec<_>>(), expected(b"\x01\x00"));
    assert_eq!(frames(b"\x30", Dialect::SinglePath).collect::<Vec<_>>(), expected(b""));
}

#[test]
fn errors_name_the_frame() {
    let error = error(b"\x07\x00", Dialect::SinglePath);
    assert_eq!(error.to_string(), "FRAME_ENCODING_ERROR in NEW_TOKEN: the token is empty");
}
