use super::*;

const STEP: u64 = CONNECTION_FLOOR_BYTES;

#[test]
fn what_is_beyond_the_floor_is_reserved_in_steps_and_given_back_a_step_late() {
    let memory = SharedMemory::new(1 << 20);
    let mut reservation = Reservation::new(memory.clone());
    let mut reserved = |bytes| {
        reservation.set_held(bytes);
        assert_eq!(reservation.held(), bytes);
        memory.reserved()
    };
    assert_eq!(reserved(STEP), 0);
    assert_eq!(reserved(STEP + 1), STEP);
    assert_eq!(reserved(STEP * 2), STEP);
    assert_eq!(reserved(STEP * 4), STEP * 3);
    assert_eq!(reserved(STEP * 2), STEP * 3, "it may be needed again in a moment");
    assert_eq!(reserved(STEP * 2 - 1), STEP);
    // However large the step up or down.
    assert_eq!(reserved(STEP * STEP), STEP * (STEP - 1));
    assert_eq!(reserved(0), 0);
}

#[test]
fn a_reservation_counts_for_its_owner_and_against_the_others() {
    let memory = SharedMemory::new(STEP * 10);
    let [mut first, mut second] = [(); 2].map(|()| Reservation::new(memory.clone()));
    first.set_held(STEP * 5);
    second.set_held(STEP * 3);
    let window = STEP;
    // 4 and 2 steps are reserved, and each has the floor.
    assert_eq!((first.left(window), second.left(window)), (STEP * 5, STEP * 5));
    assert_eq!((first.limit(window), second.limit(window)), (STEP * 9, STEP * 7));
    // Of the first half there is nothing left.
    assert_eq!((first.limit_of_half(window), second.limit_of_half(window)), (STEP * 5, STEP * 3));
    assert_eq!(first.limit_of_half(STEP * 7), STEP * 6, "alone it has its window");
    assert!(first.covers(STEP * 5) && !first.covers(STEP * 5 + 1));
    drop(first);
    assert_eq!((memory.reserved(), second.limit(window)), (STEP * 2, STEP * 11));
    assert_eq!(second.limit_of_half(window), STEP * 6);
}

#[test]
fn a_part_is_reserved_when_there_is_more_than_that() {
    let memory = SharedMemory::new(STEP * 4);
    let mut reservation = Reservation::new(memory.clone());
    reservation.set_held(STEP * 3);
    assert!(!memory.is_reserved_to(2));
    assert!(memory.is_reserved_to(4));
    reservation.set_held(STEP * 3 + 1);
    assert!(memory.is_reserved_to(2));
}
