//! What a server sends to an address that may be another's (RFC 9000 §8.1), and that nobody waits for ever.

mod pair;

use std::time::Duration;

use fulmar_proto::{Rng, Side, TransportConfig};
use pair::{Pair, Setup, large_chain, server_tls_with};

fn with_large_chain() -> Setup {
    Setup { server_tls: server_tls_with(large_chain(16_000)), ..Setup::default() }
}

#[track_caller]
fn completes_within_the_limit(pair: &mut Pair, name: impl std::fmt::Debug) {
    let connected = pair.run_while_waiting(Duration::from_secs(9), |pair| {
        assert!(!pair.server.amplification.exceeded, "{name:?}: {:?}", pair.server.amplification);
        pair.client.is_connected() && pair.server.is_connected()
    });
    assert!(connected, "{name:?}: {:?} {:?}", pair.lost(Side::Client), pair.lost(Side::Server));
    pair.transfer(Side::Server, 10_000, Duration::from_secs(5));
}

/// Loses the datagrams of an end whose bit in `losses` is set, counted from its first.
fn lose(pair: &mut Pair, side: Side, losses: u64) {
    let mut count = 0;
    pair.end(side).wire = Box::new(move |flying| {
        count += 1;
        let lost = count <= 64 && losses >> (count - 1) & 1 == 1;
        if lost { Vec::new() } else { vec![flying] }
    });
}

#[test]
fn a_large_chain_of_certificates_waits_for_the_client() {
    let mut pair = with_large_chain().dial();
    // The client's two datagrams arrive; what it answers is held back.
    pair.run_for(Duration::from_millis(9));
    assert!(pair.server.amplification.sent > 2 * pair.server.amplification.received, "the credit is used");
    completes_within_the_limit(&mut pair, "no loss");
}

#[test]
fn a_client_that_falls_silent_gets_no_more_than_three_times_what_it_sent() {
    // Datagrams of the second size leave a remainder of the credit that no datagram fits.
    for initial_mtu in [1_200, 1_400] {
        let server = TransportConfig { initial_mtu, ..TransportConfig::default() };
        let mut pair = Setup { server, ..with_large_chain() }.dial();
        lose(&mut pair, Side::Client, !0b11);
        pair.run_for(Duration::from_secs(9));
        let amplification = &pair.server.amplification;
        assert!(!amplification.exceeded && !amplification.validated);
        assert!(amplification.sent > 2 * amplification.received);
        // RFC 9002 §6.2.2.1: who may not send does not count what is missing as lost.
        assert_eq!(pair.server.conn().stats().pto_count, 0);
    }
}

#[test]
fn whichever_of_the_first_datagrams_of_the_client_are_lost() {
    for losses in 0..1 << 6 {
        let mut pair = with_large_chain().dial();
        lose(&mut pair, Side::Client, losses);
        completes_within_the_limit(&mut pair, losses);
    }
}

#[test]
fn whichever_of_the_first_datagrams_of_the_server_are_lost() {
    for losses in 0..1 << 6 {
        let mut pair = with_large_chain().dial();
        lose(&mut pair, Side::Server, losses);
        completes_within_the_limit(&mut pair, losses);
    }
}

#[test]
fn random_losses_on_both_sides() {
    for seed in 0..200 {
        let mut rng = Rng::from_u64(seed);
        // A third of all datagrams.
        let mut losses = || (0..32).fold(0, |bits, _| bits << 1 | u64::from(rng.below(3) == 0));
        let (client, server) = (losses(), losses());
        let mut pair = with_large_chain().dial();
        lose(&mut pair, Side::Client, client);
        lose(&mut pair, Side::Server, server);
        completes_within_the_limit(&mut pair, seed);
    }
}

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
