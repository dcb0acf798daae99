//! The program as its users run it: processes, files, sockets, exit codes.

#![allow(
    clippy::disallowed_methods,
    reason = "the tests of the program wait for processes, which takes threads and the clock"
)]

mod demo;
mod explore;
mod files;
mod get_failures;
mod hostile;
mod http09;
mod identity;
mod lab;
mod lab_check;
mod log;
mod multipath;
mod odd;
mod perf;
mod run;
mod scene;
#[cfg(unix)]
mod service;
mod stopping;
mod stuck;
mod tcp;
#[path = "../../src/test_dir.rs"]
mod test_dir;
mod watch;
mod web;
mod web_changes;
mod web_curl;
mod web_get;
mod web_parts;
mod web_stuck;
mod web_upload;
