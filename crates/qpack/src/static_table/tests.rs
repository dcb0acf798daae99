use super::*;

fn found(name: &str, value: &str) -> Option<Match> {
    find(hash(0, name.as_bytes()), name.as_bytes(), value.as_bytes())
}

#[test]
fn each_entry_is_found_at_its_index() {
    for (index, (name, value)) in ENTRIES.iter().enumerate() {
        assert_eq!(found(name, value), Some(Match::Field(index as u8)), "{name}: {value}");
        let bytes = get(index as u64).unwrap();
        assert_eq!(bytes, (Bytes::from_static(name.as_bytes()), Bytes::from_static(value.as_bytes())));
    }
    assert_eq!(get(99), None);
    assert_eq!(get(u64::MAX), None);
}

#[test]
fn a_name_alone_is_found_at_its_lowest_index() {
    for (name, _) in ENTRIES {
        let lowest = ENTRIES.iter().position(|entry| entry.0 == name).unwrap();
        assert_eq!(found(name, "something else"), Some(Match::Name(lowest as u8)), "{name}");
    }
    assert_eq!(found("content-typ", ""), None);
    assert_eq!(found("", ""), None);
}

#[test]
fn a_few_entries_of_the_appendix() {
    assert_eq!(found(":method", "GET"), Some(Match::Field(17)));
    assert_eq!(found(":status", "100"), Some(Match::Field(63)));
    assert_eq!(found("accept", "*/*"), Some(Match::Field(29)));
    assert_eq!(found("x-frame-options", "sameorigin"), Some(Match::Field(98)));
}

#[test]
fn names_are_found_in_few_steps() {
    let longest = ENTRIES.iter().map(|(name, _)| {
        let hash = hash(0, name.as_bytes());
        (0..SLOTS).find(|step| {
            let entry = FIRST[(slot_of(hash) + step) % SLOTS];
            entry != NONE && ENTRIES[usize::from(entry)].0 == *name
        })
    });
    assert!(longest.flatten().max().unwrap() <= 6);
}
