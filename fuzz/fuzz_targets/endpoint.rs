//! A server with a connection survives any datagrams, from its client's address and from others.
#![no_main]

use std::net::SocketAddr;
use std::time::Duration;

use fulmar_fuzz::Pair;
use libfuzzer_sys::fuzz_target;

/// How a datagram is made of bytes.
const FRESH: u8 = 0;
const DAMAGED: u8 = 1;

fuzz_target!(|input: Vec<(u8, u8, Vec<u8>)>| {
    let mut pair = Pair::new();
    pair.open_streams();
    let seen = pair.to_server.clone();
    let stranger: SocketAddr = "10.9.9.9:99".parse().expect("an address");
    for (kind, which, bytes) in input.into_iter().take(64) {
        let remote = if which & 0x80 == 0 { pair.client_addr() } else { stranger };
        let original = &seen[usize::from(which) % seen.len()];
        let datagram = match kind % 3 {
            FRESH => bytes,
            DAMAGED => {
                let mut damaged = original.clone();
                for change in bytes.chunks_exact(3) {
                    let at = usize::from(u16::from_be_bytes([change[0], change[1]])) % damaged.len();
                    damaged[at] ^= change[2];
                }
                damaged
            }
            _ => original.clone(),
        };
        pair.server.receive(pair.now, remote, &datagram);
        pair.server.drain(pair.now);
        pair.now += Duration::from_millis(u64::from(kind));
    }
    for _ in 0..4 {
        pair.exchange();
    }
    // Nothing that was not authentic can have ended the connection.
    assert!(pair.client.connections.iter().all(|(_, connection)| !connection.is_closed()));
});
