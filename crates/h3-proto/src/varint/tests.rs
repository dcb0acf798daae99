use bytes::Bytes;

use super::{MAX, Reader, len, read, read_alone, write};

const BORDERS: [u64; 8] = [0, 0x3f, 0x40, 0x3fff, 0x4000, 0x3fff_ffff, 0x4000_0000, MAX];

#[test]
fn integers_are_read_as_they_were_written() {
    for value in BORDERS {
        let mut bytes = Vec::new();
        write(value, &mut bytes);
        assert_eq!(bytes.len(), len(value));
        assert_eq!(read_alone(&bytes), Some(value));
        assert_eq!(read(&mut &bytes[..bytes.len() - 1]), None);
        bytes.push(0);
        assert_eq!(read_alone(&bytes), None);
    }
}

#[test]
fn the_examples_of_rfc_9000_are_read() {
    assert_eq!(read_alone(&[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c]), Some(151_288_809_941_952_652));
    assert_eq!(read_alone(&[0x9d, 0x7f, 0x3e, 0x7d]), Some(494_878_333));
    assert_eq!(read_alone(&[0x40, 0x25]), Some(37));
}

#[test]
fn an_integer_in_pieces_is_read_and_leaves_the_rest() {
    for value in BORDERS {
        let mut bytes = Vec::new();
        write(value, &mut bytes);
        for at in 0..bytes.len() {
            let mut reader = Reader::default();
            let mut first = Bytes::copy_from_slice(&bytes[..at]);
            assert_eq!(reader.read(&mut first), None);
            assert_eq!(reader.is_inside(), at > 0);
            let mut second = Bytes::from([&bytes[at..], b"rest"].concat());
            assert_eq!(reader.read(&mut second), Some(value));
            assert_eq!(&second[..], b"rest");
            assert!(!reader.is_inside());
        }
    }
}
