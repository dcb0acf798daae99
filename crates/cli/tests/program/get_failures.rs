//! What `get` says and leaves behind when something is wrong: one sentence, and nothing half-written.

use std::fs;
use std::net::UdpSocket;
use std::process::Command;
use std::time::Duration;

use crate::run::{Server, finish, fulmar};
use crate::scene::Scene;

#[test]
fn another_certificate_than_the_pinned_one_is_refused() {
    let scene = Scene::new("pin");
    let wrong = format!("sha256:{}", "0".repeat(64));
    let finished = finish(scene.get_hq(&["--pin", &wrong, &scene.server.url("/a")]));
    finished.failed(60, &["certificate", "refused", &scene.server.fingerprint]);
    scene.nothing_was_written();
}

#[test]
fn a_certificate_nobody_vouches_for_is_refused() {
    let scene = Scene::new("untrusted");
    let finished = finish(scene.get_hq(&[&scene.server.url("/a")]));
    finished.failed(60, &["certificate"]);
    scene.nothing_was_written();
}

#[test]
fn files_outside_of_the_directory_are_not_served() {
    let scene = Scene::new("traversal");
    let secret = scene.www.path().with_extension("secret");
    fs::write(&secret, "secret").expect("a file");
    let name = secret.file_name().expect("a name").to_str().expect("text");
    let absolute = secret.to_str().expect("a path").replace('/', "%2f");
    for (path, sentence) in [
        (format!("/x/.%2e/{name}"), "refuses the request"),
        (format!("/%2e%2e/{name}"), "refuses the request"),
        (format!("/x/..%2f../{name}"), "refuses the request"),
        (format!("/{absolute}/x"), "refuses the request"),
        (format!("/{name}"), "no such file"),
    ] {
        let finished = finish(scene.get_hq(&["--insecure", "-q", &scene.server.url(&path)]));
        finished.failed(1, &[sentence]);
    }
    fs::remove_file(secret).expect("removed");
    scene.nothing_was_written();
}

#[test]
fn the_files_that_exist_are_fetched_even_if_others_do_not() {
    let scene = Scene::new("missing");
    let [a, b, c] = ["/a", "/missing", "/gone"].map(|path| scene.server.url(path));
    let finished = finish(scene.get_hq(&["--insecure", "-q", &a, &b, &c]));
    let stderr = finished.stderr();
    let sentences: Vec<&str> = stderr.lines().collect();
    assert_eq!(sentences.len(), 3, "one for each file and one for all: {stderr}");
    for (url, sentence) in [(&b, "no such file"), (&c, "no such file")] {
        assert!(sentences.iter().any(|line| line.contains(url) && line.contains(sentence)), "{stderr}");
    }
    assert!(sentences[2].contains("2 of the files"), "{stderr}");
    assert_eq!(scene.out.names(), ["a"]);
}

#[test]
fn a_dead_server_is_given_up() {
    let scene = Scene::new("dead");
    // Takes datagrams and never answers.
    let silent = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let url = format!("https://{}/a", silent.local_addr().expect("an address"));
    let finished =
        finish(scene.get_hq(&["--insecure", "--handshake-timeout", "500ms", &url])).failed(7, &["no answer"]);
    assert!(finished.took < Duration::from_secs(10), "{:?}", finished.took);
    scene.nothing_was_written();
}

/// In a network namespace of its own, which not everybody may have, the machine has no route at all.
#[cfg(target_os = "linux")]
#[test]
fn a_machine_without_a_route_says_so_at_once() {
    let alone = || {
        let mut command = Command::new("unshare");
        command.args(["--net", "--map-root-user"]);
        command
    };
    if !alone().arg("true").status().is_ok_and(|status| status.success()) {
        return;
    }
    let scene = Scene::new("no-route");
    for more in [&[][..], &["--http3-only"], &["--hq"]] {
        let get = fulmar(&["get", "--insecure", "-q", "-o", scene.out(), "https://192.0.2.1/x"]);
        let mut command = alone();
        command.arg(get.get_program()).args(get.get_args()).args(more).env_remove("RUST_LOG");
        let finished = finish(command).failed(7, &["nothing could be sent", "network unreachable"]);
        assert!(finished.took < Duration::from_secs(2), "{more:?}: {:?}", finished.took);
        assert!(!finished.stderr().contains("is a server there?"), "{more:?}: {}", finished.stderr());
    }
}

