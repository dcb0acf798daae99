//! No token but a server's own proves anything, whatever it is damaged to, and none makes it panic or keep much.
#![no_main]

use fulmar_fuzz::TokenServer;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: Vec<(u8, Vec<u8>)>| {
    let mut server = TokenServer::new();
    for (kind, bytes) in input.into_iter().take(32) {
        server.try_token(kind, &bytes);
    }
});
