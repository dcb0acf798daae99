use super::*;
use crate::frame::tests::varint;
use crate::{Dialect, Frame, frames};

const ID: u64 = 5;

fn encode(header: StreamHeader, data: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; header.encoded_len() + data.len()];
    let mut writer = Writer::new(&mut bytes);
    header.encode(&mut writer);
    assert_eq!(writer.len(), header.encoded_len());
    writer.put_bytes(data);
    bytes
}

#[test]
fn each_combination_of_flags_has_its_type() {
    let id = StreamId::try_from(ID).unwrap();
    let data = b"data";
    for (offset, explicit_len, fin, wire) in [
        (0, false, false, &b"\x08\x05"[..]),
        (0, false, true, b"\x09\x05"),
        (0, true, false, b"\x0a\x05\x04"),
        (0, true, true, b"\x0b\x05\x04"),
        (70, false, false, b"\x0c\x05\x40\x46"),
        (70, false, true, b"\x0d\x05\x40\x46"),
        (70, true, false, b"\x0e\x05\x40\x46\x04"),
        (70, true, true, b"\x0f\x05\x40\x46\x04"),
    ] {
        let offset = varint(offset);
        let header = StreamHeader { id, offset, len: data.len(), fin, explicit_len };
        let bytes = encode(header, data);
        assert_eq!(bytes, [wire, data].concat());

        let read: Vec<_> = frames(&bytes, Dialect::SinglePath).collect();
        assert_eq!(read, [Ok(Frame::Stream(Stream { id, offset, fin, data }))]);
    }
}

#[test]
fn without_a_length_the_data_reaches_to_the_end() {
    let header = StreamHeader {
        id: StreamId::try_from(ID).unwrap(),
        offset: VarInt::ZERO,
        len: 3,
        fin: false,
        explicit_len: false,
    };
    // What follows would be a PING and two PADDING frames.
    let mut bytes = encode(header, &[1, 0, 0]);
    while bytes.len() >= header.encoded_len() {
        let read: Vec<_> = frames(&bytes, Dialect::SinglePath).collect();
        let data = &bytes[header.encoded_len()..];
        let expected = Stream { id: header.id, offset: header.offset, fin: false, data };
        assert_eq!(read, [Ok(Frame::Stream(expected))]);
        bytes.pop();
    }
}
