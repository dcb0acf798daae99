//! Clients of HTTP/3 that mean harm to `fulmar serve`: each gets the right error, others are served, and memory stays small.

use std::fs;
use std::net::Ipv4Addr;
use std::time::Duration;

use fulmar::{ConnectionError, Endpoint, RecvStream, SendStream, VarInt, WriteError};
use fulmar_h3::Client;
use tokio::time::timeout;

use crate::run::runtime;
use crate::web::Site;

/// Codes of RFC 9114 §8.1.
const NO_ERROR: VarInt = VarInt::from_u32(0x100);
const FRAME_UNEXPECTED: u64 = 0x105;
const CLOSED_CRITICAL_STREAM: u64 = 0x104;
const EXCESSIVE_LOAD: u64 = 0x107;
const REQUEST_CANCELLED: VarInt = VarInt::from_u32(0x10c);

/// A GET request of `/`, as a field section of the static table (RFC 9204 appendix A): method, scheme, path, and `:authority: x`.
const GET: [u8; 8] = [0, 0, 0xd1, 0xd7, 0xc1, 0x50, 1, b'x'];
/// How much memory the server may take beyond what it has at rest.
const MEMORY_MAX: u64 = 64 << 20;

fn headers(section: &[u8]) -> Vec<u8> {
    // A length of four bytes.
    let len = (0x8000_0000 | section.len() as u32).to_be_bytes();
    [&[1][..], &len, section].concat()
}

/// A connection that has said nothing yet but its settings.
struct Attacker {
    endpoint: Endpoint,
    quic: fulmar::Connection,
    control: SendStream,
}

impl Attacker {
    async fn new(site: &Site) -> Self {
        let endpoint = Endpoint::client((Ipv4Addr::LOCALHOST, 0).into()).expect("a socket");
        let config = fulmar::tls::client_config(site.roots.clone(), &[fulmar_h3::ALPN]).expect("TLS");
        endpoint.set_default_client_config(config);
        let quic =
            endpoint.connect(site.server.address, "127.0.0.1").expect("an attempt").await.expect("connected");
        let mut control = quic.open_uni().await.expect("a stream");
        control.write_all(&[0, 4, 0]).await.expect("written");
        Self { endpoint, quic, control }
    }

    async fn open(&self) -> Option<(SendStream, RecvStream)> {
        self.quic.open_bi().await.ok()
    }

    /// Writes the same on a stream until the server has enough, behind `start`.
    async fn repeat(send: &mut SendStream, start: &[u8], again: &[u8]) -> WriteError {
        let many = again.repeat(1_000 / again.len() + 1);
        let mut result = send.write_all(start).await;
        while result.is_ok() {
            result = send.write_all(&many).await;
        }
        result.expect_err("it has ended")
    }

    /// The code with which the server has ended the connection.
    async fn code(self) -> u64 {
        let error =
            timeout(Duration::from_secs(10), self.quic.closed()).await.expect("the server has enough");
        self.endpoint.close(VarInt::from_u32(0), b"");
        match error {
            ConnectionError::ApplicationClosed { code, .. } => code.get(),
            other => panic!("{other}"),
        }
    }
}

/// The most memory that a process has had, in bytes.
#[cfg(target_os = "linux")]
fn memory_max(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).expect("a process");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("its memory");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") * 1024
}

