//! The memory that all connections of an endpoint have together for what is to be sent.

mod pair;

use std::time::Duration;

use fulmar_proto::{Dir, Side};
use pair::Pair;

#[test]
fn what_is_written_and_not_acknowledged_is_told_as_reserved_until_the_peer_has_it() {
    let mut pair = Pair::connected();
    let idle = pair.client.endpoint.send_memory_reserved();
    pair.client.mute = true;
    let id = pair.client.conn().streams().open(Dir::Uni).unwrap();
    let written = pair.client.conn().streams().send(id).write(&[7; 60_000]).unwrap() as u64;
    pair.run_for(Duration::from_millis(1));
    let reserved = pair.client.endpoint.send_memory_reserved();
    // Each connection has 16 KiB in any case.
    assert!(reserved >= written - 16 * 1024 && reserved <= 2 * written, "{reserved} for {written}");
    pair.client.mute = false;
    pair.client.conn().streams().send(id).finish().unwrap();
    pair.run_for(Duration::from_secs(5));
    assert!(pair.client.endpoint.send_memory_reserved() <= idle);
    pair.transfer(Side::Client, 100_000, Duration::from_secs(5));
    pair.close_and_forget();
    pair.client.connection = None;
    assert_eq!(pair.client.endpoint.send_memory_reserved(), 0);
}