/// In a network namespace whose only interface carries datagrams of 1172 bytes at most.
#[cfg(target_os = "linux")]
#[test]
fn an_interface_too_narrow_for_quic_is_told_at_once_and_tcp_taken() {
    let scene = Scene::new("narrow");
    let program = env!("CARGO_BIN_EXE_fulmar");
    let dir = scene.www.path().to_str().expect("a path");
    let script = "ip link set lo mtu 1200 && ip link set lo up || exit 99
        $0 serve $1 --listen 127.0.0.1:4433 >/dev/null 2>&1 & trap 'kill $!' EXIT
        until $0 get --insecure -q -I https://127.0.0.1:4433/a >/dev/null 2>&1; do sleep 0.1; done
        shift; $0 get --insecure -q https://127.0.0.1:4433/a \"$@\"";
    let alone = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(["--net", "--map-root-user", "sh", "-c", script, program, dir]);
        command
    };
    // Not everybody may have one.
    if !alone("ip link set lo mtu 1200").status().is_ok_and(|status| status.success()) {
        return;
    }
    let out = scene.out();
    for (more, code) in [(["-o", "-", "-v"], 0), (["-o", "-", "--http3-only"], 7), (["-o", out, "--hq"], 7)] {
        let mut command = alone(script);
        command.args(more).env_remove("RUST_LOG").env("XDG_STATE_HOME", out);
        let finished = finish(command);
        let stderr = finished.stderr();
        assert_eq!(finished.code(), Some(code), "{more:?}: {stderr}");
        let words = "datagrams of 1200 bytes, which QUIC needs, are too large for the network interface";
        assert!(stderr.contains(words), "{more:?}: {stderr}");
        assert!(finished.took < Duration::from_secs(8), "{more:?}: {:?}", finished.took);
    }
}

#[test]
fn a_server_of_another_protocol_is_recognised() {
    let scene = Scene::new("alpn");
    let perf = Server::perf();
    finish(scene.get_hq(&["--insecure", &perf.url("/a")])).failed(7, &["protocol", "hq-interop"]);
    scene.nothing_was_written();
}

#[test]
fn a_name_without_address_is_one_sentence() {
    let scene = Scene::new("dns");
    finish(scene.get_hq(&["--insecure", "https://no-such-host.invalid/a"]))
        .failed(6, &["no-such-host.invalid"]);
    scene.nothing_was_written();
}

#[test]
fn a_directory_that_is_missing_or_not_writable_is_one_sentence() {
    let scene = Scene::new("unwritable");
    let url = scene.server.url("/a");
    finish(fulmar(&["get", "--hq", "--insecure", "-o", "/nonexistent/", &url])).failed(2, &["/nonexistent"]);
    // The kernel's file system takes no files of ours, whoever we are.
    #[cfg(target_os = "linux")]
    for more in [&["--hq"][..], &[]] {
        let mut command = fulmar(&["get", "--insecure", "-q", "-o", "/proc/self", &url]);
        command.args(more);
        finish(command).failed(23, &["cannot write /proc/self/a"]);
    }
    finish(fulmar(&["get", "--insecure", "-o", "/nonexistent/a", &url]))
        .failed(23, &["cannot write /nonexistent/a"]);
}

#[test]
fn what_cannot_be_read_to_be_sent_is_one_sentence() {
    let scene = Scene::new("unreadable");
    let url = scene.server.url("/a");
    for option in [["-T", "/nonexistent"], ["-d", "@/nonexistent"], ["--data-binary", "@/nonexistent"]] {
        let mut command = fulmar(&["get", "--insecure", &url]);
        command.args(option);
        finish(command).failed(26, &["cannot read /nonexistent"]);
    }
}

