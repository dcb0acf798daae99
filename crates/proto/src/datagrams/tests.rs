use fulmar_wire::{Dialect, VarInt, frames};

use super::*;

const PAYLOAD: usize = 1_000;

fn supported(send_buffer: usize) -> Datagrams {
    let mut datagrams = Datagrams::new(Some(1_000), send_buffer);
    datagrams.set_peer_frame_max(FRAME_SIZE_MAX);
    datagrams
}

/// The datagrams that fit one packet.
fn packet(datagrams: &mut Datagrams, size: usize) -> Vec<Vec<u8>> {
    let mut payload = vec![0; size];
    let mut out = FrameWriter::new(&mut payload, Dialect::SinglePath);
    datagrams.write(&mut out, PAYLOAD.min(size));
    let len = out.finish().len;
    let datagram = |frame| match frame {
        Ok(Frame::Datagram(datagram)) => datagram.data.to_vec(),
        other => panic!("{other:?}"),
    };
    frames(&payload[..len], Dialect::SinglePath).map(datagram).collect()
}

fn receive(datagrams: &mut Datagrams, len: usize) -> Result<(), TransportError> {
    let payload = Bytes::from(vec![7; len]);
    datagrams.on_datagram(&Datagram { data: &payload }, &payload)
}

#[test]
fn the_longest_datagram_fits_exactly() {
    let mut datagrams = supported(1 << 20);
    for size in [2, 3, 65, 66, 67, 68, 1_200, 16_386, 16_387, 16_390, 60_000] {
        let len = datagrams.max_len(size).unwrap();
        let fits = |len: usize| 1 + VarInt::saturating(len as u64).size() + len <= size;
        assert!(fits(len) && !fits(len + 1), "{len} of {size}");
    }
    assert_eq!(datagrams.max_len(1), None);
    datagrams.set_peer_frame_max(100);
    assert_eq!(datagrams.max_len(PAYLOAD), Some(97));
    let too_large = datagrams.send(vec![0; 98].into(), true, PAYLOAD);
    assert_eq!(too_large, Err(SendDatagramError::TooLarge));
    datagrams.send(vec![0; 97].into(), true, PAYLOAD).unwrap();
    assert_eq!(packet(&mut datagrams, 100), [vec![0; 97]]);
}

#[test]
fn the_longest_datagram_fits_the_queue() {
    let mut datagrams = supported(300);
    let len = datagrams.max_len(PAYLOAD).unwrap();
    assert_eq!(datagrams.send(vec![0; len].into(), false, PAYLOAD), Ok(()));
    let too_large = datagrams.send(vec![0; len + 1].into(), true, PAYLOAD);
    assert_eq!(too_large, Err(SendDatagramError::TooLarge));
}

#[test]
fn peers_without_datagrams_get_none() {
    let mut datagrams = Datagrams::new(None, 1_000);
    assert_eq!(datagrams.send(Bytes::new(), true, PAYLOAD), Err(SendDatagramError::UnsupportedByPeer));
    assert_eq!(local_frame_max(None), 0);
    let error = receive(&mut datagrams, 0).unwrap_err();
    assert_eq!(error.code, TransportErrorCode::PROTOCOL_VIOLATION);
    assert_eq!(error.frame, Some(FrameType::DATAGRAM));
}

#[test]
fn a_full_queue_blocks_or_drops_the_oldest() {
    let mut datagrams = supported(300);
    for byte in 0..3 {
        datagrams.send(vec![byte; 30].into(), false, PAYLOAD).unwrap();
    }
    let fourth = Bytes::from(vec![3; 30]);
    assert_eq!(
        datagrams.send(fourth.clone(), false, PAYLOAD),
        Err(SendDatagramError::Blocked(fourth.clone()))
    );
    datagrams.send(fourth, true, PAYLOAD).unwrap();
    assert_eq!(datagrams.stats().dropped_outgoing, 1);
    assert_eq!(packet(&mut datagrams, 40), [vec![1; 30]]);
    assert_eq!(datagrams.poll_event(), None, "the queue is still more than half full");
    assert_eq!(packet(&mut datagrams, 1_000), [vec![2; 30], vec![3; 30]]);
    assert_eq!(datagrams.poll_event(), Some(DatagramEvent::Unblocked));
    assert_eq!(datagrams.poll_event(), None);
    assert!(!datagrams.wants_to_send());
}

#[test]
fn what_fits_no_packet_any_more_is_dropped() {
    let mut datagrams = supported(10_000);
    datagrams.send(vec![0; 900].into(), false, PAYLOAD).unwrap();
    datagrams.send(vec![1; 90].into(), false, PAYLOAD).unwrap();
    assert_eq!(packet(&mut datagrams, 500), [vec![1; 90]]);
    assert_eq!(datagrams.stats().dropped_outgoing, 1);
}

#[test]
fn unread_datagrams_are_bounded_and_announced_once() {
    let mut datagrams = supported(0);
    for len in 0..100 {
        receive(&mut datagrams, len).unwrap();
    }
    assert!(datagrams.incoming.bytes <= 1_000);
    assert_eq!(datagrams.poll_event(), Some(DatagramEvent::Received));
    assert_eq!(datagrams.poll_event(), None);
    let read: Vec<_> = std::iter::from_fn(|| datagrams.receive()).map(|data| data.len()).collect();
    assert_eq!(read.last(), Some(&99), "the newest survive");
    assert_eq!(read.len() as u64 + datagrams.stats().dropped_incoming, 100);
    receive(&mut datagrams, 5_000).unwrap();
    assert_eq!(datagrams.poll_event(), None, "larger than the whole buffer");
    receive(&mut datagrams, 5).unwrap();
    assert_eq!(datagrams.poll_event(), Some(DatagramEvent::Received));
}
