//! Files from `serve` to `get`.

use std::fs;
use std::io::{Read, Seek};
use std::process::{Command, Stdio};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::run::{Finished, Server, content, finish, fulmar, get_hq, interrupt};
use crate::test_dir::TestDir;

#[test]
fn files_arrive_as_they_are() {
    let (www, out) = (TestDir::new("round-www"), TestDir::new("round-out"));
    fs::create_dir(www.path().join("sub")).expect("a directory");
    let files =
        [("empty", 0), ("one", 1), ("small.txt", 3_000), ("sub/a b.bin", 262_144), ("large.bin", 5_000_001)];
    for (index, (name, size)) in files.iter().enumerate() {
        fs::write(www.path().join(name), content(*size, index as u32)).expect("a file");
    }
    let server = Server::serve(www.path(), &[]);
    let mut command = fulmar(&[
        "get",
        "--hq",
        "--json",
        "--pin",
        &server.fingerprint,
        "-o",
        out.path().to_str().expect("a path"),
    ]);
    command.args(files.map(|(name, _)| server.url(&format!("/{}", name.replace(' ', "%20")))));
    let finished = finish(command).succeeded();

    assert_eq!(out.names(), ["a b.bin", "empty", "large.bin", "one", "small.txt"]);
    for (name, _) in files {
        let local = name.rsplit('/').next().expect("a name");
        let same =
            fs::read(out.path().join(local)).expect(local) == fs::read(www.path().join(name)).expect(name);
        assert!(same, "{name} differs");
    }
    let objects = finished.objects();
    assert_eq!(objects.len(), files.len() + 1, "one per file and one per connection");
    let total = objects.last().expect("a transfer");
    assert_eq!(total["bytes"], 5_265_146);
    assert!(total.get("verified").is_none(), "HTTP/0.9 tells nothing to compare with: {total}");
    for key in ["gbit_per_s", "duration_s", "handshake_ms", "rtt_min_us", "packets_sent", "packets_lost"] {
        assert!(total[key].is_number(), "{key}: {total}");
    }
    assert_eq!(server.interrupt(), Some(0));
}

#[test]
fn many_small_files_come_over_one_connection() {
    let (www, out) = (TestDir::new("many-www"), TestDir::new("many-out"));
    for index in 0..300u32 {
        fs::write(www.path().join(format!("f{index}")), content(index as usize, index)).expect("a file");
    }
    let server = Server::serve(www.path(), &[]);
    let mut command = fulmar(&["get", "--hq", "--insecure", "-o", out.path().to_str().expect("a path")]);
    command.args((0..300).map(|index| server.url(&format!("/f{index}"))));
    let summary = finish(command).succeeded().stdout();
    assert!(summary.starts_with("300 files, "), "{summary}");
    for index in 0..300u32 {
        let arrived = fs::read(out.path().join(format!("f{index}"))).expect("a file");
        assert!(arrived == content(index as usize, index), "f{index} differs");
    }
}

#[test]
fn one_file_gets_the_name_that_is_given() {
    let (www, out) = (TestDir::new("named-www"), TestDir::new("named-out"));
    fs::write(www.path().join("a"), "a file").expect("a file");
    let server = Server::serve(www.path(), &[]);
    let (url, file) = (server.url("/a"), out.path().join("b"));
    let name = file.to_str().expect("a path");
    let objects =
        finish(fulmar(&["get", "--hq", "--json", "--insecure", "-o", name, &url])).succeeded().objects();
    assert_eq!((&objects[0]["kind"], &objects[0]["file"]), (&"file".into(), &name.into()));
    assert_eq!(fs::read(&file).expect("the file"), b"a file");
    let two = finish(fulmar(&["get", "--hq", "--insecure", "-o", name, &url, &url]));
    assert!(two.stderr().contains("several files need a directory"), "{}", two.stderr());
    let stdout = finish(fulmar(&["get", "--hq", "--insecure", "-o", "-", &url]));
    assert!(stdout.stderr().contains("-o - names none"), "{}", stdout.stderr());
    assert_eq!(out.names(), ["b"]);
}

#[test]
fn files_come_over_ipv6_and_from_several_servers() {
    let (www, out) = (TestDir::new("ipv6-www"), TestDir::new("ipv6-out"));
    fs::write(www.path().join("a"), "a file").expect("a file");
    let first = Server::serve(www.path(), &["--listen", "[::1]:0"]);
    let second = Server::serve(www.path(), &[]);
    assert!(first.address.is_ipv6() && first.url("/a").contains("[::1]"));
    let urls = [first.url("/a"), second.url("/a")];
    let out_dir = out.path().to_str().expect("a path");
    finish(fulmar(&["get", "--hq", "-q", "--insecure", "-o", out_dir, &urls[0], &urls[1]])).succeeded();
    assert_eq!(out.names(), ["a", "a.2"]);
    assert_eq!(fs::read(out.path().join("a.2")).expect("the file"), b"a file");
}

