use super::*;
use crate::code::{Cauchy, Xor};

#[test]
fn ids_count_the_symbols_and_the_oldest_are_forgotten() {
    let mut window = SourceWindow::new(3).starting_at(10);
    assert_eq!(window.ids(), 10..10);
    assert_eq!(window.repair_from(0, 0), None, "there is nothing to repair");
    for id in 10..15 {
        assert_eq!(window.push(&[1; 5]), Ok(id));
    }
    assert_eq!(window.ids(), 12..15);
    assert_eq!(window.repair_from(0, 4), Some(RepairId { first: 12, count: 3, key: 4 }));
    assert_eq!(window.repair_from(14, 4), Some(RepairId { first: 14, count: 1, key: 4 }));
    assert_eq!(window.repair_from(15, 4), None);
    window.forget_before(14);
    assert_eq!(window.ids(), 14..15);
    assert!(window.memory() > 0);
    window.forget_before(100);
    assert_eq!((window.ids(), window.memory()), (15..15, 0));
    assert_eq!(window.push(b"next"), Ok(15));
}

#[test]
fn a_repair_symbol_is_as_long_as_the_longest_symbol_and_its_length() {
    let mut window = SourceWindow::new(8);
    for length in [3, 0, 9, 5] {
        window.push(&vec![0xaa; length]).unwrap();
    }
    let mut repair = vec![7; 100];
    window.repair(&Xor, &RepairId { first: 0, count: 4, key: 0 }, &mut repair).unwrap();
    // The lengths 3, 0, 9 and 5, and the sum of the bytes.
    assert_eq!(repair, [0, 3 ^ 9 ^ 5, 0xaa, 0xaa, 0xaa, 0, 0, 0xaa, 0xaa, 0xaa, 0xaa]);
    window.repair(&Xor, &RepairId { first: 0, count: 2, key: 0 }, &mut repair).unwrap();
    assert_eq!(repair, [0, 3, 0xaa, 0xaa, 0xaa]);
}

#[test]
fn what_is_not_there_is_refused_and_changes_nothing() {
    let mut window = SourceWindow::new(4);
    assert_eq!(window.push(&[0; 1501]), Err(EncodeError::SymbolTooLong(1501)));
    for _ in 0..6 {
        window.push(&[0; 1500]).unwrap();
    }
    let mut repair = vec![7];
    for (first, count) in [(1, 2), (4, 3), (6, 1), (u64::MAX, 1)] {
        let id = RepairId { first, count, key: 0 };
        assert!(window.repair(&Xor, &id, &mut repair).is_err(), "{id:?}");
        assert!(window.repair_length(&id).is_err(), "{id:?}");
    }
    assert_eq!(
        window.repair(&Cauchy, &RepairId { first: 2, count: 4, key: 251 }, &mut repair),
        Err(EncodeError::Code(CodeError::Key { key: 251, count: 4 }))
    );
    assert_eq!(repair, [7]);
    assert_eq!(window.ids(), 2..6);
}

#[test]
fn ids_end_with_those_of_a_variable_length_integer() {
    let mut window = SourceWindow::new(4).starting_at(ID_LIMIT - 1);
    assert_eq!(window.push(&[1]), Ok(ID_LIMIT - 1));
    assert_eq!(window.push(&[1]), Err(EncodeError::IdsExhausted));
    let id = window.repair_from(0, 0).unwrap();
    assert_eq!(window.repair(&Xor, &id, &mut Vec::new()), Ok(()));
}

#[test]
fn the_capacity_is_at_most_256_symbols() {
    let mut window = SourceWindow::new(u16::MAX);
    for _ in 0..300 {
        window.push(&[]).unwrap();
    }
    assert_eq!(window.ids(), 44..300);
}
