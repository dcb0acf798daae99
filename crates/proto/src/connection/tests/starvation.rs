//! A handshake that has to wait for room in the congestion window.

use std::time::Duration;

use fulmar_wire::Dir;

use super::super::{Connection, TimerReason};
use super::pair::Pair;
use crate::crypto::Level;
use crate::ids::SpaceId;
use crate::{Event, TransmitBatch, TransportConfig};

/// A client that knows all keys, but whose server does not: the last message of its handshake was lost on the way,
/// and application data, which the server cannot acknowledge yet, fills the window.
fn starving_client() -> Pair {
    let mut pair = Pair::new(TransportConfig::default(), TransportConfig::default());
    while !pair.client.events.iter().any(|event| matches!(event, Event::Connected)) {
        pair.run_for(Duration::from_millis(1));
    }
    pair.client.mute = true;
    let client = pair.client.conn();
    let id = client.streams().open(Dir::Uni).unwrap();
    client.streams().send(id).write(&[0; 100_000]).unwrap();
    pair.run_for(Duration::from_millis(5));
    // A later packet of the handshake was acknowledged, so the server is known to have validated the address, and
    // those before it are lost.
    let now = pair.now;
    let client = pair.client.conn();
    client.recovery(now).forget_sent(SpaceId::Handshake);
    client.handshake.on_flight_acked(SpaceId::Handshake);
    pair
}

fn has_room(client: &Connection) -> bool {
    let tuple = &client.paths.primary().tuple;
    tuple.congestion.window_left() >= u64::from(tuple.mtu())
}

#[test]
fn a_full_window_does_not_keep_the_handshake_waiting_forever() {
    let mut pair = starving_client();
    let now = pair.now;
    let client = pair.client.conn();
    assert!(!client.handshake.is_confirmed());
    client.handshake.tls.crypto.on_lost(SpaceId::Handshake.level(), 0, 52);
    let mut batch = TransmitBatch::new(10);
    while client.poll_transmit(now, &mut batch).is_some() {}
    assert!(
        !has_room(client) && client.handshake.tls.crypto.wants_to_send(Level::Handshake),
        "the handshake starves"
    );
    let (at, reason) = client.poll_timeout().unwrap();
    assert_eq!(reason, TimerReason::Probe);
    client.handle_timeout(at);
    assert!(client.poll_transmit(at, &mut batch).is_some());
    assert!(!client.handshake.tls.crypto.wants_to_send(Level::Handshake));
}
