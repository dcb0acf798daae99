//! Runs on all cores.

use std::collections::BTreeMap;
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

/// Why a task has no result: it panicked, with this message.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Panicked(pub(super) String);

/// As [`for_each_on`], on all cores.
pub(super) fn for_each<R: Send>(
    count: usize,
    task: impl Fn(usize) -> R + Sync,
    done: impl FnMut(usize, Result<R, Panicked>) -> bool,
) {
    for_each_on(None, count, task, done);
}

/// Does each of `count` tasks on one of `jobs` threads (`None`: one for each core) and hands its number and result to `done`, in the order in which
/// they end. Stops early when `done` says so.
pub(super) fn for_each_on<R: Send>(
    jobs: Option<usize>,
    count: usize,
    task: impl Fn(usize) -> R + Sync,
    mut done: impl FnMut(usize, Result<R, Panicked>) -> bool,
) {
    let threads = jobs.unwrap_or_else(|| thread::available_parallelism().map_or(1, usize::from)).min(count);
    let next = AtomicUsize::new(0);
    let (results, inbox) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..threads {
            let (results, task, next) = (results.clone(), &task, &next);
            scope.spawn(move || {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= count {
                        break;
                    }
                    let result = panic::catch_unwind(AssertUnwindSafe(|| task(number)));
                    // Nobody listens any more: the rest is not wanted.
                    if results.send((number, result.map_err(|payload| Panicked::of(&*payload)))).is_err() {
                        break;
                    }
                }
            });
        }
        drop(results);
        while let Ok((number, result)) = inbox.recv() {
            if !done(number, result) {
                break;
            }
        }
        drop(inbox);
    });
}

/// Results in the order of their tasks, whichever ended first: what is written of them is the same on every machine. It holds at most the
/// results that ended while an earlier task was still running.
#[derive(Debug)]
pub(super) struct InOrder<R> {
    next: usize,
    early: BTreeMap<usize, R>,
}

impl<R> Default for InOrder<R> {
    fn default() -> Self {
        Self { next: 0, early: BTreeMap::new() }
    }
}

impl<R> InOrder<R> {
    /// Takes the result of a task. Returns those whose turn it is now.
    pub(super) fn take(&mut self, number: usize, result: R) -> Vec<R> {
        self.early.insert(number, result);
        let mut due = Vec::new();
        while let Some(result) = self.early.remove(&self.next) {
            due.push(result);
            self.next += 1;
        }
        due
    }
}

impl Panicked {
    fn of(payload: &(dyn std::any::Any + Send)) -> Self {
        let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
        Self(text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_default())
    }

    pub(super) fn in_one_line(&self) -> String {
        self.0.lines().map(str::trim).collect::<Vec<_>>().join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_task_is_done_once_whichever_panics() {
        let mut seen = vec![0; 50];
        for_each(
            50,
            |number| {
                assert_ne!(number, 7, "seven");
                number * 2
            },
            |number, result| {
                seen[number] += 1;
                match result {
                    Ok(double) => assert_eq!(double, 2 * number),
                    Err(Panicked(message)) => assert!(number == 7 && message.contains("seven")),
                }
                true
            },
        );
        assert_eq!(seen, vec![1; 50]);
    }

    #[test]
    fn results_that_end_early_wait_for_those_before_them() {
        let mut in_order = InOrder::default();
        let due = [2, 1, 0, 4, 3].map(|number| in_order.take(number, number));
        assert_eq!(due, [vec![], vec![], vec![0, 1, 2], vec![], vec![3, 4]]);
    }

    #[test]
    fn whoever_has_enough_stops() {
        let mut seen = 0;
        for_each(
            1_000_000,
            |_| std::hint::black_box(0),
            |_, _| {
                seen += 1;
                seen < 3
            },
        );
        assert_eq!(seen, 3);
    }
}
