use super::*;
use crate::test_dir::TestDir;

#[test]
fn what_was_made_is_found_again() {
    let dir = TestDir::new("kept-again");
    let dir = dir.path().join("sub/dir");
    let kept = KeptFiles::open(Some(&dir)).expect("a directory");
    assert_eq!(kept.key(|| Ok("one".to_owned())).expect("made"), "one");
    assert_eq!(kept.certificate(|| Ok("two".to_owned())).expect("made"), "two");
    assert_eq!(kept.reset_secret(|| Ok([7; 32])).expect("made"), [7; 32]);
    let again = KeptFiles::open(Some(&dir)).expect("the directory");
    let never = || Err("nothing is made again".to_owned());
    assert_eq!(again.key(never).expect("found"), "one");
    assert_eq!(again.certificate(never).expect("found"), "two");
    assert_eq!(again.reset_secret(|| Ok([8; 32])).expect("found"), [7; 32]);
}

#[cfg(unix)]
#[test]
fn secrets_are_for_their_owner() {
    use std::os::unix::fs::PermissionsExt;
    let dir = TestDir::new("kept-modes");
    let kept = KeptFiles::open(Some(dir.path())).expect("a directory");
    kept.key(|| Ok(String::new())).expect("made");
    kept.certificate(|| Ok(String::new())).expect("made");
    kept.reset_secret(|| Ok([7; 32])).expect("made");
    let mode = |name: &str| fs::metadata(dir.path().join(name)).expect(name).permissions().mode() & 0o777;
    assert_eq!((mode(KEY), mode(RESET_SECRET)), (0o600, 0o600));
    assert_eq!(dir.names(), [CERTIFICATE, KEY, RESET_SECRET], "nothing temporary is left");
}

#[test]
fn who_starts_at_once_gets_the_same() {
    let dir = TestDir::new("kept-race");
    let start = |made: u8| {
        let path = dir.path().to_owned();
        std::thread::spawn(move || {
            let kept = KeptFiles::open(Some(&path)).expect("a directory");
            kept.reset_secret(|| Ok([made; 32])).expect("a secret")
        })
    };
    let threads: Vec<_> = (0..8).map(start).collect();
    let secrets: Vec<[u8; 32]> = threads.into_iter().map(|thread| thread.join().expect("ended")).collect();
    assert!(secrets.iter().all(|secret| *secret == secrets[0]), "{secrets:?}");
}

#[test]
fn what_cannot_be_used_is_told_in_words() {
    let dir = TestDir::new("kept-unusable");
    fs::write(dir.path().join("file"), "").expect("a file");
    let error = KeptFiles::open(Some(&dir.path().join("file/dir"))).expect_err("a file is in the way");
    assert!(error.contains("cannot make ") && error.contains("file/dir"), "{error}");
    let kept = KeptFiles::open(Some(dir.path())).expect("a directory");
    fs::write(dir.path().join(RESET_SECRET), "12").expect("a file");
    let error = kept.reset_secret(|| Ok([7; 32])).expect_err("too short");
    assert!(error.contains("reset.key"), "{error}");
}
