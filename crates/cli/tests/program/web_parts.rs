//! `fulmar get -C -` at servers that send other parts than they are asked for.

use std::fs;
use std::process::Stdio;
use std::time::Duration;

use crate::odd::{Answer, Odd};
use crate::run::{finish, interrupt};
use crate::test_dir::TestDir;

const ALL: &str = "0123456789abcdefghijABCDEFGHIJ";

/// A response with all of it, of which only the beginning comes.
fn begun(etag: &str) -> Answer {
    Answer::cut(&format!("HTTP/1.1 200 OK\r\nContent-Length: 30\r\nETag: {etag}\r\n\r\n{}", &ALL[..10]))
}

fn whole(etag: &str, text: &str) -> Answer {
    Answer::whole(&format!("HTTP/1.1 200 OK\r\nContent-Length: 30\r\nETag: {etag}\r\n\r\n{text}"))
}

fn part(first: usize, end: usize, fields: &str) -> Answer {
    let (last, len, text) = (end - 1, end - first, &ALL[first..end]);
    Answer::whole(&format!(
        "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes {first}-{last}/30\r\nContent-Length: {len}\r\n{fields}\r\n{text}"
    ))
}

/// Where the part begins that a request asks for.
fn asked(head: &str) -> Option<usize> {
    let range = head.lines().find_map(|line| line.strip_prefix("range: bytes="))?;
    range.trim_end_matches('-').parse().ok()
}

/// Fetches a file whose first download is cut after 10 of 30 bytes, and returns what is there at the end.
#[track_caller]
fn fetched(name: &str, odd: &Odd) -> String {
    let out = TestDir::new(name);
    finish(odd.get(&out, &["-C", "-"], "/a")).failed(18, &["10 B"]);
    assert_eq!(out.names(), ["a.part", "a.part.of"]);
    finish(odd.get(&out, &["-C", "-"], "/a")).succeeded();
    assert_eq!(out.names(), ["a"]);
    fs::read_to_string(out.path().join("a")).expect("the file")
}

#[test]
fn a_part_that_is_shorter_than_was_asked_for_is_followed_by_the_rest() {
    let odd = Odd::start(|head| match asked(head) {
        None => begun("\"x\""),
        Some(first) => part(first, (first + 7).min(30), "ETag: \"x\"\r\n"),
    });
    assert_eq!(fetched("parts-short", &odd), ALL);
    let ranges: Vec<_> = odd.heads().iter().map(|head| asked(head)).collect();
    assert_eq!(ranges, [None, Some(10), Some(17), Some(24)]);
}

#[test]
fn what_came_in_several_attempts_is_told_as_one() {
    let odd = Odd::start(|head| match asked(head) {
        None => begun("\"x\""),
        Some(first @ 10) => Answer::cut(&format!(
            "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes {first}-29/30\r\nContent-Length: 20\r\nETag: \"x\"\r\n\r\n{}",
            &ALL[first..17]
        )),
        Some(first) => part(first, 30, "ETag: \"x\"\r\n"),
    });
    // Whether the first attempt is one of this command or of an earlier one.
    for (earlier, resumed_at) in [(false, 0), (true, 10)] {
        let out = TestDir::new("parts-told");
        if earlier {
            finish(odd.get(&out, &["-C", "-"], "/a")).failed(18, &["10 B"]);
        }
        let objects = finish(odd.get(&out, &["-C", "-", "--json", "--retry", "3"], "/a")).objects();
        let told = (&objects[0]["bytes"], &objects[0]["resumed_at"], &objects[1]["bytes"]);
        let bytes = 30 - resumed_at;
        assert_eq!(told, (&bytes.into(), &resumed_at.into(), &bytes.into()), "{objects:?}");
        assert_eq!(fs::read_to_string(out.path().join("a")).expect("the file"), ALL);
    }
}

/// A server that brings 100 kB of a file at once, and then nothing.
fn silent() -> Odd {
    Odd::start(|_| {
        let head = "HTTP/1.1 200 OK\r\nContent-Length: 200000\r\nETag: \"x\"\r\n\r\n";
        Answer::whole(&(head.to_owned() + &"x".repeat(100_000)))
    })
}

#[test]
fn what_has_come_stays_when_the_time_is_over() {
    let (odd, out) = (silent(), TestDir::new("parts-late"));
    let finished = finish(odd.get(&out, &["-C", "-", "-m", "500ms"], "/a"));
    finished.failed(28, &["--max-time", "goes on there"]);
    assert_eq!(fs::metadata(out.path().join("a.part")).expect("a part").len(), 100_000);
    // Without -C - nothing does.
    let out = TestDir::new("parts-late-gone");
    finish(odd.get(&out, &["-m", "500ms"], "/a")).failed(28, &["--max-time", "-C -"]);
    assert!(out.names().is_empty(), "{:?}", out.names());
}

