//! What is told of data that nobody has read, and when reading gives a connection something to send.

mod pair;

use std::time::Duration;

use fulmar_proto::{Dir, TransportConfig};
use pair::{Setup, read_available};

const WINDOW: u64 = 1 << 20;
const LEN: usize = 600_000;

#[test]
fn a_connection_has_something_to_send_after_reading_only_when_the_peer_is_to_get_credit() {
    let server = TransportConfig {
        receive_window: WINDOW,
        receive_window_max: WINDOW,
        stream_receive_window: WINDOW,
        stream_receive_window_max: WINDOW,
        ..TransportConfig::default()
    };
    let mut pair = Setup { server, ..Setup::default() }.connect();
    let id = pair.client.conn().streams().open(Dir::Uni).unwrap();
    let mut written = 0;
    pair.run_while_waiting(Duration::from_secs(5), |pair| {
        let data = vec![7; LEN - written];
        written += pair.client.conn().streams().send(id).write(&data).unwrap_or(0);
        written == LEN
    });
    pair.run_for(Duration::from_secs(1));
    let reader = pair.server.conn();
    assert_eq!(reader.unread(), LEN as u64);
    while reader.streams().accept(Dir::Uni).is_some() {}
    let few = reader.streams().recv(id).read(1_000, true).unwrap().unwrap();
    assert_eq!(reader.unread(), (LEN - few.bytes.len()) as u64);
    assert!(!reader.has_stream_frames(), "a byte of credit is not worth a packet");
    read_available(&mut pair.server, id, &mut Vec::new());
    let reader = pair.server.conn();
    assert_eq!(reader.unread(), 0);
    assert!(reader.has_stream_frames(), "half of the window was read");
    pair.run_for(Duration::from_millis(50));
    assert!(!pair.server.conn().has_stream_frames());
}
