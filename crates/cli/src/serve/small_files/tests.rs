use std::fs::{self, File, Permissions};
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::thread::sleep;

use cap_std::ambient_authority;

use super::*;
use crate::test_dir::TestDir;

/// A directory with a file, and what is kept of that.
struct World {
    dir: TestDir,
    opened: Dir,
    kept: SmallFiles,
}

impl World {
    fn new(name: &str) -> Self {
        let dir = TestDir::new(name);
        let opened = Dir::open_ambient_dir(dir.path(), ambient_authority()).expect("a directory");
        let world = Self { dir, opened, kept: SmallFiles::default() };
        fs::write(world.path(), "content").expect("a file");
        world
    }

    fn path(&self) -> std::path::PathBuf {
        self.dir.path().join("file")
    }

    /// Reads the file and keeps it, at a time when it has rested for so long.
    fn keep(&self, rest: Duration) {
        let content = fs::read(self.path()).expect("a file");
        let metadata = self.path().metadata().expect("a file");
        let since = metadata.modified().expect("a time") + rest;
        self.kept.keep(Path::new("file"), &content, Stamp::of(&metadata), since);
    }

    fn found_at(&self, now: Instant) -> Option<Bytes> {
        Some(self.kept.find_at(now, &self.opened, Path::new("file"))?.content)
    }

    fn found(&self) -> Option<Bytes> {
        self.found_at(Instant::now())
    }
}

/// More than a tick of the clock of a file system.
fn tick() {
    sleep(Duration::from_millis(20));
}

#[test]
fn a_file_that_has_not_changed_is_given_again() {
    let world = World::new("small-again");
    assert_eq!(world.found(), None);
    world.keep(REST);
    assert_eq!(world.found().as_deref(), Some(&b"content"[..]));
    assert!(world.kept.find(&world.opened, Path::new("other")).is_none());
}

#[test]
fn whatever_changes_a_file_is_seen() {
    let overwrite = |path: &Path| fs::write(path, "CONTENT").expect("written");
    let append = |path: &Path| {
        File::options().append(true).open(path).and_then(|mut file| file.write_all(b"!")).expect("appended");
    };
    let replace = |path: &Path| {
        fs::write(path.with_extension("new"), "CONTENT").expect("a file");
        fs::rename(path.with_extension("new"), path).expect("renamed");
    };
    let link = |path: &Path| {
        fs::write(path.with_extension("new"), "CONTENT").expect("a file");
        fs::remove_file(path).expect("removed");
        symlink(path.with_extension("new"), path).expect("a link");
    };
    let forbid = |path: &Path| fs::set_permissions(path, Permissions::from_mode(0o000)).expect("forbidden");
    let hide_the_time = |path: &Path| {
        let modified = path.metadata().and_then(|metadata| metadata.modified()).expect("a time");
        fs::write(path, "CONTENT").expect("written");
        File::options().write(true).open(path).and_then(|file| file.set_modified(modified)).expect("set");
    };
    let remove = |path: &Path| fs::remove_file(path).expect("removed");
    for (name, change) in [
        ("small-overwritten", &overwrite as &dyn Fn(&Path)),
        ("small-appended", &append),
        ("small-replaced", &replace),
        ("small-linked", &link),
        ("small-forbidden", &forbid),
        ("small-set-back", &hide_the_time),
        ("small-removed", &remove),
    ] {
        let world = World::new(name);
        world.keep(REST);
        tick();
        change(&world.path());
        assert_eq!(world.found(), None, "{name}");
    }
}

#[test]
fn a_file_that_was_changed_just_before_is_not_kept() {
    let world = World::new("small-fresh");
    world.keep(REST - Duration::from_nanos(1));
    assert_eq!(world.found(), None);
}

#[test]
fn a_file_is_read_again_after_a_while() {
    let world = World::new("small-old");
    world.keep(REST);
    let kept_at = Instant::now();
    assert!(world.found_at(kept_at + AGE_MAX - Duration::from_secs(1)).is_some());
    assert_eq!(world.found_at(kept_at + AGE_MAX), None);
    world.keep(REST);
    assert!(world.found().is_some());
}

#[test]
fn parts_and_large_files_are_not_kept() {
    let world = World::new("small-large");
    let metadata = world.path().metadata().expect("a file");
    let later = metadata.modified().expect("a time") + REST;
    world.kept.keep(Path::new("file"), b"conte", Stamp::of(&metadata), later);
    assert_eq!(world.found(), None);
    for (len, is_kept) in [(FILE_BYTES_MAX, true), (FILE_BYTES_MAX + 1, false)] {
        fs::remove_file(world.path()).expect("removed");
        fs::write(world.path(), vec![7; len]).expect("a file");
        world.keep(REST);
        assert_eq!(world.found().is_some(), is_kept, "{len}");
    }
}

#[test]
fn the_oldest_go_when_there_is_no_room() {
    let world = World::new("small-many");
    fs::write(world.path(), vec![7; FILE_BYTES_MAX]).expect("a file");
    let metadata = world.path().metadata().expect("a file");
    let later = metadata.modified().expect("a time") + REST;
    let content = fs::read(world.path()).expect("a file");
    let count = 2 * MEMORY_BYTES / FILE_BYTES_MAX;
    for number in 0..count {
        // The last one comes many times, and takes its place once.
        for _ in 0..if number + 1 == count { 10 } else { 1 } {
            world.kept.keep(Path::new(&format!("{number}")), &content, Stamp::of(&metadata), later);
        }
        let files = world.kept.try_lock().expect("nobody else");
        assert!(files.memory <= MEMORY_BYTES, "{} bytes", files.memory);
        assert_eq!(files.memory, files.all.iter().map(|(path, file)| memory_of(path, file)).sum::<usize>());
        assert_eq!(files.order.len(), files.all.len());
    }
    let files = world.kept.try_lock().expect("nobody else");
    assert!(files.all.len() > count / 3 && files.all.contains_key(OsStr::new(&format!("{}", count - 1))));
    assert!(!files.all.contains_key(OsStr::new("0")));
}
