use fulmar::{ConnectionId, LogEvent, PathId, Side, VarInt};

use super::*;
use crate::test_dir::TestDir;

fn batch(count: u16, is_last: bool, error: Option<ConnectionError>) -> LogBatch {
    let entry = |bytes| LogEntry { at: Instant::ZERO, event: LogEvent::Mtu { path: PathId::ZERO, bytes } };
    LogBatch {
        connection: 1,
        side: Side::Server,
        original_cid: ConnectionId::new(&[0xab; 8]).expect("eight bytes"),
        entries: (0..count).map(entry).collect(),
        application: Vec::new(),
        overwritten: 0,
        is_last,
        error,
    }
}

fn read(dir: &TestDir, extension: &str) -> Option<String> {
    fs::read_to_string(dir.path().join(format!("abababababababab_server.{extension}"))).ok()
}

#[test]
fn batches_become_one_file() {
    let dir = TestDir::new("qlog-dir");
    let logs = QlogDir::start(dir.path().to_owned(), Flavor::Qvis, false).expect("a directory");
    logs.take(batch(10, false, None));
    logs.take(batch(5, true, None));
    assert_eq!(logs.finish(), 0);
    let text = read(&dir, "sqlog").expect("a file");
    assert_eq!(text.lines().count(), 16, "a header and the events");
    let header = text.lines().next().expect("a header");
    let year = header.split("\"wall_clock_time\":\"").nth(1).and_then(|time| time[..4].parse::<u32>().ok());
    assert!(year.is_some_and(|year| year >= 2026), "{header}");
    assert_eq!(read(&dir, "csv"), None);
}

#[test]
fn what_was_overwritten_is_told() {
    let dir = TestDir::new("qlog-gap");
    let logs = QlogDir::start(dir.path().to_owned(), Flavor::Qvis, false).expect("a directory");
    logs.take(LogBatch { overwritten: 7, ..batch(1, true, None) });
    assert_eq!(logs.finish(), 7);
    assert!(read(&dir, "sqlog").expect("a file").contains("7 events are missing here"));
}

#[test]
fn a_connection_that_ends_well_leaves_nothing_if_only_bad_ones_are_wanted() {
    let closed =
        |code| ConnectionError::ApplicationClosed { code: VarInt::from_u32(code), reason: "".into() };
    for (error, is_written) in [
        (ConnectionError::LocallyClosed, false),
        (closed(0), false),
        (closed(3), true),
        (ConnectionError::TimedOut, true),
    ] {
        let dir = TestDir::new("qlog-bad");
        let logs = QlogDir::start(dir.path().to_owned(), Flavor::Draft, true).expect("a directory");
        logs.take(batch(4, true, Some(error.clone())));
        logs.finish();
        assert_eq!(read(&dir, "sqlog").is_some(), is_written, "{error:?}");
        assert_eq!(read(&dir, "csv").map(|text| text.lines().count()), is_written.then_some(5), "{error:?}");
    }
}
