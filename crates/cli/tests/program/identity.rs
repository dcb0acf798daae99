//! That a server is known again after a restart.

use std::fs;
use std::process::Stdio;

use crate::run::{Server, finish, fulmar};
use crate::test_dir::TestDir;

#[test]
fn a_pin_holds_over_restarts_of_the_server() {
    let (www, out, kept) = (TestDir::new("pin-www"), TestDir::new("pin-out"), TestDir::new("pin-identity"));
    fs::write(www.path().join("a"), "a file").expect("a file");
    let kept_in = kept.path().to_str().expect("a path");
    let first = Server::serve(www.path(), &["--identity", kept_in]);
    let pin = first.fingerprint.clone();
    first.crash();
    let second = Server::serve(www.path(), &["--identity", kept_in]);
    let out_dir = out.path().to_str().expect("a path");
    finish(fulmar(&["get", "--hq", "-q", "--pin", &pin, "-o", out_dir, &second.url("/a")])).succeeded();
    assert_eq!(kept.names(), ["cert.pem", "key.pem", "reset.key"]);
    // The certificate can be trusted by its file as well.
    let url = format!("https://localhost:{}/a", second.address.port());
    let cert = kept.path().join("cert.pem");
    finish(fulmar(&["get", "--hq", "-q", "--ca", cert.to_str().expect("a path"), "-o", out_dir, &url]))
        .succeeded();
}

#[test]
fn the_identity_is_in_the_state_directory_of_the_user() {
    let (www, state) = (TestDir::new("state-www"), TestDir::new("state-dir"));
    let start = || {
        let mut command = fulmar(&["serve", www.path().to_str().expect("a path"), "--json"]);
        command.env("XDG_STATE_HOME", state.path());
        Server::start(command).fingerprint.clone()
    };
    assert_eq!(start(), start());
    let home = TestDir::new("state-home");
    let mut command = fulmar(&["perf", "server", "--json"]);
    command.env_remove("XDG_STATE_HOME").env("HOME", home.path());
    drop(Server::start(command));
    assert!(home.path().join(".local/state/fulmar/key.pem").is_file());
}

#[test]
fn a_server_that_can_keep_nothing_says_so_and_runs() {
    let (www, out) = (TestDir::new("unkept-www"), TestDir::new("unkept-out"));
    fs::write(www.path().join("a"), "a file").expect("a file");
    let told = out.path().join("stderr");
    let blocked = www.path().join("a/state");
    let mut command = fulmar(&["serve", www.path().to_str().expect("a path"), "--json"]);
    command.args(["--identity", blocked.to_str().expect("a path")]);
    command.stderr(Stdio::from(fs::File::create(&told).expect("a file")));
    let server = Server::start(command);
    let out_dir = out.path().to_str().expect("a path");
    finish(fulmar(&["get", "--hq", "-q", "--pin", &server.fingerprint, "-o", out_dir, &server.url("/a")]))
        .succeeded();
    let told = fs::read_to_string(told).expect("a sentence");
    assert!(told.starts_with("fulmar: the certificate is not kept") && told.lines().count() == 1, "{told}");
}