#[cfg(unix)]
#[test]
fn who_may_open_hardly_any_files_is_told_so() {
    let scene = Scene::new("descriptors");
    let (dir, url) = (scene.www.path().to_str().expect("a path"), scene.server.url("/a"));
    let commands: [&[&str]; 6] = [
        &["serve", dir, "--listen", "127.0.0.1:0"],
        &["get", "--insecure", "-q", "-o", scene.out(), &url],
        &["get", "--insecure", "-q", "-o", scene.out(), &url, "--hq"],
        &["perf", "server", "--listen", "127.0.0.1:0"],
        &["perf", "client", "127.0.0.1", "--download", "1MB"],
        &["demo"],
    ];
    for arguments in commands {
        let mut command = Command::new("sh");
        command.args(["-c", "ulimit -n 8; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_fulmar")]);
        command.args(arguments).env_remove("RUST_LOG").env("XDG_STATE_HOME", scene.out());
        finish(command).failed(1, &["ulimit -n"]);
    }
    // One more or less makes no difference to that it is told.
    for count in 9..24 {
        let mut command = Command::new("sh");
        let script = "ulimit -n $1; shift; exec \"$0\" \"$@\"";
        command.args(["-c", script, env!("CARGO_BIN_EXE_fulmar"), &count.to_string()]);
        command.args(["get", "--insecure", "-q", "-o", "-", &url]).env_remove("RUST_LOG");
        let finished = finish(command);
        match finished.code() {
            Some(0) => assert_eq!(finished.stdout(), "a file"),
            code => drop(finished.failed(code.expect("no signal"), &["fulmar: "])),
        }
    }
}

#[cfg(unix)]
#[test]
fn a_full_disk_leaves_nothing() {
    let scene = Scene::new("full");
    let program = env!("CARGO_BIN_EXE_fulmar");
    let (out, url) = (scene.out.path().to_str().expect("a path"), scene.server.url("/large"));
    // A limit on the size of files, with the signal that comes with it ignored, is what a full disk looks like to
    // the program: a write that fails half-way. The unit of the limit is 512 or 1024 bytes, so this is below 3 MB.
    let script = "trap '' XFSZ; ulimit -f 1000; exec \"$0\" get -q --insecure -o \"$1\" \"$2\"";
    let mut command = Command::new("sh");
    command.args(["-c", script, program, out, &url]).env_remove("RUST_LOG");
    finish(command).failed(23, &["cannot write", "large"]);
    scene.nothing_was_written();
}

#[test]
fn a_file_that_has_the_name_stays_when_the_new_one_fails() {
    let scene = Scene::new("keep");
    fs::write(scene.out.path().join("missing"), "old").expect("a file");
    finish(scene.get_hq(&["--insecure", &scene.server.url("/missing")])).failed(1, &["no such file"]);
    assert_eq!(scene.out.names(), ["missing"]);
    assert_eq!(fs::read(scene.out.path().join("missing")).expect("the file"), b"old");
}

#[test]
fn wrong_usage_has_an_exit_code_of_its_own() {
    let scene = Scene::new("usage");
    finish(scene.get_hq(&["http://localhost/a"])).failed(2, &["https://"]);
    finish(scene.get_hq(&["https://localhost/"])).failed(2, &["names no file"]);
    finish(scene.get_hq(&["--ca", "/nonexistent.pem", "https://localhost/a"]))
        .failed(1, &["/nonexistent.pem"]);
    scene.nothing_was_written();
}

#[test]
fn wrong_usage_is_an_object_too_where_objects_are_asked_for() {
    for arguments in [&["get", "--json"][..], &["get", "--json", "--nonsense", "https://localhost/a"]] {
        let ended = fulmar(arguments).output().expect("it ends");
        let told = String::from_utf8(ended.stderr).expect("text");
        let object: serde_json::Value = serde_json::from_slice(&ended.stdout).expect("an object");
        assert_eq!((ended.status.code(), &object["kind"]), (Some(2), &"failure".into()));
        let in_one_line = told.split_whitespace().collect::<Vec<_>>().join(" ");
        let error = object["error"].as_str().expect("a sentence");
        assert!(in_one_line.starts_with(&format!("error: {error} ")), "{object} and {told}");
        assert!(told.contains("Usage: fulmar get"), "{told}");
        assert!(error.ends_with("<URL>...") || error.contains("'--nonsense'"), "{error}");
    }
}

#[test]
fn an_address_in_use_is_one_sentence() {
    let scene = Scene::new("in-use");
    let (dir, address) = (scene.www.path().to_str().expect("a path"), scene.server.address.to_string());
    finish(fulmar(&["serve", dir, "--listen", &address])).failed(1, &["cannot listen on", &address]);
}
