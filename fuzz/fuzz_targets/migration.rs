//! Addresses that change in every way: the client moves or probes, a NAT changes its port or address, packets are
//! copied to and from elsewhere, lost, or late. Whatever happens, nothing panics.
#![no_main]

use std::net::SocketAddr;
use std::time::Duration;

use fulmar_fuzz::Pair;
use libfuzzer_sys::fuzz_target;

/// The addresses that there are.
fn address(n: u8) -> SocketAddr {
    SocketAddr::from(([10, 0, n >> 2 & 3, n >> 4], 1_000 + u16::from(n & 3)))
}

fuzz_target!(|data: &[u8]| {
    let mut pair = Pair::new();
    pair.open_streams();
    let mut kept: Vec<Vec<u8>> = Vec::new();
    let mut apparent = pair.client_addr();
    for op in data.chunks_exact(2).take(200) {
        let (what, which) = (op[0], op[1]);
        let Some((_, client)) = pair.client.connections.first_mut() else { break };
        match what % 8 {
            0 => apparent = address(which),
            1 => drop(client.migrate(pair.now, None)),
            2 => drop(client.migrate(pair.now, Some(address(which).ip()))),
            3 => drop(client.probe_path(pair.now, Some(address(which).ip()))),
            4 => client.ping(),
            5 => pair.now += Duration::from_millis(u64::from(which) * 20),
            _ => {}
        }
        for datagram in pair.client.drain(pair.now) {
            // Some are held back, some are seen from elsewhere first.
            match what >> 5 {
                0 => kept.push(datagram),
                1 => {
                    pair.server.receive(pair.now, address(which), &datagram);
                    pair.server.receive(pair.now, apparent, &datagram);
                }
                _ => pair.server.receive(pair.now, apparent, &datagram),
            }
        }
        kept.truncate(16);
        if what % 8 == 6 {
            for datagram in kept.drain(..) {
                pair.server.receive(pair.now, address(which), &datagram);
            }
        }
        let server_addr = pair.server.addr();
        for datagram in pair.server.drain(pair.now) {
            if what % 8 != 7 {
                pair.client.receive(pair.now, server_addr, &datagram);
            }
        }
        pair.now += Duration::from_millis(5);
    }
});
