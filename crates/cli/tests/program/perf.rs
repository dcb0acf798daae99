//! Measurements, as other programs read them.

use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;

use crate::run::{Server, finish, fulmar, interrupt};

/// The one object that a perf client prints.
#[track_caller]
fn measure(server: &Server, arguments: &[&str]) -> Value {
    let address = server.address.to_string();
    let mut command = fulmar(&["perf", "client", &address, "--insecure", "--json"]);
    command.args(arguments);
    let mut objects = finish(command).succeeded().objects();
    assert_eq!(objects.len(), 1, "{objects:?}");
    objects.remove(0)
}

#[test]
fn transfers_are_complete_in_both_directions() {
    let mut server = Server::perf();
    for (option, kind) in [("--download", "download"), ("--upload", "upload")] {
        let transfer = measure(&server, &[option, "20MB"]);
        assert_eq!(transfer["kind"], kind);
        assert_eq!(transfer["bytes"], 20_000_000);
        assert_eq!(transfer["verified"], "length");
        assert!(transfer["gbit_per_s"].as_f64().expect("a rate") > 0.0);
        assert!(transfer["packets_sent"].as_u64().expect("a count") > 0);
        assert!(transfer["handshake_ms"].as_f64().expect("a time") > 0.0);
        assert!(transfer["cpu_s_server"].is_null(), "the server is another process");
        let served = server.next_object();
        let (sent, received) = if kind == "download" { (20_000_000, 8) } else { (0, 20_000_008) };
        assert_eq!((&served["bytes_sent"], &served["bytes_received"]), (&sent.into(), &received.into()));
        assert_eq!(served["streams"], 1);
    }
}

#[test]
fn nothing_can_be_transferred_too() {
    let server = Server::perf();
    for option in ["--download", "--upload"] {
        let transfer = measure(&server, &[option, "0"]);
        assert_eq!((&transfer["bytes"], &transfer["verified"]), (&0.into(), &"length".into()));
    }
}

#[test]
fn time_ends_a_transfer() {
    let server = Server::perf();
    for arguments in [&["--duration", "300ms"][..], &["--upload", "1TB", "--duration", "300ms"]] {
        let transfer = measure(&server, arguments);
        assert!(transfer["bytes"].as_u64().expect("a count") > 0);
        assert!(transfer.get("verified").is_none(), "nothing to compare with");
        let duration = transfer["duration_s"].as_f64().expect("a time");
        assert!((0.3..5.0).contains(&duration), "{duration}");
    }
}

#[test]
fn requests_are_counted_and_timed() {
    let server = Server::perf();
    let report = measure(&server, &["--requests", "1999", "--concurrent", "150", "--response-size", "3kB"]);
    assert_eq!((&report["kind"], &report["requests"]), (&"requests".into(), &1999.into()));
    assert!(report["requests_per_s"].as_f64().expect("a rate") > 0.0);
    let latency = |name: &str| report["latency_us"][name].as_u64().expect("a time");
    assert!(0 < latency("p50") && latency("p50") <= latency("p90"));
    assert!(latency("p90") <= latency("p99") && latency("p99") <= latency("max"));
}

#[test]
fn handshakes_are_counted_and_timed() {
    let server = Server::perf();
    let report = measure(&server, &["--handshakes", "20", "--concurrent", "4"]);
    assert_eq!((&report["kind"], &report["handshakes"]), (&"handshakes".into(), &20.into()));
    assert!(report["handshakes_per_s"].as_f64().expect("a rate") > 0.0);
    assert!(report["latency_us"]["p50"].as_u64().expect("a time") > 0);
}

#[test]
fn the_text_is_for_people() {
    let server = Server::perf();
    let address = server.address.to_string();
    let text =
        finish(fulmar(&["perf", "client", &address, "--insecure", "--download", "1MB"])).succeeded().stdout();
    assert!(text.starts_with("download of 1.00 MB in ") && text.contains("bit/s"), "{text}");
}

#[test]
fn an_interrupted_measurement_tells_what_it_has() {
    let server = Server::perf();
    let address = server.address.to_string();
    for arguments in [&["--download", "1TB"][..], &["--upload", "1TB"], &["--requests", "100000000"]] {
        let mut command = fulmar(&["perf", "client", &address, "--insecure", "--json"]);
        command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().expect("the program starts");
        std::thread::sleep(Duration::from_millis(500));
        interrupt(&child);
        let output = child.wait_with_output().expect("ended");
        assert_eq!(output.status.code(), Some(130), "{arguments:?}");
        let line = output.stdout.split(|byte| *byte == b'\n').next().expect("a line");
        let object: Value = serde_json::from_slice(line).expect("an object");
        let done = object["bytes"].as_u64().or(object["requests"].as_u64()).expect("a count");
        assert!(done > 0 && object["verified"].is_null(), "{object}");
    }
}

#[test]
fn wrong_addresses_are_one_sentence() {
    let client = |server: &str| finish(fulmar(&["perf", "client", server, "--insecure", "--download", "1"]));
    client("::1:4433").failed(2, &["brackets"]);
}
