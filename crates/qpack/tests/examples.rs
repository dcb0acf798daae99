//! The examples of RFC 9204 appendix B, as the decoder sees them, and their acknowledgments, as it sends them.

use bytes::Bytes;
use fulmar_qpack::{Decoded, Decoder, DecoderConfig, Field};

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    digits.chunks(2).map(|pair| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

fn decoder() -> Decoder {
    Decoder::new(DecoderConfig { max_table_capacity: 220, ..DecoderConfig::default() })
}

fn decode(decoder: &mut Decoder, stream_id: u64, section: &str) -> Decoded {
    decoder.decode(stream_id, Bytes::from(hex(section))).unwrap()
}

fn told(decoder: &mut Decoder) -> Vec<u8> {
    let mut out = Vec::new();
    decoder.take_decoder_stream(&mut out);
    out
}

fn field(name: &'static str, value: &'static str) -> Field {
    Field::new(name, value)
}

const B_1: &str = "0000 510b 2f69 6e64 6578 2e68 746d 6c";
const B_2_ENCODER: &str =
    "3fbd01 c00f 7777 772e 6578 616d 706c 652e 636f 6d c10c 2f73 616d 706c 652f 7061 7468";
const B_2_SECTION: &str = "0381 10 11";
const B_3_ENCODER: &str = "4a63 7573 746f 6d2d 6b65 790c 6375 7374 6f6d 2d76 616c 7565";
const B_4_ENCODER: &str = "02";
const B_4_SECTION: &str = "0500 80 c1 81";
const B_5_ENCODER: &str = "810d 6375 7374 6f6d 2d76 616c 7565 32";

#[test]
fn a_literal_with_the_name_of_the_static_table() {
    let mut decoder = decoder();
    assert_eq!(decode(&mut decoder, 0, B_1), Decoded::Fields(vec![field(":path", "/index.html")]));
    assert_eq!(told(&mut decoder), b"");
}

#[test]
fn the_dynamic_table_from_the_first_insert_to_an_eviction() {
    let mut decoder = decoder();
    // B.2
    decoder.on_encoder_stream(&hex(B_2_ENCODER)).unwrap();
    let fields = vec![field(":authority", "www.example.com"), field(":path", "/sample/path")];
    assert_eq!(decode(&mut decoder, 4, B_2_SECTION), Decoded::Fields(fields));
    assert_eq!(told(&mut decoder), hex("84"));
    // B.3
    decoder.on_encoder_stream(&hex(B_3_ENCODER)).unwrap();
    assert_eq!(told(&mut decoder), hex("01"));
    // B.4, without the delay.
    decoder.on_encoder_stream(&hex(B_4_ENCODER)).unwrap();
    let fields = vec![
        field(":authority", "www.example.com"),
        field(":path", "/"),
        field("custom-key", "custom-value"),
    ];
    assert_eq!(decode(&mut decoder, 8, B_4_SECTION), Decoded::Fields(fields));
    assert_eq!(told(&mut decoder), hex("88"));
    // B.5: the entry with index 0 goes, and 1 to 4 are there, as post-Base indices on a Base of 0 show.
    decoder.on_encoder_stream(&hex(B_5_ENCODER)).unwrap();
    assert_eq!(told(&mut decoder), hex("01"));
    let fields = vec![
        field(":path", "/sample/path"),
        field("custom-key", "custom-value"),
        field(":authority", "www.example.com"),
        field("custom-key", "custom-value2"),
    ];
    assert_eq!(decode(&mut decoder, 12, "0684 11 12 13 14"), Decoded::Fields(fields));
    assert!(decoder.decode(16, Bytes::from(hex("0684 10"))).is_err());
}

#[test]
fn sections_that_come_before_their_entries_wait() {
    let mut decoder = decoder();
    assert_eq!(decode(&mut decoder, 4, B_2_SECTION), Decoded::Blocked);
    let stream = hex(B_2_ENCODER);
    for (n, byte) in stream.iter().enumerate() {
        assert_eq!(decoder.unblocked(), Ok(None), "after {n} bytes");
        decoder.on_encoder_stream(&[*byte]).unwrap();
    }
    let fields = vec![field(":authority", "www.example.com"), field(":path", "/sample/path")];
    assert_eq!(decoder.unblocked(), Ok(Some((4, Decoded::Fields(fields)))));
    assert_eq!(decoder.unblocked(), Ok(None));
    assert_eq!(told(&mut decoder), hex("84"));
}

#[test]
fn a_stream_is_cancelled_while_it_waits() {
    let mut decoder = decoder();
    decoder.on_encoder_stream(&hex(B_2_ENCODER)).unwrap();
    decoder.on_encoder_stream(&hex(B_3_ENCODER)).unwrap();
    assert_eq!(told(&mut decoder), hex("03"));
    // B.4 with its delay.
    assert_eq!(decode(&mut decoder, 8, B_4_SECTION), Decoded::Blocked);
    decoder.cancel(8).unwrap();
    assert_eq!(told(&mut decoder), hex("48"));
    decoder.on_encoder_stream(&hex(B_4_ENCODER)).unwrap();
    assert_eq!(decoder.unblocked(), Ok(None));
    assert_eq!(decoder.blocked_streams(), 0);
}
