//! RFC 9000 §12.4, table 3, with an example of each frame and its bytes.

use super::*;
use crate::Reader;

/// A row: the example, its bytes, the packets ("IH01") and the notes (N: not ack-eliciting, P: probing).
type Row = (Frame<'static>, &'static [u8], &'static str, &'static str);

fn id(number: u64) -> StreamId {
    StreamId::try_from(number).unwrap()
}

fn plain_rows() -> Vec<Row> {
    use Frame as F;
    vec![
        (F::Padding, b"\x00", "IH01", "NP"),
        (F::Ping, b"\x01", "IH01", ""),
        (
            F::ResetStream(ResetStream { id: id(4), error_code: varint(300), final_size: varint(5) }),
            b"\x04\x04\x41\x2c\x05",
            "01",
            "",
        ),
        (
            F::ResetStreamAt(ResetStreamAt {
                id: id(4),
                error_code: varint(300),
                final_size: varint(70),
                reliable_size: varint(5),
            }),
            b"\x24\x04\x41\x2c\x40\x46\x05",
            "01",
            "",
        ),
        (F::StopSending(StopSending { id: id(4), error_code: varint(300) }), b"\x05\x04\x41\x2c", "01", ""),
        (F::Crypto(Crypto { offset: varint(2), data: b"hello" }), b"\x06\x02\x05hello", "IH1", ""),
        (F::NewToken(NewToken { token: b"token" }), b"\x07\x05token", "1", ""),
        (
            F::Stream(Stream { id: id(7), offset: varint(1), fin: true, data: b"x" }),
            b"\x0f\x07\x01\x01x",
            "01",
            "",
        ),
        (F::MaxData(MaxData { maximum: varint(63) }), b"\x10\x3f", "01", ""),
        (F::MaxStreamData(MaxStreamData { id: id(1), maximum: varint(64) }), b"\x11\x01\x40\x40", "01", ""),
        (F::MaxStreams(MaxStreams { dir: Dir::Bi, maximum: varint(9) }), b"\x12\x09", "01", ""),
        (F::MaxStreams(MaxStreams { dir: Dir::Uni, maximum: varint(9) }), b"\x13\x09", "01", ""),
        (F::DataBlocked(DataBlocked { limit: varint(3) }), b"\x14\x03", "01", ""),
        (F::StreamDataBlocked(StreamDataBlocked { id: id(1), limit: varint(2) }), b"\x15\x01\x02", "01", ""),
        (F::StreamsBlocked(StreamsBlocked { dir: Dir::Bi, limit: varint(3) }), b"\x16\x03", "01", ""),
        (F::StreamsBlocked(StreamsBlocked { dir: Dir::Uni, limit: varint(3) }), b"\x17\x03", "01", ""),
        (F::PathChallenge(PathChallenge { data: *b"abcdefgh" }), b"\x1aabcdefgh", "01", "P"),
        (F::PathResponse(PathResponse { data: *b"abcdefgh" }), b"\x1babcdefgh", "1", "P"),
        (
            F::ConnectionClose(ConnectionClose {
                code: CloseCode::Transport { code: TransportErrorCode::crypto(40), frame: FrameType::CRYPTO },
                reason: b"bad",
            }),
            b"\x1c\x41\x28\x06\x03bad",
            "IH01",
            "N",
        ),
        (
            F::ConnectionClose(ConnectionClose { code: CloseCode::Application(varint(7)), reason: b"" }),
            b"\x1d\x07\x00",
            "01",
            "N",
        ),
        (F::HandshakeDone, b"\x1e", "1", ""),
        (F::Datagram(Datagram { data: b"now" }), b"\x31\x03now", "01", ""),
        (F::ImmediateAck, b"\x1f", "1", ""),
        (F::FecSid(FecSid { id: 0x1234 }), b"\x7f\xec\x12\x34", "1", ""),
        (
            F::FecRepair(FecRepair { scheme: 1, first: 0x1234, more: 255, key: 300, symbol: b"sum" }),
            b"\x7f\xed\x01\x12\x34\xff\x41\x2c\x03sum",
            "1",
            "",
        ),
        (
            F::FecRecovered(FecRecovered { first: varint(70_000), more: 1 }),
            b"\x7f\xee\x80\x01\x11\x70\x01",
            "1",
            "",
        ),
        (F::Timestamp(Timestamp { time: varint(300) }), b"\x42\xf5\x41\x2c", "1", "N"),
        (
            F::ObservedAddress(ObservedAddress {
                sequence: varint(70),
                ip: [192, 0, 2, 1].into(),
                port: 0x1092,
            }),
            b"\x80\x9f\x81\xa6\x40\x46\xc0\x00\x02\x01\x10\x92",
            "01",
            "P",
        ),
        (
            F::ObservedAddress(ObservedAddress {
                sequence: varint(1),
                ip: [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7].into(),
                port: 443,
            }),
            b"\x80\x9f\x81\xa7\x01\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x07\x01\xbb",
            "01",
            "P",
        ),
        (
            F::AckFrequency(AckFrequency {
                sequence: varint(1),
                ack_eliciting_threshold: varint(9),
                max_ack_delay_micros: varint(5_000),
                reordering_threshold: varint(3),
            }),
            b"\x40\xaf\x01\x09\x53\x88\x03",
            "1",
            "",
        ),
    ]
}

