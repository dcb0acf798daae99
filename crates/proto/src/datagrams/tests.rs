use std::time::Duration;

use fulmar_wire::{Dialect, VarInt, frames};

use super::*;

const PAYLOAD: usize = 1_000;

fn supported(send_buffer: usize) -> Datagrams {
    let mut datagrams = Datagrams::new(Some(1_000), send_buffer, SharedMemory::new(1 << 20));
    datagrams.set_peer_frame_max(FRAME_SIZE_MAX);
    datagrams
}

/// Queues a datagram of no priority.
fn send(
    datagrams: &mut Datagrams,
    data: impl Into<Bytes>,
    makes_room: bool,
) -> Result<(), SendDatagramError> {
    let options = DatagramOptions { makes_room, ..DatagramOptions::default() };
    datagrams.send(data.into(), &options, PAYLOAD).map(|_| ())
}

/// Queues a datagram of 30 bytes, of which three fit 300.
fn send_with(
    datagrams: &mut Datagrams,
    byte: u8,
    options: DatagramOptions,
) -> Result<u64, SendDatagramError> {
    datagrams.send(vec![byte; 30].into(), &options, PAYLOAD).map(|id| id.0)
}

fn of_priority(priority: i32) -> DatagramOptions {
    DatagramOptions { priority, makes_room: true, ..DatagramOptions::default() }
}

fn until(millis: u64) -> DatagramOptions {
    DatagramOptions { deadline: Some(Instant::from_millis(millis)), ..DatagramOptions::default() }
}

/// What the application is told of dropped datagrams.
fn notices(datagrams: &mut Datagrams) -> Vec<(u64, DatagramDropReason)> {
    std::iter::from_fn(|| datagrams.dropped()).map(|dropped| (dropped.id.0, dropped.reason)).collect()
}

/// The datagrams that fit one packet.
fn packet(datagrams: &mut Datagrams, size: usize) -> Vec<Vec<u8>> {
    packet_at(datagrams, Instant::ZERO, size)
}

fn packet_at(datagrams: &mut Datagrams, now: Instant, size: usize) -> Vec<Vec<u8>> {
    let mut payload = vec![0; size];
    let mut out = FrameWriter::new(&mut payload, Dialect::SinglePath);
    datagrams.write(now, &mut out, PAYLOAD.min(size), |_, _| {});
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
    let too_large = send(&mut datagrams, vec![0; 98], true);
    assert_eq!(too_large, Err(SendDatagramError::TooLarge));
    send(&mut datagrams, vec![0; 97], true).unwrap();
    assert_eq!(packet(&mut datagrams, 100), [vec![0; 97]]);
}

#[test]
fn the_longest_datagram_fits_the_queue() {
    let mut datagrams = supported(300);
    let len = datagrams.max_len(PAYLOAD).unwrap();
    assert_eq!(send(&mut datagrams, vec![0; len], false), Ok(()));
    let too_large = send(&mut datagrams, vec![0; len + 1], true);
    assert_eq!(too_large, Err(SendDatagramError::TooLarge));
}

#[test]
fn peers_without_datagrams_get_none() {
    let mut datagrams = Datagrams::new(None, 1_000, SharedMemory::new(1 << 20));
    assert_eq!(send(&mut datagrams, Bytes::new(), true), Err(SendDatagramError::UnsupportedByPeer));
    assert_eq!(local_frame_max(None), 0);
    let error = receive(&mut datagrams, 0).unwrap_err();
    assert_eq!(error.code, TransportErrorCode::PROTOCOL_VIOLATION);
    assert_eq!(error.frame, Some(FrameType::DATAGRAM));
}

#[test]
fn a_full_queue_blocks_or_drops_the_oldest() {
    let mut datagrams = supported(300);
    for byte in 0..3 {
        send(&mut datagrams, vec![byte; 30], false).unwrap();
    }
    let fourth = Bytes::from(vec![3; 30]);
    assert_eq!(send(&mut datagrams, fourth.clone(), false), Err(SendDatagramError::Blocked(fourth.clone())));
    send(&mut datagrams, fourth, true).unwrap();
    assert_eq!(datagrams.stats().dropped_outgoing, 1);
    assert_eq!(datagrams.poll_event(), Some(DatagramEvent::Dropped));
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
    send(&mut datagrams, vec![0; 900], false).unwrap();
    send(&mut datagrams, vec![1; 90], false).unwrap();
    assert_eq!(packet(&mut datagrams, 500), [vec![1; 90]]);
    assert_eq!(datagrams.stats().dropped_outgoing, 1);
}

