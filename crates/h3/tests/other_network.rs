//! A machine that moves from one network to another, for which the test has a network of its own.

#![cfg(target_os = "linux")]

mod common;
mod origin;

use std::net::Ipv4Addr;
use std::process::Command;

use fulmar_h3::Client;
use http::Version;
use tokio::net::TcpListener;

use origin::*;

/// Says that this is the process in the network of its own.
const INSIDE: &str = "FULMAR_TEST_INSIDE";

#[test]
fn what_was_found_out_about_quic_does_not_hold_in_another_network() {
    if std::env::var_os(INSIDE).is_some() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        return runtime.unwrap().block_on(move_elsewhere());
    }
    let alone = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(["--net", "--map-root-user", "sh", "-c", script]).arg(std::env::current_exe().unwrap());
        command.env(INSIDE, "1").status()
    };
    // Not everybody may have one.
    if !alone("ip link set lo up").is_ok_and(|status| status.success()) {
        return;
    }
    let status = alone("ip link set lo up && exec \"$0\" what_was_found_out").unwrap();
    assert!(status.success());
}

async fn move_elsewhere() {
    let identity = Identity::new();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let port = port(&listener);
    identity.serve_tcp(hello(), listener, HTTP1);
    let client = Client::with_roots(identity.roots()).unwrap();
    let ask = || async {
        let response = client.get(uri(port, "/close")).await.unwrap();
        let version = response.version();
        assert_eq!(text(response).await, "bye");
        version
    };
    assert_eq!(ask().await, Version::HTTP_11);
    // It speaks HTTP/3 from now on, but nobody looks.
    identity.serve_udp(hello(), port);
    assert_eq!(ask().await, Version::HTTP_11);
    let route = "route change local 127.0.0.1 dev lo table local proto kernel scope host src 127.0.0.2";
    let moved = Command::new("ip").args(route.split(' ')).status().unwrap();
    assert!(moved.success());
    assert_eq!(ask().await, Version::HTTP_3);
}