#[test]
fn each_cipher_suite_and_controller_works() {
    let (www, out) = (TestDir::new("suites-www"), TestDir::new("suites-out"));
    let expected = content(1_000_000, 9);
    fs::write(www.path().join("a"), &expected).expect("a file");
    let server = Server::serve(www.path(), &["--cc", "newreno"]);
    let (url, out_dir) = (server.url("/a"), out.path().to_str().expect("a path"));
    for (cipher, controller) in [("aes128", "cubic"), ("aes256", "newreno"), ("chacha20", "cubic")] {
        let arguments =
            ["get", "--hq", "-q", "--insecure", "--cipher", cipher, "--cc", controller, "-o", out_dir, &url];
        finish(fulmar(&arguments)).succeeded();
        assert!(fs::read(out.path().join("a")).expect("the file") == expected, "{cipher}");
        fs::remove_file(out.path().join("a")).expect("removed");
    }
}

#[test]
fn any_number_of_workers_serves() {
    let out = TestDir::new("workers-out");
    for workers in ["1", "3"] {
        let www = TestDir::new("workers-www");
        let expected = content(300_000, 9);
        fs::write(www.path().join("a"), &expected).expect("a file");
        let server = Server::serve(www.path(), &["--workers", workers]);
        let (url, out_dir) = (server.url("/a"), out.path().to_str().expect("a path"));
        for _ in 0..6 {
            finish(fulmar(&["get", "--hq", "-q", "--insecure", "-o", out_dir, &url])).succeeded();
            assert!(fs::read(out.path().join("a")).expect("the file") == expected, "{workers} workers");
            fs::remove_file(out.path().join("a")).expect("removed");
        }
        // A second server on the same port is told so, and does not get half of the clients.
        let port = server.address.port().to_string();
        let listen = format!("127.0.0.1:{port}");
        let second = fulmar(&["serve", "--listen", &listen, "--workers", workers]);
        finish(second).failed(1, &["cannot listen", "in use"]);
    }
}

#[test]
fn a_certificate_authority_may_be_named() {
    let (www, out) = (TestDir::new("ca-www"), TestDir::new("ca-out"));
    fs::write(www.path().join("a"), "a file").expect("a file");
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let (cert, key) = (out.path().join("cert.pem"), out.path().join("key.pem"));
    fs::write(&cert, made.cert.pem()).expect("written");
    fs::write(&key, made.signing_key.serialize_pem()).expect("written");
    let [cert, key] = [cert, key].map(|path| path.to_str().expect("a path").to_owned());

    let server = Server::serve(www.path(), &["--cert", &cert, "--key", &key]);
    let url = format!("https://localhost:{}/a", server.address.port());
    let out_dir = out.path().to_str().expect("a path");
    finish(fulmar(&["get", "--hq", "-q", "--ca", &cert, "-o", out_dir, &url])).succeeded();
    assert_eq!(fs::read(out.path().join("a")).expect("the file"), b"a file");
    // The certificate is for a name, and an address is another name.
    let by_address = finish(fulmar(&["get", "--hq", "-q", "--ca", &cert, "-o", out_dir, &server.url("/a")]));
    by_address.failed(60, &["certificate", "refused"]);
}

#[test]
fn keys_are_logged_on_both_sides() {
    let (www, out) = (TestDir::new("keylog-www"), TestDir::new("keylog-out"));
    fs::write(www.path().join("a"), "a file").expect("a file");
    let server = Server::serve(www.path(), &[]);
    let log = out.path().join("keys");
    let mut command = get_hq(out.path(), &server.url("/a"));
    command.env("SSLKEYLOGFILE", &log);
    finish(command).succeeded();
    let keys = fs::read_to_string(log).expect("the log");
    for label in ["CLIENT_HANDSHAKE_TRAFFIC_SECRET ", "SERVER_TRAFFIC_SECRET_0 "] {
        assert!(keys.contains(label), "{label}: {keys}");
    }
}

#[test]
fn a_connection_that_falls_silent_ends_by_itself() {
    let (www, out) = (TestDir::new("idle-www"), TestDir::new("idle-out"));
    fs::write(www.path().join("a"), "a file").expect("a file");
    let server = Server::serve(www.path(), &["--idle-timeout", "300ms"]);
    let (url, out_dir) = (server.url("/a"), out.path().to_str().expect("a path"));
    let get = fulmar(&[
        "get",
        "--hq",
        "-q",
        "--insecure",
        "--idle-timeout",
        "20s",
        "--hold",
        "40s",
        "-o",
        out_dir,
        &url,
    ]);
    let finished = finish(get).succeeded();
    // The smaller of both sides' timeouts counts.
    assert!(finished.took < Duration::from_secs(15), "{:?}", finished.took);
}

#[test]
fn a_restarted_server_resets_old_connections() {
    let (www, out) = (TestDir::new("reset-www"), TestDir::new("reset-out"));
    let key = "5a".repeat(32);
    let server = Server::serve(www.path(), &["--reset-key", &key]);
    // Who only receives has nothing to send, and a reset answers what is sent.
    let get = fetch_huge(&www, &out, &server, &["--keep-alive", "200ms"]);
    let address = server.crash().to_string();
    let _successor = Server::serve(www.path(), &["--reset-key", &key, "--listen", &address]);
    let finished = get.join().expect("ended").failed(56, &["stateless reset"]);
    assert!(finished.took < Duration::from_secs(20), "not the idle timeout: {:?}", finished.took);
    assert!(out.names().is_empty(), "nothing is left: {:?}", out.names());
}

