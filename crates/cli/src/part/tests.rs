use super::*;
use crate::test_dir::TestDir;

#[test]
fn a_file_has_its_name_when_it_is_complete_and_not_before() {
    let dir = TestDir::new("part-commit");
    let destination = dir.path().join("a.bin");
    let mut part = PartFile::create(destination.clone()).expect("a part");
    part.write(b"one two ").expect("written");
    part.write(b"three").expect("written");
    let names = dir.names();
    assert!(names.len() == 1 && names[0].starts_with(".a.bin.part-"), "{names:?}");
    part.commit().expect("committed");
    assert_eq!(dir.names(), ["a.bin"]);
    assert_eq!(fs::read(destination).expect("the file"), b"one two three");
}

#[test]
fn an_older_file_stays_until_it_is_replaced() {
    let dir = TestDir::new("part-replace");
    let destination = dir.path().join("a");
    fs::write(&destination, "old").expect("a file");
    let mut part = PartFile::create(destination.clone()).expect("a part");
    part.write(b"new").expect("written");
    assert_eq!(fs::read(&destination).expect("the file"), b"old");
    part.commit().expect("committed");
    assert_eq!(fs::read(&destination).expect("the file"), b"new");
}

#[test]
fn a_part_that_is_given_up_is_removed() {
    let dir = TestDir::new("part-drop");
    let mut part = PartFile::create(dir.path().join("a")).expect("a part");
    part.write(b"half").expect("written");
    drop(part);
    assert_eq!(dir.names(), Vec::<String>::new());
}

#[test]
fn a_name_that_cannot_be_given_leaves_nothing() {
    let dir = TestDir::new("part-conflict");
    let destination = dir.path().join("a");
    fs::create_dir_all(destination.join("not-empty")).expect("a directory in the way");
    let part = PartFile::create(destination).expect("a part");
    let failure = part.commit().expect_err("a directory is in the way").to_string();
    assert!(failure.starts_with("cannot write"), "{failure}");
    assert_eq!(dir.names(), ["a"]);
}

#[test]
fn a_missing_directory_is_one_sentence() {
    let failure = PartFile::create("/nonexistent/a".into()).expect_err("no directory").to_string();
    assert!(failure.starts_with("cannot write /nonexistent/a: "), "{failure}");
}

#[test]
fn long_names_are_cut_to_what_a_file_system_takes() {
    for name in ["x".repeat(NAME_MAX), "é".repeat(NAME_MAX / 2)] {
        let path = part_path(&Path::new("dir").join(&name), 7);
        let part = path.file_name().expect("a name").to_string_lossy().into_owned();
        assert!(part.len() <= NAME_MAX && part.ends_with(".part-0000000000000007"), "{part}");
        assert_eq!(path.parent(), Some(Path::new("dir")));
    }
}

#[test]
fn a_download_of_a_long_name_goes_on() {
    let dir = TestDir::new("part-long");
    for len in [NAME_MAX, NAME_MAX - 1, NAME_MAX - 7, NAME_MAX - 8] {
        let destination = dir.path().join("x".repeat(len));
        let (mut part, _) = PartFile::resume(destination.clone()).expect("a part");
        part.begin_anew(Some("v")).expect("written");
        part.write(b"one").expect("written");
        drop(part);
        let (part, validator) = PartFile::resume(destination).expect("a part");
        assert_eq!((part.len(), validator.as_deref()), (3, Some("v")), "{len}");
        part.commit().expect("committed");
        assert_eq!(dir.names(), ["x".repeat(len)]);
        fs::remove_file(dir.path().join("x".repeat(len))).expect("removed");
    }
}

/// A pipe of that name, and what is read from it.
fn pipe(path: &Path) -> std::thread::JoinHandle<Vec<u8>> {
    let made = std::process::Command::new("mkfifo").arg(path).status().expect("mkfifo runs");
    assert!(made.success());
    let path = path.to_owned();
    std::thread::spawn(move || fs::read(path).expect("a pipe"))
}

#[test]
fn a_pipe_is_written_to_and_stays() {
    let dir = TestDir::new("part-pipe");
    let destination = dir.path().join("pipe");
    for resume in [false, true] {
        let reader = pipe(&destination);
        let mut part = match resume {
            true => PartFile::resume(destination.clone()).expect("a pipe").0,
            false => PartFile::create(destination.clone()).expect("a pipe"),
        };
        part.begin_anew(Some("v")).expect("nothing has gone there");
        part.write(b"one").expect("written");
        let failure = part.begin_anew(None).expect_err("it has gone").to_string();
        assert!(failure.contains("cannot be taken back"), "{failure}");
        part.commit().expect("written");
        assert_eq!(reader.join().expect("read"), b"one");
        assert_eq!(dir.names(), ["pipe"]);
        assert!(!fs::metadata(&destination).expect("the pipe").is_file());
        fs::remove_file(&destination).expect("removed");
    }
}

