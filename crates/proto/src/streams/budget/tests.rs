use fulmar_wire::{Dir, Side};

use super::*;

const WINDOW: u64 = 800_000;

/// A budget whose window has grown to [`WINDOW`].
fn budget() -> SendBudget {
    let mut budget = SendBudget::new(WINDOW, SharedMemory::new(1 << 30));
    budget.set_flight(WINDOW, WINDOW);
    budget
}

#[test]
fn those_who_wait_are_woken_for_what_is_worth_it() {
    let id = StreamId::new(Side::Client, Dir::Bi, 0);
    let mut budget = budget();
    assert_eq!(budget.wake_room(), STREAM_FLOOR_BYTES);
    budget.hold(WINDOW - STREAM_FLOOR_BYTES);
    assert!(!budget.should_wake(), "nobody waits");
    budget.wait(id);
    assert!(budget.should_wake());
    budget.hold(1);
    assert!(!budget.should_wake());
    budget.release(1);
    assert!(budget.should_wake());
    assert_eq!(budget.take_waiting(), [id]);
    assert!(!budget.should_wake());
    let small = SendBudget::new(8_000, SharedMemory::new(1 << 30));
    assert_eq!(small.wake_room(), 1_000, "an eighth of a small window");
    assert_eq!(SendBudget::new(0, SharedMemory::new(1 << 30)).wake_room(), 1);
}

#[test]
fn nobody_is_woken_while_the_endpoint_has_nothing_left() {
    let memory = SharedMemory::new(0);
    let mut budget = SendBudget::new(WINDOW, memory.clone());
    budget.set_flight(WINDOW, WINDOW);
    let mut other = Reservation::new(memory);
    other.set_held(2 * WINDOW);
    budget.hold(STREAM_FLOOR_BYTES);
    budget.wait(StreamId::new(Side::Client, Dir::Bi, 0));
    assert!(!budget.should_wake());
    drop(other);
    assert!(budget.should_wake());
}

#[test]
fn room_is_scarce_where_it_is_less_than_each_stream_has_anyway() {
    let mut budget = budget();
    assert!(!budget.is_scarce());
    budget.hold(WINDOW - STREAM_FLOOR_BYTES);
    assert!(!budget.is_scarce());
    budget.hold(1);
    assert!(budget.is_scarce());
}
