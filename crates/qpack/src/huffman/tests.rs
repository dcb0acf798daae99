use proptest::prelude::*;

use super::*;

fn encoded(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    encode(bytes, &mut out);
    assert_eq!(out.len(), encoded_len(bytes));
    out
}

fn decoded(input: &[u8]) -> Result<Vec<u8>, InvalidHuffman> {
    let mut out = vec![0; room(input.len())];
    let len = decode(input, &mut out)?;
    out.truncate(len);
    Ok(out)
}

fn from_hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    digits.chunks(2).map(|pair| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

#[test]
fn the_strings_of_rfc_7541_appendices_c_4_and_c_6() {
    let strings = [
        ("www.example.com", "f1e3 c2e5 f23a 6ba0 ab90 f4ff"),
        ("no-cache", "a8eb 1064 9cbf"),
        ("custom-key", "25a8 49e9 5ba9 7d7f"),
        ("custom-value", "25a8 49e9 5bb8 e8b4 bf"),
        ("302", "6402"),
        ("private", "aec3 771a 4b"),
        ("Mon, 21 Oct 2013 20:13:21 GMT", "d07a be94 1054 d444 a820 0595 040b 8166 e082 a62d 1bff"),
        ("https://www.example.com", "9d29 ad17 1863 c78f 0b97 c8e9 ae82 ae43 d3"),
        ("307", "640e ff"),
        ("Mon, 21 Oct 2013 20:13:22 GMT", "d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff"),
        ("gzip", "9bd9 ab"),
        (
            "foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1",
            "94e7 821d d7f2 e6c7 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed 4ee5 b106 3d50 07",
        ),
    ];
    for (text, hex) in strings {
        assert_eq!(encoded(text.as_bytes()), from_hex(hex), "{text}");
        assert_eq!(decoded(&from_hex(hex)).as_deref(), Ok(text.as_bytes()));
    }
}

#[test]
fn each_byte_alone_and_beside_each_other_byte() {
    for a in 0..=255 {
        assert_eq!(decoded(&encoded(&[a])), Ok(vec![a]));
        for b in 0..=255 {
            let pairs = [a, b].repeat(5);
            assert_eq!(decoded(&encoded(&pairs)), Ok(pairs));
        }
    }
}

#[test]
fn padding_of_more_than_seven_bits_is_refused() {
    assert_eq!(decoded(&[0xff]), Err(InvalidHuffman));
    // "0" has the code 00000; what follows it is padding.
    assert_eq!(decoded(&[0x07]), Ok(b"0".to_vec()));
    assert_eq!(decoded(&[0x07, 0xff]), Err(InvalidHuffman));
}

#[test]
fn padding_that_is_not_of_ones_is_refused() {
    assert_eq!(decoded(&[0b0000_0110]), Err(InvalidHuffman));
    assert_eq!(decoded(&[0b0000_0011]), Err(InvalidHuffman));
}

#[test]
fn the_end_of_string_symbol_is_refused() {
    assert_eq!(decoded(&[0xff, 0xff, 0xff, 0xfc]), Err(InvalidHuffman));
    assert_eq!(decoded(&[0xff; 16]), Err(InvalidHuffman));
    let mut within = encoded(b"0000 0000");
    within.extend([0xff, 0xff, 0xff, 0xff]);
    within.extend(encoded(b"00000000"));
    assert_eq!(decoded(&within), Err(InvalidHuffman));
}

/// A decoder that looks at one bit after the other.
fn decoded_bit_by_bit(input: &[u8]) -> Result<Vec<u8>, InvalidHuffman> {
    let (mut out, mut code, mut len) = (Vec::new(), 0_u32, 0_u32);
    for at in 0..input.len() * 8 {
        code = code << 1 | u32::from(input[at / 8] >> (7 - at % 8) & 1);
        len += 1;
        if let Some(symbol) = CODES.iter().position(|entry| entry.len == len && entry.bits == code) {
            out.push(symbol as u8);
            (code, len) = (0, 0);
        }
        if len == LEN_MAX {
            return Err(InvalidHuffman);
        }
    }
    let is_padding = len < 8 && code == (1 << len) - 1;
    is_padding.then_some(out).ok_or(InvalidHuffman)
}

proptest! {
    #[test]
    fn what_is_encoded_decodes_to_the_same(bytes: Vec<u8>) {
        prop_assert_eq!(decoded(&encoded(&bytes)), Ok(bytes));
    }

    #[test]
    fn text_decodes_to_the_same(text in "[ -~]{0,300}") {
        prop_assert_eq!(decoded(&encoded(text.as_bytes())), Ok(text.into_bytes()));
    }

    #[test]
    fn any_bits_decode_as_one_after_the_other(mut bytes: Vec<u8>, ones in 0..5usize) {
        bytes.extend(std::iter::repeat_n(0xff, ones));
        prop_assert_eq!(decoded(&bytes), decoded_bit_by_bit(&bytes));
    }

    #[test]
    fn mostly_valid_bits_decode_as_one_after_the_other(text in "[a-z0-9]{0,40}", at: usize, flip: u8) {
        let mut bytes = encoded(text.as_bytes());
        if !bytes.is_empty() {
            let at = at % bytes.len();
            bytes[at] ^= flip;
        }
        prop_assert_eq!(decoded(&bytes), decoded_bit_by_bit(&bytes));
    }
}
