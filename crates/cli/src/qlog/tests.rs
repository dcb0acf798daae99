use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::*;
use crate::test_dir::TestDir;

#[test]
fn files_are_read_plain_and_compressed() {
    let dir = TestDir::new("qlog-read");
    let text = "{\"qlog_version\":\"0.3\"}".repeat(100);
    let plain = dir.path().join("a.qlog");
    fs::write(&plain, &text).expect("a file");
    assert_eq!(read(&plain).expect("plain"), text.as_bytes());
    // Two members one after the other, as of a file that was continued.
    let member = || {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text.as_bytes()).expect("memory");
        encoder.finish().expect("memory")
    };
    let packed = dir.path().join("a.qlog.gz");
    fs::write(&packed, [member(), member()].concat()).expect("a file");
    assert_eq!(read(&packed).expect("packed"), text.repeat(2).as_bytes());
    let torn = dir.path().join("torn.gz");
    fs::write(&torn, &member()[..20]).expect("a file");
    assert!(read(&torn).is_err(), "half a file");
    let short = dir.path().join("short");
    fs::write(&short, [0x1f]).expect("a file");
    assert_eq!(read(&short).expect("one byte"), [0x1f]);
}
