//! Transfers over several paths. Other loopback addresses than 127.0.0.1 are there on Linux.
#![cfg(target_os = "linux")]

use std::fs;

use serde_json::Value;

use crate::odd::{Answer, Odd};
use crate::run::{Server, content, finish, fulmar};
use crate::test_dir::TestDir;

const PATHS: [&str; 6] = ["--multipath", "--bind", "127.0.0.1", "--bind", "127.0.0.2", "--json"];

/// Bytes that each path has brought, by the address that it begins at.
fn received(object: &Value) -> Vec<(String, u64)> {
    let paths = object["paths"].as_array().map_or(&[][..], |paths| paths);
    let of = |path: &Value| {
        let bind = path["bind"].as_str().expect("an address").to_owned();
        (bind, path["bytes_received"].as_u64().expect("a count"))
    };
    paths.iter().map(of).collect()
}

#[test]
fn a_file_comes_over_two_paths() {
    let (www, out) = (TestDir::new("paths-www"), TestDir::new("paths-out"));
    fs::write(www.path().join("large"), content(20_000_000, 1)).expect("a file");
    let server = Server::serve(www.path(), &[]);
    for more in [&[][..], &["--hq"], &["--scheduler", "weighted"]] {
        let mut command = fulmar(&["get", "--pin", &server.fingerprint, &server.url("/large")]);
        command.args(PATHS).args(more).arg("-o").arg(out.path());
        let objects = finish(command).succeeded().objects();
        assert!(fs::read(out.path().join("large")).expect("a file") == content(20_000_000, 1), "it differs");
        let received = received(objects.last().expect("a summary"));
        assert_eq!(
            received.iter().map(|(bind, _)| bind.as_str()).collect::<Vec<_>>(),
            ["127.0.0.1", "127.0.0.2"]
        );
        // How much is up to the machine, since a path with a full window is passed over whatever its weight is.
        assert!(received.iter().all(|(_, bytes)| *bytes > 0), "{received:?}");
    }
}

#[test]
fn without_multipath_what_is_bound_to_first_carries_all() {
    let (www, out) = (TestDir::new("bind-www"), TestDir::new("bind-out"));
    fs::write(www.path().join("a"), "a file").expect("a file");
    let server = Server::serve(www.path(), &[]);
    let mut command =
        fulmar(&["get", "--pin", &server.fingerprint, &server.url("/a"), "--bind", "127.0.0.2"]);
    let objects = finish({
        command.args(["--json", "-o"]).arg(out.path());
        command
    })
    .succeeded()
    .objects();
    assert!(objects.last().expect("a summary").get("paths").is_none());
    assert_eq!(fs::read(out.path().join("a")).expect("a file"), b"a file");
}

#[test]
fn what_is_no_address_of_this_machine_is_told() {
    let bind = ["get", "https://127.0.0.1:9/a", "--insecure", "--bind", "192.0.2.1"];
    finish(fulmar(&bind)).failed(1, &["cannot send from 192.0.2.1"]);
}

/// Nobody answers over UDP there.
#[test]
fn what_goes_over_tcp_leaves_from_the_same_address() {
    let odd = Odd::start(|_| Answer::whole("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"));
    let out = TestDir::new("bind-tcp");
    for more in [&[][..], &["--multipath", "--bind", "127.0.0.8"]] {
        finish(odd.get(&out, &[&["--bind", "127.0.0.9"], more].concat(), "/a")).succeeded();
    }
    finish(odd.get(&out, &["--bind", "lo"], "/a")).succeeded();
    assert_eq!(
        odd.peers().iter().map(ToString::to_string).collect::<Vec<_>>(),
        ["127.0.0.9", "127.0.0.9", "127.0.0.1"]
    );
}

#[test]
fn an_address_of_another_family_than_the_servers_is_told() {
    let www = TestDir::new("bind-family");
    fs::write(www.path().join("a"), "a file").expect("a file");
    let [ipv4, ipv6] = ["127.0.0.1:0", "[::1]:0"].map(|at| Server::serve(www.path(), &["--listen", at]));
    for (server, from) in [(&ipv4, "::1"), (&ipv6, "127.0.0.9")] {
        for more in [&[][..], &["--hq"], &["--http3-only"]] {
            let mut command =
                fulmar(&["get", "--pin", &server.fingerprint, "--bind", from, &server.url("/a")]);
            command.args(more).arg("-o").arg(www.path().join("b"));
            let words = if more == ["--http3-only"] { "cannot be reached" } else { "cannot send from" };
            let finished = finish(command).failed(7, &[words]);
            assert!(finished.took.as_secs() < 5, "{more:?}: {:?}", finished.took);
        }
    }
    assert!(!www.path().join("b").exists());
}

#[test]
fn the_demo_moves_bytes_over_two_paths() {
    let finished =
        finish(fulmar(&["demo", "--size", "30MB", "--multipath", "--scheduler", "weighted", "--json"]))
            .succeeded();
    let transfer = &finished.objects()[0];
    assert_eq!(transfer["verified"], "crc32");
    let paths = transfer["paths"].as_array().expect("paths");
    assert!(
        paths.len() == 2 && paths.iter().all(|path| path["bytes_sent"].as_u64() > Some(1_000_000)),
        "{transfer}"
    );
}
