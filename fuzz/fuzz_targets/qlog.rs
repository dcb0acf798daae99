//! qlog files: whatever is in them, they are read or refused, and what is read becomes a page.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(traces) = fulmar_qlog::read(bytes) {
        let page = fulmar_qlog::page("fuzz", vec![("file".to_owned(), traces)]);
        assert!(page.html().len() < 16 << 20, "a small file makes a small page");
    }
});
