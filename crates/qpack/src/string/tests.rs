use proptest::prelude::*;

use super::*;

#[test]
fn the_shorter_form_is_written() {
    let mut out = Vec::new();
    write(&mut out, 0, 7, b"www.example.com");
    assert_eq!(out, [0x8c, 0xf1, 0xe3, 0xc2, 0xe5, 0xf2, 0x3a, 0x6b, 0xa0, 0xab, 0x90, 0xf4, 0xff]);
    out.clear();
    write(&mut out, 0b0100_0000, 5, b"&&&");
    assert_eq!(out, b"\x43&&&");
}

#[test]
fn a_string_that_is_too_long_is_refused_before_it_has_come() {
    let read = |bytes: &'static [u8]| Literal::read(&mut &bytes[..], 7, 10);
    assert_eq!(read(&[10]), Err(ReadError::Incomplete));
    assert!(matches!(read(&[11]), Err(ReadError::Invalid(_))));
    assert_eq!(read(&[0x80 | 40]), Err(ReadError::Incomplete));
    assert!(matches!(read(&[0x80 | 41]), Err(ReadError::Invalid(_))));
}

#[test]
fn a_string_is_appended_to_what_is_there_and_fits_the_room_that_was_told() {
    for text in [&b"www.example.com"[..], b"&&&"] {
        let mut written = Vec::new();
        write(&mut written, 0, 7, text);
        let literal = Literal::read(&mut &written[..], 7, 100).unwrap();
        assert!((text.len()..=2 * written.len()).contains(&literal.room()), "{}", literal.room());
        let (mut vec, mut bytes) = (b"before ".to_vec(), bytes::BytesMut::from(&b"before "[..]));
        literal.append_to(&mut vec).unwrap();
        literal.append_to(&mut bytes).unwrap();
        let expected = [b"before ", text].concat();
        assert_eq!((&vec, &bytes[..]), (&expected, &expected[..]));
    }
}

proptest! {
    #[test]
    fn what_is_written_is_read(bytes: Vec<u8>, prefix_bits in 3..=7u32, tail: Vec<u8>) {
        let mut out = Vec::new();
        write(&mut out, 0, prefix_bits, &bytes);
        prop_assert_eq!(out.len(), encoded_len(prefix_bits, &bytes));
        for cut in 0..out.len() {
            let read = Literal::read(&mut &out[..cut], prefix_bits, bytes.len());
            prop_assert_eq!(read, Err(ReadError::Incomplete));
        }
        out.extend(&tail);
        let mut input = &out[..];
        let literal = Literal::read(&mut input, prefix_bits, bytes.len()).unwrap();
        prop_assert_eq!(literal.to_vec(), Ok(bytes));
        prop_assert_eq!(input, &tail[..]);
    }
}
