use super::*;

#[test]
fn a_packet_counts_once() {
    let mut received = Received::default();
    for number in [5, 3, 4, 9] {
        assert!(!received.is_duplicate(number));
        assert!(received.insert(Instant::ZERO, number));
        assert!(received.is_duplicate(number));
        assert!(!received.insert(Instant::ZERO, number));
    }
    assert!(!received.is_duplicate(0) && !received.is_duplicate(6));
}

#[test]
fn the_largest_keeps_the_time_of_its_arrival() {
    let mut received = Received::default();
    assert_eq!(received.largest(), None);
    for (millis, number) in [(1, 5), (2, 7), (3, 6), (4, 7)] {
        received.insert(Instant::from_millis(millis), number);
    }
    assert_eq!(received.largest(), Some(7));
    assert_eq!(received.largest_time(), Some(Instant::from_millis(2)));
}

#[test]
fn gaps_without_end_cost_a_bounded_memory_and_old_numbers_become_duplicates() {
    let mut received = Received::default();
    for number in (0..100_000).step_by(2) {
        assert!(received.insert(Instant::ZERO, number));
    }
    assert_eq!(received.ranges.len(), MAX_RECEIVED_RANGES);
    assert!(received.is_duplicate(1), "below the floor");
    assert!(!received.insert(Instant::ZERO, 1));
    assert!(!received.is_duplicate(99_997), "a recent gap stays open");
}
