//! Addresses that change in every way: the client moves or probes, a NAT changes its port or address, packets are
//! copied to and from elsewhere, lost, or late; with multipath paths come and go meanwhile. Whatever happens, nothing panics.
#![no_main]

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use fulmar_fuzz::{Pair, Sent};
use fulmar_proto::{FourTuple, PathId, PathUse, TransportErrorCode};
use libfuzzer_sys::fuzz_target;

/// Paths that the default configuration allows at a time.
const PATHS_MAX: usize = 4;

/// The addresses that there are.
fn address(n: u8) -> SocketAddr {
    SocketAddr::from(([10, 0, n >> 2 & 3, n >> 4], 1_000 + u16::from(n & 3)))
}

/// Where a NAT lets a datagram come from that left from one of the client's addresses: it has a port and an address for
/// the one that the client does not choose itself, and the same port for the others.
fn seen_from(apparent: SocketAddr, local: Option<IpAddr>) -> SocketAddr {
    local.map_or(apparent, |ip| SocketAddr::new(ip, apparent.port()))
}

fuzz_target!(|data: &[u8]| {
    let Some((first, data)) = data.split_first() else { return };
    let multipath = first & 1 != 0;
    let mut pair = Pair::with_multipath(multipath);
    pair.open_streams();
    if multipath {
        pair.open_paths();
    }
    let mut kept: Vec<Vec<u8>> = Vec::new();
    let mut apparent = pair.client_addr();
    for op in data.chunks_exact(2).take(200) {
        let (what, which) = (op[0] % 32 % 12, op[1]);
        let (now, server_addr) = (pair.now, pair.server.addr());
        let Some((_, client)) = pair.client.connections.first_mut() else { break };
        let path = PathId((which % 16).into());
        match what {
            0 => apparent = address(which),
            1 => drop(client.migrate(now, None)),
            2 => drop(client.migrate(now, Some(address(which).ip()))),
            3 => drop(client.probe_path(now, Some(address(which).ip()))),
            4 => client.ping(),
            5 => pair.now += Duration::from_millis(u64::from(which) * 20),
            8 => drop(client.open_path(now, FourTuple::new(server_addr, Some(address(which).ip())))),
            9 => drop(client.abandon_path(now, path, TransportErrorCode::NO_ERROR)),
            10 => {
                if let Some((_, server)) = pair.server.connections.first_mut() {
                    let _ = server.abandon_path(now, path, TransportErrorCode::NO_ERROR);
                }
            }
            11 => {
                let wanted = if which & 16 == 0 { PathUse::Backup } else { PathUse::Available };
                let _ = client.set_path_use(path, wanted);
            }
            _ => {}
        }
        for Sent { addrs, payload } in pair.client.drain(pair.now) {
            let from = seen_from(apparent, addrs.local_ip);
            // Some are held back, some are seen from elsewhere first.
            match op[0] >> 5 {
                0 => kept.push(payload),
                1 => {
                    pair.server.receive(pair.now, address(which), &payload);
                    pair.server.receive(pair.now, from, &payload);
                }
                _ => pair.server.receive(pair.now, from, &payload),
            }
        }
        kept.truncate(16);
        if what == 6 {
            for datagram in kept.drain(..) {
                pair.server.receive(pair.now, address(which), &datagram);
            }
        }
        for Sent { addrs, payload } in pair.server.drain(pair.now) {
            if what != 7 {
                pair.client.receive_at(pair.now, Some(addrs.remote.ip()), server_addr, &payload);
            }
        }
        for (_, connection) in pair.client.connections.iter().chain(&pair.server.connections) {
            assert!((1..=PATHS_MAX).contains(&connection.paths().count()), "paths beyond the limit");
        }
        pair.now += Duration::from_millis(5);
    }
});
