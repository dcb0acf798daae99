//! The end of a connection in the middle of a transfer.

mod pair;

use std::time::Duration;

use bytes::Bytes;
use fulmar_proto::{ConnectionError, Dir, Side, VarInt};
use pair::Pair;

#[test]
fn a_receiver_hears_of_the_end_although_its_buffer_was_full_of_data() {
    let mut pair = Pair::connected();
    let id = pair.server.conn().streams().open(Dir::Uni).expect("a stream is allowed");
    for _ in 0..35 {
        while pair.server.conn().streams().send(id).write(&[7; 10_000]).is_ok() {}
        pair.run_for(Duration::from_millis(1));
    }
    assert!(pair.server.conn().stats().bytes_in_flight > 20_000);
    // What the server says to each of the acknowledgements that are under way is lost.
    let now = pair.now;
    pair.server.conn().close(now, VarInt::from_u32(7), Bytes::from_static(b"stopping"));
    pair.server.mute = true;
    pair.run_for(Duration::from_millis(150));
    pair.server.mute = false;
    assert!(pair.lost(Side::Client).is_none());
    pair.run_for(Duration::from_millis(500));
    let lost = pair.lost(Side::Client);
    let code = VarInt::from_u32(7);
    assert!(
        matches!(lost, Some(ConnectionError::ApplicationClosed { code: c, .. }) if c == code),
        "{lost:?}"
    );
    assert!(pair.server.conn().is_drained());
}
