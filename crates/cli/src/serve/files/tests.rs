use std::fs;
use std::io::{ErrorKind, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::*;
use crate::failure::Failure;
use crate::serve::directory::Found;
use crate::test_dir::TestDir;

const BLOCK: u64 = 10_000;

fn root(path: &Path) -> Result<Directory, Failure> {
    Directory::open(path, false)
}

fn read_all(root: &Directory, path: &str) -> Result<Vec<u8>, SourceError> {
    let (runtime, disk) = (crate::net::runtime().expect("a runtime"), Semaphore::new(1));
    runtime.block_on(async {
        let (mut source, mut all) = (Source::new(root.clone(), path.into()), Vec::new());
        loop {
            let (back, block) = source.read(all.len() as u64, BLOCK, &disk, Vec::new()).await?;
            source = back;
            all.extend_from_slice(&block.bytes);
            if block.is_last {
                return Ok(all);
            }
            // Now and then it has to be opened anew.
            if all.len() % 2 == 0 {
                source.close();
            }
        }
    })
}

impl SourceError {
    fn kind(&self) -> Option<ErrorKind> {
        match self {
            Self::Io(error) => Some(error.kind()),
            Self::Changed => None,
        }
    }
}

#[test]
fn files_of_all_sizes_are_read_whole() {
    let dir = TestDir::new("files-sizes");
    let root = root(dir.path()).expect("a directory");
    let block = BLOCK as usize;
    for size in [0, 1, 1000, block - 1, block, block + 1, 3 * block, 3 * block + 7] {
        let content: Vec<u8> = (0..size).map(|index| (index * 31 % 251) as u8).collect();
        fs::write(dir.path().join("file"), &content).expect("a file");
        assert!(read_all(&root, "file").expect("readable") == content, "{size} bytes");
    }
}

/// Reads the beginning of a file of 2,000 bytes, changes something and reads the rest.
fn read_around(name: &str, is_closed: bool, change: impl Fn(&Path)) -> Result<Block, SourceError> {
    let dir = TestDir::new(name);
    let root = root(dir.path()).expect("a directory");
    let file = dir.path().join("file");
    fs::write(&file, [7; 2_000]).expect("a file");
    let (runtime, disk) = (crate::net::runtime().expect("a runtime"), Semaphore::new(1));
    let first = runtime.block_on(Source::new(root, "file".into()).read(0, 1_000, &disk, Vec::new()));
    let (mut source, block) = first.expect("readable");
    assert_eq!((block.bytes.len(), block.is_last), (1_000, false));
    if is_closed {
        source.close();
    }
    // The clock of a file system may be as coarse as that of its timer.
    std::thread::sleep(std::time::Duration::from_millis(20));
    change(&file);
    runtime.block_on(source.read(1_000, 5_000, &disk, Vec::new())).map(|(_, block)| block)
}

fn replace(file: &Path) {
    let other = file.with_extension("new");
    fs::write(&other, [8; 2_000]).expect("a file");
    fs::rename(other, file).expect("renamed");
}

#[test]
fn a_file_stays_what_it_was_when_it_was_opened() {
    for is_closed in [false, true] {
        let block = read_around("files-same", is_closed, |_| {}).expect("nothing has changed");
        assert_eq!((block.bytes, block.is_last), (vec![7; 1_000], true));
        // What is appended is not sent: the length was known before.
        let append = |file: &Path| {
            fs::OpenOptions::new()
                .append(true)
                .open(file)
                .and_then(|mut f| f.write_all(&[9; 500]))
                .expect("appended");
        };
        let block = read_around("files-appended", is_closed, append).expect("it begins as before");
        assert_eq!((block.bytes, block.is_last), (vec![7; 1_000], true));
    }
    let block = read_around("files-replaced", false, replace).expect("the old one is still open");
    assert_eq!((block.bytes, block.is_last), (vec![7; 1_000], true));
}

#[test]
fn a_file_that_is_changed_is_not_sent_to_its_end() {
    let truncate = |len| {
        move |file: &Path| {
            fs::OpenOptions::new().write(true).open(file).and_then(|f| f.set_len(len)).expect("truncated");
        }
    };
    let overwrite = |file: &Path| fs::write(file, [8; 2_000]).expect("written");
    // As `cp` does it. The new file may begin or end with what was sent.
    let rewrite = |sent: std::ops::Range<usize>| {
        move |file: &Path| {
            let mut other = vec![8; 5_000];
            other[sent.clone()].fill(7);
            fs::write(file, other).expect("written");
        }
    };
    for is_closed in [false, true] {
        let results = [
            read_around("files-emptied", is_closed, truncate(0)),
            read_around("files-truncated", is_closed, truncate(1_999)),
            read_around("files-overwritten", is_closed, overwrite),
            read_around("files-rewritten", is_closed, rewrite(0..0)),
            read_around("files-rewritten-end", is_closed, rewrite(0..999)),
            read_around("files-rewritten-beginning", is_closed, rewrite(1..2_000)),
        ];
        for result in results {
            assert!(matches!(result, Err(SourceError::Changed)), "{result:?}");
        }
    }
    let replaced = read_around("files-replaced-closed", true, replace);
    assert!(matches!(replaced, Err(SourceError::Changed)), "{replaced:?}");
}

/// A log is longer at each look, and is sent as far as it went at first.
#[test]
fn a_file_that_grows_all_the_time_is_read_as_long_as_it_was() {
    let dir = TestDir::new("files-grows");
    let root = root(dir.path()).expect("a directory");
    let file = dir.path().join("file");
    let content: Vec<u8> = (0..2_000_000).map(|index| (index * 31 % 251) as u8).collect();
    fs::write(&file, &content).expect("a file");
    let mut log = fs::OpenOptions::new().append(true).open(&file).expect("the file");
    let mut source = Source::new(root, "file".into());
    let mut all = source.read_now(0, 1_000, Access::Disk, Vec::new()).expect("readable").bytes;
    log.write_all(b"first").expect("appended");
    let is_over = Arc::new(AtomicBool::new(false));
    let told = is_over.clone();
    let writer = std::thread::spawn(move || {
        while !told.load(Ordering::Relaxed) {
            log.write_all(&[9; 1_000]).expect("appended");
            std::thread::sleep(std::time::Duration::from_micros(50));
        }
    });
    loop {
        let block = source.read_now(all.len() as u64, 5_000, Access::Disk, Vec::new()).expect("readable");
        all.extend_from_slice(&block.bytes);
        if block.is_last {
            break;
        }
    }
    is_over.store(true, Ordering::Relaxed);
    writer.join().expect("it has grown");
    assert!(all == content);
    // Written anew, up to beyond where it was.
    let longer = fs::metadata(&file).expect("the file").len() as usize + 1_000;
    fs::write(&file, vec![1; longer]).expect("written");
    let read = source.read_now(1_900_000, 100_000, Access::Disk, Vec::new());
    assert!(matches!(read, Err(SourceError::Changed)));
}

/// HTTP/0.9 reads again what there was no room for.
#[test]
fn what_was_read_at_once_and_is_read_again_is_of_the_same_file() {
    let dir = TestDir::new("files-again");
    let root = root(dir.path()).expect("a directory");
    let file = dir.path().join("file");
    fs::write(&file, [7; 2_000]).expect("a file");
    let mut source = Source::new(root, "file".into());
    for offset in [0, 1_000] {
        let block = source.read_now(offset, 5_000, Access::Disk, Vec::new()).expect("readable");
        assert_eq!((block.bytes, block.is_last), (vec![7; 2_000 - offset as usize], true));
    }
    fs::write(&file, [8; 3_000]).expect("written");
    let read = source.read_now(1_500, 5_000, Access::Disk, Vec::new());
    assert!(matches!(read, Err(SourceError::Changed)), "{read:?}");
}

#[test]
fn only_regular_files_are_opened() {
    let dir = TestDir::new("files-regular");
    let root = root(dir.path()).expect("a directory");
    fs::create_dir(dir.path().join("sub")).expect("a directory");
    let _socket = std::os::unix::net::UnixListener::bind(dir.path().join("socket")).expect("a socket");
    for path in ["", "sub", "missing", "sub/missing", "socket"] {
        assert_eq!(read_all(&root, path).expect_err(path).kind(), Some(ErrorKind::NotFound), "{path}");
    }
}

/// Lets the kernel forget what it has in memory of a file, as far as its file system does that.
#[cfg(target_os = "linux")]
fn evict(path: &Path) {
    let file = File::open(path).expect("a file");
    file.sync_all().expect("written");
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).expect("advice is taken");
}

