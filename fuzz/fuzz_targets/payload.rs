//! Both ends survive any payload of authentic packets: they close with an error or go on.
#![no_main]

use std::time::Duration;

use bytes::Bytes;
use fulmar_fuzz::Pair;
use fulmar_proto::PathId;
use libfuzzer_sys::fuzz_target;

/// The types of frames that begin with a path (RFC 10069 §4), as they are written.
const OF_PATHS: [&[u8]; 10] = [
    &[0x3e],
    &[0x3f],
    &[0x7e, 0x75],
    &[0x7e, 0x76],
    &[0x7e, 0x77],
    &[0x7e, 0x78],
    &[0x7e, 0x79],
    &[0x7e, 0x7a],
    &[0x7e, 0x7b],
    &[0x7e, 0x7c],
];

/// Of a number the lowest bit says to which end the packet goes, the next two on which path, and the rest with which of
/// these types it begins, if with one.
fn spell(kind: u8, bytes: &[u8]) -> (bool, PathId, Bytes) {
    let first = OF_PATHS.get(usize::from(kind >> 3)).copied().unwrap_or_default();
    (kind & 1 != 0, PathId((kind >> 1 & 3).into()), Bytes::from([first, bytes].concat()))
}

fuzz_target!(|input: (bool, Vec<(u8, Vec<u8>)>)| {
    let (multipath, payloads) = input;
    let mut pair = Pair::with_multipath(multipath);
    pair.open_streams();
    if multipath {
        pair.open_paths();
    }
    for (kind, bytes) in payloads.into_iter().take(32) {
        let now = pair.now;
        let (to_server, path, payload) = spell(kind, &bytes);
        let host = if to_server { &mut pair.server } else { &mut pair.client };
        if let Some((_, connection)) = host.connections.first_mut() {
            connection.handle_fuzzed_payload(now, path, payload);
        }
        pair.exchange();
    }
    pair.now += Duration::from_secs(120);
    for _ in 0..4 {
        pair.exchange();
    }
    assert!(pair.server.connections.is_empty() && pair.client.connections.is_empty(), "idle connections end");
    assert_eq!(pair.server.endpoint.open_connections() + pair.client.endpoint.open_connections(), 0);
});
