use crate::frame::tests::{encode, varint};
use crate::{Dialect, FecRecovered, FecRepair, Frame, VarInt, frames};

#[test]
fn a_repair_symbol_has_no_more_than_its_overhead_beside_it() {
    // The peer names the codes that it knows by the bits of a number of 62 bits.
    let repair = FecRepair { scheme: 61, first: u16::MAX, more: u8::MAX, key: u16::MAX, symbol: &[7; 1_500] };
    assert_eq!(repair.encoded_len(), FecRepair::OVERHEAD_MAX + repair.symbol.len());
}

#[test]
fn a_repair_symbol_covers_one_to_256_source_symbols() {
    let count = |more| FecRepair { scheme: 1, first: 0, more, key: 0, symbol: &[0; 2] }.count();
    assert_eq!([0, 1, u8::MAX].map(count), [1, 2, 256]);
}

#[test]
fn symbols_are_reported_up_to_the_last_that_there_can_be() {
    let last = VarInt::MAX.get();
    let mut report =
        encode(&Frame::FecRecovered(FecRecovered { first: varint(last - 1), more: 1 }), Dialect::SinglePath);
    assert!(frames(&report, Dialect::SinglePath).all(|frame| frame.is_ok()));
    *report.last_mut().unwrap() += 1;
    assert!(frames(&report, Dialect::SinglePath).any(|frame| frame.is_err()), "one after the last");
}
