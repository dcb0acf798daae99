//! Both ends survive any payload of authentic packets: they close with an error or go on.
#![no_main]

use std::time::Duration;

use bytes::Bytes;
use fulmar_fuzz::Pair;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: Vec<(bool, Vec<u8>)>| {
    let mut pair = Pair::new();
    pair.open_streams();
    for (to_server, payload) in input.into_iter().take(32) {
        let now = pair.now;
        let host = if to_server { &mut pair.server } else { &mut pair.client };
        if let Some((_, connection)) = host.connections.first_mut() {
            connection.handle_fuzzed_payload(now, Bytes::from(payload));
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
