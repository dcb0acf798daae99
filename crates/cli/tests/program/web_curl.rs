//! Options of `fulmar get` that users know from curl.

use std::fs;
use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::odd::{Answer, Odd};
use crate::run::{content, finish, fulmar};
use crate::scene::Scene;

/// The bytes as a file of gzip.
fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).and_then(|()| encoder.finish()).expect("compressed")
}

#[test]
fn the_head_of_a_response_comes_before_its_body() {
    let scene = Scene::new("web-include");
    let told = finish(scene.get(&["-i", &scene.url("/a"), &scene.url("/a")])).succeeded().stdout();
    let responses: Vec<&str> = told.split_inclusive("a file").collect();
    assert_eq!(responses.len(), 2, "{told}");
    for response in responses {
        let (head, body) = response.split_once("\n\n").expect("an empty line");
        assert!(head.starts_with("HTTP/3.0 200 OK\n") && head.contains("content-length: 6"), "{head}");
        assert_eq!(body, "a file");
    }
    // Where the body has another place, the head is all that is printed.
    let told = finish(scene.get(&["-i", "-q", "-o", scene.out(), &scene.url("/a")])).succeeded().stdout();
    assert!(told.starts_with("HTTP/3.0 200 OK\n") && told.ends_with("\n\n"), "{told}");
    assert_eq!(fs::read(scene.out.path().join("a")).expect("the file"), b"a file");
    finish(scene.get(&["-i", "--json", "-o", scene.out(), &scene.url("/a")])).failed(2, &["--json"]);
}

#[test]
fn heads_of_responses_without_a_file_are_printed_too() {
    let scene = Scene::new("web-include-others");
    fs::create_dir(scene.www.path().join("dir")).expect("a directory");
    fs::write(scene.www.path().join("dir/index.html"), "home").expect("a file");
    let told = finish(scene.get(&["-iL", &scene.url("/dir")])).succeeded().stdout();
    let statuses: Vec<&str> = told.lines().filter(|line| line.starts_with("HTTP/3.0 ")).collect();
    assert_eq!(statuses, ["HTTP/3.0 308 Permanent Redirect", "HTTP/3.0 200 OK"]);
    assert!(told.ends_with("\n\nhome"), "{told}");
    let told = finish(scene.get(&["-i", &scene.url("/none")])).failed(22, &["404"]).stdout();
    assert!(told.starts_with("HTTP/3.0 404 Not Found\n"), "{told}");
}

#[test]
fn compressed_content_is_asked_for_and_unpacked() {
    let scene = Scene::new("web-compressed");
    let text = "all work and no play ".repeat(100_000);
    for (name, content) in [("text.txt", text.as_bytes()), ("large", &content(3_000_000, 1))] {
        fs::write(scene.www.path().join(name), content).expect("a file");
        fs::write(scene.www.path().join(format!("{name}.gz")), gzip(content)).expect("a file");
    }
    let urls = ["/text.txt", "/large", "/a"].map(|path| scene.url(path));
    let mut get = scene.get(&["--compressed", "--json", "-o", scene.out()]);
    get.args(&urls);
    let objects = finish(get).succeeded().objects();
    let file = |name: &str| fs::read(scene.out.path().join(name)).expect("the file");
    assert!(file("text.txt") == text.as_bytes(), "it differs");
    assert!(file("large") == content(3_000_000, 1), "it differs");
    // What the server has no other form of comes as it is.
    assert_eq!(file("a"), b"a file");
    let bytes = |name: &str| {
        let is_it =
            |object: &&serde_json::Value| object["url"].as_str().is_some_and(|url| url.ends_with(name));
        objects.iter().find(is_it).expect("an object")["bytes"].clone()
    };
    assert_eq!(bytes("text.txt"), text.len());
    let head = finish(scene.get(&["--compressed", "-I", &urls[0]])).succeeded().stdout();
    assert!(head.contains("content-encoding: gzip\n"), "{head}");
    // Nothing is asked for, or unpacked, without the option.
    let head = finish(scene.get(&["-I", &urls[0]])).succeeded().stdout();
    assert!(!head.contains("content-encoding"), "{head}");
    finish(scene.get(&["-q", "-H", "Accept-Encoding: gzip", "-o", scene.out(), &urls[0]])).succeeded();
    assert_eq!(file("text.txt"), gzip(text.as_bytes()));
}

#[test]
fn content_that_cannot_be_unpacked_is_no_file() {
    let scene = Scene::new("web-not-unpacked");
    let cut = gzip(&content(100_000, 1));
    let broken = [&cut[..50_000], &[0; 100], &cut[50_100..]].concat();
    for (name, bytes) in [("cut", &cut[..cut.len() - 10]), ("broken", &broken[..]), ("none", b"plain text")] {
        fs::write(scene.www.path().join(name), "a file").expect("a file");
        fs::write(scene.www.path().join(format!("{name}.gz")), bytes).expect("a file");
        let url = scene.url(&format!("/{name}"));
        finish(scene.get(&["--compressed", "-o", scene.out(), &url])).failed(61, &[&url, "gzip"]);
    }
    scene.nothing_was_written();
    let odd = Odd::start(|_| {
        Answer::whole("HTTP/1.1 200 OK\r\nContent-Encoding: br\r\nContent-Length: 5\r\n\r\nhello")
    });
    finish(fulmar(&["get", "--insecure", "--compressed", "-o", "-", &odd.url("/")])).failed(61, &["\"br\""]);
    let conflict = finish(scene.get(&["--compressed", "-C", "-", &scene.url("/a")]));
    assert_eq!(conflict.code(), Some(2), "{}", conflict.stderr());
}

#[test]
fn a_server_is_found_where_the_user_says() {
    let scene = Scene::new("web-resolve");
    let port = scene.server.address.port();
    // No DNS knows these names (RFC 6761).
    let places = [format!("one.test:{port}:127.0.0.1"), format!("b\u{fc}cher.test:{port}:127.0.0.1")];
    for host in ["one.test", "ONE.test", "b\u{fc}cher.test", "xn--bcher-kva.test"] {
        let url = format!("https://{host}:{port}/a");
        let get = scene.get(&["--resolve", &places[0], "--resolve", &places[1], "-o", "-", &url]);
        assert_eq!(finish(get).succeeded().stdout(), "a file", "{host}");
    }
    let get = scene.get(&["--resolve", "one.test:127.0.0.1", &scene.url("/a")]);
    let told = finish(get);
    assert_eq!(told.code(), Some(2), "{}", told.stderr());
}

#[test]
fn a_proxy_that_is_not_used_is_told_of() {
    let scene = Scene::new("web-proxy");
    let get = |arguments: &[&str], excepted: &str| {
        let mut get = scene.get(arguments);
        get.args(["-o", "-", &scene.url("/a")]);
        get.env("HTTPS_PROXY", "http://user:secret@127.0.0.1:9").env("NO_PROXY", excepted);
        finish(get)
    };
    let told = get(&[], "").failed(0, &["HTTPS_PROXY is set, and not followed", "127.0.0.1"]);
    assert_eq!(told.stdout(), "a file");
    assert!(!told.stderr().contains("secret"), "{}", told.stderr());
    get(&["-q"], "").succeeded();
    get(&[], "localhost,127.0.0.1").succeeded();
}