#[test]
fn what_has_come_stays_when_the_user_ends_it() {
    let (odd, out) = (silent(), TestDir::new("parts-interrupted"));
    let mut get =
        odd.get(&out, &["-C", "-"], "/a").stderr(Stdio::null()).spawn().expect("the program starts");
    while odd.heads().is_empty() {
        std::thread::sleep(Duration::from_millis(5));
    }
    // Less than after which time it is written in any case.
    std::thread::sleep(Duration::from_millis(400));
    interrupt(&get);
    assert_eq!(get.wait().expect("ended").code(), Some(130));
    assert_eq!(fs::metadata(out.path().join("a.part")).expect("a part").len(), 100_000);
}

#[test]
fn parts_of_two_versions_are_never_put_together() {
    const OTHER: &str = "ZYXWVUTSRQzyxwvutsrq9876543210";
    for fields in ["ETag: \"y\"\r\n", "ETag: W/\"x\"\r\n", ""] {
        let begins = std::sync::atomic::AtomicBool::new(true);
        let odd = Odd::start(move |head| match asked(head) {
            None if begins.swap(false, std::sync::atomic::Ordering::Relaxed) => begun("\"x\""),
            None => whole("\"y\"", OTHER),
            Some(first) => part(first, 30, fields),
        });
        assert_eq!(fetched("parts-versions", &odd), OTHER, "{fields:?}");
    }
}

/// All of the old version is here when the new one takes its place, which is as long as what came.
#[test]
fn a_file_without_a_rest_is_not_taken_for_another_version() {
    const NEW: &str = "ZYXWVUTSRQ";
    for (tag, expected) in [("ETag: \"y\"\r\n", NEW), ("ETag: \"x\"\r\n", &ALL[..10]), ("", &ALL[..10])] {
        let begins = std::sync::atomic::AtomicBool::new(true);
        let odd = Odd::start(move |head| match asked(head) {
            None if begins.swap(false, std::sync::atomic::Ordering::Relaxed) => begun("\"x\""),
            None => {
                Answer::whole(&format!("HTTP/1.1 200 OK\r\nContent-Length: 10\r\nETag: \"y\"\r\n\r\n{NEW}"))
            }
            Some(_) => Answer::whole(&format!(
                "HTTP/1.1 416 Range Not Satisfiable\r\nContent-Range: bytes */10\r\nContent-Length: 0\r\n{tag}\r\n"
            )),
        });
        assert_eq!(fetched("parts-no-rest", &odd), expected, "{tag}");
    }
}

#[test]
fn a_part_without_an_end_or_with_another_beginning_is_not_taken() {
    for range in ["bytes 10-29/*", "bytes 9-29/30", "bytes 10-30/30", "bytes */30"] {
        let begins = std::sync::atomic::AtomicBool::new(true);
        let odd = Odd::start(move |head| match asked(head) {
            None if begins.swap(false, std::sync::atomic::Ordering::Relaxed) => begun("\"x\""),
            None => whole("\"x\"", ALL),
            Some(_) => Answer::whole(&format!(
                "HTTP/1.1 206 Partial Content\r\nContent-Range: {range}\r\nContent-Length: 3\r\nETag: \"x\"\r\n\r\nabc"
            )),
        });
        assert_eq!(fetched("parts-odd", &odd), ALL, "{range}");
    }
}

#[test]
fn a_range_of_the_users_own_is_no_beginning_of_the_file() {
    let odd = Odd::start(|head| match asked(head) {
        None if head.contains("range: bytes=10-19") => Answer::cut(&format!(
            "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 10-19/30\r\nContent-Length: 10\r\nETag: \"x\"\r\n\r\n{}",
            &ALL[10..15]
        )),
        None => whole("\"x\"", ALL),
        Some(first) => part(first, 30, "ETag: \"x\"\r\n"),
    });
    let out = TestDir::new("parts-own-range");
    finish(odd.get(&out, &["-C", "-", "-H", "Range: bytes=10-19"], "/a")).failed(18, &["5 B"]);
    finish(odd.get(&out, &["-C", "-"], "/a")).succeeded();
    assert_eq!(fs::read_to_string(out.path().join("a")).expect("the file"), ALL);
}

#[test]
fn a_server_that_sends_nothing_but_wrong_parts_is_left() {
    let odd = Odd::start(|_| part(3, 30, "ETag: \"x\"\r\n"));
    let out = TestDir::new("parts-wrong");
    finish(odd.get(&out, &["-C", "-"], "/a")).failed(18, &["another part"]);
    assert_eq!((out.names().len(), odd.heads().len()), (0, 2));
}
