//! What the program tells on standard error when it is asked to, and when something fails.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::odd::{Answer, Odd};
use crate::run::{Server, finish, fulmar, get_hq, interrupt};
use crate::test_dir::TestDir;

#[test]
fn a_client_that_is_verbose_tells_what_it_is_connected_to() {
    let (www, out) = (TestDir::new("verbose-www"), TestDir::new("verbose-out"));
    fs::write(www.path().join("a"), [1; 5_000]).expect("a file");
    let server = Server::serve(www.path(), &["--retry", "always"]);
    let (url, out_dir) = (server.url("/a"), out.path().to_str().expect("a path"));
    let told = finish(fulmar(&["get", "--hq", "-v", "--insecure", "-o", out_dir, &url]));
    let (stdout, stderr) = (told.stdout(), told.stderr());
    assert!(stdout.starts_with("1 file, 5.00 kB in "), "{stdout}");
    assert!(stderr.lines().all(|line| line.starts_with("* ")) && !stderr.contains('\u{1b}'), "{stderr}");
    let address = server.address.to_string();
    for words in [
        &format!("trying {address}"),
        &format!("connected to {address} at {address} in "),
        "QUIC v1, after a Retry",
        "TLS 1.3, TLS_AES_",
        "full handshake, ALPN hq-interop",
        "subject      CN=fulmar self-signed",
        "issuer       CN=fulmar self-signed",
        &format!("fingerprint  {}", server.fingerprint),
        "GET /a",
        "5.00 kB in ",
        "closing: round trip ",
    ] {
        assert!(stderr.contains(words), "{words:?} is not in:\n{stderr}");
    }
    let server = Server::serve(www.path(), &[]);
    let mut other = fulmar(&["get", "--hq", "-v", "--insecure", "-o", out_dir, &server.url("/a")]);
    other.args(["--versions", "v2,v1", "--initial-version", "v1"]);
    let told = finish(other).stderr();
    assert!(told.contains("QUIC v2, begun in v1"), "{told}");
    let plain = finish(fulmar(&["get", "--hq", "--insecure", "-o", out_dir, &url])).succeeded();
    assert!(plain.stdout().starts_with("1 file, "), "{}", plain.stdout());
}

#[test]
fn a_client_of_http_that_is_verbose_tells_what_it_is_connected_to() {
    let (www, out) = (TestDir::new("verbose-web-www"), TestDir::new("verbose-web-out"));
    fs::write(www.path().join("a"), [1; 5_000]).expect("a file");
    let server = Server::serve(www.path(), &[]);
    let (address, out_dir) = (server.address, out.path().to_str().expect("a path"));
    let told = |url: &str| {
        finish(fulmar(&["get", "-v", "--parallel", "1", "--insecure", "-o", out_dir, url, url])).stderr()
    };
    let stderr = told(&server.url("/a"));
    let connected = format!("* connected to {address} at {address} in ");
    for words in [
        connected.as_str(),
        "QUIC v1",
        "TLS 1.3, TLS_AES_",
        "full handshake, ALPN h3",
        "subject      CN=fulmar self-signed",
        &format!("fingerprint  {}", server.fingerprint),
        "> GET ",
        "< HTTP/3.0 200 OK",
        "/a: 5.00 kB in ",
        "closing: round trip ",
    ] {
        assert!(stderr.contains(words), "{words:?} is not in:\n{stderr}");
    }
    assert_eq!(stderr.matches("connected to ").count(), 1, "{stderr}");

    // Where nobody listens by UDP, it tells why it speaks another version.
    let odd = Odd::start(|_| Answer::whole("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"));
    let stderr = told(&odd.url("/a"));
    for words in [
        "QUIC does not reach the server: ",
        "connected over TCP",
        "TLS13_AES",
        "TCP and TLS, HTTP/1.1",
        "fingerprint  ",
    ] {
        assert!(stderr.contains(words), "{words:?} is not in:\n{stderr}");
    }
}

#[test]
fn logs_in_files_have_no_colours_and_show_the_life_of_connections() {
    let (www, out) = (TestDir::new("life-www"), TestDir::new("life-out"));
    fs::write(www.path().join("a"), [1; 5_000]).expect("a file");
    let log = out.path().join("log");
    let mut command = fulmar(&["serve", www.path().to_str().expect("a path"), "--json"]);
    command.env("RUST_LOG", "fulmar=debug");
    command.stderr(Stdio::from(fs::File::create(&log).expect("a file")));
    let server = Server::start(command);
    let mut get = get_hq(out.path(), &server.url("/a"));
    get.env("RUST_LOG", "fulmar=debug");
    let client = finish(get).stderr();
    assert_eq!(server.interrupt(), Some(0));
    let server = fs::read_to_string(log).expect("the log");
    for (text, side) in [(&client, "side=Client"), (&server, "side=Server")] {
        assert!(!text.contains('\u{1b}'), "{text:?}");
        for words in ["begins", "connected version=v1", "alpn=\"hq-interop\"", "over reason=", side] {
            assert!(text.contains(words), "{words} is not in:\n{text}");
        }
    }
    assert!(server.contains("forgotten bytes_sent="), "{server}");
}

