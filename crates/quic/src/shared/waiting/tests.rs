use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Wake;

use super::*;

/// A task that counts how often it is woken.
#[derive(Default)]
struct Task(AtomicUsize);

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl Task {
    fn woken(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

fn id(index: u64) -> StreamId {
    StreamId::new(fulmar_proto::Side::Client, Dir::Bi, index)
}

/// The event comes, and everybody who waits for it is woken.
fn wake(list: &mut WaitList) {
    let mut wakers = Vec::new();
    list.wake_all(&mut wakers);
    wakers.into_iter().for_each(Waker::wake);
}

#[test]
fn an_event_wakes_everybody_who_waits_once() {
    let (a, b) = (Arc::new(Task::default()), Arc::new(Task::default()));
    let (waker_a, waker_b) = (Waker::from(a.clone()), Waker::from(b.clone()));
    let (mut list, mut ticket_a, mut ticket_b) = (WaitList::default(), None, None);
    list.wait(&mut ticket_a, &Context::from_waker(&waker_a));
    list.wait(&mut ticket_a, &Context::from_waker(&waker_a));
    list.wait(&mut ticket_b, &Context::from_waker(&waker_b));
    wake(&mut list);
    assert_eq!((a.woken(), b.woken()), (1, 1));
    wake(&mut list);
    assert_eq!((a.woken(), b.woken()), (1, 1), "nobody waits any more");
    // The ticket is renewed, and the one of the other is void although its place is taken.
    list.wait(&mut ticket_a, &Context::from_waker(&waker_a));
    list.leave(&mut ticket_b);
    wake(&mut list);
    assert_eq!((a.woken(), b.woken()), (2, 1));
}

#[test]
fn who_leaves_leaves_nothing_behind() {
    let task = Arc::new(Task::default());
    let waker = Waker::from(task.clone());
    let mut list = WaitList::default();
    for _ in 0..1_000 {
        let mut ticket = None;
        list.wait(&mut ticket, &Context::from_waker(&waker));
        list.leave(&mut ticket);
        list.leave(&mut ticket);
    }
    assert_eq!((list.wakers.len(), list.wakers.capacity() < 10), (0, true));
    wake(&mut list);
    assert_eq!(task.woken(), 0);
    assert_eq!(Arc::strong_count(&task), 2, "and no waker is kept");
}

#[test]
fn a_ticket_follows_its_holder_to_another_task() {
    let (a, b) = (Arc::new(Task::default()), Arc::new(Task::default()));
    let (waker_a, waker_b) = (Waker::from(a.clone()), Waker::from(b.clone()));
    let (mut list, mut ticket) = (WaitList::default(), None);
    list.wait(&mut ticket, &Context::from_waker(&waker_a));
    list.wait(&mut ticket, &Context::from_waker(&waker_b));
    wake(&mut list);
    assert_eq!((a.woken(), b.woken()), (0, 1));
}

#[test]
fn slots_end_with_their_last_user_and_are_used_again() {
    let mut slots = StreamSlots::default();
    for index in 0..1_000 {
        let key = slots.insert(id(index), 2);
        slots.share(key);
        slots.release_reader(key);
        slots.release_writer(key);
        assert_eq!(slots.slots.len(), 1, "a future still waits for the completion");
        slots.release(key);
        assert_eq!((slots.slots.len(), slots.by_id.len()), (0, 0));
    }
    assert!(slots.slots.capacity() < 10);
}

#[test]
fn events_find_their_stream_and_wake_no_other() {
    let tasks: Vec<_> = (0..10).map(|_| Arc::new(Task::default())).collect();
    let mut slots = StreamSlots::default();
    let keys: Vec<_> = (0..10).map(|index| slots.insert(id(index), 1)).collect();
    for (task, key) in tasks.iter().zip(&keys) {
        slots.wait_to_read(*key, &Context::from_waker(&Waker::from(task.clone())));
    }
    let mut wakers = Vec::new();
    slots.on_readable(id(3), &mut wakers);
    slots.on_readable(id(3), &mut wakers);
    slots.on_writable(id(4), &mut wakers);
    // Its slot is the next to be used again, and events for it may still come.
    slots.release_reader(keys[5]);
    slots.insert(id(20), 1);
    slots.on_readable(id(5), &mut wakers);
    wakers.into_iter().for_each(Waker::wake);
    let woken: Vec<_> = tasks.iter().map(|task| task.woken()).collect();
    assert_eq!(woken, [0, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
}

#[test]
fn what_came_first_is_how_a_stream_ended() {
    let mut slots = StreamSlots::default();
    let key = slots.insert(id(0), 1);
    let stopped = Completion::Stopped(VarInt::from_u32(7));
    slots.on_completed(id(0), stopped, &mut Vec::new());
    slots.on_completed(id(0), Completion::Received, &mut Vec::new());
    assert_eq!(slots.completion(key), Some(stopped));
}
