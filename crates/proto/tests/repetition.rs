//! Flights of a handshake that are repeated before a timeout asks for it (RFC 9002 §6.2.3).

mod pair;

use std::time::Duration;

use fulmar_proto::{Side, TimerStyle, TransportConfig};
use pair::{Pair, Setup, client_tls_of_one_packet, large_chain, server_tls_with};

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// The first probe timeout of an end that guesses so is 2.5 s away.
fn patient() -> TransportConfig {
    TransportConfig { initial_rtt: Duration::from_secs(1), ..TransportConfig::default() }
}

/// Two ends with patience; the flight of the server fits one datagram.
fn patient_pair(timers: TimerStyle) -> Pair {
    let server = TransportConfig { timers, ..patient() };
    Setup { client: patient(), server, client_tls: client_tls_of_one_packet(), ..Setup::default() }.dial()
}

/// Loses the datagrams of an end for which `is_lost` holds, counted from its first.
fn lose(pair: &mut Pair, side: Side, is_lost: impl Fn(usize) -> bool + 'static) {
    let mut count = 0;
    pair.end(side).wire = Box::new(move |flying| {
        count += 1;
        if is_lost(count - 1) { Vec::new() } else { vec![flying] }
    });
}

fn connects_within(pair: &mut Pair, limit: Duration) -> bool {
    pair.run_while_waiting(limit, |pair| pair.client.is_connected() && pair.server.is_connected())
}

#[test]
fn a_client_that_asks_again_gets_the_flight_at_once() {
    // The client's timeout is a quarter of a second, the server's is much longer. The whole flight is lost.
    let mut pair = Setup { server: patient(), ..Setup::default() }.dial();
    pair.run_for(ms(9));
    pair.server.mute = true;
    pair.run_for(ms(3));
    pair.server.mute = false;
    assert!(connects_within(&mut pair, ms(300)), "{:?}", pair.client.conn().stats());
    assert_eq!(pair.server.conn().stats().pto_count, 0);
}

#[test]
fn a_client_that_gets_packets_without_keys_asks_for_them_at_once() {
    // Of a flight of several datagrams the first is lost, and with it the server's Initial packet.
    let server_tls = server_tls_with(large_chain(2_500));
    let client_tls = client_tls_of_one_packet();
    let mut pair =
        Setup { client: patient(), server: patient(), client_tls, server_tls, ..Setup::default() }.dial();
    lose(&mut pair, Side::Server, |n| n == 0);
    assert!(connects_within(&mut pair, ms(60)), "{:?}", pair.client.conn().stats());
    assert_eq!((pair.client.conn().stats().pto_count, pair.server.conn().stats().pto_count), (0, 0));
}

#[test]
fn a_client_that_lost_a_flight_of_one_datagram_learns_of_it_before_a_timeout() {
    // What follows the flight leaves 312 ms after it.
    let mut pair = patient_pair(TimerStyle::OncePerRtt);
    lose(&mut pair, Side::Server, |n| n == 0);
    assert!(connects_within(&mut pair, ms(350)), "{:?}", pair.client.conn().stats());
    let sent: Vec<usize> = pair.server.sent.iter().map(|datagram| datagram.len()).collect();
    assert!(sent[0] >= 1_200 && sent[1] < 100 && sent[2] >= 1_200, "{sent:?}");
}

#[test]
fn a_client_that_lost_the_repeated_flight_asks_again() {
    // It has waited for 322 ms before it asked first, and so the second packet, 313 ms after the first, is too early. The third leaves
    // 1,250 ms after the flight.
    let mut pair = patient_pair(TimerStyle::OncePerRtt);
    lose(&mut pair, Side::Server, |n| n == 0 || n == 2);
    assert!(connects_within(&mut pair, ms(1_290)), "{:?}", pair.client.conn().stats());
}

#[test]
fn a_client_that_has_a_part_of_the_flight_is_not_reminded() {
    // The client acknowledges the first datagram of three, and nothing that it sends later arrives.
    let server_tls = server_tls_with(large_chain(2_500));
    let client_tls = client_tls_of_one_packet();
    let mut pair =
        Setup { client: patient(), server: patient(), client_tls, server_tls, ..Setup::default() }.dial();
    lose(&mut pair, Side::Server, |n| n == 1);
    lose(&mut pair, Side::Client, |n| n > 1);
    pair.run_for(ms(2_000));
    assert!(pair.server.conn().is_handshaking() && pair.server.conn().stats().rtt_min.is_some());
    assert_eq!(pair.server.sent.iter().filter(|datagram| datagram.len() < 60).count(), 0);
}

#[test]
fn a_server_whose_client_says_nothing_more_reminds_it_three_times() {
    let mut pair = patient_pair(TimerStyle::OncePerRtt);
    lose(&mut pair, Side::Server, |_| true);
    pair.run_for(ms(2_000));
    let small: Vec<usize> = pair.server.sent.iter().map(|d| d.len()).filter(|len| *len < 60).collect();
    assert_eq!(small.len(), 3, "{small:?}");
    assert_eq!(pair.server.sent.len(), 4, "the flight is not repeated before the timeout");
}

#[test]
fn a_flight_that_is_asked_for_is_followed_by_reminders_as_well() {
    // The first reminder makes the client ask, and all that follows is lost, its own questions too.
    let mut pair = patient_pair(TimerStyle::OncePerRtt);
    lose(&mut pair, Side::Server, |n| n != 1);
    lose(&mut pair, Side::Client, |n| n > 1);
    pair.run_for(ms(2_000));
    let sent: Vec<usize> = pair.server.sent.iter().map(|datagram| datagram.len()).collect();
    assert_eq!(sent.len(), 6, "{sent:?}");
    assert!(sent.iter().enumerate().all(|(n, len)| (*len >= 1_200) == (n == 0 || n == 2)), "{sent:?}");
}

#[test]
fn classic_timers_remind_nobody() {
    let mut pair = patient_pair(TimerStyle::Classic);
    lose(&mut pair, Side::Server, |_| true);
    pair.run_for(ms(2_000));
    assert_eq!(pair.server.sent.len(), 1);
}

#[test]
fn who_asks_again_and_again_gets_four_flights_and_no_more_than_three_times_what_it_sent() {
    let mut pair = Setup { server: patient(), ..Setup::default() }.dial();
    lose(&mut pair, Side::Server, |_| true);
    pair.run_for(Duration::from_secs(2));
    let asked = pair.client.conn().stats().pto_count;
    assert!(asked >= 4, "{asked}");
    let full = pair.server.sent.iter().filter(|datagram| datagram.len() >= 1_200).count();
    // A flight is one datagram or two.
    assert!((4..=8).contains(&full), "{full} datagrams after {asked} questions");
    // Whoever asked once more would ask in vain, so that nothing invites it.
    let last = pair.server.sent.last().expect("a server that answers").len();
    assert!(last >= 1_200, "{last} bytes");
    assert!(!pair.server.amplification.exceeded);
}

#[test]
fn a_handshake_without_losses_repeats_nothing() {
    // Guesses that are not far from the truth, or far above it.
    for (client, server) in [(20, 20), (1_000, 20), (20, 1_000)] {
        let guess = |millis| TransportConfig { initial_rtt: ms(millis), ..TransportConfig::default() };
        let mut pair = Pair::new(guess(client), guess(server));
        assert!(connects_within(&mut pair, ms(100)));
        for end in [&mut pair.client, &mut pair.server] {
            assert_eq!(end.conn().stats().pto_count, 0);
        }
        assert!(pair.server.sent.iter().filter(|datagram| datagram.len() >= 1_200).count() <= 3);
    }
}
