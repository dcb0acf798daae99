//! What a connection knows of its path for a later one (RFC 9959).

mod pair;

use std::time::Duration;

use fulmar_proto::Side;
use pair::{Pair, SERVER};

#[test]
fn what_a_few_packets_show_of_a_path_is_not_worth_remembering() {
    // RFC 9959 §3.1: the capacity has to be measured, and to be worth a jump: more than four initial windows, which are 48 kB here.
    let mut pair = Pair::connected();
    for _ in 0..5 {
        pair.transfer(Side::Client, 20_000, Duration::from_secs(1));
    }
    assert_eq!(pair.client.conn().congestion_parameters(), None);
    pair.transfer(Side::Client, 5_000_000, Duration::from_secs(5));
    let saved = pair.client.conn().congestion_parameters().expect("that is enough");
    let path = (saved.remote, saved.rtt);
    assert_eq!(path, (SERVER.parse::<std::net::SocketAddr>().unwrap().ip(), Duration::from_millis(10)));
    assert!(saved.window > 48_000, "{}", saved.window);
    // A connection that knows the path is sooner at its rate than one that has to find it.
    let mut later = Pair::connected();
    later.client.conn().resume_congestion(saved);
    later.transfer(Side::Client, 200_000, Duration::from_secs(1));
    let quick = later.now;
    let mut unaware = Pair::connected();
    unaware.transfer(Side::Client, 200_000, Duration::from_secs(1));
    assert!(quick < unaware.now, "{quick:?}, and without {:?}", unaware.now);
}