#[test]
fn what_cannot_be_opened_to_write_is_not_replaced() {
    let dir = TestDir::new("part-socket");
    let destination = dir.path().join("socket");
    let _socket = std::os::unix::net::UnixListener::bind(&destination).expect("a socket");
    PartFile::create(destination.clone()).expect_err("a socket");
    assert!(!fs::metadata(&destination).expect("the socket").is_file());
}

#[test]
fn a_symbolic_link_stays_and_what_it_names_is_replaced() {
    let dir = TestDir::new("part-link");
    let (link, file) = (dir.path().join("link"), dir.path().join("file"));
    fs::write(&file, "old").expect("a file");
    std::os::unix::fs::symlink("file", &link).expect("a link");
    let mut part = PartFile::create(link.clone()).expect("a part");
    part.write(b"new").expect("written");
    part.commit().expect("committed");
    assert!(link.is_symlink() && fs::read(&file).expect("the file") == b"new");
}

#[test]
fn a_file_that_is_replaced_leaves_its_permissions() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = TestDir::new("part-permissions");
    let destination = dir.path().join("a");
    fs::write(&destination, "old").expect("a file");
    fs::set_permissions(&destination, Permissions::from_mode(0o600)).expect("set");
    PartFile::create(destination.clone()).expect("a part").commit().expect("committed");
    assert_eq!(fs::metadata(&destination).expect("the file").permissions().mode() & 0o777, 0o600);
}

#[cfg(unix)]
#[test]
fn a_part_that_may_go_on_later_is_read_by_nobody_else_than_what_it_replaces() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = TestDir::new("part-kept-permissions");
    let destination = dir.path().join("a");
    let mode = |path: &Path| fs::metadata(path).expect("a file").permissions().mode() & 0o777;
    for (replaced, while_it_comes) in [(0o600, 0o600), (0o440, 0o640)] {
        fs::write(&destination, "old").expect("a file");
        fs::set_permissions(&destination, Permissions::from_mode(replaced)).expect("set");
        for _ in 0..2 {
            let (mut part, _) = PartFile::resume(destination.clone()).expect("a part");
            part.begin_anew(Some("v")).expect("written");
            part.write(b"one").expect("written");
            assert_eq!(mode(&dir.path().join("a.part")), while_it_comes);
        }
        PartFile::resume(destination.clone()).expect("a part").0.commit().expect("committed");
        assert_eq!(mode(&destination), replaced);
        fs::remove_file(&destination).expect("removed");
    }
}

#[test]
fn a_part_of_nothing_leaves_nothing() {
    let dir = TestDir::new("part-nothing");
    let (mut part, _) = PartFile::resume(dir.path().join("a")).expect("a part");
    part.begin_anew(Some("v")).expect("written");
    drop(part);
    assert_eq!(dir.names(), Vec::<String>::new());
}

#[test]
fn two_downloads_do_not_write_one_part() {
    let dir = TestDir::new("part-two");
    let destination = dir.path().join("a");
    let (mut first, _) = PartFile::resume(destination.clone()).expect("a part");
    first.begin_anew(Some("v")).expect("written");
    first.write(b"one").expect("written");
    let failure = PartFile::resume(destination.clone()).expect_err("it is written").to_string();
    assert!(failure.contains("another download is writing") && failure.contains("a.part"), "{failure}");
    first.write(b" two").expect("written");
    first.commit().expect("committed");
    assert_eq!(fs::read(&destination).expect("the file"), b"one two");
    // Then nobody writes it.
    let (mut second, validator) = PartFile::resume(destination.clone()).expect("a part");
    assert_eq!((second.len(), validator), (0, None));
    second.begin_anew(Some("v")).expect("written");
    second.write(b"three").expect("written");
    drop(second);
    assert_eq!(PartFile::resume(destination).expect("a part").0.len(), 5);
}

#[test]
fn another_file_of_the_name_of_the_part_does_not_get_the_name_of_the_file() {
    let dir = TestDir::new("part-taken");
    let (destination, part_name) = (dir.path().join("a"), dir.path().join("a.part"));
    for is_committed in [true, false] {
        let (mut part, _) = PartFile::resume(destination.clone()).expect("a part");
        part.write(b"ours").expect("written");
        fs::remove_file(&part_name).expect("removed");
        fs::write(&part_name, "theirs").expect("a file");
        if is_committed {
            let failure = part.commit().expect_err("it is another file").to_string();
            assert!(failure.contains("taken the place"), "{failure}");
        } else {
            drop(part);
        }
        assert_eq!(fs::read(&part_name).expect("the file"), b"theirs");
        assert!(!destination.exists());
        fs::remove_file(&part_name).expect("removed");
    }
}
