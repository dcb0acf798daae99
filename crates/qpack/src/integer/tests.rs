use proptest::prelude::*;

use super::*;

fn written(prefix_bits: u32, value: u64) -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut out, 0, prefix_bits, value);
    out
}

#[test]
fn the_examples_of_rfc_7541_appendix_c_1() {
    assert_eq!(written(5, 10), [0b0000_1010]);
    assert_eq!(written(5, 1337), [0b0001_1111, 0b1001_1010, 0b0000_1010]);
    assert_eq!(written(8, 42), [0b0010_1010]);
    assert_eq!(read(&mut &[0xea][..], 5), Ok(10));
    assert_eq!(read(&mut &[0xff, 0x9a, 0x0a, 0x77][..], 5), Ok(1337));
}

#[test]
fn more_than_62_bits_are_refused() {
    let mut largest = written(8, MAX);
    assert_eq!(read(&mut &largest[..], 8), Ok(MAX));
    let last = largest.len() - 1;
    largest[last] += 0x40;
    assert_eq!(read(&mut &largest[..], 8), Err(TOO_LARGE));
    assert_eq!(read(&mut &[0xff; 11][..], 8), Err(TOO_LARGE));
}

#[test]
fn padding_without_an_end_is_refused() {
    let mut padded = vec![0xff];
    padded.extend([0x80; 9]);
    padded.push(0);
    assert_eq!(read(&mut &padded[..], 8), Err(TOO_LARGE));
}

proptest! {
    #[test]
    fn what_is_written_is_read(value in 0..=MAX, shift in 0..62u32, bits in 1..=8u32, tail: Vec<u8>) {
        let value = value >> shift;
        let mut bytes = written(bits, value);
        prop_assert_eq!(bytes.len(), encoded_len(bits, value));
        for cut in 0..bytes.len() {
            prop_assert_eq!(read(&mut &bytes[..cut], bits), Err(ReadError::Incomplete));
        }
        bytes.extend(&tail);
        let mut input = &bytes[..];
        prop_assert_eq!(read(&mut input, bits), Ok(value));
        prop_assert_eq!(input, &tail[..]);
    }
}
