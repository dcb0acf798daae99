//! Unreliable datagrams beside streams: who goes first (RFC 9221 §5.1).

mod pair;

use std::time::Duration;

use bytes::Bytes;
use fulmar_proto::{Connection, DatagramOptions, Dir, Instant, Side, TransportConfig};
use pair::{Flying, Pair, Setup, Wire, read_available};

const MS: Duration = Duration::from_millis(1);

/// How long the datagrams last.
const SECONDS: Duration = Duration::from_secs(5);

/// A link of 5 Mbit/s with a queue of 100 ms.
fn narrow() -> Wire {
    let mut free = Instant::ZERO;
    Box::new(move |flying: Flying| {
        let begins = flying.at.max(free);
        if begins.saturating_since(flying.at) > 100 * MS {
            return vec![];
        }
        free = begins + Duration::from_micros(flying.payload.len() as u64 * 8 / 5);
        vec![Flying { at: free, ..flying }]
    })
}

/// Fills the queue of the server with full datagrams.
fn fill(pair: &mut Pair, priority: i32) {
    let server = pair.server.conn();
    let data = Bytes::from(vec![0; server.max_datagram_size().unwrap()]);
    let options = DatagramOptions { priority, ..DatagramOptions::default() };
    while server.send_datagram_with(data.clone(), &options).is_ok() {}
}

/// How long 20 kB of a stream of level 0 take that wait behind a queue of datagrams which is always full; `None` if they do not come.
fn beside_datagrams(priority: i32) -> Option<Duration> {
    // Datagrams of one size, whatever is lost: the queue never runs dry.
    let server = TransportConfig { mtu_discovery: false, ..TransportConfig::default() };
    let mut pair = Setup { server, ..Setup::default() }.connect();
    pair.server.wire = narrow();
    // The datagrams have the window, and the queue of the link.
    pair.run_while_waiting(SECONDS / 5, |pair| {
        fill(pair, priority);
        false
    });
    let id = pair.server.conn().streams().open(Dir::Uni).unwrap();
    pair.server.conn().streams().send(id).write(&[7; 20_000]).unwrap();
    pair.server.conn().streams().send(id).finish().unwrap();
    let (began, mut read) = (pair.now, Vec::new());
    let done = pair.run_while_waiting(SECONDS, |pair| {
        fill(pair, priority);
        read_available(&mut pair.client, id, &mut read)
    });
    assert!(done || pair.lost(Side::Client).is_none());
    done.then(|| pair.now.saturating_since(began))
}

#[test]
fn datagrams_and_streams_of_one_level_share_what_can_be_sent() {
    let time = beside_datagrams(0);
    assert!(time.is_some_and(|time| time < SECONDS / 5), "{time:?}");
}

/// The stream never runs dry, and its data would fill each packet.
#[test]
fn datagrams_take_turns_with_a_stream_of_their_level_that_has_no_end() {
    let mut pair = Pair::connected();
    pair.server.wire = narrow();
    let id = pair.server.conn().streams().open(Dir::Uni).unwrap();
    let fill = |pair: &mut Pair| while pair.server.conn().streams().send(id).write(&[7; 10_000]).is_ok() {};
    let (mut read, mut came) = (Vec::new(), 0);
    pair.run_while_waiting(SECONDS / 5, |pair| {
        fill(pair);
        read_available(&mut pair.client, id, &mut read)
    });
    for number in 0..20 {
        pair.server.conn().send_datagram(Bytes::from(vec![number; 1_000]), false).unwrap();
    }
    let done = pair.run_while_waiting(SECONDS / 4, |pair| {
        fill(pair);
        read_available(&mut pair.client, id, &mut read);
        came += std::iter::from_fn(|| pair.client.conn().read_datagram()).count();
        came >= 10
    });
    assert!(done, "{came} datagrams");
}

#[test]
fn the_room_in_the_send_buffer_is_what_a_datagram_can_have_and_not_a_byte_less() {
    let client = TransportConfig { datagram_send_buffer: 10_000, ..TransportConfig::default() };
    let mut pair = Setup { client, ..Setup::default() }.connect();
    let client = pair.client.conn();
    let send = |client: &mut Connection, len: usize| client.send_datagram(Bytes::from(vec![7; len]), false);
    let empty = client.datagram_send_buffer_space();
    while client.datagram_send_buffer_space() > 1_000 {
        let before = client.datagram_send_buffer_space();
        send(client, 500).unwrap();
        assert_eq!(client.datagram_send_buffer_space(), before - 500 - 64);
    }
    let left = client.datagram_send_buffer_space();
    assert!(left > 64 && send(client, left + 1).is_err());
    send(client, left).unwrap();
    assert_eq!(client.datagram_send_buffer_space(), 0);
    pair.run_for(Duration::from_secs(1));
    assert_eq!(pair.client.conn().datagram_send_buffer_space(), empty, "all of them have left");
}

#[test]
fn the_higher_level_goes_first_be_it_of_a_stream_or_of_datagrams() {
    let behind_streams = beside_datagrams(-1);
    // 20 kB take 32 ms, behind a queue of 100 ms.
    assert!(behind_streams.is_some_and(|time| time < 250 * MS), "{behind_streams:?}");
    // What is left for the stream are the packets in which an acknowledgement leaves no room for a full datagram.
    let behind_datagrams = beside_datagrams(1);
    assert!(behind_datagrams.is_none_or(|time| time > SECONDS / 5), "{behind_datagrams:?}");
}
