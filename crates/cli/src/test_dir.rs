//! A directory of a test's own, which goes when the test is over.

use std::fs;
use std::path::{Path, PathBuf};

/// An empty directory that is removed when this is dropped.
pub(crate) struct TestDir(PathBuf);

impl TestDir {
    /// `name` must be used by one test only.
    pub(crate) fn new(name: &str) -> Self {
        Self::below(&std::env::temp_dir(), name)
    }

    /// The same below another directory than the system's for such.
    pub(crate) fn below(parent: &Path, name: &str) -> Self {
        let path = parent.join(format!("fulmar-test-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("a directory for the test");
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// The names in the directory, in order.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).expect("the directory of the test");
        let mut names: Vec<String> = entries
            .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }
}

impl Drop for TestDir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
