use super::*;

fn entry(value_len: usize) -> Entry {
    Entry { name: Bytes::from_static(b"name"), value: Bytes::from(vec![b'v'; value_len]) }
}

#[test]
fn the_oldest_entries_go_first() {
    let mut table = Table::default();
    table.set_capacity(120);
    for len in 1..=4 {
        assert!(table.insert(entry(len)));
    }
    // 37 + 38 + 39 bytes were too many beside the fourth.
    assert_eq!((table.dropped(), table.inserted(), table.free()), (1, 4, 120 - 38 - 39 - 40));
}

#[test]
fn indices_stay_when_entries_go() {
    let mut table = Table::default();
    table.set_capacity(80);
    for len in 0..5 {
        assert!(table.insert(entry(len)));
    }
    assert_eq!(table.get(4), Some(&entry(4)));
    assert_eq!(table.get_relative(0), Some(&entry(4)));
    assert_eq!(table.get(3), Some(&entry(3)));
    assert_eq!(table.get(2), None);
    assert_eq!(table.get(5), None);
    assert_eq!(table.get_relative(2), None);
    assert_eq!(table.get_relative(u64::MAX), None);
}

#[test]
fn what_is_larger_than_the_table_does_not_fit() {
    let mut table = Table::default();
    assert!(!table.insert(entry(0)));
    table.set_capacity(36);
    assert!(table.insert(entry(0)));
    assert!(!table.insert(entry(1)));
}

#[test]
fn a_capacity_of_zero_empties_the_table() {
    let mut table = Table::default();
    table.set_capacity(100);
    assert!(table.insert(entry(3)));
    table.set_capacity(0);
    assert_eq!((table.get(0), table.inserted(), table.dropped()), (None, 1, 1));
}
