//! The figures of each path.

mod pair;

use fulmar_proto::PathId;
use pair::Pair;

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
