//! What a server does that is told to stop, and what it tells of requests.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::thread::{JoinHandle, sleep, spawn};
use std::time::{Duration, Instant};

use crate::run::{Finished, Server, finish, fulmar};
use crate::test_dir::TestDir;

/// A server that says on a file what it does, and a download of `size` bytes that is under way.
fn begin(name: &str, size: u64, options: &[&str]) -> (TestDir, Server, JoinHandle<Finished>) {
    let dir = TestDir::new(name);
    let www = dir.path().join("www");
    fs::create_dir(&www).expect("a directory");
    fs::File::create(www.join("a")).and_then(|file| file.set_len(size)).expect("a sparse file");
    let mut command = fulmar(&["serve", www.to_str().expect("a path"), "--json"]);
    command.args(options).stderr(Stdio::from(fs::File::create(dir.path().join("stderr")).expect("a file")));
    let server = Server::start(command);
    let out = dir.path().join("out");
    fs::create_dir(&out).expect("a directory");
    let get = get(&server, &out);
    // The part of the file is made before the file is asked for: only its bytes show that it is being served.
    let is_served = || {
        let mut parts = fs::read_dir(&out).expect("the directory");
        parts.any(|part| part.and_then(|part| part.metadata()).is_ok_and(|part| part.len() > 0))
    };
    while !is_served() {
        sleep(Duration::from_millis(1));
    }
    (dir, server, get)
}

fn get(server: &Server, out: &Path) -> JoinHandle<Finished> {
    let mut get = fulmar(&["get", "--hq", "-q", "--insecure", "-o", out.to_str().expect("a path")]);
    get.arg(server.url("/a"));
    spawn(move || finish(get))
}

#[test]
fn a_server_that_is_told_to_stop_lets_transfers_end() {
    let (dir, mut server, get) = begin("grace-long", 300_000_000, &[]);
    sleep(Duration::from_millis(50));
    server.ask_to_stop();
    get.join().expect("ended").succeeded();
    let request = server.next_object();
    assert_eq!((&request["status"], &request["bytes"]), (&200.into(), &300_000_000.into()));
    assert_eq!(server.ended(), Some(0));
    let told = fs::read_to_string(dir.path().join("stderr")).expect("a sentence");
    assert!(told.starts_with("fulmar: stopping after 1 transfer"), "{told}");
}

#[test]
fn the_grace_of_a_server_has_an_end_and_a_second_signal_ends_it() {
    for (options, is_told_again) in [(&["--grace", "500ms"][..], false), (&[], true)] {
        let (dir, server, get) = begin("grace-short", 64 << 30, options);
        let start = Instant::now();
        server.ask_to_stop();
        if is_told_again {
            // Whoever comes meanwhile is told so at once.
            let late = dir.path().join("late");
            fs::create_dir(&late).expect("a directory");
            let late = self::get(&server, &late).join().expect("ended").failed(7, &["refused"]);
            assert!(late.took < Duration::from_secs(5), "{:?}", late.took);
            server.ask_to_stop();
        }
        get.join().expect("ended").failed(56, &["the server is stopping"]);
        assert_eq!(server.ended(), Some(0));
        assert!(start.elapsed() < Duration::from_secs(15), "{:?}", start.elapsed());
    }
}

#[test]
fn each_request_has_a_line() {
    let (www, out) = (TestDir::new("log-www"), TestDir::new("log-out"));
    fs::write(www.path().join("a b"), [1; 5_000]).expect("a file");
    let mut server = Server::serve(www.path(), &[]);
    let out_dir = out.path().to_str().expect("a path");
    for (path, status, bytes) in [("/a%20b", 200, 5_000), ("/gone", 404, 0), ("/%2e%2e/x", 400, 0)] {
        let _ = finish(fulmar(&["get", "--hq", "-q", "--insecure", "-o", out_dir, &server.url(path)]));
        let line = server.next_object();
        assert_eq!((&line["kind"], &line["path"]), (&"request".into(), &path.into()), "{line}");
        assert_eq!((&line["status"], &line["bytes"]), (&status.into(), &bytes.into()), "{line}");
        assert!(line["remote"].as_str().expect("an address").starts_with("127.0.0.1:"), "{line}");
        assert!(line["duration_s"].as_f64().expect("a time") < 60.0, "{line}");
    }
    assert_eq!(server.interrupt(), Some(0));
}
