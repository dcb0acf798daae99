use super::*;

const DATA: SpaceKey = (2, 0);

fn ms(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

fn stream(offset: u64, len: u64) -> [SentFrameInfo; 1] {
    [SentFrameInfo::Stream { id: 0, offset, len }]
}

fn values(points: &Points) -> Vec<u64> {
    points.as_slice().iter().map(|point| point.value).collect()
}

/// Three packets of 1000 bytes, of which the second is lost and sent again.
fn with_a_loss() -> Timeline {
    let mut timeline = Timeline::default();
    for number in 0..3 {
        timeline.packet_sent(ms(number), (DATA, number), 1_030, true, &stream(number * 1_000, 1_000));
    }
    timeline.packets_acked(ms(50), DATA, 0, 0);
    timeline.packets_acked(ms(52), DATA, 2, 2);
    timeline.packet_lost(ms(60), DATA, 1);
    timeline.packet_sent(ms(60), (DATA, 3), 1_030, true, &stream(1_000, 1_000));
    timeline
}

#[test]
fn what_is_sent_again_lies_where_it_was_first() {
    let mut timeline = with_a_loss();
    assert_eq!(values(&timeline.sent), [1_000, 2_000, 3_000]);
    assert_eq!(values(&timeline.resent), [2_000]);
    assert_eq!(values(&timeline.lost), [2_000]);
    timeline.packets_acked(ms(110), DATA, 3, 3);
    assert_eq!(values(&timeline.acked), [1_000, 3_000]);
    assert!(timeline.spurious.is_empty());
    assert_eq!(values(&timeline.in_flight).last(), Some(&0));
}

#[test]
fn the_late_acknowledgement_of_a_lost_packet_shows_that_the_loss_was_spurious() {
    let mut timeline = with_a_loss();
    timeline.packets_acked(ms(70), DATA, 0, 3);
    assert_eq!(values(&timeline.spurious), [2_000]);
    assert_eq!(values(&timeline.acked), [1_000, 3_000]);
}

#[test]
fn bytes_of_several_streams_lie_in_the_order_in_which_they_left() {
    let mut timeline = Timeline::default();
    let frames = [
        SentFrameInfo::Stream { id: 0, offset: 0, len: 500 },
        SentFrameInfo::Stream { id: 4, offset: 0, len: 300 },
        SentFrameInfo::Datagram(200),
    ];
    timeline.packet_sent(ms(0), (DATA, 0), 1_100, true, &frames);
    // Half of it was sent before.
    timeline.packet_sent(
        ms(1),
        (DATA, 1),
        1_100,
        true,
        &[SentFrameInfo::Stream { id: 4, offset: 200, len: 200 }],
    );
    assert_eq!(values(&timeline.sent), [500, 800, 1_000, 1_100]);
    assert_eq!(values(&timeline.resent), [800]);
    timeline.packet_lost(ms(2), DATA, 0);
    timeline.packets_acked(ms(3), DATA, 1, 1);
    timeline.packet_sent(ms(4), (DATA, 2), 1_100, true, &frames[..2]);
    timeline.packets_acked(ms(5), DATA, 2, 2);
    // The lost datagram is not waited for.
    assert_eq!(values(&timeline.acked).last(), Some(&1_100));
}

#[test]
fn told_bytes_in_flight_take_the_place_of_counted_ones() {
    let mut timeline = with_a_loss();
    timeline.in_flight(ms(61), 777);
    timeline.packets_acked(ms(62), DATA, 3, 3);
    assert_eq!(values(&timeline.in_flight), [777]);
}

#[test]
fn absurd_numbers_do_no_harm() {
    let mut timeline = Timeline::default();
    let absurd = [SentFrameInfo::Stream { id: u64::MAX, offset: u64::MAX - 5, len: u64::MAX }];
    timeline.packet_sent(ms(0), (DATA, u64::MAX), u64::MAX, true, &absurd);
    timeline.packet_sent(ms(0), (DATA, 0), u64::MAX, true, &[SentFrameInfo::Datagram(u64::MAX)]);
    timeline.packets_acked(ms(1), DATA, 0, u64::MAX);
    timeline.packets_acked(ms(1), DATA, 9, 3);
    timeline.packet_lost(ms(1), DATA, 12);
    assert!(!timeline.is_empty());
}