#[test]
fn unread_datagrams_are_bounded_and_announced_once() {
    let mut datagrams = supported(0);
    for len in 0..100 {
        receive(&mut datagrams, len).unwrap();
    }
    assert!(datagrams.incoming.bytes() <= 1_000);
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

#[test]
fn larger_priorities_leave_first_and_equal_ones_in_order() {
    let mut datagrams = supported(10_000);
    for (byte, priority) in [(0, 0), (1, -5), (2, 7), (3, 0), (4, 7), (5, i32::MIN), (6, i32::MAX)] {
        assert_eq!(send_with(&mut datagrams, byte, of_priority(priority)), Ok(byte.into()));
    }
    let order: Vec<u8> = packet(&mut datagrams, 1_000).iter().map(|data| data[0]).collect();
    assert_eq!(order, [6, 2, 4, 0, 3, 1, 5]);
    assert_eq!(datagrams.stats().sent, 7);
}

#[test]
fn the_least_and_oldest_make_room_and_the_application_hears_of_them() {
    use DatagramDropReason::Displaced;
    let mut datagrams = supported(300);
    for (byte, priority) in [(0, 1), (1, 0), (2, 0)] {
        send_with(&mut datagrams, byte, of_priority(priority)).unwrap();
    }
    assert_eq!(datagrams.poll_event(), None);
    // Worth less than all that wait.
    assert_eq!(
        send_with(&mut datagrams, 3, of_priority(-1)),
        Err(SendDatagramError::Blocked(vec![3; 30].into()))
    );
    assert_eq!(notices(&mut datagrams), []);
    assert_eq!(send_with(&mut datagrams, 4, of_priority(0)), Ok(3));
    assert_eq!(datagrams.poll_event(), Some(DatagramEvent::Dropped));
    assert_eq!(send_with(&mut datagrams, 5, of_priority(2)), Ok(4));
    assert_eq!(datagrams.poll_event(), None, "it was told, and did not ask");
    assert_eq!(notices(&mut datagrams), [(1, Displaced), (2, Displaced)]);
    // One that needs the room of all is not worth one that is worth more than it.
    let large = |priority| (Bytes::from(vec![6; 200]), of_priority(priority));
    let (data, options) = large(0);
    assert!(matches!(datagrams.send(data, &options, PAYLOAD), Err(SendDatagramError::Blocked(_))));
    assert_eq!(notices(&mut datagrams), [], "nothing is dropped in vain");
    let (data, options) = large(1);
    assert!(matches!(datagrams.send(data, &options, PAYLOAD), Err(SendDatagramError::Blocked(_))));
    let (data, options) = large(2);
    assert!(datagrams.send(data, &options, PAYLOAD).is_ok());
    assert_eq!(datagrams.poll_event(), Some(DatagramEvent::Dropped));
    assert_eq!(notices(&mut datagrams), [(3, Displaced), (0, Displaced), (4, Displaced)]);
    let stats = datagrams.stats();
    assert_eq!((stats.dropped_outgoing, stats.late), (5, 0));
}

#[test]
fn what_is_late_is_dropped_before_it_is_written() {
    use DatagramDropReason::Late;
    let at = Instant::from_millis;
    let mut datagrams = supported(10_000);
    for (byte, options) in [(0, until(20)), (1, until(10)), (2, of_priority(0)), (3, until(30))] {
        send_with(&mut datagrams, byte, options).unwrap();
    }
    assert_eq!(datagrams.next_timeout(), Some(at(10)));
    assert_eq!(packet_at(&mut datagrams, at(9), 35), [vec![0; 30]], "in time, to the last moment");
    // The second has to leave before its deadline, not at it.
    assert_eq!(packet_at(&mut datagrams, at(10), 35), [vec![2; 30]]);
    assert_eq!(datagrams.poll_event(), Some(DatagramEvent::Dropped));
    assert_eq!(notices(&mut datagrams), [(1, Late)]);
    assert_eq!(datagrams.next_timeout(), Some(at(30)));
    datagrams.on_timeout(at(29));
    assert!(datagrams.wants_to_send());
    datagrams.on_timeout(at(30));
    assert!(!datagrams.wants_to_send());
    assert_eq!(datagrams.next_timeout(), None);
    assert_eq!(datagrams.poll_event(), Some(DatagramEvent::Dropped));
    assert_eq!(notices(&mut datagrams), [(3, Late)]);
    assert_eq!((datagrams.stats().sent, datagrams.stats().late), (2, 2));
}

#[test]
fn the_deadline_of_what_is_gone_rings_at_most_once() {
    let at = Instant::from_millis;
    let mut datagrams = supported(10_000);
    send_with(&mut datagrams, 0, until(10)).unwrap();
    send_with(&mut datagrams, 1, until(20)).unwrap();
    packet_at(&mut datagrams, at(5), 35);
    datagrams.on_timeout(at(10));
    assert_eq!(datagrams.next_timeout(), Some(at(20)));
    packet_at(&mut datagrams, at(15), 35);
    assert_eq!(datagrams.next_timeout(), None, "an empty queue waits for nothing");
    assert_eq!(notices(&mut datagrams), []);
}

#[test]
fn late_datagrams_make_room_for_an_application_that_waits() {
    let mut datagrams = supported(300);
    for byte in 0..3 {
        send_with(&mut datagrams, byte, until(10)).unwrap();
    }
    let refused = DatagramOptions::default();
    assert!(matches!(send_with(&mut datagrams, 3, refused), Err(SendDatagramError::Blocked(_))));
    datagrams.on_timeout(Instant::ZERO + Duration::from_millis(10));
    assert_eq!(datagrams.poll_event(), Some(DatagramEvent::Dropped));
    assert_eq!(datagrams.poll_event(), Some(DatagramEvent::Unblocked));
}

#[test]
fn notices_that_nobody_reads_are_bounded_and_counted() {
    let mut datagrams = supported(300);
    for byte in 0..=255 {
        for _ in 0..10 {
            send_with(&mut datagrams, byte, of_priority(0)).unwrap();
        }
    }
    let stats = datagrams.stats();
    assert_eq!(stats.dropped_outgoing, 2_560 - 3);
    let told = notices(&mut datagrams);
    assert_eq!(told.len() as u64 + stats.notices_lost, stats.dropped_outgoing);
    assert!(told.len() <= 1_024, "{}", told.len());
    assert_eq!(told.last().map(|(id, _)| *id), Some(2_556), "the newest are kept");
    // The application has asked for all: the next one is announced again.
    assert_eq!(datagrams.poll_event(), None);
    send_with(&mut datagrams, 0, of_priority(0)).unwrap();
    assert_eq!(datagrams.poll_event(), Some(DatagramEvent::Dropped));
}

#[test]
fn without_memory_at_the_endpoint_only_a_few_of_the_newest_datagrams_wait() {
    let memory = SharedMemory::new(400_000);
    let make = || Datagrams::new(Some(100_000), 0, memory.clone());
    let mut hogs = [make(), make()];
    let (size, count) = (1_000, 99);
    let fill = |datagrams: &mut Datagrams| {
        for n in 0..count {
            let payload = Bytes::from(vec![n; size]);
            datagrams.on_datagram(&Datagram { data: &payload }, &payload).unwrap();
        }
        std::iter::from_fn(|| datagrams.incoming.queue.back().cloned()).next()
    };
    for hog in &mut hogs {
        fill(hog);
        assert!(hog.incoming.bytes() > 50_000, "a connection may have its buffer while there is room");
    }
    let mut late = make();
    let newest = fill(&mut late).unwrap();
    assert_eq!(newest[0], count - 1);
    assert!(late.incoming.bytes() <= 2 * 16 * 1024, "{} bytes", late.incoming.bytes());
    drop(hogs);
    fill(&mut late);
    assert!(late.incoming.bytes() > 90_000, "there is room again");
    drop(late);
    assert_eq!(memory.reserved(), 0);
}

#[test]
fn the_room_is_that_of_a_datagram_that_displaces_none() {
    let mut datagrams = supported(300);
    let first = datagrams.send_room();
    assert!((200..300).contains(&first), "{first}");
    send(&mut datagrams, vec![1; 50], false).unwrap();
    let room = datagrams.send_room();
    assert!(room > 0 && room <= first - 50, "{room} of {first}");
    assert!(send(&mut datagrams, vec![2; room + 1], false).is_err());
    send(&mut datagrams, vec![2; room], false).unwrap();
    assert_eq!(datagrams.send_room(), 0);
}
