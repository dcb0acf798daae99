//! Capsules are read as they were written, however their bytes come.

use bytes::{Bytes, BytesMut};
use fulmar_h3_proto::{CAPSULE_DATAGRAM, Capsule, CapsuleReader, CapsuleTooLong};
use proptest::prelude::*;

fn capsule(ty: u64, value: &[u8]) -> Capsule {
    Capsule { ty, value: Bytes::copy_from_slice(value) }
}

/// Reads what comes in pieces of so many bytes.
fn read(reader: &mut CapsuleReader, bytes: &[u8], len: usize) -> Vec<Capsule> {
    let mut capsules = Vec::new();
    for piece in bytes.chunks(len) {
        let mut piece = Bytes::copy_from_slice(piece);
        while let Some(capsule) = reader.read(&mut piece, |ty| ty != 0x17).unwrap() {
            capsules.push(capsule);
        }
        assert!(piece.is_empty());
    }
    capsules
}

#[test]
fn unknown_capsules_are_skipped() {
    let known = [capsule(CAPSULE_DATAGRAM, b"one"), capsule(0x2843, b""), capsule(1 << 40, &[7; 200])];
    let unknown = capsule(0x17, &[1; 5000]);
    let mut bytes = BytesMut::new();
    for capsule in &known {
        bytes.extend_from_slice(&unknown.encode());
        bytes.extend_from_slice(&capsule.encode());
    }
    for len in 1..300 {
        let mut reader = CapsuleReader::new(200);
        assert_eq!(read(&mut reader, &bytes, len), known);
        assert!(reader.is_between_capsules());
    }
}

#[test]
fn a_capsule_that_is_too_long_is_refused_before_it_comes() {
    let mut reader = CapsuleReader::new(10);
    let mut bytes = capsule(5, &[0; 11]).encode().slice(..2);
    assert_eq!(reader.read(&mut bytes, |_| true), Err(CapsuleTooLong { len: 11 }));
}

#[test]
fn data_must_not_end_within_a_capsule() {
    let bytes = capsule(0x4000, &[1, 2, 3]).encode();
    for end in 1..bytes.len() {
        let mut reader = CapsuleReader::new(10);
        assert_eq!(read(&mut reader, &bytes[..end], 1), []);
        assert!(!reader.is_between_capsules(), "{end} bytes");
    }
}

proptest! {
    #[test]
    fn any_capsules_in_any_pieces(
        values in proptest::collection::vec((0..1_u64 << 62, proptest::collection::vec(any::<u8>(), 0..100)), 0..20),
        len in 1..50_usize,
    ) {
        let capsules: Vec<_> = values.iter().map(|(ty, value)| capsule(*ty, value)).collect();
        let bytes: Vec<u8> = capsules.iter().flat_map(|capsule| capsule.encode().to_vec()).collect();
        let wanted: Vec<_> = capsules.into_iter().filter(|capsule| capsule.ty != 0x17).collect();
        prop_assert_eq!(read(&mut CapsuleReader::new(100), &bytes, len), wanted);
    }
}
