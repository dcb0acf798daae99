use bytes::Buf as _;

use super::*;

/// A stream in which each `d` is a byte of a body, and each `h` something else. Returns what is found, in order.
fn read(chunks: &[&'static str]) -> Result<String, ()> {
    let mut unread =
        Unread { is_last: true, rest: chunks.iter().map(|c| Bytes::from(*c)).collect(), ..Unread::default() };
    let mut found = String::new();
    loop {
        let received = unread.understand(receive);
        while let Some(data) = unread.next_of_body() {
            found += std::str::from_utf8(&data).expect("letters");
        }
        match received? {
            Received::Event(Event::Data(data)) => found += std::str::from_utf8(&data).expect("letters"),
            Received::Event(Event::GoAway(_)) => found.push('h'),
            Received::Event(Event::Finished) => {
                assert!(unread.is_over());
                return Ok(found);
            }
            _ => assert!(unread.is_over()),
        }
    }
}

/// Whatever is neither breaks a rule, and a space is part of something longer.
fn receive(bytes: &mut Bytes, is_last: bool) -> Result<Received, ()> {
    while bytes.starts_with(b" ") {
        bytes.advance(1);
    }
    let data = bytes.iter().take_while(|&&byte| byte == b'd').count();
    match bytes.first() {
        None if is_last => Ok(Received::Event(Event::Finished)),
        None => Ok(Received::More),
        Some(b'd') => Ok(Received::Event(Event::Data(bytes.split_to(data)))),
        Some(b'h') => {
            bytes.advance(1);
            Ok(Received::Event(Event::GoAway(0)))
        }
        Some(_) => Err(()),
    }
}

#[test]
fn everything_comes_in_order() {
    for chunks in [
        &["hdddh"][..],
        &["h", "ddd", "h"],
        &["hd", "dd", " ", "h"],
        &["h ", " d", "d", "d h"],
        &["hd d", "dh"],
    ] {
        assert_eq!(read(chunks).as_deref(), Ok("hdddh"), "{chunks:?}");
    }
    assert_eq!(read(&[]).as_deref(), Ok(""));
}

#[test]
fn what_comes_before_an_error_is_there() {
    let rest = ["dd", "d", "x", "d"].map(Bytes::from).into();
    let mut unread = Unread { is_last: true, rest, ..Unread::default() };
    assert!(unread.understand(receive).is_err());
    assert_eq!(unread.next_of_body().as_deref(), Some(&b"dd"[..]));
    assert_eq!(unread.next_of_body().as_deref(), Some(&b"d"[..]));
    assert_eq!(unread.next_of_body(), None);
}

#[test]
fn few_parts_wait_however_small_they_are() {
    let rest = vec![Bytes::from("d ".repeat(5_000)); CHUNKS_MAX].into();
    let mut unread = Unread { is_last: true, rest, ..Unread::default() };
    let mut count = 0;
    loop {
        let received = unread.understand(receive).expect("parts of a body");
        assert!(unread.body.len() <= PARTS_MAX, "{} parts wait", unread.body.len());
        count += std::iter::from_fn(|| unread.next_of_body()).count();
        match received {
            Received::More => {}
            Received::Event(Event::Data(_)) => count += 1,
            _ => break,
        }
    }
    assert_eq!(count, CHUNKS_MAX * 5_000);
}
