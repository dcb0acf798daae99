use super::*;

/// Beside others that have reserved everything; with what they have reserved.
fn budget() -> (ReceiveBudget, Reservation) {
    let memory = SharedMemory::new(0);
    let mut others = Reservation::new(memory.clone());
    others.set_held(1 << 20);
    (ReceiveBudget::new(memory), others)
}

#[test]
fn where_nothing_is_left_a_connection_holds_what_every_one_may_and_no_more() {
    let (mut budget, _others) = budget();
    let floor = crate::memory::CONNECTION_FLOOR_BYTES;
    assert_eq!(budget.window_limit(1), floor);
    budget.exchange(0, floor, 1).unwrap();
    let error = budget.exchange(floor, floor + 1, 1).unwrap_err();
    assert_eq!(error.code, TransportErrorCode::INTERNAL_ERROR);
    budget.release(1);
    budget.exchange(floor - 1, floor, 1).unwrap();
}

#[test]
fn what_is_held_already_is_no_error_though_others_have_taken_the_rest() {
    let memory = SharedMemory::new(1 << 20);
    let mut budget = ReceiveBudget::new(memory.clone());
    // One step is reserved, of which a part is used: up to there it may grow.
    budget.exchange(0, 20_000, 1).unwrap();
    let mut others = Reservation::new(memory.clone());
    others.set_held(4 << 20);
    budget.exchange(20_000, 32_768, 1).unwrap();
    assert!(budget.exchange(32_768, 32_769, 1).is_err());
    budget.exchange(32_768, 32_768, 1).unwrap();
    budget.exchange(32_768, 30_000, 1).unwrap();
}

#[test]
fn the_last_byte_that_others_leave_is_taken() {
    let mut budget = ReceiveBudget::new(SharedMemory::new(1 << 20));
    let all = crate::memory::CONNECTION_FLOOR_BYTES + (1 << 20);
    assert!(budget.exchange(0, all + 1, 1).is_err());
    budget.exchange(0, all, 1).unwrap();
}
