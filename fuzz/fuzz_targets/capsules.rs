//! Capsules in any pieces: what is read once is read the same when it comes byte by byte, and nothing is too long.
#![no_main]

use bytes::Bytes;
use fulmar_h3_proto::{Capsule, CapsuleReader, CapsuleTooLong};
use libfuzzer_sys::fuzz_target;

const VALUE_MAX: usize = 64;

fn read(bytes: &[u8], len: usize) -> (Vec<Capsule>, Result<bool, CapsuleTooLong>) {
    let mut reader = CapsuleReader::new(VALUE_MAX);
    let mut capsules = Vec::new();
    for piece in bytes.chunks(len.max(1)) {
        let mut piece = Bytes::copy_from_slice(piece);
        loop {
            match reader.read(&mut piece, |ty| ty % 3 != 1) {
                Ok(Some(capsule)) => capsules.push(capsule),
                Ok(None) => break,
                Err(error) => return (capsules, Err(error)),
            }
        }
        assert!(piece.is_empty());
    }
    (capsules, Ok(reader.is_between_capsules()))
}

fuzz_target!(|input: (u8, Vec<u8>)| {
    let (len, bytes) = input;
    let whole = read(&bytes, bytes.len());
    assert_eq!(read(&bytes, 1), whole);
    assert_eq!(read(&bytes, usize::from(len)), whole);
    for capsule in whole.0 {
        assert!(capsule.value.len() <= VALUE_MAX && capsule.ty % 3 != 1);
        assert_eq!(read(&capsule.encode(), 3), (vec![capsule], Ok(true)));
    }
});
