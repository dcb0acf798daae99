//! The queue under every order in which handles and the worker can meet (`loom` tries them one by one).

use std::sync::Arc;
use std::task::Wake;

use loom::model::Builder;
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::sync::{Arc as LoomArc, Condvar, Mutex};
use loom::thread;

use super::*;

/// How often a thread is interrupted where it need not be. More takes minutes and finds what this finds.
const PREEMPTIONS_MAX: usize = 3;

impl<T> Lock<T> for Mutex<T> {
    fn new(value: T) -> Self {
        Self::new(value)
    }

    fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        f(&mut self.lock().unwrap())
    }
}

/// A connection as far as the queue is concerned: what was changed and not served yet, and its `queued` flag.
#[derive(Default)]
struct Connection {
    changes: usize,
    queued: bool,
}

/// What handles and the worker share.
struct Model {
    queue: ReadyQueue<usize, Mutex<Ready<usize>>>,
    connections: [Mutex<Connection>; 2],
    /// Something else that the worker has to see, such as another socket.
    is_rebound: Mutex<bool>,
    /// How often the queue has woken the worker since its last turn began.
    wakes: LoomArc<AtomicUsize>,
}

impl Model {
    fn new() -> LoomArc<Self> {
        LoomArc::new(Self {
            queue: ReadyQueue::new(),
            connections: Default::default(),
            is_rebound: Mutex::new(false),
            wakes: LoomArc::new(AtomicUsize::new(0)),
        })
    }

    /// What a handle does: it changes a connection under its lock, and queues it unless it is queued.
    fn change(&self, connection: usize) {
        let mut state = self.connections[connection].lock().unwrap();
        state.changes += 1;
        if !state.queued {
            state.queued = true;
            drop(state);
            self.queue.push(connection);
        }
    }

    /// What [`Endpoint::rebind`](crate::Endpoint::rebind) does.
    fn rebind(&self) {
        *self.is_rebound.lock().unwrap() = true;
        self.queue.wake();
    }

    /// A turn of the worker. Returns the number of changes that it has served.
    fn turn(&self) -> usize {
        let mut touched = Vec::new();
        self.queue.take(&mut touched);
        assert!(self.wakes.swap(0, Ordering::Relaxed) <= 1, "woken more than once between two turns");
        let mut served = 0;
        for (at, connection) in touched.iter().enumerate() {
            assert!(!touched[..at].contains(connection), "queued twice");
            let mut state = self.connections[*connection].lock().unwrap();
            assert!(state.queued);
            state.queued = false;
            served += mem::take(&mut state.changes);
        }
        served + usize::from(mem::take(&mut *self.is_rebound.lock().unwrap()))
    }

    /// The worker: sleeps whenever the queue lets it, until it has served so many changes. If a wake-up were lost, it would
    /// sleep for ever, and `loom` would say so.
    fn serve(&self, changes: usize) {
        let alarm =
            Arc::new(Alarm { wakes: self.wakes.clone(), rings: Mutex::new(false), rang: Condvar::new() });
        let waker = Waker::from(alarm.clone());
        let mut served = self.turn();
        while served < changes {
            if !self.queue.park(&Context::from_waker(&waker)) {
                alarm.sleep();
            }
            served += self.turn();
        }
        assert_eq!(served, changes);
    }
}

/// What the worker sleeps on.
struct Alarm {
    wakes: LoomArc<AtomicUsize>,
    rings: Mutex<bool>,
    rang: Condvar,
}

impl Alarm {
    fn sleep(&self) {
        let mut rings = self.rings.lock().unwrap();
        while !mem::take(&mut *rings) {
            rings = self.rang.wait(rings).unwrap();
        }
    }
}

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        self.wakes.fetch_add(1, Ordering::Relaxed);
        *self.rings.lock().unwrap() = true;
        self.rang.notify_one();
    }
}

fn in_every_order(test: impl Fn() + Sync + Send + 'static) {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(PREEMPTIONS_MAX);
    builder.check(test);
}

#[test]
fn no_change_is_lost_and_the_worker_is_woken_once_for_many() {
    in_every_order(|| {
        let model = Model::new();
        let handles = [vec![0, 1], vec![0]].map(|changes| {
            let model = model.clone();
            thread::spawn(move || changes.into_iter().for_each(|connection| model.change(connection)))
        });
        model.serve(3);
        handles.into_iter().for_each(|handle| handle.join().unwrap());
    });
}

#[test]
fn a_turn_that_is_asked_for_is_taken_whatever_the_worker_does() {
    in_every_order(|| {
        let model = Model::new();
        let (first, second) = (model.clone(), model.clone());
        let handles = [thread::spawn(move || first.rebind()), thread::spawn(move || second.change(1))];
        model.serve(2);
        handles.into_iter().for_each(|handle| handle.join().unwrap());
    });
}
