use proptest::prelude::*;

use super::*;
use crate::{ConnectionId, Dir, ResetToken, StreamId, TransportErrorCode};

pub(super) mod strategies;
mod table;

use strategies::{any_dialect, any_frame, any_path_frame};

const DIALECTS: [Dialect; 2] = [Dialect::SinglePath, Dialect::Multipath];

pub(super) fn varint(value: u64) -> VarInt {
    VarInt::try_from(value).unwrap()
}

/// The bytes of a frame, once it is sure that they are as many as announced.
pub(super) fn encode(frame: &Frame<'_>, dialect: Dialect) -> Vec<u8> {
    let mut bytes = vec![0xff; frame.encoded_len(dialect)];
    let mut writer = Writer::new(&mut bytes);
    frame.encode(dialect, &mut writer);
    assert_eq!(writer.remaining(), 0, "{frame:?}");
    bytes
}

/// Every proper prefix of a frame with explicit lengths is an error, and nothing else.
pub(super) fn check_truncations(bytes: &[u8], dialect: Dialect) {
    for len in 1..bytes.len() {
        let read: Vec<_> = frames(&bytes[..len], dialect).collect();
        let [Err(error)] = read[..] else { panic!("{len} bytes of {bytes:02x?} were read: {read:?}") };
        assert_eq!(error.code, TransportErrorCode::FRAME_ENCODING_ERROR, "{error}");
    }
}

proptest! {
    #[test]
    fn every_frame_is_read_as_written(
        (dialect, frame) in any_dialect().prop_flat_map(|dialect| (Just(dialect), any_frame(dialect))),
    ) {
        let bytes = encode(&frame, dialect);
        let read: Vec<_> = frames(&bytes, dialect).collect();
        prop_assert_eq!(read, [Ok(frame)]);
        check_truncations(&bytes, dialect);
    }

    #[test]
    fn every_frame_about_paths_is_read_as_written(frame in any_path_frame()) {
        let bytes = encode(&frame, Dialect::Multipath);
        let read: Vec<_> = frames(&bytes, Dialect::Multipath).collect();
        prop_assert_eq!(read, [Ok(frame)]);
        check_truncations(&bytes, Dialect::Multipath);
    }

    #[test]
    fn frames_follow_each_other(
        (dialect, mut list) in any_dialect().prop_flat_map(|dialect| {
            (Just(dialect), prop::collection::vec(any_frame(dialect), 0..12))
        }),
    ) {
        let bytes: Vec<u8> = list.iter().flat_map(|frame| encode(frame, dialect)).collect();
        // A run of padding is read as one frame.
        list.dedup_by(|b, a| (*a, *b) == (Frame::Padding, Frame::Padding));
        let read: Result<Vec<_>, _> = frames(&bytes, dialect).collect();
        prop_assert_eq!(read, Ok(list));
    }

    /// Type bytes are drawn apart, so that bodies of all frames are met.
    #[test]
    fn any_bytes_are_read_to_an_end(
        dialect in any_dialect(),
        pieces in prop::collection::vec((0u8..0x40, prop::collection::vec(0u8..=0xff, 0..24)), 0..8),
        path_type in prop::option::of(0x75u8..=0x7c),
    ) {
        let mut bytes: Vec<u8> = path_type.into_iter().flat_map(|low| [0x7e, low]).collect();
        for (first, body) in pieces {
            bytes.push(first);
            bytes.extend(body);
        }
        let mut read = frames(&bytes, dialect);
        let mut count = 0;
        while let Some(frame) = read.next() {
            count += 1;
            let Ok(frame) = frame else {
                prop_assert!(read.next().is_none());
                break;
            };
            // Whatever is legal can be written, and means the same again.
            let bytes = encode(&frame, dialect);
            let again: Vec<_> = frames(&bytes, dialect).collect();
            prop_assert_eq!(again, [Ok(frame)]);
        }
        prop_assert!(count <= bytes.len());
    }
}
