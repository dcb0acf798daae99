//! How many datagrams leave with one call.

mod pair;

use std::time::Duration;

use bytes::Bytes;
use fulmar_proto::{Dir, Side, TransmitBatch, TransportConfig};
use pair::{Pair, Setup};

/// The datagrams of the client's next batches, by their number and the size of each, after it was given unreliable
/// datagrams of these lengths.
fn batches(lengths: &[usize]) -> Vec<(usize, Option<usize>)> {
    let config = TransportConfig { datagram_receive_buffer: Some(1 << 20), ..TransportConfig::default() };
    let mut pair: Pair = Setup { client: config.clone(), server: config, ..Setup::default() }.connect();
    pair.run_for(Duration::from_secs(2));
    let now = pair.now;
    let client = pair.client.conn();
    for &len in lengths {
        client.send_datagram(Bytes::from(vec![7; len]), false).unwrap();
    }
    let mut batch = TransmitBatch::new(64);
    let mut batches = Vec::new();
    while let Some(transmit) = client.poll_transmit(now, &mut batch) {
        let size = transmit.segment_size.unwrap_or(transmit.len);
        batches.push((transmit.len.div_ceil(size), transmit.segment_size));
    }
    batches
}

#[test]
fn unreliable_datagrams_of_one_length_leave_together_though_their_packets_are_short() {
    // What follows them is a probe for larger datagrams.
    let found = batches(&[900; 8]);
    assert!(matches!(found[0], (8, Some(900..960))), "{found:?}");
}

#[test]
fn a_shorter_unreliable_datagram_ends_a_batch_and_a_longer_one_begins_another() {
    let found = batches(&[800, 800, 700, 900]);
    assert!(matches!(found[..2], [(3, Some(800..860)), (1, None)]), "{found:?}");
}

/// The datagrams of the server's next batches, after it has written so many bytes to each of so many streams, and has finished
/// them if `ends` says so.
fn answers(streams: usize, len: usize, ends: bool) -> Vec<usize> {
    let mut pair: Pair = Setup::default().connect();
    pair.transfer(Side::Server, 1_000_000, Duration::from_secs(10));
    let now = pair.now;
    let server = pair.server.conn();
    for _ in 0..streams {
        let id = server.streams().open(Dir::Uni).unwrap();
        assert_eq!(server.streams().send(id).write(&vec![7; len]), Ok(len));
        if ends {
            server.streams().send(id).finish().unwrap();
        }
    }
    let mut batch = TransmitBatch::new(64);
    let mut batches = Vec::new();
    while let Some(transmit) = server.poll_transmit(now, &mut batch) {
        batches.push(transmit.len.div_ceil(transmit.segment_size.unwrap_or(transmit.len)));
    }
    batches
}

#[test]
fn the_first_of_many_answers_leave_before_the_last_are_packed() {
    let batches = answers(40, 1_000, true);
    assert!(batches.len() >= 2 && batches.iter().all(|count| *count <= 16), "{batches:?}");
}

#[test]
fn one_long_answer_leaves_in_batches_as_long_as_the_kernel_takes() {
    let batches = answers(1, 40_000, true);
    assert!(batches[0] > 20, "{batches:?}");
}

#[test]
fn what_ends_no_stream_leaves_in_batches_as_long_as_the_kernel_takes() {
    let batches = answers(40, 1_000, false);
    assert!(batches[0] > 20, "{batches:?}");
}

#[test]
fn the_probe_that_fits_every_path_leaves_without_the_full_one() {
    // Whoever handles a train as a whole drops all of it where the full one does not fit.
    let mut pair: Pair = Setup::default().connect();
    pair.transfer(Side::Server, 1_000_000, Duration::from_secs(10));
    pair.run_for(Duration::from_secs(1));
    let server = pair.server.conn();
    let id = server.streams().open(Dir::Uni).unwrap();
    assert_eq!(server.streams().send(id).write(&[7; 40_000]), Ok(40_000));
    let mut batch = TransmitBatch::new(64);
    let mut now = pair.now;
    while server.poll_transmit(now, &mut batch).is_some() {}
    let before = server.stats().pto_count;
    while server.stats().pto_count == before {
        now = server.poll_timeout().unwrap().0;
        server.handle_timeout(now);
        if server.stats().pto_count == before {
            while server.poll_transmit(now, &mut batch).is_some() {}
        }
    }
    let mut sizes = Vec::new();
    while let Some(transmit) = server.poll_transmit(now, &mut batch) {
        let size = transmit.segment_size.unwrap_or(transmit.len);
        sizes.push((transmit.len.div_ceil(size), size));
    }
    assert_eq!(sizes[0], (1, 1_452));
    assert_eq!(sizes[1].1, 1_200, "{sizes:?}");
}
