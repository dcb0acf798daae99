use fulmar_wire::{Dir, Side};

use super::*;

fn id(index: u64) -> StreamId {
    StreamId::new(Side::Client, Dir::Uni, index)
}

#[test]
fn higher_priorities_go_first_and_equals_take_turns() {
    let mut queue = PriorityQueue::default();
    queue.push(id(0), 0);
    queue.push(id(1), 0);
    queue.push(id(2), 5);
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
        queue.push(id(index), index as i32);
    }
    queue.remove(id(9));
    queue.remove(id(4));
    assert_eq!((queue.first(), queue.len()), (Some(id(8)), 8));
}
