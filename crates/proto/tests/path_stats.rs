//! The figures of each path.

mod pair;

use std::time::Duration;

use fulmar_proto::{Dir, PathId, Side};
use pair::{Pair, read_available};

#[test]
fn a_connection_without_multipath_tells_of_path_0_alone() {
    let mut pair = Pair::connected();
    let remote = pair.server.addr;
    let client = pair.client.conn();
    let [path]: [_; 1] = client.path_stats().collect::<Vec<_>>().try_into().expect("there is one path");
    assert_eq!((path.path, path.addrs.remote, path.validated), (PathId::ZERO, remote, true));
    let whole = client.stats();
    assert_eq!((path.cwnd, path.rtt, path.mtu), (whole.cwnd, whole.rtt, whole.mtu));
    assert_eq!((path.bytes_in_flight, path.pto_count), (whole.bytes_in_flight, 0));
}

#[test]
fn the_largest_window_is_never_below_the_window() {
    let mut pair = Pair::connected();
    let (data, mut written, mut before) = (vec![7; 400_000], 0, 0);
    let id = pair.client.conn().streams().open(Dir::Uni).unwrap();
    pair.run_while_waiting(Duration::from_secs(2), |pair| {
        while let Ok(more) = pair.client.conn().streams().send(id).write(&data[written..]) {
            written += more;
            if more == 0 {
                break;
            }
        }
        read_available(&mut pair.server, id, &mut Vec::new());
        let stats = pair.client.conn().stats();
        assert!(stats.cwnd_max >= stats.cwnd, "{} under {}", stats.cwnd_max, stats.cwnd);
        assert!(stats.cwnd_max >= before, "the largest window has shrunk");
        before = stats.cwnd_max;
        false
    });
    assert!(before > 12_000, "the window has never grown");
}

#[test]
fn acknowledgements_are_counted_with_their_bytes() {
    let mut pair = Pair::connected();
    pair.transfer(Side::Server, 3_000_000, Duration::from_secs(2));
    let stats = pair.client.conn().stats();
    // Four fields of a byte each are the least that an ACK frame has (RFC 9000 §19.3), and few ranges are missing here.
    let each = stats.ack_bytes / stats.acks_sent;
    assert!(
        stats.acks_sent > 10 && (5..20).contains(&each),
        "{} bytes in {}",
        stats.ack_bytes,
        stats.acks_sent
    );
}
