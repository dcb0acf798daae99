//! The demonstration, and how the program prints.

use std::io::Read;
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;

use crate::run::{finish, fulmar, interrupt};

#[test]
fn the_demo_verifies_every_byte() {
    for controller in ["bbr", "cubic", "newreno"] {
        let finished = finish(fulmar(&["demo", "--size", "30MB", "--cc", controller, "--json"])).succeeded();
        let objects = finished.objects();
        assert_eq!(objects.len(), 1, "{objects:?}");
        let transfer = &objects[0];
        assert_eq!((&transfer["kind"], &transfer["bytes"]), (&"demo".into(), &30_000_000.into()));
        assert_eq!(transfer["verified"], "crc32");
        // No UDP datagram holds more than 65,527 bytes.
        assert!(transfer["packets_sent"].as_u64().expect("a count") > 400);
        for side in ["cpu_s_client", "cpu_s_server"] {
            assert!(transfer[side].as_f64().expect(side) > 0.0, "{transfer}");
        }
    }
}

#[test]
fn the_summary_has_all_figures() {
    let text = finish(fulmar(&["demo", "--size", "2MB"])).succeeded().stdout();
    for word in ["2.00 MB", "bit/s", "verified", "s per GB", "handshake", "packets", "lost", "bbr"] {
        assert!(text.contains(word), "{word}: {text}");
    }
}

#[test]
fn an_interrupted_demo_tells_what_it_has() {
    let run = |arguments: &[&str]| {
        let mut command = fulmar(&["demo", "--size", "1TB"]);
        command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().expect("the program starts");
        std::thread::sleep(Duration::from_millis(700));
        interrupt(&child);
        let output = child.wait_with_output().expect("ended");
        assert_eq!(output.status.code(), Some(130), "{output:?}");
        String::from_utf8(output.stdout).expect("text")
    };
    let text = run(&[]);
    assert!(text.contains("interrupted") && text.contains("packets") && !text.contains("VERIFIED"), "{text}");
    let text = run(&["--json"]);
    let object: Value = serde_json::from_str(text.lines().next().expect("a line")).expect("an object");
    assert!(object["bytes"].as_u64() > Some(0) && object["packets_sent"].as_u64() > Some(0), "{object}");
    assert!(object["verified"].is_null(), "{object}");
}

#[test]
fn nobody_has_to_read_the_output() {
    for arguments in [&["demo", "--size", "1MB", "--json"][..], &["demo", "--size", "1MB"], &["--help"]] {
        let mut child =
            fulmar(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("starts");
        drop(child.stdout.take());
        let status = child.wait().expect("ends");
        let mut stderr = String::new();
        child.stderr.take().expect("a pipe").read_to_string(&mut stderr).expect("text");
        assert!(!stderr.contains("panicked"), "{stderr}");
        assert!(status.code().is_some(), "{arguments:?} was killed: {status}");
    }
}

#[test]
fn the_program_tells_its_version_and_its_commands() {
    let version = finish(fulmar(&["--version"])).succeeded().stdout();
    assert_eq!(version.trim(), format!("fulmar {}", env!("CARGO_PKG_VERSION")));
    let help = finish(fulmar(&["--help"])).succeeded().stdout();
    for word in ["demo", "serve", "get", "perf", "SSLKEYLOGFILE", "Exit codes"] {
        assert!(help.contains(word), "{word}: {help}");
    }
}

#[test]
fn what_erasure_correction_did_is_told() {
    let told = |more: &[&str]| {
        let arguments = [&["demo", "--size", "5MB", "--json"], more].concat();
        finish(fulmar(&arguments)).succeeded().objects().remove(0)
    };
    let with = told(&["--fec", "constant:10,2"]);
    let figure = |name: &str| with["fec"][name].as_u64().unwrap_or_else(|| panic!("no {name}: {with}"));
    // Of 5 MB in packets of at most 65,507 bytes: two repairs after each ten.
    assert!(figure("symbols_sent") >= 5_000_000 / 65_507, "{with}");
    assert!(figure("repairs_sent") >= figure("symbols_sent") / 10, "{with}");
    assert!(told(&[]).get("fec").is_none());
}
