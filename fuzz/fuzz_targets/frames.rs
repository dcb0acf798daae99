//! Whatever decodes as frames is encoded, and decodes to the same frames again.
#![no_main]

use fulmar_wire::{Dialect, Frame, Writer, frames};
use libfuzzer_sys::fuzz_target;

fn encode(decoded: &[Frame<'_>], dialect: Dialect) -> Vec<u8> {
    let mut bytes = Vec::new();
    for frame in decoded {
        let start = bytes.len();
        let len = frame.encoded_len(dialect);
        bytes.resize(start + len, 0);
        let mut writer = Writer::new(&mut bytes[start..]);
        frame.encode(dialect, &mut writer);
        assert_eq!(writer.len(), len, "{frame:?} was not as long as it said");
    }
    bytes
}

fuzz_target!(|payload: &[u8]| {
    for dialect in [Dialect::SinglePath, Dialect::Multipath] {
        let decoded: Vec<_> = frames(payload, dialect).map_while(Result::ok).collect();
        let bytes = encode(&decoded, dialect);
        let again: Result<Vec<_>, _> = frames(&bytes, dialect).collect();
        // A run of PADDING is one frame, and two runs in a row are one run.
        let mut expected = decoded;
        expected.dedup_by(|a, b| *a == Frame::Padding && *b == Frame::Padding);
        assert_eq!(again, Ok(expected));
    }
});