#[cfg(target_os = "linux")]
#[test]
fn files_that_are_not_in_memory_are_read_whole() {
    let dir = TestDir::new("files-evicted");
    let root = root(dir.path()).expect("a directory");
    let path = dir.path().join("file");
    let content: Vec<u8> = (0..500_000).map(|index| (index % 253) as u8).collect();
    fs::write(&path, &content).expect("a file");
    evict(&path);
    assert!(read_all(&root, "file").expect("readable") == content);

    // A part in memory is no reason to send a part.
    evict(&path);
    let mut source = Source::new(root.clone(), "file".into());
    let block = source.read_now(300_000, 1_000, Access::Disk, Vec::new()).expect("readable");
    assert_eq!(block.bytes, content[300_000..301_000]);
    match source.read_now(0, 500_000, Access::Cached, Vec::new()) {
        Ok(block) => assert!(block.bytes == content),
        Err(error) => assert!(error.is_not_cached(), "{error}"),
    }
    let block = source.read_now(0, 500_000, Access::Disk, Vec::new()).expect("it can be tried again");
    assert!(block.bytes == content);
    match source.read_now(0, 500_000, Access::Cached, Vec::new()) {
        Ok(block) => assert!(block.bytes == content),
        Err(error) => assert!(error.is_not_cached(), "{error}"),
    }
}

