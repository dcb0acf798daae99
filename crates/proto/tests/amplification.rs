//! A server and an address that it does not trust yet (RFC 9000 §8.1).

mod pair;

use std::time::Duration;

use fulmar_proto::TransportConfig;
use pair::Pair;

#[test]
fn a_server_whose_credit_is_used_up_waits_for_the_client() {
    // Three times what the client sends is no multiple of what the server sends.
    let client = TransportConfig { initial_mtu: 1_300, ..TransportConfig::default() };
    let mut pair = Pair::new(client, TransportConfig::default());
    pair.run_for(Duration::from_millis(7));
    assert!(!pair.client.sent.is_empty() && !pair.server.sent.is_empty());
    // Nothing that the client says reaches the server any more.
    pair.client.mute = true;
    let received: usize = pair.client.sent.iter().map(Vec::len).sum();
    pair.run_for(Duration::from_secs(5));
    let sent: usize = pair.server.sent.iter().map(Vec::len).sum();
    assert!(sent <= 3 * received && 3 * received - sent < 1_200, "{sent} after {received}");
    assert!(pair.server.conn().is_handshaking() && !pair.server.conn().is_closed());
}
