use proptest::prelude::*;

use super::*;
use crate::{Reader, Truncated, Writer};

fn encode(value: VarInt) -> Vec<u8> {
    let mut buffer = [0; 8];
    let mut writer = Writer::new(&mut buffer);
    writer.put_varint(value);
    let len = writer.len();
    buffer[..len].to_vec()
}

#[test]
fn rfc_9000_appendix_a_1() {
    let table: [(&[u8], u64); 5] = [
        (&[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c], 151_288_809_941_952_652),
        (&[0x9d, 0x7f, 0x3e, 0x7d], 494_878_333),
        (&[0x7b, 0xbd], 15_293),
        (&[0x25], 37),
        // Longer than necessary, and yet legal.
        (&[0x40, 0x25], 37),
    ];
    for (bytes, value) in table {
        let mut reader = Reader::new(bytes);
        assert_eq!(reader.varint().map(VarInt::get), Ok(value));
        assert!(reader.is_empty());
    }
    for (bytes, value) in &table[..4] {
        assert_eq!(encode(VarInt::saturating(*value)), *bytes);
    }
}

#[test]
fn the_length_grows_at_the_limits_of_rfc_9000_table_4() {
    for (value, len) in [
        (0, 1),
        (63, 1),
        (64, 2),
        (16_383, 2),
        (16_384, 4),
        ((1 << 30) - 1, 4),
        (1 << 30, 8),
        ((1u64 << 62) - 1, 8),
    ] {
        let value = VarInt::try_from(value).unwrap();
        assert_eq!((value.size(), encode(value).len()), (len, len), "{value}");
    }
}

#[test]
fn values_of_2_to_the_62_do_not_fit() {
    assert_eq!(VarInt::try_from(1u64 << 62), Err(VarIntTooLarge(1 << 62)));
    assert_eq!(VarInt::saturating(u64::MAX), VarInt::MAX);
}

proptest! {
    #[test]
    fn every_value_survives_and_no_truncation_is_read(shift in 2u32..64, bits: u64) {
        let value = VarInt::try_from(bits >> shift).unwrap();
        let bytes = encode(value);
        prop_assert_eq!(bytes.len(), value.size());
        prop_assert_eq!(Reader::new(&bytes).varint(), Ok(value));
        for len in 0..bytes.len() {
            let mut reader = Reader::new(&bytes[..len]);
            prop_assert_eq!(reader.varint(), Err(Truncated));
            prop_assert_eq!(reader.position(), 0);
        }
    }
}