/// The frames that have a path, for a path.
fn path_rows(path: PathId) -> [(Frame<'static>, &'static str, &'static str); 2] {
    let new = NewConnectionId {
        path,
        sequence: varint(2),
        retire_prior_to: varint(1),
        cid: ConnectionId::new(b"cid").unwrap(),
        reset_token: ResetToken(*b"0123456789abcdef"),
    };
    let retire = RetireConnectionId { path, sequence: varint(65) };
    let early = if path == PathId::ZERO { "01" } else { "1" };
    [(Frame::NewConnectionId(new), early, "P"), (Frame::RetireConnectionId(retire), "1", "")]
}

fn check_notes(frame: &Frame<'_>, packets: &str, notes: &str) {
    for (kind, letter) in [
        (PacketKind::Initial, 'I'),
        (PacketKind::Handshake, 'H'),
        (PacketKind::ZeroRtt, '0'),
        (PacketKind::OneRtt, '1'),
    ] {
        assert_eq!(frame.is_permitted_in(kind), packets.contains(letter), "{frame:?} in {kind:?}");
    }
    assert_eq!(frame.is_ack_eliciting(), !notes.contains('N'), "{frame:?}");
    assert_eq!(frame.is_probing(), notes.contains('P'), "{frame:?}");
}

fn check_bytes(frame: &Frame<'_>, bytes: &[u8], dialect: Dialect) {
    assert_eq!(encode(frame, dialect), bytes, "{frame:?}");
    assert_eq!(frames(bytes, dialect).collect::<Vec<_>>(), [Ok(*frame)]);
}

#[test]
fn frames_without_a_path() {
    for (frame, bytes, packets, notes) in plain_rows() {
        check_notes(&frame, packets, notes);
        for dialect in DIALECTS {
            check_bytes(&frame, bytes, dialect);
        }
        // STREAM and DATAGRAM are named by their first types.
        let first_type = match Reader::new(bytes).varint().unwrap().get() {
            0x0f => 0x08,
            0x31 => 0x30,
            other => other,
        };
        assert_eq!(frame.frame_type(), FrameType(first_type));
    }
}

#[test]
fn frames_with_a_path() {
    const NEW: &[u8] = b"\x02\x01\x03cid0123456789abcdef";
    const RETIRE: &[u8] = b"\x40\x41";
    for path in [PathId::ZERO, PathId(3), PathId(u32::MAX)] {
        for (frame, packets, notes) in path_rows(path) {
            check_notes(&frame, packets, notes);
        }
    }
    let [(new, ..), (retire, ..)] = path_rows(PathId::ZERO);
    check_bytes(&new, &[b"\x18", NEW].concat(), Dialect::SinglePath);
    check_bytes(&retire, &[b"\x19", RETIRE].concat(), Dialect::SinglePath);
    check_bytes(&new, &[b"\x7e\x78\x00", NEW].concat(), Dialect::Multipath);
    check_bytes(&retire, &[b"\x7e\x79\x00", RETIRE].concat(), Dialect::Multipath);
    assert_eq!(new.frame_type(), FrameType::NEW_CONNECTION_ID);
    assert_eq!(retire.frame_type(), FrameType::RETIRE_CONNECTION_ID);

    let [(new, ..), (retire, ..)] = path_rows(PathId(u32::MAX));
    const LARGEST_PATH: &[u8] = b"\xc0\x00\x00\x00\xff\xff\xff\xff";
    check_bytes(&new, &[b"\x7e\x78", LARGEST_PATH, NEW].concat(), Dialect::Multipath);
    check_bytes(&retire, &[b"\x7e\x79", LARGEST_PATH, RETIRE].concat(), Dialect::Multipath);
    assert_eq!(new.frame_type(), FrameType::PATH_NEW_CONNECTION_ID);
    assert_eq!(retire.frame_type(), FrameType::PATH_RETIRE_CONNECTION_ID);
}

#[test]
fn plain_frames_mean_path_0_among_several_paths() {
    for (frame, ..) in path_rows(PathId::ZERO) {
        let bytes = encode(&frame, Dialect::SinglePath);
        assert_eq!(frames(&bytes, Dialect::Multipath).collect::<Vec<_>>(), [Ok(frame)]);
    }
}

#[test]
fn frames_that_manage_paths() {
    let path = PathId(3);
    let sequence = varint(65);
    let rows: [(Frame<'_>, &[u8]); 6] = [
        (Frame::PathAbandon(PathAbandon { path, code: varint(0x3e) }), b"\x7e\x75\x03\x3e"),
        (Frame::PathStatus(PathStatus { path, sequence, available: false }), b"\x7e\x76\x03\x40\x41"),
        (Frame::PathStatus(PathStatus { path, sequence, available: true }), b"\x7e\x77\x03\x40\x41"),
        (Frame::MaxPathId(MaxPathId { max: path }), b"\x7e\x7a\x03"),
        (Frame::PathsBlocked(PathsBlocked { max: path }), b"\x7e\x7b\x03"),
        (Frame::PathCidsBlocked(PathCidsBlocked { path, next_sequence: sequence }), b"\x7e\x7c\x03\x40\x41"),
    ];
    for (frame, bytes) in rows {
        check_notes(&frame, "1", "");
        check_bytes(&frame, bytes, Dialect::Multipath);
        assert_eq!(Reader::new(bytes).varint().unwrap().get(), frame.frame_type().0);
        let alone = frames(bytes, Dialect::SinglePath).next().unwrap().unwrap_err();
        assert_eq!(alone.reason, "the frame type is unknown");
    }
}
