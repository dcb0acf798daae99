//! A file of sessions may hold anything: what is read is written and reads the same.
#![no_main]

use fulmar_proto::SessionStore;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let store = SessionStore::new(8);
    if store.add_bytes(input).is_ok() {
        let written = store.to_bytes();
        let again = SessionStore::new(8);
        assert_eq!(again.add_bytes(&written), Ok(()));
        assert_eq!(again.to_bytes(), written);
    }
    assert!(store.len() <= 8);
});
