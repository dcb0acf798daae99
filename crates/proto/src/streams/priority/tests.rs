use fulmar_wire::{Dir, Side};
use proptest::prelude::*;

use super::*;

fn id(index: u64) -> StreamId {
    StreamId::new(Side::Client, Dir::Uni, index)
}

#[test]
fn higher_priorities_go_first_and_equals_take_turns() {
    let mut queue = PriorityQueue::default();
    queue.push(id(0), Priority::default());
    queue.push(id(1), Priority::default());
    queue.push(id(2), 5.into());
    assert_eq!(queue.first(), Some(id(2)));
    // A whole quantum does not hand the turn to a lower priority.
    queue.charge(QUANTUM_BYTES as usize);
    assert_eq!(queue.first(), Some(id(2)));
    queue.pop();
    let mut order = Vec::new();
    for _ in 0..6 {
        let first = queue.first().unwrap();
        order.push(first.index());
        queue.charge(QUANTUM_BYTES as usize / 2);
    }
    assert_eq!(order, [0, 0, 1, 1, 0, 0], "quanta, not single packets");
}

#[test]
fn removal_finds_a_stream_anywhere() {
    let mut queue = PriorityQueue::default();
    for index in 0..10 {
        queue.push(id(index), (index as i32).into());
    }
    queue.remove(id(9));
    queue.remove(id(4));
    assert_eq!((queue.first(), queue.len()), (Some(id(8)), 8));
}

/// Which stream sends in each of `turns` turns of half a quantum.
fn turns(queue: &mut PriorityQueue, turns: usize) -> Vec<u64> {
    let mut order = Vec::new();
    for _ in 0..turns {
        order.push(queue.first().unwrap().index());
        queue.charge(QUANTUM_BYTES as usize / 2);
    }
    order
}

#[test]
fn streams_that_are_not_incremental_go_one_after_the_other_in_order_of_id() {
    let mut queue = PriorityQueue::default();
    for index in [2, 0, 1] {
        queue.push(id(index), Priority::new(3, false));
    }
    assert_eq!(turns(&mut queue, 5), [0, 0, 0, 0, 0], "the first is sent to its end");
    queue.pop();
    assert_eq!(turns(&mut queue, 3), [1, 1, 1]);
    // It has data again, and comes before those that were opened later.
    queue.push(id(0), Priority::new(3, false));
    assert_eq!(turns(&mut queue, 1), [0]);
}

#[test]
fn incremental_streams_of_an_urgency_share_and_let_the_others_go_first() {
    let mut queue = PriorityQueue::default();
    queue.push(id(0), Priority::new(3, true));
    queue.push(id(1), Priority::new(3, true));
    queue.push(id(2), Priority::new(3, false));
    assert_eq!(turns(&mut queue, 3), [2, 2, 2]);
    queue.pop();
    assert_eq!(turns(&mut queue, 6), [0, 0, 1, 1, 0, 0]);
}

#[test]
fn more_urgent_streams_go_first_whether_incremental_or_not() {
    let mut queue = PriorityQueue::default();
    for urgency in (0..=7).rev() {
        queue.push(id(u64::from(urgency)), Priority::new(urgency, urgency % 2 == 0));
    }
    for urgency in 0..=7 {
        assert_eq!(turns(&mut queue, 3), [urgency; 3]);
        queue.pop();
    }
    assert!(queue.is_empty());
}

#[test]
fn urgencies_and_levels_are_two_names_for_the_same() {
    assert_eq!(Priority::default(), Priority::from(0));
    assert_eq!(Priority::default(), Priority::new(3, true), "urgency 3 is the default of HTTP");
    for urgency in 0..=7 {
        let priority = Priority::new(urgency, false);
        assert_eq!((priority.urgency(), priority.is_incremental()), (urgency, false));
        assert_eq!(priority.level(), 3 - i32::from(urgency));
    }
    assert_eq!(Priority::new(8, false), Priority::new(7, false), "there is no larger urgency");
    assert_eq!((Priority::from(i32::MAX).urgency(), Priority::from(i32::MIN).urgency()), (0, 7));
}

proptest! {
    #[test]
    fn what_is_held_at_a_level_and_above_is_the_sum_of_it(
        streams in prop::collection::vec((-4i32..4, 0u64..1_000), 0..30),
    ) {
        let held: HeldByLevel = streams.iter().copied().collect();
        for level in -5..=5 {
            let sum: u64 = streams.iter().filter(|(other, _)| *other >= level).map(|(_, held)| held).sum();
            prop_assert_eq!(held.at_least(level), sum);
        }
    }
}

#[test]
fn equals_of_any_priority_take_turns_of_a_quantum() {
    let mut queue = PriorityQueue::default();
    queue.push(id(0), 5.into());
    queue.push(id(1), 5.into());
    assert_eq!(turns(&mut queue, 6), [0, 0, 1, 1, 0, 0]);
}
