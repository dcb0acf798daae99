//! What tests of `get` begin with.

use std::fs;
use std::process::Command;

use crate::run::{Server, content, fulmar};
use crate::test_dir::TestDir;

/// A served directory with `a` and `large` in it, and an empty one to fetch to.
pub(crate) struct Scene {
    pub(crate) www: TestDir,
    pub(crate) out: TestDir,
    pub(crate) server: Server,
}

impl Scene {
    pub(crate) fn new(name: &str) -> Self {
        let (www, out) = (TestDir::new(&format!("{name}-www")), TestDir::new(&format!("{name}-out")));
        fs::write(www.path().join("a"), "a file").expect("a file");
        fs::write(www.path().join("large"), content(3_000_000, 1)).expect("a file");
        let server = Server::serve(www.path(), &[]);
        Self { www, out, server }
    }

    /// The directory to fetch to.
    pub(crate) fn out(&self) -> &str {
        self.out.path().to_str().expect("a path")
    }

    pub(crate) fn url(&self, path: &str) -> String {
        self.server.url(path)
    }

    /// `get` by HTTP, which knows the certificate and is told by `arguments` where to.
    pub(crate) fn get(&self, arguments: &[&str]) -> Command {
        let mut command = fulmar(&["get", "--pin", &self.server.fingerprint]);
        command.args(arguments);
        command
    }

    /// `get` by HTTP/0.9 to the empty directory.
    pub(crate) fn get_hq(&self, arguments: &[&str]) -> Command {
        let mut command = fulmar(&["get", "--hq", "-o", self.out()]);
        command.args(arguments);
        command
    }

    #[track_caller]
    pub(crate) fn nothing_was_written(&self) {
        assert!(self.out.names().is_empty(), "{:?}", self.out.names());
    }
}