#[test]
fn failures_are_told_when_they_happen_and_have_an_object() {
    let (www, out) = (TestDir::new("told-www"), TestDir::new("told-out"));
    let huge = fs::File::create(www.path().join("huge")).expect("a file");
    huge.set_len(64 << 30).expect("a sparse file");
    let server = Server::serve(www.path(), &[]);
    let mut get =
        fulmar(&["get", "--hq", "--json", "--insecure", "-o", out.path().to_str().expect("a path")]);
    get.args([server.url("/huge"), server.url("/missing")]);
    let mut get = get.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
    let mut line = String::new();
    BufReader::new(get.stderr.take().expect("a pipe")).read_line(&mut line).expect("a line");
    assert!(line.contains("/missing: the server has no such file"), "{line}");
    let mut object = String::new();
    BufReader::new(get.stdout.take().expect("a pipe")).read_line(&mut object).expect("a line");
    let object: serde_json::Value = serde_json::from_str(&object).expect("an object");
    assert_eq!((&object["kind"], &object["url"]), (&"failure".into(), &server.url("/missing").into()));
    assert!(
        object["error"].as_str().expect("a sentence").ends_with("the server has no such file"),
        "{object}"
    );
    assert!(get.try_wait().expect("its state").is_none(), "the other file is still under way");
    interrupt(&get);
    get.wait().expect("ended");

    // What ends a command has one as well.
    let dead =
        fulmar(&["perf", "client", "no-such-host.invalid:1", "--insecure", "--json", "--download", "1"]);
    let objects = finish(dead).failed(1, &["no-such-host.invalid"]).objects();
    assert_eq!((objects.len(), &objects[0]["kind"]), (1, &"failure".into()));
}

#[test]
fn a_download_ends_with_its_last_line() {
    let (www, out) = (TestDir::new("quick-www"), TestDir::new("quick-out"));
    fs::write(www.path().join("a"), "a file").expect("a file");
    let server = Server::serve(www.path(), &[]);
    let after_last_line = || {
        let mut get = fulmar(&[
            "get",
            "--hq",
            "--insecure",
            "-o",
            out.path().to_str().expect("a path"),
            &server.url("/a"),
        ]);
        let mut get = get.stdout(Stdio::piped()).spawn().expect("the program starts");
        let mut line = String::new();
        BufReader::new(get.stdout.take().expect("a pipe")).read_line(&mut line).expect("a line");
        let start = Instant::now();
        get.wait().expect("ended");
        start.elapsed()
    };
    // The quickest of some, because the machine may be busy.
    let quickest = (0..8).map(|_| after_last_line()).min().expect("some");
    assert!(quickest < Duration::from_millis(50), "{quickest:?}");
}

#[cfg(target_os = "linux")]
#[test]
fn help_that_cannot_be_written_is_a_failure() {
    for arguments in [&["--help"][..], &["get", "--help"], &["--version"]] {
        let full = Stdio::from(fs::File::options().write(true).open("/dev/full").expect("a device"));
        let ended = fulmar(arguments).stdout(full).output().expect("it ends");
        let stderr = String::from_utf8(ended.stderr).expect("text");
        assert_eq!(ended.status.code(), Some(1), "{arguments:?}: {stderr}");
        assert_eq!(stderr.matches("cannot write to standard output").count(), 1, "{arguments:?}: {stderr}");
    }
}

/// A device on which there never is room.
#[cfg(target_os = "linux")]
#[test]
fn output_that_is_lost_is_a_failure() {
    let (www, out) = (TestDir::new("lost-www"), TestDir::new("lost-out"));
    fs::write(www.path().join("a"), "a file").expect("a file");
    let server = Server::serve(www.path(), &[]);
    let (url, out_dir) = (server.url("/a"), out.path().to_str().expect("a path"));
    let full = || Stdio::from(fs::File::options().write(true).open("/dev/full").expect("a device"));
    for arguments in [&["-I"][..], &["--json", "-o", out_dir], &["-o", "-"]] {
        let mut get = fulmar(&["get", "--insecure", &url]);
        let ended = get.args(arguments).stdout(full()).output().expect("it ends");
        let stderr = String::from_utf8(ended.stderr).expect("text");
        assert_eq!(ended.status.code(), Some(23), "{arguments:?}: {stderr}");
        assert_eq!(stderr.matches("cannot write to standard output").count(), 1, "{arguments:?}: {stderr}");
    }
    // A server goes on.
    let mut serve = fulmar(&["serve", www.path().to_str().expect("a path"), "--listen", "127.0.0.1:0"]);
    let mut serve = serve.stdout(full()).stderr(Stdio::piped()).spawn().expect("the program starts");
    let mut line = String::new();
    let mut stderr = BufReader::new(serve.stderr.take().expect("a pipe"));
    stderr.read_line(&mut line).expect("a line");
    assert!(line.starts_with("fulmar: cannot write to standard output"), "{line}");
    assert!(serve.try_wait().expect("its state").is_none(), "it has ended");
    interrupt(&serve);
    assert_eq!(serve.wait().expect("ended").code(), Some(1));
}
