use std::fs;

use super::*;
use crate::test_dir::TestDir;

const BLOCK: u64 = 10_000;

fn read_all(root: &Path, path: &str) -> io::Result<Vec<u8>> {
    let runtime = crate::net::runtime().expect("a runtime");
    runtime.block_on(async {
        let (mut source, mut all) = (Source::new(root.to_owned(), path.into()), Vec::new());
        loop {
            let (back, block) = source.read(all.len() as u64, BLOCK).await?;
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

#[test]
fn files_of_all_sizes_are_read_whole() {
    let dir = TestDir::new("files-sizes");
    let root = root(dir.path()).expect("a directory");
    let block = BLOCK as usize;
    for size in [0, 1, 1000, block - 1, block, block + 1, 3 * block, 3 * block + 7] {
        let content: Vec<u8> = (0..size).map(|index| (index * 31 % 251) as u8).collect();
        fs::write(root.join("file"), &content).expect("a file");
        assert!(read_all(&root, "file").expect("readable") == content, "{size} bytes");
    }
}

#[test]
fn a_file_that_was_closed_must_not_have_changed() {
    let dir = TestDir::new("files-changed");
    let root = root(dir.path()).expect("a directory");
    let runtime = crate::net::runtime().expect("a runtime");
    for change in [false, true] {
        fs::write(root.join("file"), [7; 2_000]).expect("a file");
        let (mut source, block) =
            runtime.block_on(Source::new(root.clone(), "file".into()).read(0, 1_000)).expect("readable");
        assert_eq!((block.bytes.len(), block.is_last), (1_000, false));
        source.close();
        if change {
            fs::write(root.join("file"), [8; 2_001]).expect("a file");
        }
        assert_eq!(runtime.block_on(source.read(1_000, 5_000)).is_err(), change);
    }
}

#[test]
fn only_regular_files_are_opened() {
    let dir = TestDir::new("files-regular");
    let root = root(dir.path()).expect("a directory");
    fs::create_dir(root.join("sub")).expect("a directory");
    for path in ["", "sub", "missing", "sub/missing"] {
        assert_eq!(read_all(&root, path).expect_err(path).kind(), ErrorKind::NotFound, "{path}");
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
        assert_eq!(read_all(&root, path).expect_err(path).kind(), ErrorKind::NotFound, "{path}");
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