#[test]
fn what_a_buffer_has_held_before_is_not_sent() {
    let dir = TestDir::new("files-buffers");
    let root = root(dir.path()).expect("a directory");
    fs::write(dir.path().join("file"), [7; 1_000]).expect("a file");
    for access in [Access::Disk, Access::Cached] {
        for len in [0, 10, 900, 5_000] {
            let mut source = Source::new(root.clone(), "file".into());
            match source.read_now(100, 5_000, access, vec![9; len]) {
                Ok(block) => assert_eq!((block.bytes, block.is_last), (vec![7; 900], true), "{len}"),
                Err(error) => assert!(access == Access::Cached && error.is_not_cached(), "{error}"),
            }
        }
    }
}

#[cfg(unix)]
#[test]
fn links_may_not_leave_the_directory() {
    use std::os::unix::fs::symlink;
    let dir = TestDir::new("files-links");
    fs::write(dir.path().join("secret"), "secret").expect("a file");
    let inside = dir.path().join("www");
    fs::create_dir(&inside).expect("a directory");
    fs::write(inside.join("public"), "public").expect("a file");
    // A sibling whose name begins alike is outside too.
    fs::create_dir(dir.path().join("www-private")).expect("a directory");
    fs::write(dir.path().join("www-private/secret"), "secret").expect("a file");
    symlink("public", inside.join("good")).expect("a link");
    symlink("../secret", inside.join("up")).expect("a link");
    symlink("..", inside.join("parent")).expect("a link");
    symlink("../www-private/secret", inside.join("sibling")).expect("a link");
    symlink("/etc/passwd", inside.join("absolute")).expect("a link");
    symlink("loop", inside.join("loop")).expect("a link");

    let root = root(&inside).expect("a directory");
    assert_eq!(read_all(&root, "good").expect("stays inside"), b"public");
    for path in ["up", "parent/secret", "sibling", "absolute"] {
        assert_eq!(read_all(&root, path).expect_err(path).kind(), Some(ErrorKind::NotFound), "{path}");
        // Now the kernel has them in memory, and leads nobody there either.
        assert!(root.find(Path::new(path), Access::Cached).is_err(), "{path}");
    }
    assert!(read_all(&root, "loop").is_err());
}

#[test]
fn what_is_no_directory_cannot_be_served() {
    let dir = TestDir::new("files-root");
    let file = dir.path().join("file");
    fs::write(&file, "x").expect("a file");
    assert_eq!(root(&file).expect_err("a file").exit_code(), 2);
    let missing = root(&dir.path().join("missing")).expect_err("nothing").to_string();
    assert!(missing.contains("cannot serve") && !missing.contains('\n'), "{missing}");
}

/// A file system in memory cannot be asked whether it has something there.
#[cfg(target_os = "linux")]
#[test]
fn a_file_of_a_file_system_in_memory_is_read_at_once() {
    let Ok(found) = rustix::fs::statfs("/dev/shm") else { return };
    assert_eq!(found.f_type as u64, 0x0102_1994, "/dev/shm is a tmpfs");
    let dir = TestDir::below(Path::new("/dev/shm"), "files-in-memory");
    fs::write(dir.path().join("file"), [7; 2_000]).expect("a file");
    let mut source = Source::new(root(dir.path()).expect("a directory"), "file".into());
    for (offset, len, is_last) in [(0, 1_500, false), (1_500, 500, true)] {
        let block = source.read_now(offset, 1_500, Access::Cached, Vec::new()).expect("it takes no disk");
        assert!(block.bytes == vec![7; len] && block.is_last == is_last);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_small_file_that_has_rested_is_kept_in_memory() {
    let dir = TestDir::new("files-kept");
    let path = dir.path().join("file");
    let root = root(dir.path()).expect("a directory");
    let is_kept = || match root.find(Path::new("file"), Access::Disk) {
        Ok(Found::File(opened)) => matches!(opened.content, Content::Memory(..)),
        found => panic!("{found:?}"),
    };
    fs::write(&path, "first").expect("a file");
    assert_eq!(read_all(&root, "file").expect("readable"), b"first");
    assert!(!is_kept());
    std::thread::sleep(std::time::Duration::from_millis(3_100));
    for _ in 0..2 {
        assert_eq!(read_all(&root, "file").expect("readable"), b"first");
        assert!(is_kept());
    }
    // In parts, too, and never beyond its end.
    for (offset, part, is_last) in [(0, "fi", false), (3, "st", true), (5, "", true), (7, "", true)] {
        let mut source = Source::new(root.clone(), "file".into());
        let block = source.read_now(offset, 2, Access::Cached, vec![9; 9]).expect("it takes no disk");
        assert_eq!((&block.bytes[..], block.is_last), (part.as_bytes(), is_last), "{offset}");
    }
    fs::write(&path, "other").expect("a file");
    assert_eq!(read_all(&root, "file").expect("readable"), b"other");
    assert!(!is_kept());
}
