//! Unreliable datagrams.

mod common;

use std::time::Duration;

use bytes::Bytes;
use common::{Pair, run};
use fulmar::{
    DatagramDropReason, DatagramOptions, DroppedDatagram, SendDatagramError, TransportConfig, VarInt,
};

#[test]
fn datagrams_arrive_on_loopback() {
    run(async {
        let pair = Pair::new().await;
        let size = pair.client.max_datagram_size().expect("datagrams are on");
        assert!(size >= 1_000);
        for (from, to) in [(&pair.client, &pair.server), (&pair.server, &pair.client)] {
            from.send_datagram(Bytes::from_static(b"small")).expect("it fits");
            assert_eq!(to.read_datagram().await.expect("an open connection"), &b"small"[..]);
            from.send_datagram(Bytes::new()).expect("it fits");
            assert_eq!(to.read_datagram().await.expect("an open connection"), &b""[..]);
        }
        pair.client.send_datagram(Bytes::from(vec![1; 1_000])).expect("it fits");
        assert_eq!(pair.server.read_datagram().await.expect("an open connection").len(), 1_000);
    });
}

#[test]
fn too_large_a_datagram_is_refused() {
    run(async {
        let pair = Pair::new().await;
        let huge = Bytes::from(vec![0; 65_000]);
        assert_eq!(pair.client.send_datagram(huge.clone()), Err(SendDatagramError::TooLarge));
        assert_eq!(pair.client.send_datagram_wait(huge).await, Err(SendDatagramError::TooLarge));
    });
}

#[test]
fn a_peer_without_datagrams_gets_none() {
    run(async {
        let without = TransportConfig { datagram_receive_buffer: None, ..TransportConfig::default() };
        let pair = Pair::with(without, TransportConfig::default()).await;
        assert_eq!(pair.client.max_datagram_size(), None);
        let result = pair.client.send_datagram(Bytes::from_static(b"x"));
        assert_eq!(result, Err(SendDatagramError::UnsupportedByPeer));
    });
}

#[test]
fn waiting_senders_drop_nothing_on_their_side() {
    run(async {
        const COUNT: usize = 2_000;
        // Room for a few datagrams only.
        let narrow = TransportConfig { datagram_send_buffer: 5_000, ..TransportConfig::default() };
        let pair = Pair::with(TransportConfig::default(), narrow).await;
        let send = async {
            for index in 0..COUNT {
                let mut data = vec![0; 1_000];
                data[..8].copy_from_slice(&(index as u64).to_be_bytes());
                pair.client.send_datagram_wait(data.into()).await.expect("an open connection");
            }
        };
        let receive = async {
            let mut seen = 0;
            while let Ok(data) = pair.server.read_datagram().await {
                assert_eq!(data.len(), 1_000);
                seen += 1;
                if u64::from_be_bytes(data[..8].try_into().expect("eight bytes")) == COUNT as u64 - 1 {
                    break;
                }
            }
            seen
        };
        let ((), seen) = tokio::join!(send, receive);
        // The network in between may lose some, but this one hardly does.
        assert!(seen > COUNT / 2, "{seen} of {COUNT} arrived");
    });
}

#[test]
fn what_is_dropped_before_it_is_sent_is_told() {
    run(async {
        let narrow = TransportConfig { datagram_send_buffer: 500, ..TransportConfig::default() };
        let pair = Pair::with(TransportConfig::default(), narrow).await;
        let data = || Bytes::from(vec![7; 300]);
        let options =
            DatagramOptions { lifetime: Some(Duration::ZERO), priority: 3, ..DatagramOptions::default() };
        let late = pair.client.send_datagram_with(data(), &options).expect("the queue is empty");
        // Nothing else makes room, so nothing but its lifetime ends the first one.
        let dropped = pair.client.dropped_datagram().await.expect("an open connection");
        assert_eq!(dropped, DroppedDatagram { id: late, reason: DatagramDropReason::Late });
        assert_eq!(pair.client.stats().datagrams.late, 1);
        pair.client.close(VarInt::ZERO, b"");
        assert!(pair.client.dropped_datagram().await.is_err());
    });
}

#[test]
fn a_queue_of_larger_priorities_makes_no_room() {
    run(async {
        let narrow = TransportConfig { datagram_send_buffer: 500, ..TransportConfig::default() };
        let pair = Pair::with(TransportConfig::default(), narrow).await;
        let data = || Bytes::from(vec![7; 300]);
        let urgent = DatagramOptions { priority: 1, ..DatagramOptions::default() };
        // The worker runs on this very thread, so nothing leaves in between.
        let first = pair.client.send_datagram_with(data(), &urgent).expect("the queue is empty");
        assert_eq!(pair.client.send_datagram(data()), Err(SendDatagramError::QueueFull(data())));
        pair.client.send_datagram_with(data(), &urgent).expect("an equal makes room");
        let dropped = pair.client.dropped_datagram().await.expect("an open connection");
        assert_eq!(dropped, DroppedDatagram { id: first, reason: DatagramDropReason::Displaced });
        assert_eq!(pair.server.read_datagram().await.expect("an open connection"), data());
    });
}

#[test]
fn a_datagram_of_what_is_left_of_the_buffer_drops_none() {
    run(async {
        let small = TransportConfig { datagram_send_buffer: 2_000, ..TransportConfig::default() };
        let pair = Pair::with(TransportConfig::default(), small).await;
        // The worker, which would send them, does not run in between: nothing is awaited.
        assert_eq!(pair.client.datagram_send_buffer_space(), 2_000 - 64);
        pair.client.send_datagram(Bytes::from(vec![1; 1_000])).expect("it fits");
        let left = pair.client.datagram_send_buffer_space();
        assert_eq!(left, 2_000 - 1_064 - 64);
        pair.client.send_datagram(Bytes::from(vec![2; left])).expect("it fits");
        assert_eq!(pair.client.datagram_send_buffer_space(), 0);
        assert_eq!(pair.client.stats().datagrams.dropped_outgoing, 0);
        pair.client.send_datagram(Bytes::from(vec![3; 1])).expect("it fits");
        assert_eq!(pair.client.stats().datagrams.dropped_outgoing, 1);
    });
}