/// Attacks a server, looks at its memory, and whether others are served meanwhile and afterwards.
fn attack(name: &str, act: impl AsyncFnOnce(&Site)) {
    let fill = |www: &std::path::Path| {
        fs::write(www.join("index.html"), "home").expect("a file");
        fs::File::create(www.join("big")).and_then(|file| file.set_len(1 << 30)).expect("a sparse file");
    };
    let site = Site::new(name, fill, &["--workers", "1"]);
    runtime().block_on(async {
        let client = site.client();
        let is_served = async |client: &Client| {
            let response = client.get(site.server.url("/")).await.expect("a response");
            assert_eq!(response.into_body().bytes(10).await.expect("a body"), "home");
        };
        is_served(&client).await;
        #[cfg(target_os = "linux")]
        let before = memory_max(site.server.id());
        tokio::join!(act(&site), async {
            for _ in 0..20 {
                is_served(&client).await;
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        });
        is_served(&client).await;
        #[cfg(target_os = "linux")]
        {
            let grown = memory_max(site.server.id()) - before;
            assert!(grown < MEMORY_MAX, "{name}: {} KiB more", grown >> 10);
        }
    });
}

#[test]
fn endless_frames_that_bring_nothing_end_the_connection() {
    attack("hostile-empty", async |site| {
        const UNKNOWN: [u8; 2] = [0x21, 0];
        let attacker = Attacker::new(site).await;
        let (mut send, _recv) = attacker.open().await.expect("a stream");
        let error = Attacker::repeat(&mut send, &[], &UNKNOWN).await;
        assert!(matches!(error, WriteError::ConnectionLost(_) | WriteError::Stopped(_)), "{error}");
        assert_eq!(attacker.code().await, EXCESSIVE_LOAD);
        let mut attacker = Attacker::new(site).await;
        Attacker::repeat(&mut attacker.control, &[], &UNKNOWN).await;
        assert_eq!(attacker.code().await, EXCESSIVE_LOAD);
    });
}

#[test]
fn the_body_of_a_request_for_a_file_is_not_read() {
    attack("hostile-body", async |site| {
        // Empty frames of DATA, and full ones.
        for data in [&[0, 0][..], b"\x00\x05bytes"] {
            let attacker = Attacker::new(site).await;
            let (mut send, _recv) = attacker.open().await.expect("a stream");
            let error = Attacker::repeat(&mut send, &headers(&GET), data).await;
            assert!(matches!(error, WriteError::Stopped(NO_ERROR)), "{error}");
        }
    });
}

#[test]
fn reserved_frames_end_the_connection() {
    attack("hostile-reserved", async |site| {
        // Frames of HTTP/2 (RFC 9114 §7.2.8).
        for ty in [2, 6, 8, 9] {
            let attacker = Attacker::new(site).await;
            let (mut send, _recv) = attacker.open().await.expect("a stream");
            send.write_all(&[ty, 0]).await.expect("written");
            assert_eq!(attacker.code().await, FRAME_UNEXPECTED, "{ty}");
        }
    });
}

#[test]
fn a_control_stream_that_ends_ends_the_connection() {
    attack("hostile-control", async |site| {
        for is_reset in [false, true] {
            let mut attacker = Attacker::new(site).await;
            // What a reset overtakes is not delivered, and a stream of no type may be reset.
            tokio::time::sleep(Duration::from_millis(100)).await;
            if is_reset {
                attacker.control.reset(REQUEST_CANCELLED).expect("open");
            } else {
                attacker.control.finish().expect("open");
            }
            assert_eq!(attacker.code().await, CLOSED_CRITICAL_STREAM, "reset: {is_reset}");
        }
    });
}

#[test]
fn rapid_resets_end_the_connection() {
    attack("hostile-resets", async |site| {
        let attacker = Attacker::new(site).await;
        while let Some((mut send, mut recv)) = attacker.open().await {
            if send.write_all(&headers(&GET)).await.is_err() {
                break;
            }
            let _ = recv.stop(REQUEST_CANCELLED);
            let _ = send.reset(REQUEST_CANCELLED);
        }
        assert_eq!(attacker.code().await, EXCESSIVE_LOAD);
    });
}

#[test]
fn floods_of_fields_are_refused() {
    attack("hostile-fields", async |site| {
        // `cookie` of the static table without a value, and with one of a byte: a field for one byte, and for three.
        let references = [&GET[..], &[0xc5; 16_000]].concat();
        let crumbs = [&GET[..], &b"\x55\x01a".repeat(10_000)].concat();
        for section in [references, crumbs] {
            let attacker = Attacker::new(site).await;
            let mut streams = Vec::new();
            for _ in 0..50 {
                let (mut send, recv) = attacker.open().await.expect("a stream");
                // A server may have refused it in the middle.
                let _ = send.write_all(&headers(&section)).await;
                let _ = send.finish();
                streams.push((send, recv));
            }
            for (_, recv) in &mut streams {
                let chunk = recv.read_chunk(usize::MAX, true).await.expect("an answer").expect("an answer");
                // Status 431 is not in the static table: its name is, and the digits follow.
                assert!(chunk.bytes[0] == 1, "{:?}", &chunk.bytes[..]);
                let is_home = chunk.bytes.windows(4).any(|bytes| bytes == b"home");
                assert!(!is_home, "a request of so many fields was served");
            }
        }
    });
}

#[test]
fn a_request_that_is_too_large_has_a_line_in_the_log() {
    let fill = |www: &std::path::Path| fs::write(www.join("index.html"), "home").expect("a file");
    let mut site = Site::new("hostile-log", fill, &[]);
    runtime().block_on(async {
        let attacker = Attacker::new(&site).await;
        let (mut send, mut recv) = attacker.open().await.expect("a stream");
        // A server may have refused it in the middle.
        let _ = send.write_all(&headers(&[&GET[..], &[0xc5; 16_000]].concat())).await;
        recv.read_chunk(usize::MAX, true).await.expect("an answer").expect("an answer");
        attacker.endpoint.close(NO_ERROR, b"");
    });
    let line = site.server.next_object();
    for (key, value) in [("kind", "request"), ("protocol", "HTTP/3.0"), ("method", "-"), ("path", "")] {
        assert_eq!(line[key], value, "{line}");
    }
    assert_eq!(line["status"], 431, "{line}");
}

#[test]
fn readers_that_take_nothing_hold_little() {
    attack("hostile-readers", async |site| {
        let mut slow = Vec::new();
        let mut attackers = Vec::new();
        for _ in 0..20 {
            let attacker = Attacker::new(site).await;
            for _ in 0..50 {
                let Some((mut send, recv)) = attacker.open().await else { break };
                let big = [&GET[..4], &[0x51, 4], b"/big", &GET[5..]].concat();
                send.write_all(&headers(&big)).await.expect("written");
                send.finish().expect("open");
                slow.push((send, recv));
            }
            attackers.push(attacker);
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    });
}
