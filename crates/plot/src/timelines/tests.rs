use super::*;
use crate::series::Points;

const FIRST: SpaceKey = (2, 0);
const SECOND: SpaceKey = (2, 1);

fn ms(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

fn values(points: &Points) -> Vec<u64> {
    points.as_slice().iter().map(|point| point.value).collect()
}

/// Three packets of 1000 bytes over two paths; what the second loses, the first sends again.
fn over_two_paths() -> (Timeline, Timeline) {
    let mut timelines = Timelines::default();
    let stream = |offset| [SentFrameInfo::Stream { id: 0, offset, len: 1_000 }];
    timelines.packet_sent(ms(0), (FIRST, 0), 1_030, true, &stream(0));
    timelines.packet_sent(ms(1), (SECOND, 0), 1_030, true, &stream(1_000));
    timelines.packet_sent(ms(2), (SECOND, 1), 1_030, true, &stream(2_000));
    timelines.packets_acked(ms(40), FIRST, 0, 0);
    timelines.packets_acked(ms(80), SECOND, 1, 1);
    timelines.packet_lost(ms(80), SECOND, 0);
    timelines.packet_sent(ms(81), (FIRST, 1), 1_030, true, &stream(1_000));
    timelines.packets_acked(ms(121), FIRST, 1, 1);
    let (connection, others) = timelines.finish();
    let [(1, second)]: [_; 1] = others.try_into().unwrap() else { panic!("path 1 has a course") };
    (connection, second)
}

#[test]
fn the_connection_has_what_all_paths_have_sent() {
    let (connection, second) = over_two_paths();
    assert_eq!(values(&connection.sent), [1_000, 2_000, 3_000]);
    assert_eq!(values(&connection.resent), [2_000]);
    assert_eq!(values(&connection.lost), [2_000]);
    assert_eq!(values(&connection.acked), [1_000, 3_000]);
    assert_eq!((connection.bytes(), second.bytes()), (3_000, 2_000));
}

#[test]
fn a_path_has_what_it_sent_where_the_connection_has_it() {
    let (_, second) = over_two_paths();
    assert_eq!(values(&second.sent), [2_000, 3_000]);
    assert_eq!(values(&second.lost), [2_000]);
    assert!(second.resent.is_empty() && second.acked.is_empty());
}

#[test]
fn bytes_in_flight_are_counted_on_their_path() {
    let (connection, second) = over_two_paths();
    assert_eq!(values(&connection.in_flight), [1_030, 0, 1_030, 0]);
    assert_eq!(values(&second.in_flight), [1_030, 2_060, 1_030, 0]);
}

#[test]
fn figures_of_paths_without_number_do_no_harm() {
    let mut timelines = Timelines::default();
    for path in 0..1_000 {
        if let Some(timeline) = timelines.path(path) {
            timeline.window(ms(0), path.into());
        }
        timelines.packet_sent(ms(0), ((2, path), 0), 1_030, true, &[]);
    }
    let (connection, others) = timelines.finish();
    assert_eq!((values(&connection.window), others.len()), (vec![0], PATHS_MAX));
}