#[test]
fn a_restarted_server_with_default_options_resets_old_connections() {
    let (www, out) = (TestDir::new("restart-www"), TestDir::new("restart-out"));
    let first = Server::serve(www.path(), &[]);
    // The port of a server that has ended is free for the next one.
    let address = first.crash().to_string();
    let server = Server::serve(www.path(), &["--listen", &address]);
    let get = fetch_huge(&www, &out, &server, &[]);
    server.crash();
    let _successor = Server::serve(www.path(), &["--listen", &address]);
    let finished = get.join().expect("ended").failed(56, &["stateless reset"]);
    assert!(finished.took < Duration::from_secs(10), "not the idle timeout: {:?}", finished.took);
}

#[test]
fn a_server_that_dies_leaves_no_part_of_a_file() {
    let (www, out) = (TestDir::new("death-www"), TestDir::new("death-out"));
    let server = Server::serve(www.path(), &[]);
    let get = fetch_huge(&www, &out, &server, &["--idle-timeout", "1s"]);
    server.crash();
    get.join().expect("ended").failed(56, &["timed out"]);
    assert!(out.names().is_empty(), "nothing is left: {:?}", out.names());
}

#[test]
fn an_interrupted_get_leaves_no_part_of_a_file() {
    let (www, out) = (TestDir::new("interrupt-www"), TestDir::new("interrupt-out"));
    let server = Server::serve(www.path(), &[]);
    let mut get = get_huge(&www, &out, &server, &[]).spawn().expect("the program starts");
    wait_for_part(&out);
    interrupt(&get);
    assert_eq!(get.wait().expect("ended").code(), Some(130));
    assert!(out.names().is_empty(), "nothing is left: {:?}", out.names());
}

#[test]
fn a_file_that_shrinks_on_the_way_is_no_success() {
    let (www, out) = (TestDir::new("shrink-www"), TestDir::new("shrink-out"));
    let server = Server::serve(www.path(), &[]);
    let get = fetch_huge(&www, &out, &server, &[]);
    let huge = fs::OpenOptions::new().write(true).open(www.path().join("huge")).expect("the file");
    huge.set_len(0).expect("truncated");
    get.join().expect("ended").failed(1, &["/huge: the file was changed while the server sent it"]);
    assert!(out.names().is_empty(), "nothing is left: {:?}", out.names());
}

#[test]
fn a_file_that_is_replaced_on_the_way_arrives_as_it_was() {
    let (www, out) = (TestDir::new("replace-www"), TestDir::new("replace-out"));
    let file = www.path().join("a");
    let size = 300_000_000;
    fs::File::create(&file).and_then(|file| file.set_len(size)).expect("a sparse file");
    let server = Server::serve(www.path(), &[]);
    let mut get = fulmar(&["get", "--hq", "-q", "--insecure", "-o", out.path().to_str().expect("a path")]);
    get.arg(server.url("/a"));
    let get = std::thread::spawn(move || finish(get));
    wait_for_bytes(&out);
    let other = www.path().join("other");
    fs::write(&other, [1; 1_000]).expect("a file");
    fs::rename(other, &file).expect("renamed");
    get.join().expect("ended").succeeded();
    let mut arrived = fs::File::open(out.path().join("a")).expect("the file");
    assert_eq!(arrived.metadata().expect("its length").len(), size);
    let mut end = [1; 100_000];
    arrived.seek(std::io::SeekFrom::End(-100_000)).expect("within the file");
    arrived.read_exact(&mut end).expect("readable");
    assert!(end.iter().all(|byte| *byte == 0), "it ends as it was");
}

/// What fetches a file that is too large to arrive before something happens, and sparse, so that it costs nothing.
fn get_huge(www: &TestDir, out: &TestDir, server: &Server, options: &[&str]) -> Command {
    let huge = fs::File::create(www.path().join("huge")).expect("a file");
    huge.set_len(64 << 30).expect("a sparse file");
    let mut get = fulmar(&["get", "--hq", "-q", "--insecure", "-o", out.path().to_str().expect("a path")]);
    get.args(options).arg(server.url("/huge")).stderr(Stdio::piped());
    get
}

/// Fetches such a file until it is under way.
fn fetch_huge(www: &TestDir, out: &TestDir, server: &Server, options: &[&str]) -> JoinHandle<Finished> {
    let get = get_huge(www, out, server, options);
    let get = std::thread::spawn(move || finish(get));
    wait_for_part(out);
    get
}

/// The part of a file is made before the file is asked for: only its bytes show that it is being served.
fn wait_for_bytes(out: &TestDir) {
    let has_bytes = |name: &String| fs::metadata(out.path().join(name)).is_ok_and(|part| part.len() > 0);
    while !out.names().iter().any(has_bytes) {
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn wait_for_part(out: &TestDir) {
    while out.names().is_empty() {
        std::thread::sleep(Duration::from_millis(5));
    }
    std::thread::sleep(Duration::from_millis(100));
}
