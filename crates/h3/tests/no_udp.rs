//! A machine that gives no UDP socket. The only test of its process, for it takes all of its file descriptors for a moment.

#![cfg(unix)]

mod common;
mod origin;

use std::fs::File;
use std::net::Ipv4Addr;

use fulmar_h3::Client;
use http::Version;
use tokio::net::TcpListener;

use origin::*;

#[tokio::test]
async fn where_there_is_no_udp_socket_requests_go_over_tcp() {
    let identity = Identity::new();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let port = port(&listener);
    identity.serve_tcp(hello(), listener, HTTP2);
    identity.serve_udp(hello(), port);
    let files: Vec<File> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
    let client = Client::with_roots(identity.roots()).unwrap();
    let http3_only = Client::builder().roots(identity.roots()).http3_only(true).build();
    drop(files);
    let response = client.get(uri(port, "/")).await.unwrap();
    assert_eq!(response.version(), Version::HTTP_2);
    assert_eq!(text(response).await, "hello");
    let why = http3_only.expect_err("it needs one").to_string();
    assert!(why.contains("cannot set up"), "{why}");
    // The same for who wants none.
    let client = Client::builder().roots(identity.roots()).tcp_only(true).build().unwrap();
    assert_eq!(client.get(uri(port, "/")).await.unwrap().version(), Version::HTTP_2);
}
