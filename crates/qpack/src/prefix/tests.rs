use proptest::prelude::*;

use super::*;

#[test]
fn the_examples_of_rfc_9204_section_4_5_1() {
    // A table of 100 bytes, ten inserts, an encoded 4: the count is 9; a sign of 1 and a delta of 2 make a base of 6.
    let read = Prefix::read(&mut &[4, 0x82][..], 100, 10);
    assert_eq!(read, Ok(Prefix { required: 9, base: 6 }));
}

#[test]
fn counts_that_no_encoder_writes_are_refused() {
    // Nothing can be required where there is no table.
    assert!(Prefix::read(&mut &[1, 0][..], 0, 0).is_err());
    assert!(Prefix::read(&mut &[1, 0][..], 31, 0).is_err());
    // Beyond twice the number of entries.
    assert!(Prefix::read(&mut &[8, 0][..], 100, 10).is_err());
    // Zero is written as zero.
    assert!(Prefix::read(&mut &[1, 0][..], 100, 0).is_err());
}

#[test]
fn a_base_below_zero_is_refused() {
    assert!(Prefix::read(&mut &[2, 0x81][..], 100, 0).is_err());
    assert_eq!(Prefix::read(&mut &[2, 0x80][..], 100, 0), Ok(Prefix { required: 1, base: 0 }));
    assert!(Prefix::read(&mut &[0, 0x80][..], 100, 0).is_err());
}

proptest! {
    #[test]
    fn what_is_written_is_read(capacity in 32..5000usize, inserted in 0..10_000u64, back in 0..200u64, base in 0..10_200u64) {
        // The decoder may be behind or ahead of the section by as many entries as the table can have.
        let entries = entries_max(capacity);
        let required = (inserted + entries).saturating_sub(back % (2 * entries)).max(1);
        prop_assume!(required + entries > inserted);
        let prefix = Prefix { required, base };
        let mut out = Vec::new();
        prefix.write(capacity, &mut out);
        prop_assert_eq!(Prefix::read(&mut &out[..], capacity, inserted), Ok(prefix));
    }
}
